"""explainer.theory.pairwise_similarity against `metrics`, pair by pair."""

import itertools

import pytest
import torch
from draws import randn

from explainer.errors import ShapeError
from explainer.theory import metrics, pairwise_similarity

C, N, LAYERS, HIDDEN = 4, 5, 3, 7


@pytest.fixture(scope="module")
def zsl():
    return randn(N, LAYERS, HIDDEN, seed=1)


@pytest.fixture(scope="module")
def outputs(zsl):
    return list(zsl + randn(C, N, LAYERS, HIDDEN, seed=2))


@pytest.mark.parametrize(
    ("name", "measure"),
    [
        ("sim_aou", metrics.sim_aou),
        ("sim_aou_noise", metrics.normalised_noise_value),
        ("sim_aou_tangent_uncentred", metrics.sim_aou_tangent_uncentred),
        ("sim_aou_residual", metrics.sim_aou_residual),
    ],
)
def test_outputs_pair_by_pair(zsl, outputs, name, measure):
    found = pairwise_similarity.of_outputs(zsl, outputs)[name]
    assert found.shape == (C, C, N, LAYERS)
    for a, b in itertools.product(range(C), repeat=2):
        torch.testing.assert_close(found[a, b], measure(zsl, outputs[a], outputs[b]), rtol=0, atol=1e-12)


def test_scores_pair_by_pair():
    lengths = (2, 5, 3)
    zsl = [randn(LAYERS, 2, n, seed=n) for n in lengths]
    scores = [[m + randn(*m.shape, seed=10 * c + len(m[0, 0])) for m in zsl] for c in range(1, C + 1)]
    found = pairwise_similarity.of_scores(zsl, scores)
    for a, b in itertools.product(range(C), repeat=2):
        maps, deltas = metrics.sim_am(scores[a], scores[b]), metrics.sim_am_delta(zsl, scores[a], scores[b])
        torch.testing.assert_close(found["sim_am"][a, b], maps.nanmean(-1), rtol=0, atol=1e-12)
        torch.testing.assert_close(found["sim_am_delta"][a, b], deltas.nanmean(-1), rtol=0, atol=1e-12)


def test_where_only_rounding_changes_there_is_no_cosine(zsl, outputs):
    """Of float32 in the first layer, as for the scores of a query's own tokens after a context."""
    noise = 1 + 4 * torch.finfo(torch.float32).eps * randn(2, N, LAYERS, HIDDEN, seed=7)
    rounded = [torch.cat([(zsl * its)[:, :1], other[:, 1:]], 1) for its, other in zip(noise, outputs, strict=False)]
    scores = [[m[:, None] for m in h.float()] for h in (zsl, outputs[2], *rounded)]
    found = pairwise_similarity.of_scores(scores[0], scores[1:])["sim_am_delta"]
    aou = pairwise_similarity.of_outputs(zsl.float(), [h.float() for h in (outputs[2], *rounded)])
    for each in (found, aou["sim_aou"], aou["sim_aou_tangent_uncentred"]):
        assert each[1:, :, :, 0].isnan().all() and each[:, 1:, :, 0].isnan().all()
        assert not each[0, 0].isnan().any() and not each[..., 1:].isnan().any()
    shifted = pairwise_similarity.of_scores(scores[0], scores[1:], [10**7, 0, 0])["sim_am_delta"]
    assert shifted[0].isnan().all() and torch.equal(shifted[1:, 1:].isnan(), found[1:, 1:].isnan())


def test_maps_pair_by_pair():
    dW = list(randn(C, N, LAYERS, 2, 3, 4, seed=5))
    found = pairwise_similarity.of_maps(dW)
    for a, b in itertools.product(range(C), repeat=2):
        expected = metrics.update_cosines(dW[a], dW[b]).nanmean(-1)
        torch.testing.assert_close(found[a, b], expected, rtol=0, atol=1e-12)


def test_a_change_that_changes_nothing_has_no_direction(zsl, outputs):
    found = pairwise_similarity.of_outputs(zsl, [zsl, outputs[0]])
    assert found["sim_aou"][0].isnan().all() and not found["sim_aou"][1, 1].isnan().any()


def test_other_shapes_are_refused(zsl, outputs):
    with pytest.raises(ShapeError, match="should have the shape of zsl"):
        pairwise_similarity.of_outputs(zsl, [outputs[0][:2]])
    with pytest.raises(ShapeError, match="query 0: scores have shapes"):
        pairwise_similarity.of_scores([randn(LAYERS, 2, 3)], [[randn(LAYERS, 2, 4)]])
