"""explainer.compare.few_shot_comparison: what a model answers before it is trained, and what is stored of that."""

from types import SimpleNamespace

import numpy as np
import pytest
import tiny_models
from toy_study import DATA

from explainer.compare import comparison, few_shot_comparison
from explainer.compare.few_shot_comparison import Look
from explainer.data import tasks
from explainer.models import scoring
from explainer.theory.statistics import Interval


def test_the_shares_are_those_of_the_answers_on_the_selection():
    checkpoint, seeds, n = tiny_models.random_checkpoint(tiny_models.CONFIGS["llama"]), (3, 5), 4
    found = Look.of(checkpoint, DATA, 2, seeds, n)
    right, labels = {0: [], 2: []}, []
    for seed in seeds:
        asked = tasks.queries(DATA, n, seed, lambda query: comparison.in_split(query, "selection"))
        labels += [query.label for query in asked]
        for k, answers in right.items():
            ids, _ = scoring.context_ids(checkpoint, DATA.task, tasks.demonstrations(DATA, k, seed))
            answers += list(scoring.answer(checkpoint, DATA.task, scoring.encode(checkpoint, ids), asked).correct)
    assert (found.zero_shot.estimate, found.in_context.estimate) == (np.mean(right[0]), np.mean(right[2]))
    assert found.difference.estimate == pytest.approx(np.mean(right[2]) - np.mean(right[0]))
    assert found.constant == max(labels.count(label) for label in labels) / len(labels)


def test_naming_one_label_in_context_is_no_learning():
    without, after, gained = Interval(0.18, 0.07, 0.32), Interval(0.37, 0.21, 0.52), Interval(0.18, 0.03, 0.34)
    assert [Look(without, after, gained, constant).learns for constant in (None, 0.2, 0.37)] == [True, True, False]


@pytest.mark.parametrize(("before", "after", "settled"), [(False, True, True), (False, False, False)])
def test_seeds_that_are_all_alike_settle_no_more_than_their_queries_do(monkeypatch, before, after, settled):
    """A model that answers all queries of both seeds, or none: its difference has the width of Wilson's intervals."""
    empty = []

    def answer(checkpoint, task, prefix, queries):
        empty.append(len(prefix.ids) == 1)
        return SimpleNamespace(correct=np.full(len(queries), before if empty[-1] else after))

    monkeypatch.setattr(scoring, "answer", answer)
    found = Look.of(tiny_models.random_checkpoint(tiny_models.CONFIGS["llama"]), DATA, 2, (3, 5), 4)
    assert empty == [True, False] * 2
    assert found.difference.estimate == after - before
    assert -1 <= found.difference.low < found.difference.high <= 1
    assert bool(found.difference.low > 0) is settled


@pytest.mark.parametrize("task", few_shot_comparison.SWEEPS)
def test_every_k_of_every_seed_is_stored_with_its_queries(task):
    sweep, records, data = few_shot_comparison.SWEEPS[task], few_shot_comparison.stored(task), tasks.load(task)
    assert [(one.seed, one.k) for one in records] == [(seed, k) for seed in sweep.seeds for k in sweep.ks]
    for one in records:
        queries = tasks.queries(data, sweep.queries, one.seed)
        assert one.task == task and one.prompts == [data.task.prompt(query) for query in queries]
        assert one.correct.shape == (sweep.queries,) and one.correct.dtype == bool
        if data.task.labels:
            assert one.log_probs.shape == (sweep.queries, len(data.task.labels)) and one.log_probs.max() <= 0
            assert one.labels.tolist() == [query.label for query in queries]
            assert (one.correct == (one.log_probs.argmax(1) == one.labels)).all()
        else:
            assert one.log_probs is None and one.labels is None
