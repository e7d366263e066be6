"""theory.metrics against plain loops, hand-computed cases, closed forms, simulation and invariances, in float64."""

import itertools
import math

import pytest
import torch
from draws import randn, seeded
from hypothesis import example, given, settings
from hypothesis import strategies as st

from explainer.theory import metrics

OUTPUT_MEASURES = {
    "sim_aou": metrics.sim_aou,
    "sim_aou_corrected": lambda zsl, icl, ft: metrics.sim_aou(zsl, icl, ft, normalize=False),
    "normalised_noise_value": metrics.normalised_noise_value,
    "sim_aou_tangent": metrics.sim_aou_tangent,
    "sim_aou_tangent_uncentred": metrics.sim_aou_tangent_uncentred,
    "sim_aou_residual": metrics.sim_aou_residual,
}
TAUS = {"a": metrics.kendall_tau_a, "b": metrics.kendall_tau_b}

each_output_measure = pytest.mark.parametrize("measure", OUTPUT_MEASURES.values(), ids=OUTPUT_MEASURES)
each_tau = pytest.mark.parametrize("tau", TAUS.values(), ids=TAUS)
seeds = st.integers(0, 2**31)
few = settings(max_examples=40, deadline=None)


def vectors(*rows):
    """One query per row, one layer: (n, 1, hidden)."""
    return torch.tensor(rows, dtype=torch.float64)[:, None]


def outputs(seed=0, n=5, layers=3, hidden=7):
    return tuple(randn(3, n, layers, hidden, seed=seed))


def close(actual, expected, tolerance=1e-12):
    torch.testing.assert_close(
        actual, torch.as_tensor(expected, dtype=torch.float64), rtol=tolerance, atol=tolerance, equal_nan=True
    )


def within_three_standard_errors(sample, expected):
    sample = sample.flatten()
    error = sample.std() / len(sample) ** 0.5
    return abs(sample.mean() - expected) < 3 * error


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def cosine(a, b):
    return dot(a, b) / math.sqrt(dot(a, a) * dot(b, b))


# Part 1. Predictions.


def test_rec2ftp_by_hand():
    zsl, icl, ft = (torch.tensor([int(c) for c in row]).bool() for row in ("000011", "110010", "101011"))
    assert metrics.rec2ftp_counts(zsl, icl, ft) == (4, 2, 2, 1)
    assert metrics.rec2ftp(zsl, icl, ft) == 1 / 2
    assert metrics.rec2ftp_chance(zsl, icl) == 2 / 4


def test_rec2ftp_without_repairs_is_nan_with_a_warning():
    zsl, wrong = torch.tensor([False, False, True]), torch.zeros(3, dtype=torch.bool)
    with pytest.warns(RuntimeWarning, match="none of the 2 zero-shot errors") as warned:
        assert math.isnan(metrics.rec2ftp(zsl, ~wrong, wrong))
    assert warned[0].filename == __file__, "the line that asks"
    assert math.isnan(metrics.rec2ftp_chance(~wrong, wrong))


# Part 2. Attention outputs.


@pytest.mark.parametrize("normalize", [True, False])
def test_sim_aou_is_the_loop_of_the_definition(normalize):
    zsl, icl, ft = outputs(n=2, layers=2)
    actual = metrics.sim_aou(zsl, icl, ft, normalize=normalize)
    for i, layer in itertools.product(range(2), range(2)):
        h = [v[i, layer].tolist() for v in (zsl, icl, ft)]
        if normalize:
            h = [[x / math.sqrt(dot(v, v)) for x in v] for v in h]
        updates = [[x - y for x, y in zip(v, h[0], strict=True)] for v in h[1:]]
        close(actual[i, layer], cosine(*updates))


