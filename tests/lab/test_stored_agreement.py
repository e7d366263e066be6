"""The published comparisons of contexts and trainings: complete in themselves, and what the code of today computes."""

import pytest
import torch
from published_grids import grids

from explainer.compare import comparison
from explainer.data import tasks
from explainer.models import finetuning, loading, scoring
from explainer.results.published import results
from explainer.theory import pairwise_similarity
from explainer_lab import agreement
from explainer_lab.agreement import Agreement

BENCH = grids(Agreement)["agreement"][0]


@pytest.fixture(scope="module")
def pairs():
    found = results("agreement", "pairs", task=BENCH.task, seed=BENCH.seed)
    return found.set_index(["a", "b"])["sim_aou"]


def test_every_pair_is_of_two_changes_of_its_setting():
    every = results("agreement", "changes").groupby("setting")["change"].agg(set)
    for setting, of in results("agreement", "pairs").groupby("setting"):
        assert set(of["a"]) | set(of["b"]) <= every[setting]


@pytest.mark.slow
def test_contexts_and_the_first_epoch_are_as_alike_as_stored(pairs):
    """Training is repeated one run at a time, not side by side as for the tables."""
    checkpoint, data = loading.load(dtype=torch.float32), tasks.load(BENCH.task)
    queries = comparison.draw_queries(data, BENCH.comparison)
    given = agreement.lessons(BENCH, tasks.load)

    def outputs(model, context):
        return comparison.observe(model, scoring.encode(model, context), data.task, queries).outputs

    def in_context(name):
        ids, _ = scoring.context_ids(checkpoint, *given[name])
        return outputs(checkpoint, ids)

    once = finetuning.training_ids(checkpoint, data.task, given["own"][1])
    with finetuning.fine_tune(checkpoint, once, BENCH.lr).applied() as tuned:
        trained = outputs(tuned, "")
    found = [in_context("own"), in_context("other"), in_context(BENCH.foreign[0]), trained]
    S = pairwise_similarity.of_outputs(outputs(checkpoint, ""), found)["sim_aou"].nanmean((-2, -1))
    names = ["ICL own", "ICL other", f"ICL {BENCH.foreign[0]}", f"FT own 1 {BENCH.lr:g}"]
    stored = [pairs[names[0], name] for name in names[1:]]
    torch.testing.assert_close(S[0, 1:], torch.tensor(stored).double(), atol=0.01, rtol=0)
