"""explainer.results.coverage: which intervals keep their promise when seeds share queries."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from explainer.results import comparison_results, coverage, reporting
from explainer.results.published import results
from explainer.theory import statistics
from explainer.theory.statistics import Components

ACCURACY = Components(0.0, 0.5, 0.5)
"""Shares of seeds, queries and the rest in differences of answers on word pairs (`test_shares_of_the_published`)."""

SIMILARITY = Components(0.3, 0.3, 0.4)


def test_simulated_studies_have_the_variances_asked_for(monkeypatch):
    monkeypatch.setattr(coverage, "_QUERIES", 30)
    monkeypatch.setattr(coverage, "_POOL", 60)
    rng, share = np.random.default_rng(0), Components(0.2, 0.5, 0.3)
    studies = [coverage._simulated(share, 12, rng) for _ in range(80)]
    found = np.array([statistics.variance_components(each) for each in studies])
    assert (abs(found.mean(0) - share) < 4 * found.std(0) / 80**0.5).all()
    assert all(len(set(ids)) == 30 and max(ids) < 60 for ids in studies[0].ids), "no query twice in a seed"


def test_all_methods_agree_on_the_mean():
    study = coverage._simulated(SIMILARITY, 6, np.random.default_rng(0))
    found = [method(study).estimate for method in coverage.METHODS.values()]
    assert np.ptp(found) == pytest.approx(0, abs=1e-12)


def test_the_nested_bootstrap_draws_seeds_anew_and_examples_within_them():
    """Of two seeds, one all 0 and one all 1, half of the resamples have both, so that the ends are 0 and 1."""
    apart = statistics.Sample([(np.zeros(4),), (np.ones(4),)], [np.arange(4)] * 2)
    assert tuple(coverage.METHODS["nested bootstrap"](apart))[:3] == (0.5, 0, 1)
    alike = statistics.Sample([(np.arange(2.0),)] * 2, [np.arange(2)] * 2)  # mean of four draws of 0 or 1
    assert tuple(coverage.METHODS["nested bootstrap"](alike))[:3] == (0.5, 0, 1)


def kept(share, seeds, repetitions=300):
    """Of three tasks, the first of which has no variance by its seeds, as is estimated where there is little."""
    shares = pd.DataFrame([share._replace(seed=-0.1), share, share])
    return {name: held.estimate for name, held in coverage.coverage(shares, seeds, repetitions).items()}


WEEKLY = [pytest.param(*of, marks=pytest.mark.weekly) for of in ((5, 200), (10, 66), (10, 200), (20, 66), (20, 200))]


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "pool"), [(5, 66), *WEEKLY])
def test_the_promise_is_kept_where_seeds_share_queries(monkeypatch, seeds, pool):
    """The interval of a difference keeps 95 % with few seeds and many; the crossed bootstrap needs ten.

    Of 600 studies each (standard error .009), Student with shared queries held the truth in .952 to .990, the crossed
    bootstrap in .878 (similarity, 5 seeds) to .997 (answers, 5 seeds).
    """
    monkeypatch.setattr(coverage, "_POOL", pool)
    for share in (SIMILARITY, ACCURACY):
        held = kept(share, seeds)
        assert held["Student, shared queries"] >= 0.92
        assert held["crossed bootstrap"] >= (0.83 if seeds == 5 else 0.89)
        assert held["crossed bootstrap"] >= held["nested bootstrap"] - 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pool", "student", "nested"), [(66, 0.35, 0.2), pytest.param(200, 0.12, 0.06, marks=pytest.mark.weekly)]
)
def test_false_alarms_without_the_shared_queries(monkeypatch, pool, student, nested):
    """What the first edition did, and what Student over seeds alone would do, on answers to words from one pool.

    With twenty seeds and two hundred words p < .05 comes up in a fifth of the cases in which there is nothing.
    """
    monkeypatch.setattr(coverage, "_POOL", pool)
    held = kept(ACCURACY, 20)
    assert 1 - held["Student over seeds"] > student
    assert 1 - held["nested bootstrap"] > nested


@pytest.mark.slow
def test_false_alarms_of_few_seeds():
    """Queries add nothing, five seeds: the bootstrap of either kind raises three times as many alarms as it says."""
    held = kept(Components(0.5, 0.0, 0.5), 5)
    for method in ("nested bootstrap", "crossed bootstrap"):
        assert 0.08 <= 1 - held[method] <= 0.25
    for method in ("Student over seeds", "Student, shared queries"):
        assert 1 - held[method] <= 0.09


def median_shares(samples):
    """The median over tasks of the share of variance of seeds, queries and the rest."""
    shares = [statistics.variance_components(each).shares for each in samples]
    return Components(*np.median(np.clip(shares, 0, None), axis=0))


def test_shares_of_the_published_word_pairs():
    """Which word is asked decides more of an answer than which demonstrations are shown."""
    real = results("word-pairs", "queries", control="none")
    of_task = dict(list(real.groupby("task", sort=False)))
    of_answers, of_similarity = (
        median_shares(reporting.as_sample(its, measure) for its in of_task.values())
        for measure in ("icl_correct", "sim_aou")
    )
    assert of_answers.query > 0.3 and of_answers.seed < 0.15
    assert of_similarity.query > 0.2
    shuffled = results("word-pairs-controls", "queries", control="shuffled-context")
    pairs = {
        task: comparison_results._matched(shuffled[shuffled["task"] == task], its, "icl_correct")
        for task, its in of_task.items()
    }
    differences = {
        task: replace(a, groups=[(x.astype(float) - y,) for (x,), (y,) in zip(a.groups, b.groups, strict=True)])
        for task, (a, b) in pairs.items()
    }
    assert median_shares(differences.values()).query > 0.2