@each_output_measure
@given(seed=seeds, scale=st.sampled_from([1e-200, 0.3, 1e200]))
@few
def test_measures_of_outputs_ignore_scale_rotation_and_roles(measure, seed, scale):
    zsl, icl, ft = outputs(seed)
    rotation = torch.linalg.qr(randn(7, 7, seed=seed + 1)).Q
    units = torch.randperm(7, generator=seeded(seed))
    value = measure(zsl, icl, ft)
    assert value.shape == (5, 3) and value.dtype == torch.float64
    low = [h.half() for h in (zsl, icl, ft)]
    close(measure(*low), measure(*(h.double() for h in low)), 0)  # converted before anything is computed
    assert value.abs().max() <= 1
    close(measure(zsl, ft, icl), value, 1e-8)
    close(measure(*(scale * h for h in (zsl, icl, ft))), value, 1e-8)
    close(measure(*(h @ rotation for h in (zsl, icl, ft))), value, 1e-8)
    close(measure(*(h[..., units] for h in (zsl, icl, ft))), value, 1e-8)
    queries, layers = torch.randperm(5, generator=seeded(seed)), torch.randperm(3, generator=seeded(seed))
    close(measure(*(h[queries][:, layers] for h in (zsl, icl, ft))), value[queries][:, layers], 1e-9)


@given(seeds)
@few
def test_normalised_sim_aou_is_noise_value_plus_tangent_part(seed):
    zsl, icl, ft = outputs(seed)
    z, u_icl, u_ft = (h / h.norm(dim=-1, keepdim=True) for h in (zsl, icl, ft))
    d_icl, d_ft = (u_icl - z).norm(dim=-1), (u_ft - z).norm(dim=-1)
    tangent = metrics.sim_aou_tangent_uncentred(zsl, icl, ft) * ((1 - d_icl**2 / 4) * (1 - d_ft**2 / 4)).sqrt()
    close(metrics.sim_aou(zsl, icl, ft), metrics.normalised_noise_value(zsl, icl, ft) + tangent, 1e-9)


@pytest.mark.parametrize(("rho", "expected"), [(math.sqrt(3), 1 / 4), (1, (1 - 1 / math.sqrt(2)) / 2), (1e9, 1 / 2)])
def test_orthogonal_changes_score_exactly_the_noise_value(rho, expected):
    z, r_icl, r_ft = 2 * torch.eye(3, dtype=torch.float64)[:, None, None]
    inputs = z, z + rho * r_icl, z + rho * r_ft
    close(metrics.normalised_noise_value(*inputs), [[expected]], 1e-8)
    close(metrics.sim_aou(*inputs), [[expected]], 1e-8)
    close(metrics.sim_aou(*inputs, normalize=False), [[0]], 1e-8)
    close(metrics.sim_aou_tangent_uncentred(*inputs), [[0]], 1e-8)


def test_tangent_by_hand():
    zsl, icl, ft = vectors([2, 0, 0], [2, 0, 0]), vectors([3, 3, 0], [1, 0, 1]), vectors([1, 0, 5], [4, 4, 0])
    # Unit outputs without the first axis: ICL (c, 0) and (0, c), FT (0, 5/sqrt 26) and (c, 0) with c = 1/sqrt 2.
    close(metrics.sim_aou_tangent_uncentred(zsl, icl, ft), [[0], [0]])
    # Centred: ICL +-(c, -c)/2; FT -+(c, -5/sqrt 26)/2.
    c = 1 / math.sqrt(2)
    close(metrics.sim_aou_tangent(zsl, icl, ft), [[cosine((c, -c), (-c, 5 / math.sqrt(26)))]] * 2)


def test_the_residual_is_the_same_for_outputs_and_updates_and_ignores_every_length():
    given = outputs(n=4, layers=1)
    zsl, icl, ft = (h / h.norm(dim=-1, keepdim=True) for h in given)
    expected = []
    for i in range(4):
        plane = torch.linalg.qr(torch.stack([zsl[i, 0], zsl.mean(0)[0]], 1)).Q
        parts = [(h - zsl - (h - zsl).mean(0))[i, 0] for h in (icl, ft)]
        expected.append(cosine(*((p - plane @ (plane.T @ p)).tolist() for p in parts)))
    close(metrics.sim_aou_residual(*given)[:, 0], expected, 1e-10)


