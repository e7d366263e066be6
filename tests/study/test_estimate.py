"""What is said before a run: what is left, from which seconds, and whether it fits."""

import re

import pytest
import tiny_models
import toy_study

from explainer.models import checkpoints
from explainer.study import estimate
from explainer.study.comparison_runs import Study
from explainer.study.store import Store


@pytest.fixture
def said(tmp_path):
    """The lines for three settings of a tiny model, of which some are stored with the given seconds."""
    model = str(tiny_models.save("llama", tmp_path / "model"))
    experiment, store = Study(data={"toy": toy_study.DATA}), Store(tmp_path / "store")

    def lines(*seconds, size=4):
        settings = [toy_study.cell(model, seed=seed) for seed in range(3)]
        for one, its in zip(settings, seconds, strict=False):
            store.save(experiment.identity(one), {"cells": {}}, provenance={}, run={"seconds": its})
        return list(estimate.lines(experiment, experiment.plan(settings, store), store, size))

    return lines


def test_the_time_is_the_books_until_a_setting_of_the_checkpoint_is_stored(said):
    (first,) = said()
    assert re.search(r"model: 3 to compute, less than a minute each and .* \(the book's, scaled by", first)
    (then,) = said(600.0, 660.0)
    assert "model: 1 to compute, about 10 min each and about 10 min in all in one process (the median" in then
    assert said(600.0, 660.0, 5.0) == []


def test_a_model_that_may_not_fit_is_said(said):
    (_, warning) = said(size=10**9)
    assert "may not fit this machine's" in warning and "--dtype bfloat16" in warning


@pytest.mark.parametrize(("seconds", "words"), [(59, "less than a minute"), (90, "about 2 min"), (9000, "about 2.5 h")])
def test_seconds_in_words(seconds, words):
    assert estimate._said(seconds) == words


def test_the_weights_of_the_book_are_counted():
    assert checkpoints.n_parameters(checkpoints.STARTER) == estimate._WEIGHTS_OF_BOOK
