"""Matrix products of float32 on a processor: oneDNN's, forward and backward, twice as fast as MKL's on AMD."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.functional import linear
from torch.overrides import TorchFunctionMode


def private_operator(namespace: str, name: str, *example: Any) -> Callable | None:
    """A private operator of torch, or None where this version has none that takes the example's arguments."""
    try:
        found = getattr(getattr(torch.ops, namespace), name)
        found(*example)
    except (AttributeError, RuntimeError, TypeError):
        return None
    return found


_ONE = torch.ones(1, 1, dtype=torch.float32, device="cpu")
_linear_pointwise = private_operator("mkldnn", "_linear_pointwise", _ONE, _ONE, None, "none", [], "")


@contextmanager
def use_onednn() -> Iterator[None]:
    """Compute x W^T + b, and its gradients, by oneDNN inside a `with` block, in float32 on a processor it supports.

    Not chosen by a measurement: where both are as fast, a study could not be repeated to the byte.
    """
    if _linear_pointwise is None or not torch.backends.mkldnn.is_available():
        yield
        return
    with _OneDNN():
        yield


class _OneDNN(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        if not kwargs and function is linear:
            x, weight, bias = (*args, None)[:3]
        elif not kwargs and function is torch.addmm:  # GPT-2's projections
            bias, x, weight = args[0], args[1], args[2].T
        else:
            return function(*args, **(kwargs or {}))
        plain = x.dtype == weight.dtype == torch.float32 and x.device.type == "cpu"
        if not plain or torch.is_autocast_enabled("cpu"):
            return function(*args)
        if torch.is_grad_enabled() and any(t.requires_grad for t in (x, weight, bias) if t is not None):
            return _Linear.apply(x, weight, bias)
        return _product(x, weight, bias)


class _Linear(torch.autograd.Function):
    """y = x W^T + b; dL/dx = e W, dL/dW = e^T x and dL/db = the sum of e, with e = dL/dy."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x if weight.requires_grad else None, weight if x.requires_grad else None)
        return _product(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, e: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        rows = e.flatten(0, -2)
        return (
            _product(e, weight.T) if of_x else None,
            _product(rows.T, x.flatten(0, -2).T) if of_weight else None,
            rows.sum(0) if of_bias else None,
        )


def _product(
    x: Float[Tensor, "*batch d"], weight: Float[Tensor, "d_out d"], bias: Float[Tensor, " d_out"] | None = None
) -> Float[Tensor, "*batch d_out"]:
    """x W^T + b of oneDNN."""
    return _linear_pointwise(x, weight, bias, "none", [], "")