# Part 3. Floors.


def test_isotropic_floor_keeps_the_lengths_and_forgets_the_directions():
    zsl, icl, ft = outputs(n=4000, layers=1)
    stand_in = metrics.ft_with_random_directions(zsl, ft, seed=0)
    close((stand_in - zsl).norm(dim=-1), (ft - zsl).norm(dim=-1))
    assert within_three_standard_errors(metrics.sim_aou(zsl, icl, stand_in, normalize=False), 0)
    excess = metrics.sim_aou(zsl, icl, stand_in) - metrics.normalised_noise_value(zsl, icl, stand_in)
    assert within_three_standard_errors(excess, 0)
    directions = (stand_in - zsl)[:, 0] / (ft - zsl).norm(dim=-1)
    close(directions.T @ directions / 4000, torch.eye(7) / 7, 0.02)  # isotropic: covariance I / hidden
    alike = [zsl[0], zsl[0], zsl[0, :, :4]], [ft[0], ft[0], ft[0, :, :4]]
    first, second, short = (a - b for a, b in zip(metrics.ft_with_random_directions(*alike, 0), alike[0], strict=True))
    close(short.norm(dim=-1), (ft - zsl)[0, :, :4].norm(dim=-1))
    assert (first - second).abs().min() > 1e-6, "each query has its own draw"


@given(n=st.integers(2, 12), seed=seeds)
@few
def test_permuted_pairing_gives_every_query_the_update_of_another(n, seed):
    zsl, _, ft = outputs(seed, n=n)
    updates = ft - zsl
    moved = metrics.ft_with_permuted_updates(zsl, ft, seed) - zsl
    distance = (moved[:, None] - updates[None]).flatten(2).norm(dim=-1)
    assert ((distance < 1e-9).sum(0) == 1).all() and ((distance < 1e-9).sum(1) == 1).all()
    assert (distance.diagonal() > 1e-9).all()


@pytest.mark.parametrize(
    "floor", [metrics.ft_with_random_directions, metrics.ft_with_permuted_updates, metrics.uniform_floor]
)
def test_floors_depend_on_the_seed_alone(floor):
    zsl, _, ft = outputs(n=20)
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first = floor(zsl, ft, seed=0)
    close(floor(zsl, ft, seed=0), first, 0)
    assert (floor(zsl, ft, seed=1) - first).abs().max() > 1e-3
    assert torch.equal(torch.get_rng_state(), before)


def test_uniform_floor_measures_the_lean_towards_the_all_ones_vector():
    zsl = randn(60, 1, 2048) / 2048**0.5
    d = metrics._unit(zsl + 0.5 * (randn(60, 1, 2048, seed=1) + 0.3) / 2048**0.5) - metrics._unit(zsl)
    lean = torch.cosine_similarity(d, torch.ones(2048, dtype=torch.float64), dim=-1)
    found = metrics.uniform_floor(zsl, metrics._unit(zsl) + d, seed=2)
    assert within_three_standard_errors(found - math.sqrt(3) / 2 * lean, 0) and lean.mean() > 0.1


# Part 4. Attention scores.


def ragged(seed=0, layers=2, heads=3):
    """Three sets of scores of four queries of different lengths."""
    return [
        [randn(layers, heads, length, seed=seed + 10 * s + i) for i, length in enumerate((1, 4, 7, 4))]
        for s in range(3)
    ]


def padded(scores):
    return torch.stack([torch.nn.functional.pad(m, (7 - m.shape[-1], 0)) for m in scores])


def test_sim_am_is_the_loop_of_the_definition():
    zsl, icl, ft = ragged()
    plain, delta = metrics.sim_am(icl, ft), metrics.sim_am_delta(zsl, icl, ft)
    assert plain.shape == delta.shape == (4, 2, 3)
    for i, layer, head in itertools.product(range(4), range(2), range(3)):
        z, a, b = (scores[i][layer, head].tolist() for scores in (zsl, icl, ft))
        close(plain[i, layer, head], cosine(a, b))
        updates = ([x - y for x, y in zip(m, z, strict=True)] for m in (a, b))
        close(delta[i, layer, head], cosine(*updates))
    close(metrics.sim_am(icl, ft)[0].abs(), torch.ones(2, 3))  # one token: only the sign is left
    scores = randn(1000, 2, 3, 5)
    assert metrics.sim_am(scores, scores).max() == 1, "rounding does not leave the range"


