"""explainer.theory.shapes: annotations are checked, and a wrong shape is named wherever it could pass in silence."""

import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from explainer.errors import ShapeError
from explainer.theory import duality, metrics
from explainer.theory.shapes import shaped


@shaped
def attend(k: Float[Tensor, "T d"], *, q: Float[Tensor, "*m d"], bias: Float[Tensor, " T"] | None = None, n: int = 0):
    return q @ k.T if bias is None else q @ k.T + bias


@pytest.mark.parametrize(("k", "q"), [((5, 4), (2, 5)), ((4,), (4,)), ((1, 5, 4), (4,)), ((5, 4), ())])
def test_a_wrong_shape_is_named_with_those_beside_it(k, q):
    with pytest.raises(ShapeError) as refused:
        attend(torch.zeros(k), q=torch.zeros(q))
    assert str(refused.value) == f"attend got k {k}, q {q}; the shapes should be k (T, d), q (*m, d)."


A, ONE = torch.zeros(5, 3), torch.zeros(5, 1)
SILENT = {
    "squared_error_gradient": lambda: duality.squared_error_gradient(A, ONE),
    "train_linear_layer": lambda: duality.train_linear_layer(torch.ones(3, 3), A, ONE, duality.GradientDescent(1), []),
    "relative_error": lambda: duality.relative_error(A, ONE),
    "split_attention": lambda: duality.split_attention(A, A, A, 2),
    "rec2ftp": lambda: metrics.rec2ftp(*(flags > 0 for flags in (A[:, 0], A[:, 0], ONE[0]))),
    "sim_aou": lambda: metrics.sim_aou(A[None], A[None], ONE[None]),
}
"""Calls that broadcasting would let pass."""


@pytest.mark.parametrize("call", SILENT.values(), ids=SILENT)
def test_what_would_be_broadcast_is_refused(call):
    with pytest.raises(ShapeError, match="the shapes should be"):
        call()
