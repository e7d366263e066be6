"""Checks for the chapters on the dual form of attention and on what softmax does to it."""

from collections.abc import Callable

import torch
from torch import Tensor

from explainer.exercises import checks
from explainer.theory import duality


@checks.check("multiply all keys of one part by q first; then the values, each by its own number.")
def split_terms(reader_fn: Callable[[Tensor, Tensor, Tensor, int], tuple[Tensor, Tensor]]) -> None:
    """Check a function (q (d,), keys (T, d), values (T, d_v), n) -> the own tokens' and the demonstrations' term.

    The first n rows are the demonstrations'. The terms are compared with sums over the tokens, for n = 0 and n = T too.
    Raises: AssertionError with a hint.
    """
    draw = checks.random_tensors()
    for T, n in [(7, 4), (3, 0), (3, 3)]:
        q, keys, values = draw(4), draw(T, 4), draw(T, 3)
        own, demonstrations = _pair(reader_fn, q, keys, values, n, shape=(3,))
        expected = [
            sum((values[i] * (keys[i] @ q) for i in rows), torch.zeros(3).double()) for rows in (range(n, T), range(n))
        ]
        checks.require(
            not (n and T - n and checks.close(own, expected[1]) and checks.close(demonstrations, expected[0])),
            "the two terms are right, but in the other order; return the own tokens' term first.",
        )
        checks.require(
            checks.close(own + demonstrations, sum(expected)),
            f"with {T} tokens, {n} of them in demonstrations, your terms do not add up to sum_i v_i (k_i . q) over all "
            "tokens; look for a softmax, a factor or a token that is left out.",
        )
        checks.require(
            checks.close(own, expected[0]),
            f"with {T} tokens, {n} of them in demonstrations, the sum is right and the cut is not; the first n rows "
            "are the demonstrations'.",
        )
    print("Passed: both terms are right, also without demonstrations and without own tokens.")


@checks.check("a product of two matrices sums outer products: columns of the first, rows of the second.")
def context_update(reader_fn: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    """Check a function (X_ (d_model, n), W_K (d, d_model), W_V (d_v, d_model)) -> dW_ICL (d_v, d).

    Compared with a loop over tokens.
    Raises: AssertionError with a hint.
    """
    draw = checks.random_tensors()
    for n in (1, 5):
        X_, W_K, W_V = draw(6, n), draw(4, 6), draw(3, 6)
        update = checks.call(reader_fn, X_, W_K, W_V, shape=(3, 4))
        loop = sum(torch.outer(W_V @ X_[:, i], W_K @ X_[:, i]) for i in range(n))
        checks.require(
            checks.close(update, loop),
            f"with {n} token{'s' * (n > 1)} the matrix is not the sum of the outer products of values and keys; look "
            "for a factor, and at what each token contributes.",
        )
    print("Passed: the sum of the outer products of values and keys, for one token and for five.")


@checks.check("compute W_V X (W_K X)^T before and after, and subtract.")
def fine_tuning_update(reader_fn: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]) -> None:
    """Check a function (W_K, W_V, dW_K, dW_V, X (d_model, m)) -> dW_FT (d_v, d), equation 13 of Dai et al. 2023.

    Properties: zero without a change; right if only the values or only the keys change; right if both do.
    Raises: AssertionError with a hint.
    """
    draw = checks.random_tensors()
    W_K, W_V, dW_K, dW_V, X = draw(4, 6), draw(3, 6), draw(4, 6), draw(3, 6), draw(6, 2)

    def error(dW_K: Tensor, dW_V: Tensor) -> bool:
        update = checks.call(reader_fn, W_K, W_V, dW_K, dW_V, X, shape=(3, 4))
        changed = torch.einsum("vx,xm,ym,ky->vk", W_V + dW_V, X, X, W_K + dW_K)
        return not checks.close(update, changed - torch.einsum("vx,xm,ym,ky->vk", W_V, X, X, W_K))

    no_K, no_V = torch.zeros_like(dW_K), torch.zeros_like(dW_V)
    checks.require(
        not error(no_K, no_V),
        "without a change of the parameters there should be no change of W_ZSL; did you subtract what was there "
        "before?",
    )
    checks.require(not error(no_K, dW_V), "the change is wrong where only W_V changes.")
    checks.require(not error(dW_K, no_V), "the change is wrong where only W_K changes.")
    checks.require(
        not error(dW_K, dW_V),
        "right where one matrix changes, wrong where both do; look for the term in which both changes meet.",
    )
    print("Passed: the change of W_ZSL is right where W_V, W_K or both change.")