def plain_tau(x, y, kind):
    pairs = list(itertools.combinations(range(len(x)), 2))
    signs = [((x[i] > x[j]) - (x[i] < x[j]), (y[i] > y[j]) - (y[i] < y[j])) for i, j in pairs]
    untied_x, untied_y = sum(a != 0 for a, _ in signs), sum(b != 0 for _, b in signs)
    if not untied_x or not untied_y:
        return math.nan
    return sum(a * b for a, b in signs) / (len(pairs) if kind == "a" else math.sqrt(untied_x * untied_y))


def tied_scores(T):
    return st.lists(st.integers(-3, 3).map(float), min_size=T, max_size=T)


@pytest.mark.parametrize("kind", TAUS)
@given(
    st.integers(1, 40).flatmap(lambda T: st.lists(st.tuples(tied_scores(T), tied_scores(T)), min_size=1, max_size=4))
)
@example([([1.0], [1.0])])
@example([([math.inf, -math.inf, 0.0], [-0.0, 0.0, 1.0])])
@settings(max_examples=60, deadline=None)
def test_tau_is_the_loop_over_pairs(kind, rows):
    x, y = (torch.tensor(side, dtype=torch.float64) for side in zip(*rows, strict=True))
    close(TAUS[kind](x, y), [plain_tau(a, b, kind) for a, b in rows])
    close(metrics.kendall_training_tokens(x[None], y[None])[0], metrics.kendall_tau_b(x, y))


@each_tau
def test_undefined_tau_is_nan(tau):
    x, constant = randn(5), torch.ones(5)
    holed = x.clone()
    holed[2] = torch.nan
    for a, b in [(x, constant), (constant, x), (constant, constant), (x, holed), (holed, x), (x[:1], x[:1])]:
        assert tau(a, b).isnan()
    rows = tau(torch.stack([x, holed]), torch.stack([x, x]))
    assert rows[0] == 1 and rows[1].isnan()
    assert tau(torch.zeros(0, 3, 5), torch.zeros(0, 3, 5)).shape == (0, 3)


@st.composite
def demonstrations(draw):
    """Spans that lie apart, and the number of tokens."""
    spans, end = [], 0
    for gap, length in draw(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 6)), min_size=2, max_size=8)):
        spans.append((end + gap, end + gap + length))
        end = spans[-1][1]
    return spans, end + draw(st.integers(0, 2))


@given(demonstrations(), seeds)
@few
def test_by_example_is_the_softmax_and_its_sums(layout, seed):
    spans, T = layout
    m = 3 * randn(2, 3, T, seed=seed)
    lengths = torch.tensor([stop - start for start, stop in spans])
    tokens = torch.cat([m[..., start:stop] for start, stop in spans], -1).softmax(-1)
    expected = torch.stack([part.sum(-1) for part in tokens.split(lengths.tolist(), -1)], -1)
    mass = metrics.attention_by_example(m, spans)
    close(mass.exp(), expected)
    close(metrics.attention_by_example(m, spans, mean=True).exp(), expected / lengths)
    close(mass.exp().sum(-1), torch.ones(2, 3))
    close(metrics.attention_by_example(m + 7, spans), mass)
    outside = torch.ones(T, dtype=torch.bool)
    for start, stop in spans:
        outside[start:stop] = False
    close(metrics.attention_by_example(m.masked_fill(outside, 1e6), spans), mass)
    apart = metrics.attention_by_example(torch.tensor([0, -2000, -3000.0]), [(0, 1), (1, 2), (2, 3)])
    close(apart, [0, -2000, -3000])  # which a softmax would round to zero


# Part 5. Weight updates.


