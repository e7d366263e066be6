"""explainer.compare.few_shots: what is stored, and that the model still gives it."""

import numpy as np
import pytest
import torch

from explainer.compare import few_shots
from explainer.data import tasks
from explainer.models import loading, scoring
from explainer.models.scoring import Record


@pytest.mark.parametrize("task", few_shots.SWEEPS)
def test_every_k_of_every_seed_is_stored_with_its_queries(task):
    sweep, records, data = few_shots.SWEEPS[task], few_shots.stored(task), tasks.load(task)
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


@pytest.fixture
def model(monkeypatch, tmp_path):
    """What is given in place of the starter checkpoint, and an empty directory in place of the published results."""
    loaded = []
    monkeypatch.setattr(loading, "load", lambda **how: loaded.append(how) or "the model")
    monkeypatch.setenv("EXPLAINER_RESULTS", str(tmp_path))
    yield "the model"
    assert loaded == [{"device": "cpu", "dtype": torch.float32}]


def test_what_a_model_answers_is_stored_to_four_places(model, monkeypatch):
    given = {}

    def sweep(asked, data, ks, seeds, n, **_):
        assert asked == model
        random, name = np.random.default_rng(n), data.task.name
        for seed in seeds:
            queries = tasks.queries(data, n, seed)
            for k in ks:
                of = name, seed, k, [data.task.prompt(query) for query in queries]
                if data.task.labels:
                    log_probs = -random.exponential(size=(n, len(data.task.labels)))
                    labels = np.array([query.label for query in queries])
                    record = Record(*of, log_probs.argmax(1) == labels, log_probs, labels)
                else:
                    record = Record(*of, random.random(n) < 0.5)
                given.setdefault(name, []).append(record)
        return given[name]

    monkeypatch.setattr(scoring, "sweep", sweep)
    few_shots.store()
    assert set(given) == set(few_shots.SWEEPS)
    for task, expected in given.items():
        for stored, record in zip(few_shots.stored(task), expected, strict=True):
            assert (stored.task, stored.seed, stored.k, stored.prompts) == (task, record.seed, record.k, record.prompts)
            assert stored.correct.tolist() == record.correct.tolist()
            if record.log_probs is not None:
                np.testing.assert_allclose(stored.log_probs, record.log_probs, rtol=0, atol=0.5e-4 + 1e-12)


@pytest.mark.slow
@pytest.mark.weekly  # what writes the file is tested above, what scores in `test_scoring.py`
@pytest.mark.parametrize(("task", "most"), [("plurals", 4), ("reviews", 2)])
def test_a_sample_is_computed_again(task, most):
    """Logits move in the last digits from processor to processor, so that an answer on the edge may change."""
    starter = loading.load(device="cpu", dtype=torch.float32)
    stored = {(one.seed, one.k): one for one in few_shots.stored(task)}
    for one in few_shots._records(starter, task, seeds=[1], most=most):
        before = stored[one.seed, one.k]
        assert (one.correct != before.correct).sum() <= 1
        if one.log_probs is not None:
            np.testing.assert_allclose(one.log_probs, before.log_probs, atol=2e-2)
