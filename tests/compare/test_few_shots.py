"""explainer.compare.few_shot_comparison: what is stored."""

import pytest

from explainer.compare import few_shot_comparison
from explainer.data import tasks


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
