"""Checks for the chapter on the two ways to learn."""

from collections.abc import Callable

from torch import Tensor

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


@checks.check("multiply out (W_V + dW_V) X X^T (W_K + dW_K)^T and take off what was there before.")
def fine_tuned_update(reader_fn: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]) -> None:
    """Check a function (W_K (d, d_model), W_V (d_v, d_model), dW_K, dW_V, X (d_model, m)) -> dW_FT (d_v, d).

    dW_FT is what fine-tuning adds to W_ZSL = W_V X (W_K X)^T (Dai et al. 2023, equation 13).
    """
    draw = checks.random_tensors()
    W_K, W_V, dW_K, dW_V, X = draw(4, 6), draw(3, 6), draw(4, 6), draw(3, 6), draw(6, 2)

    def answer(*arguments: Tensor) -> Tensor:
        return checks.call(reader_fn, *arguments, shape=(3, 4))

    checks.require(
        checks.close(answer(W_K, W_V, 0 * dW_K, 0 * dW_V, X), 0 * draw(3, 4)),
        "without any change of W_K and W_V something is left; take off W_ZSL.",
    )
    values_only = dW_V @ X @ (W_K @ X).T
    checks.require(
        checks.close(answer(W_K, W_V, 0 * dW_K, dW_V, X), values_only),
        "with a change of W_V alone it is dW_V X (W_K X)^T, and yours is not.",
    )
    whole = (W_V + dW_V) @ X @ ((W_K + dW_K) @ X).T - W_V @ X @ (W_K @ X).T
    checks.require(
        checks.close(answer(W_K, W_V, dW_K, dW_V, X), whole),
        "with changes of both a term is missing or counted twice; there is one with both changes in it.",
    )
    print("Passed: three terms, one for each change and one for both together.")
