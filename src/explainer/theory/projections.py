"""Changes of a vector taken apart: the component along another change, directions to compare it with, and the
combination of given changes that comes nearest."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Generator, Tensor


def component(change: Float[Tensor, "*n d"], direction: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
    """(change . u) u with u = direction / |direction|; zero where the direction is zero."""
    return coefficient(change, direction) * direction


def coefficient(change: Float[Tensor, "*n d"], direction: Float[Tensor, "*n d"]) -> Float[Tensor, "*n 1"]:
    """How many directions make up the component: change . direction / |direction|^2; zero for a zero direction."""
    square = direction.square().sum(-1, keepdim=True)
    along = (change * direction).sum(-1, keepdim=True)
    return torch.where(square > 0, along / square, torch.zeros_like(square))


def random_like(vectors: Float[Tensor, "*n d"], generator: Generator) -> Float[Tensor, "*n d"]:
    """Isotropic random vectors with the norms of the given ones."""
    return _random(vectors, generator) * vectors.norm(dim=-1, keepdim=True)


def matched_random_direction(
    change: Float[Tensor, "*n d"], direction: Float[Tensor, "*n d"], generator: Generator
) -> Tensor:
    """Unit vectors v with cos(v, change) = cos(direction, change) = c, and random otherwise.

        v = c e + sqrt(1 - c^2) w,  e = change / |change|,  w random with |w| = 1 and w . e = 0.

    d must be at least 2, and no change zero.
    """
    e = change / change.norm(dim=-1, keepdim=True)
    c = torch.nn.functional.cosine_similarity(direction, change, dim=-1)[..., None].clamp(-1, 1)
    w = _random(change, generator)
    w = w - component(w, e)
    return c * e + (1 - c**2).sqrt() * w / w.norm(dim=-1, keepdim=True)


def _random(like: Tensor, generator: Generator) -> Tensor:
    drawn = torch.randn(like.shape, generator=generator, dtype=torch.float64).to(like)
    return drawn / drawn.norm(dim=-1, keepdim=True)


def least_squares_rates(effects: Float[Tensor, "n k *l d"], change: Float[Tensor, "n *l d"]) -> Float[Tensor, "*l k"]:
    """The rates for which sum_i eta_i effects_i comes nearest to the change, over n queries together.

        eta = arg min sum_q |change_q - sum_i eta_i effects_qi|^2, for each layer l on its own.

    Of several solutions the one with the least sum of squares, in float64.
    """
    k = effects.shape[1]
    X = effects.double().movedim((0, 1), (-3, -1)).reshape(*effects.shape[2:-1], -1, k)
    y = change.double().movedim(0, -2).reshape(*change.shape[1:-1], -1, 1)
    scale = X.norm(dim=-2, keepdim=True).clamp(min=torch.finfo(X.dtype).tiny)
    return (torch.linalg.pinv(X / scale, rtol=1e-10) @ y / scale.mT)[..., 0]


def _combine(effects: Float[Tensor, "n k *l d"], rates: Float[Tensor, "*l k"]) -> Float[Tensor, "n *l d"]:
    """sum_i eta_i effects_i, in the number format of the effects."""
    return torch.einsum("nk...d,...k->n...d", effects.double(), rates).to(effects.dtype)


def cross_fitting_halves(n: int) -> list[tuple[slice, slice]]:
    """Which of n queries to fit on, and which to look at, both ways round."""
    even, odd = slice(0, n, 2), slice(1, n, 2)
    return [(even, odd), (odd, even)]


def cross_fitted(change: Float[Tensor, "n *l d"], effects: Float[Tensor, "n k *l d"]) -> Float[Tensor, "n *l d"]:
    """The combination of effects with the rates that are best for the other half of the queries."""
    fitted = torch.empty_like(change)
    for fit, look in cross_fitting_halves(len(change)):
        fitted[look] = _combine(effects[look], least_squares_rates(effects[fit], change[fit]))
    return fitted


class _SumsOfSquares(NamedTuple):
    """Sums over queries, one value for each layer: of |change - fitted|^2 and of |change|^2."""

    left: Tensor
    total: Tensor

    @property
    def explained(self) -> Tensor:
        """R^2 = 1 - left / total, against no change at all: negative where the fit is worse than that."""
        return 1 - self.left / self.total


def sums_of_squares(change: Float[Tensor, "n *l d"], fitted: Float[Tensor, "n *l d"]) -> _SumsOfSquares:
    """The sums of squares of a fit, over queries and dimensions, (*l,), in float64."""
    change, fitted = change.double(), fitted.double()
    return _SumsOfSquares((change - fitted).square().sum((0, -1)), change.square().sum((0, -1)))
