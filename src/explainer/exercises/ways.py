"""Checks for the chapter on the two ways to learn."""

from collections.abc import Callable

from explainer.exercises import checks


@checks.check("each layer keeps a key and a value of d numbers for each token and each key head.")
def kept_numbers(reader_fn: Callable[[int, int, int, int], int]) -> None:
    """Check a function (tokens, layers, key_heads, d) -> how many numbers a context leaves as keys and values."""
    for sizes in ((1, 1, 1, 1), (7, 3, 2, 5), (130, 30, 3, 64)):
        tokens, layers, key_heads, d = sizes
        answer = checks.run(reader_fn, *sizes)
        expected = 2 * tokens * layers * key_heads * d
        checks.require(
            answer != expected / 2, f"for {sizes} you count half of them: there are keys, and there are values."
        )
        checks.require(
            answer == expected, f"for (tokens, layers, key_heads, d) = {sizes} it is {expected}, and you say {answer}."
        )
    print("Passed: two vectors of d numbers for each token, layer and key head.")
