"""Does in-context learning do what fine-tuning does? The measures of Dai et al. 2023, their floors, and repairs.

Letters: n queries, L layers (`layers`), T demonstration tokens, `hidden` the width of the model. ZSL, ICL and FT stand
for zero-shot, in-context and fine-tuned; h_ZSL, h_ICL, h_FT are attention outputs of one token, and an update is a
difference from ZSL. z, u_I, u_F are h_ZSL, h_ICL, h_FT divided by their length (L2 norm).

Everything is computed in float64, without gradients. A value that does not exist (the cosine of a zero vector or of
rounding, see `nan_within_rounding`; the tau of constant scores) is NaN; means are over what is a number (`nanmean`).
Tensors whose shapes are not those of their annotations raise ShapeError.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from explainer.errors import ShapeError
from explainer.theory.shapes import shaped

Outputs = Float[Tensor, "n layers hidden"]
Scores = Float[Tensor, "n layers heads len"] | Sequence[Float[Tensor, "layers heads _"]]
"""Attention scores before the softmax: one tensor, or one per query when the queries differ in length."""
_States = TypeVar("_States", Tensor, Sequence[Tensor])

_ROUNDING = 32
"""Relative changes up to so many eps are rounding: sums of a hundred products, added in two orders, differ by a few."""

_ROUNDING_PER_TOKEN = 2
"""And for each token by which the positions of two states differ, so many eps more.

