"""The engine of the exercises: an exercise is a row of a table, and its check compares a reader's function with it."""

import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from torch import Tensor

Inputs = tuple[object, ...]
Cases = Mapping[str, Inputs | list[Inputs]] | list[Inputs]


class _UnansweredError(BaseException):
    """The reader's function returns nothing yet; passes through whatever catches errors of that function."""


@dataclass(frozen=True)
class Exercise:
    """An exercise as data: what a reader writes, what it is compared with, and what a wrong answer is told.

    An answer is right if it returns what `right` returns, on all inputs. A wrong answer that returns what one of the
    mistakes returns, on all inputs, is told the hint of that mistake. Any other is told the first inputs on which it
    fails, and what they stand under in `cases`.
    """

    hint: str
    """What a function is told that returns nothing yet."""
    passed: str
    """What a right answer is told."""
    right: Callable
    """A right answer; messages take the names of the inputs from it."""
    shapes: tuple[tuple[int, ...], ...] = ()
    """Shapes of Gaussian tensors, the same ones at every call."""
    cases: Cases | Callable[..., Cases] = lambda *drawn: [drawn]
    """What fails -> the inputs that show it, simple ones first; or a list of inputs, where the hint says it all; or a
    function that makes one or the other of the Gaussian tensors."""
    mistakes: Mapping[str, Callable] = field(default_factory=dict)
    """Hint -> a plausible wrong answer."""
    counts: Callable = lambda answer, *inputs: answer(*inputs)
    """What is compared, of a function and inputs, where several answers are right."""
    tolerance: float = 1e-6
    """Relative or absolute; a reader may compute a number in float32."""

    def inputs(self) -> list[tuple[str, Inputs]]:
        """All inputs in order, each with what fails if an answer is wrong on them."""
        generator = torch.Generator().manual_seed(0)
        drawn = (torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in self.shapes)
        cases = self.cases(*drawn) if callable(self.cases) else self.cases
        if isinstance(cases, list):
            cases = {f"the result is not right. Hint: {self.hint}": cases}
        return [(what, one) for what, some in cases.items() for one in (some if isinstance(some, list) else [some])]

    def outcome(self, answer: Callable, inputs: Inputs) -> object:
        """What counts of a function's answer; raises AssertionError where that is another kind of thing than asked."""
        return self.counts(partial(self._call, answer), *inputs)

    def same(self, found: object, other: object) -> bool:
        """Whether two outcomes are equal up to the tolerance."""
        if isinstance(other, tuple):
            return all(map(self.same, found, other))
        if isinstance(other, list):
            return found == other
        pair = (torch.as_tensor(x, dtype=torch.float64) for x in (found, other))
        return torch.allclose(*pair, rtol=self.tolerance, atol=self.tolerance, equal_nan=True)

    def __call__(self, answer: Callable) -> None:
        """Print that a reader's function is right, or the hint if it returns nothing yet; else raise AssertionError."""
        try:
            for what, inputs in self.inputs():
                found, right = self.outcome(answer, inputs), self.outcome(self.right, inputs)
                if not self.same(found, right):
                    where = f"{what} ({self._told(inputs)}{self._difference(found, right)})"
                    _require(False, self._recognised(answer) or where)
            print(f"Passed: {self.passed}")
        except _UnansweredError:
            print(f"Your turn: the function returns nothing yet. Hint: {self.hint}")

    def _call(self, answer: Callable, *inputs: object) -> object:
        """What a function returns for copies of the inputs: it must not disturb the next ones."""
        try:
            given = answer(*copy.deepcopy(inputs))
        except Exception as error:
            raised = f"your function raised {type(error).__name__} for ({self._told(inputs)}): {error}"
            raise AssertionError(f"Not yet: {raised}") from error
        if given is None:
            raise _UnansweredError
        return _read(given, self.right(*inputs), self._told(inputs))

    def _recognised(self, answer: Callable) -> str | None:
        """The hint of the mistake that returns the same as an answer, on all inputs."""
        inputs = [inputs for _, inputs in self.inputs()]
        try:
            found = [self.outcome(answer, one) for one in inputs]
        except AssertionError:  # it has another kind of mistake on later inputs
            return None
        hints = (
            hint
            for hint, mistake in self.mistakes.items()
            if all(map(self.same, found, (self.outcome(mistake, one) for one in inputs)))
        )
        return next(hints, None)

    def _told(self, inputs: Inputs) -> str:
        return ", ".join(map(_described, inspect.signature(self.right).parameters, inputs))

    def _difference(self, found: object, right: object) -> str:
        """How an outcome differs from the right one, where that can be said in a few words."""
        if isinstance(right, tuple):
            wrong = [str(i + 1) for i, pair in enumerate(zip(found, right, strict=True)) if not self.same(*pair)]
            return f"; wrong is result {' and '.join(wrong)} of {len(right)}"
        if not isinstance(right, Tensor):
            return ""
        if not found.isfinite().all():
            return "; your function returned a number that is not finite"
        if not right.ndim:
            return f"; it is {right:.4g}, and you say {found:.4g}"
        factor = (found * right).sum() / right.square().sum()
        return f"; yours is {factor:.4g} times the right answer" if self.same(found, factor * right) else ""


def _read(given: object, right: object, told: str) -> object:
    """An answer as tensor, tuple or list, after requiring that it is the kind of thing that the right one is."""
    kind = type(given).__name__
    if isinstance(right, list):
        return given
    if isinstance(right, tuple):
        as_many = isinstance(given, tuple | list) and len(given) == len(right)
        _require(as_many, f"your function should return {len(right)} results, and it returned a {kind}.")
        return tuple(_read(*pair, told) for pair in zip(given, right, strict=True))
    if isinstance(right, Tensor) and right.ndim:
        _require(isinstance(given, Tensor), f"your function returned {kind}, not a tensor.")
        _require(given.dtype == right.dtype, f"your function turned float64 into {given.dtype}; keep the dtype.")
    try:
        given = given.detach().double() if isinstance(given, Tensor) else torch.tensor(np.asarray(given, dtype=float))
    except (TypeError, ValueError) as error:
        raise AssertionError(f"Not yet: your function returned {kind}, not numbers.") from error
    shape = tuple(np.shape(right))
    given = given.reshape(shape) if given.numel() == 1 and not shape else given
    returned = f"your function returned shape {tuple(given.shape)} for ({told}); it should be {shape}."
    _require(tuple(given.shape) == shape, returned)
    return given


def _require(condition: bool, hint: str) -> None:
    # Not an assert statement: the checks must also work under `python -O`.
    if not condition:
        raise AssertionError(f"Not yet: {hint}")


def _described(name: str, value: object) -> str:
    """An input in words: short ones by their numbers, others by their shape."""
    if not isinstance(value, Tensor | np.ndarray):
        return f"{name} = {value:g}" if isinstance(value, float) else f"{name} = {value!r}"
    if value.ndim == 1 and len(value) <= 6:
        return f"{name} = {[round(number, 3) for number in value.tolist()]}"
    return f"{name} of shape {tuple(value.shape)}"
