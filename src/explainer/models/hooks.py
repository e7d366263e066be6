"""Hooks on the modules of a model: inside a `with` block they read or replace tensors; afterwards none is left."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

_Input = Callable[[Tensor], Tensor | None]
"""x -> what the module reads in its place; None changes nothing."""

Output = Callable[[Tensor, Tensor], Tensor | None]
"""(x, y), what the module reads and returns, -> what it returns in place of y; None changes nothing."""


@contextmanager
def inputs(hooks: Iterable[tuple[nn.Module, _Input]]) -> Iterator[None]:
    """Call a function with the first input of its module; those of one module act in their order."""
    with _attached(module.register_forward_pre_hook(partial(_input, function)) for module, function in hooks):
        yield


@contextmanager
def outputs(hooks: Iterable[tuple[nn.Module, Output]]) -> Iterator[None]:
    """Call a function with the first input and the output, of a tuple the first item, of its module."""
    with _attached(m.register_forward_hook(partial(_output, change), with_kwargs=True) for m, change in hooks):
        yield


@contextmanager
def calls(module: nn.Module, before: Callable[[dict], Any], after: Callable[[dict, Any], Any]) -> Iterator[None]:
    """Show the keyword arguments of each call of a module, and after it those and all that it returns."""

    def begin(_module: nn.Module, _args: tuple, options: dict) -> None:
        before(options)

    def end(_module: nn.Module, _args: tuple, options: dict, output: Any) -> None:
        after(options, output)

    registered = (module.register_forward_pre_hook, begin), (module.register_forward_hook, end)
    with _attached(register(hook, with_kwargs=True) for register, hook in registered):
        yield


@contextmanager
def _attached(handles: Iterable[RemovableHandle]) -> Iterator[None]:
    with ExitStack() as stack:
        for handle in handles:
            stack.callback(handle.remove)
        yield


def _input(function: _Input, _module: nn.Module, args: tuple) -> tuple | None:
    x = function(args[0])
    return None if x is None else (x, *args[1:])


def _output(function: Output, _module: nn.Module, args: tuple, options: dict, output: Any) -> Any:
    y, *rest = output if isinstance(output, tuple) else (output,)
    y = function(next(iter((*args, *options.values()))), y)
    if y is None:
        return None
    return (y, *rest) if isinstance(output, tuple) else y