A rotation by the angle p theta of position p is off by up to p eps / 2. In the first layer, where a context changes no
score of a query's own tokens, those of the starter checkpoint differ by up to 342 eps after 4000 tokens of context, and
with random weights by up to 1042; in the second layer by no less than 17000.
"""


def _exact(*tensors: Tensor) -> tuple[Tensor, ...]:
    return tuple(tensor.detach().to(torch.float64) for tensor in tensors)


def _unit(h: Float[Tensor, "*m d"]) -> Float[Tensor, "*m d"]:
    """Divide vectors by their lengths; a zero vector becomes NaN."""
    h = h / h.abs().amax(-1, keepdim=True)  # squares can neither overflow nor vanish
    return h / torch.linalg.vector_norm(h, dim=-1, keepdim=True)


@shaped
def _cosine(a: Float[Tensor, "*m d"], b: Float[Tensor, "*m d"]) -> Float[Tensor, "*m"]:
    return (_unit(a) * _unit(b)).sum(-1).clamp(-1, 1)


@shaped
def nan_within_rounding(
    change: Float[Tensor, "*m d"], beside: Float[Tensor, "*m d"], eps: float, *, shift: int = 0, axes: int = 1
) -> Float[Tensor, "*m d"]:
    """The changes that are more than rounding of what they were subtracted from; the others are NaN as a whole.

        |change| > (32 + 2 shift) eps |beside|

    `beside` is a state that the change is a difference from, `eps` that of the dtype in which it was computed, `shift`
    the number of tokens by which the positions of the two states differ. The last `axes` axes are one change.
    """
    last = tuple(range(-axes, 0))
    scale = beside.abs().amax(last, keepdim=True)  # squares can neither overflow nor vanish
    length, of_state = (torch.linalg.vector_norm(v / scale, dim=last, keepdim=True) for v in (change, beside))
    rounding = (_ROUNDING + _ROUNDING_PER_TOKEN * shift) * eps
    return change.masked_fill(length <= rounding * of_state, float("nan"))


def machine_epsilon(*states: Tensor) -> float:
    """Largest eps of the dtypes of some states, for `nan_within_rounding`; for half precision that of float32.

    Half precision sums in float32 but stores what is rounded again: compare states that were computed in float32.
    """
    return max(torch.finfo(torch.promote_types(state.dtype, torch.float32)).eps for state in states)


def _reject_from(h: Float[Tensor, "*m d"], direction: Float[Tensor, "*m d"]) -> Float[Tensor, "*m d"]:
    """Project out a unit direction: h - z (z . h)."""
    return h - direction * (direction * h).sum(-1, keepdim=True)


# Part 1. Predictions.


class _Rec2FTPCounts(NamedTuple):
    """Queries that ZSL gets wrong, and how many of them FT, ICL and both get right."""

    zsl_errors: int
    ft_fixes: int
    icl_fixes: int
    both_fix: int


@shaped
def rec2ftp_counts(
    zsl_correct: Bool[Tensor, " n"], icl_correct: Bool[Tensor, " n"], ft_correct: Bool[Tensor, " n"]
) -> _Rec2FTPCounts:
    """Count the errors of ZSL and those that FT, ICL and both repair; a ratio of single digits is no measurement."""
    wrong = ~zsl_correct
    sets = wrong, wrong & ft_correct, wrong & icl_correct, wrong & ft_correct & icl_correct
    return _Rec2FTPCounts(*(int(chosen.sum()) for chosen in sets))


def rec2ftp(zsl_correct: Bool[Tensor, " n"], icl_correct: Bool[Tensor, " n"], ft_correct: Bool[Tensor, " n"]) -> float:
    """Recall of fine-tuning's repairs by ICL: N[ZSL wrong, FT right, ICL right] / N[ZSL wrong, FT right].

    NaN, with a RuntimeWarning, when FT repairs nothing.
    Source: Dai et al. 2023, Table 2.
    """
    counts = rec2ftp_counts(zsl_correct, icl_correct, ft_correct)
    if counts.ft_fixes == 0:
        message = f"Rec2FTP is undefined: fine-tuning repairs none of the {counts.zsl_errors} zero-shot errors."
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return float("nan")
    return counts.both_fix / counts.ft_fixes


def rec2ftp_chance(zsl_correct: Bool[Tensor, " n"], icl_correct: Bool[Tensor, " n"]) -> float:
    """Chance value of Rec2FTP: N[ZSL wrong, ICL right] / N[ZSL wrong], NaN when ZSL makes no error.

    It is the expected Rec2FTP of a predictor that repairs as many errors as ICL does, drawn without regard to FT.
    """
    counts = rec2ftp_counts(zsl_correct, icl_correct, icl_correct)
    return counts.icl_fixes / counts.zsl_errors if counts.zsl_errors else float("nan")


# Part 2. Attention outputs.


@shaped
def sim_aou(zsl: Outputs, icl: Outputs, ft: Outputs, normalize: bool = True) -> Float[Tensor, "n layers"]:
    """Similarity of attention output updates, SimAOU: cos(h_ICL - h_ZSL, h_FT - h_ZSL).

    `normalize=True`, as in the released code, divides each h by its length first; unrelated changes then score
    `normalised_noise_value`, not 0. NaN where an output (normalised) or an update is zero, or an update only rounding.
    Source: Dai et al. 2023, Table 3; without normalisation, Deutch et al. 2024.
    """
    return _similarity(partial(_aou_update, normalize=normalize), zsl, icl, ft)


@shaped
def normalised_noise_value(zsl: Outputs, icl: Outputs, ft: Outputs) -> Float[Tensor, "n layers"]:
    """Value of the normalised SimAOU for unrelated changes: |d_I| |d_F| / 4 with d_I = u_I - z and d_F = u_F - z.

        SimAOU = |d_I| |d_F| / 4 + cos(t_I, t_F) sqrt((1 - |d_I|^2 / 4) (1 - |d_F|^2 / 4)),

    with t_I, t_F the parts orthogonal to z, whose cosine averages to zero where the changes are unrelated.
    Source: Deutch et al. 2024 for updates that are sqrt(3) times as long as h_ZSL (1/4); the identity is derived here.
    """
    z, u_icl, u_ft = map(_unit, _exact(zsl, icl, ft))
    return torch.linalg.vector_norm(u_icl - z, dim=-1) * torch.linalg.vector_norm(u_ft - z, dim=-1) / 4


def sim_aou_tangent_uncentred(zsl: Outputs, icl: Outputs, ft: Outputs) -> Float[Tensor, "n layers"]:
    """SimAOU without the zero-shot direction: cos(t_I, t_F) with t = u - z (z . u), as in `normalised_noise_value`.

    0 is its value for unrelated changes. NaN where an output is zero or a t is no more than rounding.
    """
    return _similarity(_tangent, zsl, icl, ft)


def sim_aou_tangent(zsl: Outputs, icl: Outputs, ft: Outputs) -> Float[Tensor, "n layers"]:
    """SimAOU without the zero-shot direction and the common update: cos(t_I - mean t_I, t_F - mean t_F).

    t = u - z (z . u), and the means run over the n queries, layer by layer. Where both changes make the output depend
    less on the query, they score up to 1 though unrelated; `sim_aou_residual` removes this. NaN for n = 1, in a whole
    layer if one output is zero, and where what is left is no more than rounding.
    """
    return _similarity(partial(_tangent, centred=True), zsl, icl, ft)


@shaped
def sim_aou_residual(zsl: Outputs, icl: Outputs, ft: Outputs) -> Float[Tensor, "n layers"]:
    """Similarity of what is specific to a query and not in its zero-shot output: cos(P u_I', P u_F').

    u' = u - mean u over the n queries, and P projects out the plane of z and mean z. NaN for n = 1, in a whole layer if
    one output is zero, and where the z of all queries are equal or what is left is no more than rounding.
    """
    return _similarity(_residual, zsl, icl, ft)


@shaped
def _similarity(direction: Callable[..., Tensor], zsl: Outputs, icl: Outputs, ft: Outputs) -> Tensor:
    """Cosine of what a change did in ICL and in FT, as a direction of each."""
    eps = machine_epsilon(zsl, icl, ft)
    return _cosine(*(direction(*_exact(zsl, h), eps) for h in (icl, ft)))


def _aou_update(
    zsl: Outputs, h: Float[Tensor, "*C n layers hidden"], eps: float, *, normalize: bool = True
) -> Float[Tensor, "*C n layers hidden"]:
    """What a change, or each of C, adds to the attention outputs: h - h_ZSL, or u - z; NaN where only rounding."""
    z, u = (_unit(zsl), _unit(h)) if normalize else (zsl, h)
    return nan_within_rounding(u - z, u, eps)


def _tangent(
    zsl: Outputs, h: Float[Tensor, "*C n layers hidden"], eps: float, *, centred: bool = False
) -> Float[Tensor, "*C n layers hidden"]:
    """The part of u orthogonal to z, t = u - z (z . u), or t less its mean over queries; NaN where only rounding."""
    u = _unit(h)
    t = _reject_from(u, _unit(zsl))
    return nan_within_rounding(t - t.mean(-3, keepdim=True) if centred else t, u, eps)


def _residual(zsl: Outputs, h: Float[Tensor, "*C n layers hidden"], eps: float) -> Float[Tensor, "*C n layers hidden"]:
    """The part of u less its mean over queries, orthogonal to z and to the mean of z; NaN where only rounding."""
    z, u = _unit(zsl), _unit(h)
    across = _unit(nan_within_rounding(_reject_from(z - z.mean(0), z), z, eps))
    return nan_within_rounding(_reject_from(_reject_from(u - u.mean(-3, keepdim=True), z), across), u, eps)


# Part 3. Floors: what the same measure gives for something that is no fine-tuning.


def ft_with_random_directions(zsl: _States, ft: _States, seed: int) -> _States:
    """Stand-in for FT whose updates are random directions of FT's lengths: h_ZSL + |h_FT - h_ZSL| g / |g|, g ~ N(0, I).

    Give it to a measure in the place of `ft`. Directions are along the last axis.
    """
    generator = _generator(seed)
    if isinstance(zsl, Tensor) and isinstance(ft, Tensor):
        return _isotropic(zsl, ft, generator)
    return [_isotropic(z, h, generator) for z, h in zip(zsl, ft, strict=True)]


def _generator(seed: int) -> torch.Generator:
    # Data that a reader drew with the same seed would be the same numbers, hence the other state.
    return torch.Generator().manual_seed(seed ^ 0x5EED)


@shaped
def _isotropic(
    zsl: Float[Tensor, "*m d"], ft: Float[Tensor, "*m d"], generator: torch.Generator
) -> Float[Tensor, "*m d"]:
    h_zsl, h_ft = _exact(zsl, ft)
    # Drawn on the CPU, so that every device gives the same numbers.
    direction = _unit(torch.randn(h_zsl.shape, generator=generator, dtype=torch.float64)).to(h_zsl.device)
    return h_zsl + torch.linalg.vector_norm(h_ft - h_zsl, dim=-1, keepdim=True) * direction


@shaped
def ft_with_permuted_updates(zsl: Float[Tensor, "n *m"], ft: Float[Tensor, "n *m"], seed: int) -> Float[Tensor, "n *m"]:
    """Stand-in for FT in which each query gets the update of another, of one random cycle: h_ZSL,i + h_FT,j - h_ZSL,j.

    Raises: ValueError for n = 1, which has no other query.
    """
    if len(zsl) < 2:
        raise ValueError(f"n = {len(zsl)} query has no other one to take the update from; give at least 2.")
    cycle = torch.randperm(len(zsl), generator=_generator(seed))
    other = torch.empty_like(cycle)
    other[cycle] = cycle.roll(1)
    h_zsl, h_ft = _exact(zsl, ft)
    return h_zsl + (h_ft - h_zsl)[other.to(h_zsl.device)]


@shaped
def uniform_floor(zsl: Outputs, icl: Outputs, seed: int) -> Float[Tensor, "n layers"]:
    """Random baseline of the released code, **biased**: cos(u_I - z, U) with all entries of U ~ Uniform[0, 1).

    Its expectation is about 0.866 cos(u_I - z, 1), not 0; kept for comparison with Table 3 of Dai et al. NaN where an
    output is zero or the update no more than rounding.
    Source: microsoft/LMOps, understand_icl/icl_ft/compute_sim.py ("Random SimAOU", there without a seed).
    """
    z, u_icl = map(_unit, _exact(zsl, icl))
    draw = torch.rand(z.shape, generator=_generator(seed), dtype=torch.float64)
    return _cosine(nan_within_rounding(u_icl - z, u_icl, machine_epsilon(zsl, icl)), draw.to(z.device))


# Part 4. Attention scores.


@shaped
def sim_am(icl_scores: Scores, ft_scores: Scores) -> Float[Tensor, "n layers heads"]:
    """Similarity of attention maps, SimAM: cos(m_ICL, m_FT) of the scores before the softmax.

    m are the scores of the predicting token to the query's own tokens. Queries that differ in length are n tensors, or
    padded with zeros. NaN where all scores of a head are zero.
    Source: Dai et al. 2023, Table 4, with ZSL in the place of FT "before fine-tuning".
    """
    return _per_query(_cosine, icl_scores=icl_scores, ft_scores=ft_scores)


@shaped
def sim_am_delta(
    zsl_scores: Scores, icl_scores: Scores, ft_scores: Scores, context_tokens: int = 0
) -> Float[Tensor, "n layers heads"]:
    """Similarity of the updates of the attention scores: cos(m_ICL - m_ZSL, m_FT - m_ZSL).

    NaN where a head's scores change by no more than rounding after `context_tokens`, as everywhere in the first layer.
    Source: Deutch et al. 2024 (SimAM_delta).
    """
    eps = machine_epsilon(*zsl_scores, *icl_scores, *ft_scores)

    @shaped
    def measure(zsl: Float[Tensor, "*m d"], icl: Float[Tensor, "*m d"], ft: Float[Tensor, "*m d"]) -> Tensor:
        d_icl = nan_within_rounding(icl - zsl, icl, eps, shift=context_tokens)
        return _cosine(d_icl, nan_within_rounding(ft - zsl, ft, eps))

    return _per_query(measure, zsl_scores=zsl_scores, icl_scores=icl_scores, ft_scores=ft_scores)


def _per_query(measure: Callable[..., Tensor], **scores: Scores) -> Float[Tensor, "n layers heads"]:
    """Apply a measure to whole tensors, or query by query to tensors of different lengths."""
    tensors = [m for m in scores.values() if isinstance(m, Tensor)]
    if len(tensors) == len(scores):
        return measure(*_exact(*tensors))
    return torch.stack([measure(*_exact(*row)) for row in zip(*scores.values(), strict=True)])


@shaped
def kendall_training_tokens(
    icl: Float[Tensor, "n layers T"], ft: Float[Tensor, "n layers T"]
) -> Float[Tensor, "n layers"]:
    """Agreement of ICL and FT about the training tokens: tau_b(m_ICL, m_FT) over the T demonstration tokens.

    m_ICL is the score of the predicting token to each demonstration token, summed over heads; m_FT the inner product of
    the attention query of each training token, while fine-tuning, with that of the predicting token afterwards, summed
    over heads. NaN for T = 1, constant scores, and scores with NaN.
    Source: Dai et al. 2023 (ACL version), Table 5, which states tau_a; compute_training_example_attn.py of the release.
    """
    return kendall_tau_b(icl, ft)


@shaped
def kendall_tau_b(x: Float[Tensor, "*m T"], y: Float[Tensor, "*m T"]) -> Float[Tensor, "*m"]:
    """Kendall's rank correlation with ties taken out: tau_b = (P_c - P_d) / sqrt((N - N_x) (N - N_y)), in O(T log^2 T).

    P_c and P_d count concordant and discordant pairs, N = T (T-1) / 2 all pairs, N_x and N_y those tied in x and y.
    NaN for T = 1, for constant x or y, and where x or y has a NaN.
    Source: Kendall 1945; `scipy.stats.kendalltau`.
    """
    counts = _pair_counts(x, y)
    return counts.excess / ((counts.pairs - counts.tied_x) * (counts.pairs - counts.tied_y)).sqrt()


@shaped
def kendall_tau_a(x: Float[Tensor, "*m T"], y: Float[Tensor, "*m T"]) -> Float[Tensor, "*m"]:
    """Kendall's rank correlation as the paper states it: tau_a = (P_c - P_d) / (T (T-1) / 2); NaN as `kendall_tau_b`.

    Source: Kendall 1938; Dai et al. 2023 (ACL version), Table 5.
    """
    counts = _pair_counts(x, y)
    constant = (counts.tied_x == counts.pairs) | (counts.tied_y == counts.pairs)
    return (counts.excess / counts.pairs).masked_fill(constant, float("nan"))


class _PairCounts(NamedTuple):
    pairs: Tensor
    tied_x: Tensor
    tied_y: Tensor
    excess: Tensor
    """Concordant minus discordant pairs, NaN where an input has a NaN."""


def _pair_counts(x: Tensor, y: Tensor) -> _PairCounts:
    """Count pairs by Knight's method: sort by x, ties by y; the inversions left in y are the discordant pairs."""
    T, shape = x.shape[-1], x.shape[:-1]
    x, y = (v.detach().reshape(-1, T) for v in (x, y))
    sorted_pairs = (_dense_ranks(x) * T + _dense_ranks(y)).sort(-1).values
    x_ranks, y_ranks = sorted_pairs // T, sorted_pairs % T
    tied_x, tied_y, tied_both = (_tied_pairs(v) for v in (x_ranks, y_ranks.sort(-1).values, sorted_pairs))
    pairs = torch.full_like(tied_x, T * (T - 1) // 2)
    excess = (pairs - tied_x - tied_y + tied_both - 2 * _inversions(y_ranks)).double()
    excess = excess.masked_fill((x.isnan() | y.isnan()).any(-1), float("nan"))
    return _PairCounts(*(v.double().reshape(shape) for v in (pairs, tied_x, tied_y, excess)))


def _dense_ranks(x: Float[Tensor, "m T"]) -> Int[Tensor, "m T"]:
    values, order = x.sort(-1)
    steps = torch.zeros_like(order)
    steps[:, 1:] = values[:, 1:] != values[:, :-1]
    return torch.zeros_like(order).scatter_(-1, order, steps.cumsum(-1))


def _tied_pairs(ordered: Int[Tensor, "m T"]) -> Int[Tensor, " m"]:
    """Each element forms as many tied pairs as equal elements stand before it."""
    return (torch.arange(ordered.shape[-1], device=ordered.device) - torch.searchsorted(ordered, ordered)).sum(-1)


def _inversions(ranks: Int[Tensor, "m T"]) -> Int[Tensor, " m"]:
    """Count pairs i < j with r_i > r_j in the way of a merge sort, all rows and blocks at once."""
    m, T = ranks.shape
    width, size, inversions = 1, 1 << (T - 1).bit_length(), torch.zeros(m, dtype=torch.int64, device=ranks.device)
    ranks = torch.nn.functional.pad(ranks.int(), (0, size - T), value=T)  # the largest at the end: no inversions
    while width < T:
        halves = ranks.reshape(m, size // (2 * width), 2, width).unbind(2)
        not_larger = torch.searchsorted(*(half.contiguous() for half in halves), right=True)
        inversions += (width - not_larger).sum((1, 2))
        width *= 2
        ranks = ranks.reshape(m, size // width, width).sort(-1).values
    return inversions


@shaped
def attention_by_example(
    scores: Float[Tensor, "*m T"], spans: Sequence[tuple[int, int]], *, mean: bool = False
) -> Float[Tensor, "*m k"]:
    """Attention to each of k demonstrations, as a logarithm: a_e = log sum_{t in e} p_t, p = softmax(m).

    `spans` gives the (start, stop) of each among the T tokens. A sum grows with the number of tokens; `mean=True` takes
    log mean_{t in e} p_t. NaN for a demonstration with a NaN.
    Raises: ValueError for no span, and for one that is empty, outside the T tokens or overlaps another.
    Source: compute_training_example_attn.py of the release, example level; the mean is ours.
    """
    T, places = scores.shape[-1], sorted(spans)
    ends = [0, *(stop for _, stop in places)]
    if not places or any(not end <= start < stop <= T for end, (start, stop) in zip(ends, places, strict=False)):
        raise ValueError(f"spans {list(spans)} are not disjoint, non-empty parts (start, stop) of T = {T} tokens.")
    (m,) = _exact(scores)
    sums = torch.stack([_log_mean_exp(m[..., start:stop]) for start, stop in spans], -1)
    lengths = torch.tensor([stop - start for start, stop in spans], dtype=m.dtype, device=m.device)
    total = torch.logsumexp(sums + lengths.log(), -1, keepdim=True)
    return (sums if mean else sums + lengths.log()) - total


def _log_mean_exp(m: Float[Tensor, "*m len"]) -> Float[Tensor, "*m"]:
    """log mean exp m, without rounding for equal scores: their ties must not depend on how many they are."""
    largest = m.amax(-1, keepdim=True)
    return ((m - largest).exp().mean(-1, keepdim=True).log() + largest)[..., 0]


# Part 5. The weight updates themselves.


@shaped
def update_cosines(
    dW_icl: Float[Tensor, "*m heads d_v d"], dW_ft: Float[Tensor, "*m heads d_v d"]
) -> Float[Tensor, "*m heads"]:
    """Direction of dW_ICL and dW_FT head by head: <dW_ICL, dW_FT>_F / (|dW_ICL|_F |dW_FT|_F); NaN where one is zero.

    Source: asked for in microsoft/LMOps issue 22; the two updates: Dai et al. 2023, eq. 11 and 12.
    """
    return _cosine(*(dW.flatten(-2) for dW in _exact(dW_icl, dW_ft)))


@shaped
def participation_ratio(dW: Float[Tensor, "*m d_v d"]) -> Float[Tensor, "*m"]:
    """Effective rank: (sum_i s_i^2)^2 / sum_i s_i^4 = |dW|_F^4 / |dW^T dW|_F^2 of the singular values s_i.

    r for a matrix with r equal singular values and no others. NaN for a zero matrix.
    """
    (dW,) = _exact(dW)
    dW = dW / torch.linalg.matrix_norm(dW, keepdim=True)
    return 1 / torch.linalg.matrix_norm(dW @ dW.mT).square()


# Part 6. Many changes of one zero-shot output, each compared with each as products of matrices.


def pairwise_outputs(zsl: Outputs, outputs: Sequence[Outputs]) -> dict[str, Float[Tensor, "C C n layers"]]:
    """Compare what C changes do to the attention outputs, as the measures above do for two.

        sim_aou                     cos(u_a - z, u_b - z), normalised
        sim_aou_noise               |u_a - z| |u_b - z| / 4, its value for unrelated changes
        sim_aou_tangent_uncentred   cos(t_a, t_b)
        sim_aou_residual            cos(P u_a', P u_b')

    NaN as there.
    """
    eps = machine_epsilon(zsl, *outputs)
    z, h = zsl.double(), torch.stack(list(outputs)).double()
    length = torch.linalg.vector_norm(_unit(h) - _unit(z), dim=-1)
    return {
        "sim_aou": _cosines(_aou_update(z, h, eps)),
        "sim_aou_noise": length[:, None] * length / 4,
        "sim_aou_tangent_uncentred": _cosines(_tangent(z, h, eps)),
        "sim_aou_residual": _cosines(_residual(z, h, eps)),
    }


def pairwise_scores(
    zsl: Sequence[Float[Tensor, "layers heads _"]],
    scores: Sequence[Sequence[Float[Tensor, "layers heads _"]]],
    context_tokens: Sequence[int] | None = None,
) -> dict[str, Float[Tensor, "C C n layers"]]:
    """Compare the scores of the own tokens under C changes: `sim_am` and `sim_am_delta`, means over heads.

    `context_tokens` are the tokens before the query under each change; 0 for all unless given.
    Raises: ShapeError where a query has another number of tokens than without the change.
    """
    maps, deltas = [], []
    eps = machine_epsilon(*zsl, *(m for of_change in scores for m in of_change))
    shifts = context_tokens or [0] * len(scores)
    for i, before in enumerate(zsl):
        of_query = [of_change[i] for of_change in scores]
        if any(m.shape != before.shape for m in of_query):
            shapes = [tuple(m.shape) for m in of_query]
            raise ShapeError(f"query {i}: scores have shapes {shapes}; all should be {tuple(before.shape)}.")
        m = torch.stack(of_query).double()
        maps.append(_cosines(m).nanmean(-1))
        each = [nan_within_rounding(one - before.double(), one, eps, shift=n) for one, n in zip(m, shifts, strict=True)]
        deltas.append(_cosines(torch.stack(each)).nanmean(-1))
    return {"sim_am": torch.stack(maps, 2), "sim_am_delta": torch.stack(deltas, 2)}


def pairwise_maps(dW: Sequence[Float[Tensor, "n layers heads d_v d"]]) -> Float[Tensor, "C C n layers"]:
    """Compare the linear maps that C changes add: `update_cosines`, means over heads."""
    return _cosines(torch.stack(list(dW)).flatten(-2).double()).nanmean(-1)


def _cosines(directions: Float[Tensor, "C *m d"]) -> Float[Tensor, "C C *m"]:
    """Of each with each, axis by axis."""
    u = _unit(directions).movedim(0, -2)
    return (u @ u.mT).movedim((-2, -1), (0, 1)).clamp(-1, 1)