@checks.check("with equal values an average is that value; the relaxed form sums v_i (k_i . q).")
def constant_values(reader_fn: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]) -> None:
    """Check a function (q (d,), keys (T, d), c (d_v,)) -> what softmax and relaxed attention return if all v_i = c.

    Compared with both forms of attention on T equal values.
    Raises: AssertionError with a hint.
    """
    draw = checks.random_tensors()
    q, keys, c = draw(4), draw(7, 4), draw(3)
    softmax, relaxed = _pair(reader_fn, q, keys, c, shape=(3,))
    values = c.repeat(7, 1)
    checks.require(
        checks.close(softmax, duality.softmax_attention(q, keys, values)),
        "the output of softmax attention is wrong; what is an average of seven equal vectors?",
    )
    checks.require(
        checks.close(relaxed, duality.relaxed_attention(q, keys, values)),
        "the output of the relaxed form is wrong; its attention weights are the k_i . q themselves, and they need not "
        "add up to one.",
    )
    print("Passed: softmax returns c, whatever the query; the relaxed form returns a multiple of c.")


@checks.check("E' becomes c E'; write g as E' / (E' + E) and divide by E.")
def copied_gate(reader_fn: Callable[[float, int], float]) -> None:
    """Check a function (g, c) -> the gate when every demonstration is shown c times.

    Compared with softmax attention whose demonstrations are repeated.
    Raises: AssertionError with a hint.
    """
    draw = checks.random_tensors()
    q, theirs, own = draw(4), draw(5, 4), draw(3, 4)

    def gate(c: int) -> float:
        keys = torch.cat([theirs] * c + [own])
        return duality.split_attention(q, keys, keys, c * len(theirs)).gate.item()

    for c in (1, 2, 10, 1000):
        given = checks.run(lambda *arguments: float(reader_fn(*arguments)), gate(1), c)
        checks.require(given <= 1, f"with c = {c} your gate is {given:.3g}; a share cannot be larger than 1.")
        checks.require(
            abs(given - gate(c)) < checks.TOLERANCE,
            f"from g = {gate(1):.3f} and c = {c} you find {given:.3f}, repeating the tokens gives {gate(c):.3f}.",
        )
    print("Passed: your gate is the measured one for 1, 2, 10 and 1000 copies.")


@checks.check("the mean value, plus 1/(T sqrt(d)) times the sum of v_i ((k_i - mean key) . q).")
def first_order(reader_fn: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    """Check a function (q (d,), keys (T, d), values (T, d_v)) -> softmax attention to first order in the logits.

    Properties: the mean value at q = 0; linear in q beyond it; a hundredth of the error at a tenth of the query.
    Raises: AssertionError with a hint.
    """
    draw = checks.random_tensors()
    q, keys, values = draw(4), draw(7, 4), draw(7, 3)

    def answer(q: Tensor) -> Tensor:
        return checks.call(reader_fn, q, keys, values, shape=(3,))

    zero = answer(torch.zeros_like(q))
    checks.require(
        checks.close(zero, values.mean(0)),
        "for a query of zero softmax returns the mean of the values, and your form does not.",
    )
    checks.require(
        checks.close(answer(2 * q) - zero, 2 * (answer(q) - zero)),
        "what your form adds to the mean value is not linear in the query.",
    )

    def gap(factor: float) -> float:
        return (answer(factor * q) - duality.softmax_attention(factor * q, keys, values)).norm().item()

    checks.require(
        gap(1e-4) < gap(1e-3) / 50,
        "a ten times smaller query should have a hundred times smaller error; yours falls only in proportion. Look at "
        "the mean key, at the number of tokens and at sqrt(d).",
    )
    print("Passed: the mean value plus a linear term, with an error of second order.")


@checks.check("try an outer product with z on the right: what must stand on the left?")
def one_query_update(reader_fn: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    """Check a function (M (d_m, d_v), z (d_v,), F (d_v,)) -> dM of rank one with M F = (M + dM) z.

    Of all dM with this property the one of Dherin et al. 2025 is the shortest: it leaves vectors orthogonal to z alone.
    Raises: AssertionError with a hint.
    """
    draw = checks.random_tensors()
    M, z, F = draw(8, 3), draw(3), draw(3)
    update = checks.call(reader_fn, M, z, F, shape=(8, 3))
    checks.require(
        checks.close((M + update) @ z, M @ F),
        "(M + dM) z is not M F; look at the length of z, and at which vector the change is for.",
    )
    orthogonal = F - z * (F @ z) / (z @ z)
    checks.require(
        checks.close(update @ orthogonal, torch.zeros(8, dtype=torch.float64)),
        "the equation holds, but dM changes vectors that are orthogonal to z as well; find the one that does not.",
    )
    checks.require(int(torch.linalg.matrix_rank(update)) == 1, "the rank should be one; look for a sum of terms.")
    print("Passed: M F = (M + dM) z with a change of rank one.")


def _pair(reader_fn: Callable, *arguments: object, shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Call the reader's function and require two finite tensors of the given shape."""
    result = checks.run(reader_fn, *arguments)
    checks.require(isinstance(result, tuple) and len(result) == 2, "your function should return two tensors.")
    first, second = (checks.call(lambda *_, part=part: part, *arguments, shape=shape) for part in result)
    return first, second
