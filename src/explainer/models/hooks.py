"""Hooks on the modules of a model: inside a `with` block they read or replace tensors; afterwards none is left."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

_Input = Callable[[Tensor], Tensor | None]
"""x -> what the module reads in its place; None changes nothing."""

Output = Callable[[Tensor, Tensor], Tensor | None]
"""(x, y), what the module reads and returns, -> what it returns in place of y; None changes nothing."""


@contextmanager
def restoring(restore: Callable[[], Any]) -> Iterator[None]:
    """Call `restore` when a `with` block ends, and once more where an interrupt cuts the first call short.

    The block begins before the first change; `restore` does no harm where nothing is changed, or nothing is left to do.
    """
    try:
        try:
            yield
        finally:
            restore()
    finally:
        restore()


@contextmanager
def inputs(hooks: Iterable[tuple[nn.Module, _Input]]) -> Iterator[None]:
    """Call a function with the first input of its module; those of one module act in their order."""

    def called(function: _Input, _module: nn.Module, args: tuple) -> tuple | None:
        x = function(args[0])
        return None if x is None else (x, *args[1:])

    with attached(module.register_forward_pre_hook(partial(called, function)) for module, function in hooks):
        yield


@contextmanager
def outputs(hooks: Iterable[tuple[nn.Module, Output]]) -> Iterator[None]:
    """Call a function with the first input and the output, of a tuple the first item, of its module."""

    def called(function: Output, _module: nn.Module, args: tuple, options: dict, output: Any) -> Any:
        y, *rest = output if isinstance(output, tuple) else (output,)
        y = function(next(iter((*args, *options.values()))), y)
        if y is None:
            return None
        return (y, *rest) if isinstance(output, tuple) else y

    with attached(m.register_forward_hook(partial(called, change), with_kwargs=True) for m, change in hooks):
        yield


@contextmanager
def attached(registered: Iterable[RemovableHandle]) -> Iterator[None]:
    """Let hooks stand that are registered when they are asked for, one after the other."""
    handles: list[RemovableHandle] = []

    def remove() -> None:
        for handle in handles:
            handle.remove()

    with restoring(remove):
        handles.extend(registered)
        yield
