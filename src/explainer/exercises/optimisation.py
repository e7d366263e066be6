"""Checks for what one training step adds to a linear layer, and for what an optimiser makes of it."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from explainer.exercises import checks
from explainer.theory import duality


@checks.check("first the error signal e = -lr * (W_0 @ x - y), then torch.outer(e, x).")
def outer_product_update(reader_fn: Callable[[Tensor, Tensor, Tensor, float], Tensor]) -> None:
    """Check a function (W_0 (d_out, d_in), x (d_in,), y (d_out,), lr) -> dW (d_out, d_in).

    dW is the change of the weights in one step of gradient descent on 1/2 ||W x - y||^2.
    Raises: AssertionError with a hint.
    """
    d_in, d_out, lr = 4, 3, 0.1
    draw = checks.random_tensors()
    W_0, x, y = draw(d_out, d_in), draw(d_in), draw(d_out)

    def update(y: Tensor, lr: float) -> Tensor:
        return checks.call(reader_fn, W_0, x, y, lr, shape=(d_out, d_in))

    right = duality.gradient_descent_update(-lr * (W_0 @ x - y)[None], x[None])
    checks.require(
        not checks.close(update(y, lr), W_0 + right),
        "these are the new weights; the exercise asks for their change.",
    )
    checks.require(
        checks.close(update(W_0 @ x, lr), torch.zeros_like(W_0)),
        "the output already equals the target, and the weights still change; look at how the error signal is made.",
    )
    checks.require(
        checks.close(update(y, 2 * lr), 2 * update(y, lr)),
        "twice the learning rate does not give twice the update; look for the learning rate.",
    )
    checks.require(
        not checks.close(update(y, lr), -right),
        "the update goes away from the target; look at the sign of the error signal.",
    )
    checks.require(
        checks.close(update(y, lr), right),
        "the update is not the error signal times the input; look for a leftover factor, such as 2 or 1/n.",
    )
    print("Passed: the update is the outer product of the error signal and the input.")


@checks.check("e = -lr * (p - y): p is the softmax of each row, y has a one at the right answer.")
def cross_entropy_errors(reader_fn: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    """Check a function (outputs (n, V), answers (n,), lr) -> error signals (n, V).

    The loss is the sum over examples of -log softmax(outputs_i)[answers_i]; the judge is autograd.
    Raises: AssertionError with a hint.
    """
    n, V, lr = 5, 4, 0.1
    draw = checks.random_tensors()
    outputs, answers = draw(n, V), torch.tensor([0, 3, 1, 1, 2])

    def signals(outputs: Tensor) -> Tensor:
        return checks.call(reader_fn, outputs, answers, lr, shape=(n, V))

    with torch.enable_grad():
        o = outputs.clone().requires_grad_()
        right = -lr * torch.autograd.grad(cross_entropy(o, answers, reduction="sum"), o)[0]
    found = signals(outputs)
    checks.require(
        checks.close(found.sum(1), torch.zeros(n, dtype=outputs.dtype)),
        "the entries of an error signal do not add up to zero; look for the softmax and for the one that is taken off.",
    )
    checks.require(
        checks.close(signals(outputs + 3), found),
        "adding 3 to all logits leaves the probabilities alone, but not your answer; compare probabilities.",
    )
    checks.require(
        not checks.close(found, -right),
        "the right answer is pushed down; look at the sign.",
    )
    checks.require(
        not checks.close(n * found, right),
        "your answer belongs to the mean over the examples; the loss here is their sum.",
    )
    checks.require(
        checks.close(found, right),
        "the error signals are not those of autograd; look at the axis of the softmax and for a leftover factor.",
    )
    print("Passed: the error signals are those that autograd finds for the cross-entropy.")


@checks.check("append a 1 to every input and to every query; then it is a layer without bias.")
def bias_attention(reader_fn: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    """Check a function (errors (n, d_out), inputs (n, d_in), queries (m, d_in)) -> change of the outputs (m, d_out).

    The layer is W x + b, and one gradient step with these error signals has changed both W and b.
    Raises: AssertionError with a hint.
    """
    n, m, d_in, d_out = 5, 4, 3, 2
    draw = checks.random_tensors()
    errors, inputs, queries = draw(n, d_out), draw(n, d_in), draw(m, d_in)

    def change(queries: Tensor) -> Tensor:
        return checks.call(reader_fn, errors, inputs, queries, shape=(m, d_out))

    without = duality.linear_attention(errors, inputs, queries)
    at_zero = change(torch.zeros_like(queries))
    checks.require(
        not checks.close(change(queries), without),
        "this is the change of a layer without bias; ask what the step does to b.",
    )
    checks.require(
        not checks.close(at_zero, errors.mean(0).expand(m, -1)),
        "the bias moves by the sum of the error signals, not by their mean.",
    )
    checks.require(
        checks.close(at_zero, errors.sum(0).expand(m, -1)),
        "at the query 0 only the bias counts, and it moves by the sum of the error signals; your answer does not.",
    )
    checks.require(
        checks.close(change(queries), without + errors.sum(0)),
        "at the query 0 the answer is right, elsewhere it is not; look at how queries and inputs are compared.",
    )
    print("Passed: every attention weight is x_i . x + 1.")


@checks.check("T steps go 1 - (1 - c)**T of the way to the target; how far do T copies of the first step go?")
def frozen_factor(reader_fn: Callable[[float, int], float]) -> None:
    """Check a function (c, T) -> size of the update with frozen errors, over the size of the update of T steps.

    There is one example; c = lr ||x||^2 is the part of the way to the target that one step goes. The judge runs the
    steps.
    Raises: AssertionError with a hint.
    """
    one = torch.ones(1, 1, dtype=torch.float64)
    layer = torch.zeros_like(one), one, one

    def measured(c: float, T: int) -> float:
        own = duality.train_linear_layer(*layer, duality.GradientDescent(c), duality.full_batches(1, T)).W
        return (duality.frozen_errors_update(*layer, lr=c, steps=T) / own).item()

    def factor(c: float, T: int) -> float:
        return checks.run(lambda *arguments: float(reader_fn(*arguments)), c, T)

    checks.require(
        abs(factor(0.3, 1)) > checks.TOLERANCE,
        "for one step you say 0: that is how much is too much. Asked is the ratio of the sizes, which is 1.",
    )
    checks.require(
        abs(factor(0.3, 1) - 1) < checks.TOLERANCE,
        "one step is the same with frozen error signals and without, so the factor for T = 1 is 1.",
    )
    checks.require(
        abs(factor(0.75, 2) - measured(0.75, 2)) < checks.TOLERANCE,
        "for c = 3/4 and T = 2 the updates were 2 and 5/4 of the first step in the text; look at their ratio.",
    )
    for c, T in [(0.75, 5), (0.1, 20), (0.001, 50), (1.5, 4)]:
        checks.require(
            abs(factor(c, T) - measured(c, T)) < 1e-6,
            f"for c = {c} and T = {T} the factor is {measured(c, T):.4f}, you say {factor(c, T):.4f}; two steps are "
            "right. Look at how much of the error is left after each step.",
        )
    print("Passed: your factor is the measured one, from T = 1 to T = 50.")


@checks.check("write W_T + mu V_T as a sum over all pushes; V_T has the factor mu**(T-1-t) before U_t.")
def nesterov_coefficients(reader_fn: Callable[[float, int], Tensor]) -> None:
    """Check a function (mu, T) -> coefficients (T,) of U_0, ..., U_{T-1} in the point ahead, W_T + mu V_T - W_0.

    The judge is torch.optim.SGD(nesterov=True), which stores that point.
    Raises: AssertionError with a hint.
    """
    for mu, T in [(0.5, 3), (0.9, 8), (0.0, 4), (0.9, 1)]:
        found = checks.call(reader_fn, mu, T, shape=(T,))
        right = _ahead(mu, T)
        newest_first = right.flip(0)
        checks.require(
            checks.close(found, right) or not checks.close(found, newest_first) or mu == 0,
            "the numbers are right, but the order is not; the oldest push comes first.",
        )
        age = torch.arange(T - 1, -1, -1, dtype=torch.float64)
        checks.require(
            mu == 0 or T == 1 or not checks.close(found, mu**age),
            "these are the factors in the last velocity; the weights of the layer are the sum of all velocities.",
        )
        checks.require(
            checks.close(found, right),
            f"for mu = {mu} and T = {T} the coefficients are {_listed(right)}, you say {_listed(found)}; look at how "
            "many velocities each push is in, and at what the point ahead adds.",
        )
    print("Passed: your coefficients are those that PyTorch stores with nesterov=True.")


def _ahead(mu: float, T: int) -> Tensor:
    """What torch.optim.SGD makes of a push of 1 at step t alone, for every t."""
    reached = []
    for pushed in range(T):
        w = torch.zeros((), dtype=torch.float64).requires_grad_()
        optimiser = torch.optim.SGD([w], lr=1.0, momentum=mu, nesterov=mu > 0)
        for t in range(T):
            w.grad = torch.full_like(w, -1.0 if t == pushed else 0.0)
            optimiser.step()
        reached.append(w.detach())
    return torch.stack(reached)


def _listed(numbers: Tensor) -> str:
    return ", ".join(f"{number:.3g}" for number in numbers.tolist())
