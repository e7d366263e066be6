"""What the checks of the exercises are made of.

A check calls the reader's function on small random float64 tensors and tests properties that the answer must have. It
prints one line when they hold. It raises AssertionError with the property that failed and where to look. While the
function still returns nothing, it prints a hint.
"""

from collections.abc import Callable
from functools import wraps

import numpy as np
import torch
from torch import Tensor

TOLERANCE = 1e-9


class _UnansweredError(BaseException):
    """The reader's function returns nothing yet; passes through whatever catches errors of that function."""


def check(hint: str) -> Callable[[Callable], Callable]:
    """Decorate a check: for a stub it prints "Your turn" and this hint, so that a page with open exercises runs."""

    def decorate(function: Callable[[Callable], None]) -> Callable[[Callable], None]:
        @wraps(function)
        def checked(reader_fn: Callable) -> None:
            def answered(*arguments: object, **options: object) -> object:
                if (answer := reader_fn(*arguments, **options)) is None:
                    raise _UnansweredError
                return answer

            try:
                function(answered)
            except _UnansweredError:
                print(f"Your turn: the function returns nothing yet. Hint: {hint}")

        return checked

    return decorate


def require(condition: bool, hint: str) -> None:
    """Raise AssertionError with the hint unless the condition holds."""
    # Not an assert statement: the checks must also work under `python -O`.
    if not condition:
        raise AssertionError(f"Not yet: {hint}")


def random_tensors() -> Callable[..., Tensor]:
    """Return a function that draws Gaussian tensors of given shapes, the same ones in every check."""
    generator = torch.Generator().manual_seed(0)
    return lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)


def close(actual: Tensor, expected: Tensor, tolerance: float = TOLERANCE) -> bool:
    """Whether two tensors are equal up to the tolerance, relative or absolute."""
    return torch.allclose(actual, expected, rtol=tolerance, atol=tolerance)


def call(reader_fn: Callable, *arguments: object, shape: tuple[int, ...]) -> Tensor:
    """Call the reader's function and require a finite tensor of the given shape."""
    result = run(reader_fn, *arguments)
    require(isinstance(result, Tensor), f"your function returned {type(result).__name__}, not a tensor.")
    require(
        tuple(result.shape) == shape,
        f"your function returned shape {tuple(result.shape)} for ({describe(arguments)}); it should be {shape}.",
    )
    require(result.dtype == torch.float64, f"your function turned float64 into {result.dtype}; keep the dtype.")
    require(bool(result.isfinite().all()), "your function returned a number that is not finite.")
    return result.detach()


def run(reader_fn: Callable, *arguments: object) -> object:
    """Call the reader's function; what it raises becomes an AssertionError that names the arguments."""
    # Copies: a function that changes its arguments in place must not disturb the next property.
    copies = [argument.clone() if isinstance(argument, Tensor) else argument for argument in arguments]
    try:
        return reader_fn(*copies)
    except Exception as error:
        raise AssertionError(
            f"Not yet: your function raised {type(error).__name__} for ({describe(arguments)}): {error}"
        ) from error


def describe(arguments: tuple[object, ...]) -> str:
    """Arguments in words: tensors by their shapes."""
    return ", ".join(f"shape {tuple(a.shape)}" if isinstance(a, Tensor) else repr(a) for a in arguments)


def call_array(reader_fn: Callable[..., object], *arguments: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Call the reader's function on copies of arrays and require an array of the given shape."""
    result = reader_fn(*(argument.copy() for argument in arguments))
    result = np.asarray(result, dtype=float)
    require(result.shape == shape, f"the result has shape {result.shape}, it should be {shape}.")
    return result