@given(seeds)
@few
def test_update_cosines_are_the_loop_of_the_definition(seed):
    dW_icl, dW_ft = randn(2, 5, 3, 2, 4, 6, seed=seed)
    cosines = metrics.update_cosines(dW_icl, dW_ft)
    assert cosines.shape == (5, 3, 2)
    for i in itertools.product(range(5), range(3), range(2)):
        close(cosines[i], cosine(dW_icl[i].flatten().tolist(), dW_ft[i].flatten().tolist()))
    close(metrics.update_cosines(-2 * dW_icl, 1e-200 * dW_ft), -cosines)
    assert metrics.update_cosines(0 * dW_icl, dW_ft).isnan().all()
    left = torch.linalg.qr(randn(4, 4, seed=seed)).Q
    close(metrics.update_cosines(left @ dW_icl, left @ dW_ft), cosines)


# Part 6. Each change with each.


def test_many_changes_give_what_two_at_a_time_give():
    zsl, C = randn(5, 3, 7, seed=1), 4
    changed = list(zsl + randn(C, 5, 3, 7, seed=2))
    changed[1] = torch.cat([zsl[:, :1] * (1 + 1e-15), changed[1][:, 1:]], 1)  # rounding in the first layer
    own = [randn(3, 2, n, seed=n) for n in (2, 5, 3)]
    scores = [[m + randn(*m.shape, seed=10 * c + len(m[0, 0])) for m in own] for c in range(1, C + 1)]
    scores[2] = [m * (1 + 4e-14) for m in own]  # rounding after 200 tokens
    dW = list(randn(C, 5, 3, 2, 3, 4, seed=5))
    found = metrics.pairwise_outputs(zsl, changed) | metrics.pairwise_scores(own, scores, [0, 0, 200, 0])
    found["maps"] = metrics.pairwise_maps(dW)
    for a, b in itertools.product(range(C), repeat=2):
        of_two = {
            "sim_aou": metrics.sim_aou(zsl, changed[a], changed[b]),
            "sim_aou_noise": metrics.normalised_noise_value(zsl, changed[a], changed[b]),
            "sim_aou_tangent_uncentred": metrics.sim_aou_tangent_uncentred(zsl, changed[a], changed[b]),
            "sim_aou_residual": metrics.sim_aou_residual(zsl, changed[a], changed[b]),
            "sim_am": metrics.sim_am(scores[a], scores[b]).nanmean(-1),
            "maps": metrics.update_cosines(dW[a], dW[b]).nanmean(-1),
        }
        if b != 2:
            of_two["sim_am_delta"] = metrics.sim_am_delta(own, scores[a], scores[b], 200 * (a == 2)).nanmean(-1)
        for name, expected in of_two.items():
            close(found[name][a, b], expected)
    assert found["sim_aou"][1, :, :, 0].isnan().all() and found["sim_am_delta"][2].isnan().all()
    assert not found["sim_aou"][0, 0].isnan().any() and not found["sim_am_delta"][0, 0].isnan().any()


# Every part: seeds, zeros, precision.


def test_floors_do_not_draw_the_numbers_of_the_data():
    """The same seed for the data and for the floor is what readers do."""
    zsl = torch.zeros(200, 1, 50, dtype=torch.float64)
    icl = randn(200, 1, 50, seed=0)
    stand_in = metrics.ft_with_random_directions(zsl, icl, seed=0)
    assert metrics.sim_aou(zsl, icl, stand_in, normalize=False).mean().abs() < 0.1


@each_output_measure
def test_zero_outputs_and_updates_are_nan_never_zero(measure):
    zsl, icl, ft = outputs(n=4, layers=2)
    unchanged = icl.clone()
    unchanged[1, 0] = zsl[1, 0]
    value = measure(zsl, unchanged, ft)
    if measure in (metrics.sim_aou, OUTPUT_MEASURES["sim_aou_corrected"]):
        assert value.isnan().sum() == 1 and value[1, 0].isnan()
    if measure is not OUTPUT_MEASURES["sim_aou_corrected"]:
        zero = zsl.clone()
        zero[2, 1] = 0
        value = measure(zero, icl, ft)
        assert value[2, 1].isnan() and not value[:, 0].isnan().any()


