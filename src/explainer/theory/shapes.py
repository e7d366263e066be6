"""Shapes are stated once, in annotations; where a wrong one could pass in silence, the annotations are checked."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, get_args

from jaxtyping import AbstractArray, Shaped, jaxtyped
from torch import Tensor

from explainer.errors import ShapeError

_P = ParamSpec("_P")
_R = TypeVar("_R")


def shaped(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Refuse tensors whose shapes are not those that the function's annotations say; one letter is one size.

    Raises: ShapeError, when the function is called.
    """
    signature = inspect.signature(function)
    axes = {name: dims for name, parameter in signature.parameters.items() if (dims := _axes(parameter.annotation))}

    @functools.wraps(function)
    def checked(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        given = signature.bind(*args, **kwargs).arguments
        tensors = {name: given[name] for name in axes if isinstance(given.get(name), Tensor)}
        with jaxtyped("context"):
            # A class of jaxtyping answers isinstance; to a type checker it is an annotation.
            kinds: dict[str, Any] = {name: Shaped[Tensor, axes[name]] for name in tensors}
            fits = all(isinstance(tensor, kinds[name]) for name, tensor in tensors.items())
        if not fits:
            shapes = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in tensors.items())
            wanted = ", ".join(f"{name} ({', '.join(axes[name].split())})" for name in tensors)
            raise ShapeError(f"{function.__name__} got {shapes}; the shapes should be {wanted}.")
        return function(*args, **kwargs)

    return checked


def _axes(annotation: object) -> str | None:
    """The axes of an annotation, or of the one kind of tensor among its alternatives."""
    alternatives = get_args(annotation) or (annotation,)
    arrays = [each for each in alternatives if inspect.isclass(each) and issubclass(each, AbstractArray)]
    return arrays[0].dim_str if len(arrays) == 1 else None
