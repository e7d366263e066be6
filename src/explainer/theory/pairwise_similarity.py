"""Many changes of one zero-shot output compared, each with each: the measures of `metrics` as products of matrices."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from explainer.errors import ShapeError
from explainer.theory.metrics import Outputs, aou_update, machine_epsilon, nan_within_rounding, residual, tangent, unit


def of_outputs(zsl: Outputs, outputs: Sequence[Outputs]) -> dict[str, Float[Tensor, "C C n layers"]]:
    """Compare what C changes do to the attention outputs, as `metrics` does for two.

        sim_aou                     cos(u_a - z, u_b - z), normalised
        sim_aou_noise               |u_a - z| |u_b - z| / 4, its value for unrelated changes
        sim_aou_tangent_uncentred   cos(t_a, t_b)
        sim_aou_residual            cos(P u_a', P u_b')

    NaN as in `metrics`.
    """
    if not outputs or any(h.shape != zsl.shape for h in outputs):
        shapes = [tuple(h.shape) for h in outputs]
        raise ShapeError(
            f"the outputs of changes should have the shape of zsl, {tuple(zsl.shape)}; they have {shapes}."
        )
    eps = machine_epsilon(zsl, *outputs)
    z, h = zsl.double(), torch.stack(list(outputs)).double()
    length = torch.linalg.vector_norm(unit(h) - unit(z), dim=-1)
    return {
        "sim_aou": _cosines(aou_update(z, h, eps)),
        "sim_aou_noise": length[:, None] * length / 4,
        "sim_aou_tangent_uncentred": _cosines(tangent(z, h, eps)),
        "sim_aou_residual": _cosines(residual(z, h, eps)),
    }


def of_scores(
    zsl: Sequence[Float[Tensor, "layers heads _"]],
    scores: Sequence[Sequence[Float[Tensor, "layers heads _"]]],
    context_tokens: Sequence[int] | None = None,
) -> dict[str, Float[Tensor, "C C n layers"]]:
    """Compare the scores of the own tokens under C changes: `metrics.sim_am` and `sim_am_delta`, means over heads.

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


def of_maps(dW: Sequence[Float[Tensor, "n layers heads d_v d"]]) -> Float[Tensor, "C C n layers"]:
    """Compare the linear maps that C changes add: `metrics.update_cosines`, means over heads."""
    return _cosines(torch.stack(list(dW)).flatten(-2).double()).nanmean(-1)


def _cosines(directions: Float[Tensor, "C *m d"]) -> Float[Tensor, "C C *m"]:
    """Of each with each, axis by axis."""
    u = unit(directions).movedim(0, -2)
    return (u @ u.mT).movedim((-2, -1), (0, 1)).clamp(-1, 1)