def test_zero_scores_and_zero_score_updates_are_nan():
    zsl, icl, ft = (padded(scores) for scores in ragged())
    icl[3, 1, 2], zsl[0, 0, 0] = 0, ft[0, 0, 0]
    assert metrics.sim_am(icl, ft).isnan().nonzero().tolist() == [[3, 1, 2]]
    assert metrics.sim_am_delta(zsl, icl, ft).isnan().nonzero().tolist() == [[0, 0, 0]]
    assert metrics.uniform_floor(torch.zeros(1, 1, 3), randn(1, 1, 3), seed=0).isnan().all()
    assert metrics.uniform_floor(randn(1, 1, 3), randn(1, 1, 3), seed=0).isnan().all()


CHANGES = {
    "sim_aou": metrics.sim_aou,
    "sim_aou_corrected": OUTPUT_MEASURES["sim_aou_corrected"],
    "sim_aou_tangent": metrics.sim_aou_tangent,
    "sim_aou_tangent_uncentred": metrics.sim_aou_tangent_uncentred,
    "sim_aou_residual": metrics.sim_aou_residual,
    "uniform_floor": lambda zsl, icl, ft: metrics.uniform_floor(zsl, icl, seed=0),
    "sim_am_delta": lambda zsl, icl, ft: metrics.sim_am_delta(*(h[:, :, None] for h in (zsl, icl, ft)))[..., 0],
}
"""Cosines of a difference, (n, layers, d) three times -> (n, layers)."""


@pytest.mark.parametrize("measure", CHANGES.values(), ids=CHANGES)
@given(
    seeds,
    st.floats(-30, 30),
    st.floats(0.01, 0.3),
    st.sampled_from([torch.float32, torch.float64]),
)
@few
def test_a_difference_that_is_rounding_has_no_cosine_and_others_are_unchanged(measure, seed, exponent, size, dtype):
    """Layer 0 has the same state but for noise of up to 30 eps; in the others it changes by `size` of its length."""
    zsl, icl, ft = outputs(seed, n=4, layers=3, hidden=11)
    icl, ft = zsl + size * icl, zsl + size * ft
    noise = 2 * torch.rand(zsl[:, 0].shape, generator=seeded(seed + 1), dtype=torch.float64) - 1
    icl[:, 0] = zsl[:, 0] * (1 + 30 * torch.finfo(dtype).eps * noise)
    states = [(h * 2.0**exponent).to(dtype) for h in (zsl, icl, ft)]
    value = measure(*states)
    assert value[:, 0].isnan().all() and not value[:, 1:].isnan().any()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "_ROUNDING", 0)
        everywhere = measure(*states)
    assert not everywhere[:, 0].isnan().any(), "without the rule, noise has a cosine like any other change"
    assert torch.equal(everywhere[:, 1:], value[:, 1:])


@given(seeds, st.integers(1, 2), st.integers(0, 4000))
@few
def test_changes_beyond_rounding_keep_their_values(seed, axes, shift):
    state, change = outputs(seed, n=3, layers=4, hidden=5)[:2]
    edge = (32 + 2 * shift) * torch.finfo(torch.float32).eps
    last = tuple(range(-axes, 0))
    length = [torch.linalg.vector_norm(v, dim=last, keepdim=True) for v in (state, change)]
    change = change * length[0] / length[1]  # as long as the state
    rule = {"eps": metrics.machine_epsilon(state.float()), "shift": shift, "axes": axes}
    kept = metrics.nan_within_rounding(1.01 * edge * change, state, **rule)
    assert torch.equal(kept, 1.01 * edge * change)
    assert metrics.nan_within_rounding(0.99 * edge * change, state, **rule).isnan().all()
    eps = [metrics.machine_epsilon(*states) for states in ((state, state.half()), (state.float(),), (state,))]
    assert eps[0] == eps[1] > eps[2]
