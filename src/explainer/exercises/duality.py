"""Checks for the chapters on gradient descent and attention."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from explainer.exercises import checks
from explainer.theory import duality


@checks.check("compare every query with every key first: queries @ keys.T has a row for each query.")
def linear_attention(reader_fn: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    """Check a function (values (n, d_out), keys (n, d_in), queries (m, d_in)) -> (m, d_out).

    Properties: linear in queries, in keys and in values; additive over pairs; blind to directions orthogonal to the
    keys; a single pair of unit key returns its value to a query equal to the key. They leave one function.
    Raises: AssertionError with a hint.
    """
    n, m, d_in, d_out = 5, 4, 3, 2
    draw = checks.random_tensors()
    values, keys, queries, other = draw(n, d_out), draw(n, d_in), draw(m, d_in), draw(m, d_in)

    def answer(*arguments: Tensor) -> Tensor:
        return checks.call(reader_fn, *arguments, shape=(len(arguments[2]), d_out))

    output = answer(values, keys, queries)
    checks.require(
        checks.close(answer(values, keys, queries + other), output + answer(values, keys, other)),
        "the output is not linear in the query; look for a softmax, a norm or another non-linear function of it.",
    )
    checks.require(
        checks.close(answer(values, -2 * keys, queries), -2 * output),
        "multiplying all keys by -2 does not multiply the output by -2; look for a normaliser.",
    )
    checks.require(
        checks.close(answer(-2 * values, keys, queries), -2 * output),
        "multiplying all values by -2 does not multiply the output by -2; look at how the values enter.",
    )
    checks.require(
        checks.close(output, sum(answer(values[i : i + 1], keys[i : i + 1], queries) for i in range(n))),
        "the output for all pairs is not the sum of the outputs for each pair; look for a mean or a normaliser.",
    )
    unit_key = keys[:1] / keys[:1].norm()
    orthogonal = queries - (queries @ unit_key.T) * unit_key
    checks.require(
        checks.close(answer(values[:1], unit_key, orthogonal), torch.zeros(m, d_out, dtype=values.dtype)),
        "a query orthogonal to the only key still gets an output; look at how query and key are compared.",
    )
    checks.require(
        checks.close(answer(values[:1], unit_key, unit_key), values[:1]),
        "a query equal to the only key, of length one, does not get that key's value back; look for a leftover factor.",
    )
    print("Passed: linear in queries, keys and values, a sum over pairs, without scale or normaliser.")


@checks.check("from W_0 = 0 the error signal of example i is lr * y_i; sum the outer products.")
def permutation_invariant(update_fn: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Check that an update (inputs (n, d_in), targets (n, d_out)) -> (d_out, d_in) ignores the order of the rows.

    Every row must count, so that the update is not invariant for want of looking.
    Raises: AssertionError with a hint.
    """
    inputs, targets = _demonstrations()
    update = _usable_update(update_fn, inputs, targets)
    for order in _orders(len(inputs)):
        checks.require(
            checks.close(_call_update(update_fn, inputs[order], targets[order]), update),
            f"the order {order.tolist()} of the rows changes the update; look for a state or a weight that depends on "
            "the position of a row, and make sure that inputs and targets stay together.",
        )
    print("Passed: the update uses every demonstration and does not depend on their order.")


@checks.check("let the second example meet the layer that the first has changed.")
def order_dependent(update_fn: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Check that an update (inputs (n, d_in), targets (n, d_out)) -> (d_out, d_in) depends on the order of the rows.

    Every row must count, and the same rows in the same order must give the same update.
    Raises: AssertionError with a hint.
    """
    inputs, targets = _demonstrations()
    update = _usable_update(update_fn, inputs, targets)
    checks.require(
        any(
            not checks.close(_call_update(update_fn, inputs[order], targets[order]), update, tolerance=1e-6)
            for order in _orders(len(inputs))
        ),
        "no order of the rows changes the update; look for a sum over all rows, all seen from the same weights.",
    )
    print("Passed: the update uses every demonstration and depends on their order.")


@checks.check("how many outer products are added up, and how many rows and columns has their sum?")
def rank_of_update(reader_fn: Callable[[int, int, int], int]) -> None:
    """Check a function (n_demonstrations, d, d_v) -> rank of dW_ICL for demonstrations in general position.

    The ranks to compare with are measured on random keys (T, d) and values (T, d_v).
    Raises: AssertionError with a hint.
    """
    draw = checks.random_tensors()
    for n, d, d_v in [(0, 4, 3), (1, 4, 3), (2, 4, 3), (3, 5, 5), (9, 3, 6), (9, 6, 3), (4, 4, 4)]:
        update = duality.split_attention(draw(d), draw(n + 2, d), draw(n + 2, d_v), n).delta_W_icl
        measured = int(torch.linalg.matrix_rank(update))
        counted = checks.run(lambda *sizes: int(reader_fn(*sizes)), n, d, d_v)
        checks.require(
            counted == measured,
            f"with {n} demonstrations, d = {d} and d_v = {d_v} you count {counted}, the measured rank is "
            f"{'smaller' if measured < counted else 'larger'}; look at what one demonstration adds to the matrix, "
            "and at how many rows and columns the matrix has.",
        )
    print("Passed: your count is the measured rank of dW_ICL in all seven settings.")


def _demonstrations() -> tuple[Tensor, Tensor]:
    draw = checks.random_tensors()
    return draw(5, 3), draw(5, 2)


def _call_update(update_fn: Callable, inputs: Tensor, targets: Tensor) -> Tensor:
    return checks.call(update_fn, inputs, targets, shape=(targets.shape[1], inputs.shape[1]))


def _usable_update(update_fn: Callable, inputs: Tensor, targets: Tensor) -> Tensor:
    """Return the update after requiring that it is repeatable and that every demonstration has a part in it."""
    update = _call_update(update_fn, inputs, targets)
    checks.require(
        checks.close(_call_update(update_fn, inputs, targets), update),
        "two calls with the same rows give two updates; look for random numbers or a state kept between calls.",
    )
    for row in range(len(inputs)):
        changed = inputs.clone()
        changed[row] += 1
        checks.require(
            not checks.close(_call_update(update_fn, changed, targets), update),
            f"changing the input of row {row} does not change the update; every row should have a part in it.",
        )
    return update


def _orders(n: int) -> Iterator[Tensor]:
    """Yield the reversed order, a swap of the first two and a few shuffles of n rows."""
    yield torch.arange(n).flip(0)
    yield torch.tensor([1, 0, *range(2, n)])
    generator = torch.Generator().manual_seed(0)
    for _ in range(4):
        yield torch.randperm(n, generator=generator)
