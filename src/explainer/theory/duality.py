"""Gradient descent written as attention, and attention written as a weight update.

Letters: n training pairs or demonstrations, m queries, T tokens or steps, d_in and d_out the sides of a linear
layer W (d_out, d_in), d the width of queries and keys, d_v that of values. Rows are examples. A tensor that has not the
shape of its annotation raises ShapeError.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from explainer.theory.shapes import shaped

_OutputGradient = Callable[[Float[Tensor, "n d_out"], Float[Tensor, "n d_out"]], Float[Tensor, "n d_out"]]
_Batches = Sequence[Int[Tensor, " _"]]


# Part 1. Gradient descent as attention.


@shaped
def linear_attention(
    values: Float[Tensor, "n d_out"], keys: Float[Tensor, "n d_in"], queries: Float[Tensor, "m d_in"]
) -> Float[Tensor, "m d_out"]:
    """Attend linearly: LinearAttn(V, K, q) = sum_i v_i (k_i . q), without softmax, scale or normaliser.

    Source: Dai et al. 2023, section 2.2, Eq. 9; Irie et al. 2022 (the dual form of a linear layer).
    """
    return (queries @ keys.T) @ values


@shaped
def gradient_descent_update(
    errors: Float[Tensor, "n d_out"], inputs: Float[Tensor, "n d_in"]
) -> Float[Tensor, "d_out d_in"]:
    """Sum the outer products of one step of gradient descent on a linear layer: dW = sum_i e_i x_i^T.

    The error signals are e_i = -lr dL/d(W x_i), so that the new weights are W + dW.
    Source: Dai et al. 2023, section 2.2, Eq. 7-8.
    """
    return errors.T @ inputs


@shaped
def squared_error_gradient(
    outputs: Float[Tensor, "n d_out"], targets: Float[Tensor, "n d_out"]
) -> Float[Tensor, "n d_out"]:
    """Differentiate L = 1/2 sum_i ||o_i - y_i||^2 by the outputs o_i = W x_i: dL/do_i = o_i - y_i."""
    return outputs - targets


def full_batches(n: int, steps: int) -> list[Int[Tensor, " n"]]:
    """Present all n examples at each of `steps` steps."""
    return [torch.arange(n)] * steps


def heavy_ball_weights(mu: float, steps: int) -> Float[Tensor, " steps"]:
    """Weigh the pairs of step t = 0, ..., T-1 in W_T - W_0 under momentum mu: (1 - mu^(T-t)) / (1 - mu), oldest first.

    Raises: ValueError if mu is outside [0, 1).
    Source: unrolling V_{t+1} = mu V_t + U_t, W_{t+1} = W_t + V_{t+1} (Polyak 1964).
    """
    if not 0 <= mu < 1:
        raise ValueError(f"momentum mu = {mu} is outside [0, 1); choose for example 0.9.")
    age = steps - torch.arange(steps, dtype=torch.float64)
    return (1 - mu**age) / (1 - mu)


@dataclass(frozen=True)
class GradientDescent:
    """Gradient descent, W_{t+1} = W_t + U_t with U_t = -lr dL/dW at W_t; with mini-batches it is SGD.

    Dual: every pair weighs 1.
    """

    lr: float

    @property
    def alpha(self) -> float:
        """The factor that a step multiplies the weights with."""
        return 1.0

    def initial_state(self, W_0: Tensor) -> Tensor:
        """Return the velocity before the first step, V_0 = 0."""
        return torch.zeros_like(W_0)

    def gradient_point(self, W: Tensor, V: Tensor) -> Tensor:
        """Return the weights at which the errors are taken."""
        return W

    def step(self, W: Tensor, V: Tensor, U: Tensor) -> tuple[Tensor, Tensor]:
        """Return the weights and the velocity after the update U."""
        return self.alpha * W + U, V

    def dual_weights(self, steps: int) -> Float[Tensor, " steps"]:
        """Return the weight in W_T of the pairs of each step, oldest first (float64)."""
        return self.alpha ** (steps - 1 - torch.arange(steps, dtype=torch.float64))


@dataclass(frozen=True)
class HeavyBall(GradientDescent):
    """Polyak's momentum, V_{t+1} = mu V_t + U_t and W_{t+1} = W_t + V_{t+1}, with V_0 = 0.

    Dual: the pairs of step t weigh (1 - mu^(T-t)) / (1 - mu), see `heavy_ball_weights`.
    Source: Polyak 1964; Sutskever et al. 2013, Eq. 1-2.
    """

    mu: float

    def step(self, W: Tensor, V: Tensor, U: Tensor) -> tuple[Tensor, Tensor]:
        """Return the weights and the velocity after the update U."""
        V = self.mu * V + U
        return W + V, V

    def dual_weights(self, steps: int) -> Float[Tensor, " steps"]:
        """Return the weight in W_T of the pairs of each step, oldest first (float64)."""
        return heavy_ball_weights(self.mu, steps)


@dataclass(frozen=True)
class Nesterov(HeavyBall):
    """Nesterov's momentum: heavy ball whose errors are taken ahead, at W_t + mu V_t.

    Source: Sutskever et al. 2013, Eq. 3-4; `torch.optim.SGD(nesterov=True)` stores W_t + mu V_t.
    """

    def gradient_point(self, W: Tensor, V: Tensor) -> Tensor:
        """Return the weights at which the errors are taken."""
        return W + self.mu * V


@dataclass(frozen=True)
class WeightDecay(GradientDescent):
    """Gradient descent on L + decay/2 ||W||^2 (ridge): W_{t+1} = (1 - lr decay) W_t + U_t.

    Dual: the pairs of step t weigh (1 - lr decay)^(T-1-t) and W_0 weighs (1 - lr decay)^T.
    """

    decay: float

    @property
    def alpha(self) -> float:
        """The factor that a step multiplies the weights with."""
        return 1 - self.lr * self.decay


@dataclass(frozen=True)
class DecayThenStep(GradientDescent):
    """Gradient descent from decayed weights, W_{t+1} = alpha W_t + U_t with the errors of U_t taken at alpha W_t.

    One pass of single examples from W_0 = 0 is `fast_weights.recurrent` with retention alpha.
    Source: Yang et al. 2025 (arXiv 2412.06464), section 3.1.
    """

    retention: float

    @property
    def alpha(self) -> float:
        """The factor that a step multiplies the weights with."""
        return self.retention

    def gradient_point(self, W: Tensor, V: Tensor) -> Tensor:
        """Return the weights at which the errors are taken."""
        return self.alpha * W


class _Dual(NamedTuple):
    """The dual form of trained weights: W_T = W_0_factor W_0 + sum_j weights_j values_j keys_j^T.

    Values are the errors as they were when taken, keys the inputs seen, in the order of training.
    """

    values: Float[Tensor, "J d_out"]
    keys: Float[Tensor, "J d_in"]
    weights: Float[Tensor, " J"]
    W_0_factor: float

    def update(self) -> Float[Tensor, "d_out d_in"]:
        """Sum the weighted outer products: sum_j weights_j values_j keys_j^T."""
        return gradient_descent_update(self.weights[:, None] * self.values, self.keys)


class _TrainedLayer(NamedTuple):
    """A trained linear layer twice: its weights and their exact dual."""

    W: Float[Tensor, "d_out d_in"]
    dual: _Dual


class _TrainingTrace(NamedTuple):
    """A trained linear layer, and all errors and inputs on the way."""

    W: Float[Tensor, "d_out d_in"]
    values: Float[Tensor, "J d_out"]
    keys: Float[Tensor, "J d_in"]


def _train(W_0, inputs, targets, optimiser, batches, *, output_gradient) -> _TrainingTrace:
    """Run the optimiser over the batches."""
    # The empty first entries keep the shapes right when there is no step at all.
    W, state, values, keys = W_0, optimiser.initial_state(W_0), [targets[:0]], [inputs[:0]]
    for batch in batches:
        x, y = inputs[batch], targets[batch]
        errors = -optimiser.lr * output_gradient(x @ optimiser.gradient_point(W, state).T, y)
        W, state = optimiser.step(W, state, gradient_descent_update(errors, x))
        values.append(errors)
        keys.append(x)
    return _TrainingTrace(W, torch.cat(values), torch.cat(keys))


@shaped
def train_linear_layer(
    W_0: Float[Tensor, "d_out d_in"],
    inputs: Float[Tensor, "n d_in"],
    targets: Float[Tensor, "n d_out"],
    optimiser: GradientDescent,
    batches: _Batches,
    *,
    output_gradient: _OutputGradient = squared_error_gradient,
) -> _TrainedLayer:
    """Train x -> W x, one step per batch, and return W_T with its dual W_T = c_T W_0 + sum_j a_j e_j x_j^T.

    The loss of a batch is the *sum* over its examples, and each error e_j is taken at the weights of its own step.
    Source: Irie et al. 2022 (gradient descent); the other optimisers by unrolling their recursions.
    """
    W, values, keys = _train(W_0, inputs, targets, optimiser, batches, output_gradient=output_gradient)
    batch_sizes = torch.tensor([len(batch) for batch in batches], dtype=torch.long, device=W_0.device)
    weights = optimiser.dual_weights(len(batches)).to(W_0).repeat_interleave(batch_sizes)
    return _TrainedLayer(W, _Dual(values, keys, weights, optimiser.alpha ** len(batches)))


@shaped
def train_with_torch(
    W_0: Float[Tensor, "d_out d_in"],
    inputs: Float[Tensor, "n d_in"],
    targets: Float[Tensor, "n d_out"],
    optimiser: Callable[..., torch.optim.Optimizer],
    steps: int,
    **settings: float,
) -> Float[Tensor, "d_out d_in"]:
    """Train x -> W x on L = 1/2 sum_i ||W x_i - y_i||^2 with an optimiser of PyTorch, as a judge; return W_T.

    Full batches, gradients by autograd; `settings` are the optimiser's, such as lr.
    """
    W = W_0.clone().requires_grad_()
    judge = optimiser([W], **settings)
    for _ in range(steps):
        judge.zero_grad()
        (((inputs @ W.T - targets) ** 2).sum() / 2).backward()
        judge.step()
    return W.detach()


def largest_stable_rate(inputs: Float[Tensor, "n d_in"]) -> float:
    """Return the learning rate beyond which descent on the summed squared error diverges: 2 / sigma_max(X)^2."""
    return 2 / torch.linalg.matrix_norm(inputs, ord=2).item() ** 2


class _RandomLayer(NamedTuple):
    """A linear layer to try identities on."""

    W_0: Float[Tensor, "d_out d_in"]
    inputs: Float[Tensor, "n d_in"]
    targets: Float[Tensor, "n d_out"]
    queries: Float[Tensor, "5 d_in"]


def random_layer(n: int, d_in: int, d_out: int, seed: int) -> _RandomLayer:
    """Draw weights, n examples and five queries, all independent Gaussians of variance 1, in float64."""
    generator = torch.Generator().manual_seed(seed)
    shapes = (d_out, d_in), (n, d_in), (n, d_out), (5, d_in)
    return _RandomLayer(*(torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes))


@shaped
def relative_error(approximation: Float[Tensor, "*shape"], exact: Float[Tensor, "*shape"]) -> float:
    """Compare two tensors: ||approximation - exact|| / ||exact||, Euclidean (Frobenius) norms.

    Raises: ValueError if `exact` is zero.
    """
    if not exact.any():
        raise ValueError("exact is zero, so an error relative to it is undefined; compare absolute errors.")
    return ((approximation - exact).norm() / exact.norm()).item()


@shaped
def same(a: Float[Tensor, "*shape"], b: Float[Tensor, "*shape"]) -> bool:
    """Tell whether two float64 results of one computation differ by rounding only: |a - b| <= 1e-10 (1 + |b|)."""
    return torch.allclose(a, b, rtol=1e-10, atol=1e-10)


# Part 2. Where the outer-product form is lost.


@dataclass(frozen=True)
class Adam:
    """Adam, W_{t+1} = W_t - lr m_hat / (sqrt(v_hat) + eps) entry by entry: it has no dual with one weight per pair.

    Source: Kingma & Ba 2015, Algorithm 1.
    """

    lr: float
    beta_1: float = 0.9
    beta_2: float = 0.999
    eps: float = 1e-8

    def initial_state(self, W_0: Tensor) -> tuple[Tensor, Tensor, int]:
        """Return the two moments and the step count before the first step, all zero."""
        return torch.zeros_like(W_0), torch.zeros_like(W_0), 0

    def gradient_point(self, W: Tensor, state: tuple[Tensor, Tensor, int]) -> Tensor:
        """Return the weights at which the errors are taken."""
        return W

    def step(
        self, W: Tensor, state: tuple[Tensor, Tensor, int], U: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor, int]]:
        """Return the weights, the moments and the step count after the plain update U = -lr dL/dW."""
        m, v, t = state
        gradient, t = -U / self.lr, t + 1
        m = self.beta_1 * m + (1 - self.beta_1) * gradient
        v = self.beta_2 * v + (1 - self.beta_2) * gradient**2
        m_hat, v_hat = m / (1 - self.beta_1**t), v / (1 - self.beta_2**t)
        return W - self.lr * m_hat / (v_hat.sqrt() + self.eps), (m, v, t)


@shaped
def train_linear_layer_adam(
    W_0: Float[Tensor, "d_out d_in"],
    inputs: Float[Tensor, "n d_in"],
    targets: Float[Tensor, "n d_out"],
    optimiser: Adam,
    batches: _Batches,
    *,
    output_gradient: _OutputGradient = squared_error_gradient,
) -> _TrainingTrace:
    """Train as `train_linear_layer` does, with Adam; return W_T and the errors -lr dL/d(W_t x_j) and inputs seen."""
    return _train(W_0, inputs, targets, optimiser, batches, output_gradient=output_gradient)


class _OuterProductFit(NamedTuple):
    """How well an update is a weighted sum of given outer products; see `fit_outer_products`."""

    weights: Float[Tensor, " J"]
    relative_residual: float
    update_rank: int
    gradient_rank: int


@shaped
def fit_outer_products(
    update: Float[Tensor, "d_out d_in"], values: Float[Tensor, "J d_out"], keys: Float[Tensor, "J d_in"]
) -> _OuterProductFit:
    """Find the weights a that minimise ||dW - sum_j a_j v_j k_j^T|| and measure what they leave unexplained.

    Fields: the least-squares weights of smallest norm, the residual divided by ||dW||, the ranks of dW and of
    sum_j v_j k_j^T. With d_in independent inputs and J >= d_out d_in pairs every matrix can be reached.
    Raises: ValueError if the update is zero.
    """
    outer_products = torch.einsum("jo,ji->oij", values, keys)
    weights = torch.linalg.pinv(outer_products.flatten(0, 1)) @ update.flatten()
    return _OuterProductFit(
        weights,
        relative_error(outer_products @ weights, update),
        int(torch.linalg.matrix_rank(update)),
        int(torch.linalg.matrix_rank(gradient_descent_update(values, keys))),
    )


# Part 3. Attention as a weight update.


@dataclass(frozen=True, eq=False)
class _SplitAttention:
    """Attention of one query split at the demonstrations; see `split_attention`."""

    attention: Float[Tensor, " d_v"]
    zero_shot: Float[Tensor, " d_v"]
    demonstrations: Float[Tensor, " d_v"]
    gate: Float[Tensor, ""]
    W_zsl: Float[Tensor, "d_v d"]
    delta_W_icl: Float[Tensor, "d_v d"]


@shaped
def split_attention(
    query: Float[Tensor, " d"], keys: Float[Tensor, "T d"], values: Float[Tensor, "T d_v"], n_demonstrations: int
) -> _SplitAttention:
    """Split softmax attention at the first n rows: attention = (1 - g) zero_shot + g demonstrations, exactly.

    With l_i = k_i . q / sqrt(d), each part is softmax attention over its own rows and g = sum_{i<=n} exp l_i / sum_i
    exp l_i. The relaxed form is V^T K q = (W_zsl + delta_W_icl) q, delta_W_icl = sum_{i<=n} v_i k_i^T. An empty part is
    zero.
    Raises: ValueError if n is outside 0..T or there is no token.
    Source: Dai et al. 2023, section 3.1, Eq. 11-12 (relaxed form); He et al. 2022 (arXiv 2110.04366), section 3.1 (g).
    """
    n, T = n_demonstrations, len(keys)
    if T == 0 or not 0 <= n <= T:
        raise ValueError(f"n_demonstrations = {n} with {T} tokens; it must lie in 0..{T}, with at least one token.")
    logits = scaled_logits(query, keys)
    return _SplitAttention(
        attention=logits.softmax(-1) @ values,
        zero_shot=logits[n:].softmax(-1) @ values[n:],
        demonstrations=logits[:n].softmax(-1) @ values[:n],
        gate=torch.sigmoid(logits[:n].logsumexp(-1) - logits[n:].logsumexp(-1)),
        W_zsl=values[n:].T @ keys[n:],
        delta_W_icl=values[:n].T @ keys[:n],
    )


# Part 4. How far the relaxed form is from softmax. Queries are (d,) or (m, d); `scale` is 1/sqrt(d) unless given.


@shaped
def scaled_logits(
    queries: Float[Tensor, "*m d"], keys: Float[Tensor, "T d"], scale: float | None = None
) -> Float[Tensor, "*m T"]:
    """Compute the logits of attention, l_i = scale k_i . q, with scale = 1/sqrt(d) unless given."""
    return _scale(queries, scale) * queries @ keys.T


def _scale(queries: Tensor, scale: float | None) -> float:
    return 1 / math.sqrt(queries.shape[-1]) if scale is None else scale


@shaped
def softmax_attention(
    queries: Float[Tensor, "*m d"],
    keys: Float[Tensor, "T d"],
    values: Float[Tensor, "T d_v"],
    scale: float | None = None,
) -> Float[Tensor, "*m d_v"]:
    """Attend as transformers do: sum_i softmax(l)_i v_i with l_i = scale k_i . q.

    Source: Vaswani et al. 2017, Eq. 1.
    """
    return scaled_logits(queries, keys, scale).softmax(-1) @ values


@shaped
def softmax_kernel_dual(
    queries: Float[Tensor, "*m d"],
    keys: Float[Tensor, "T d"],
    values: Float[Tensor, "T d_v"],
    scale: float | None = None,
) -> Float[Tensor, "*m d_v"]:
    """Write softmax attention as a kernel average: sum_i v_i k(k_i, q) / sum_i k(k_i, q), k(x, q) = exp(scale x . q).

    The kernel overflows once a logit passes about 700 (float64) or 88 (float32).
    Source: Tsai et al. 2019 (arXiv 1908.11775).
    """
    kernel = scaled_logits(queries, keys, scale).exp()
    return kernel @ values / kernel.sum(-1, keepdim=True)


@shaped
def relaxed_attention(
    queries: Float[Tensor, "*m d"], keys: Float[Tensor, "T d"], values: Float[Tensor, "T d_v"]
) -> Float[Tensor, "*m d_v"]:
    """Drop softmax and scale: sum_i v_i (k_i . q) = V^T K q.

    Source: Dai et al. 2023, section 3.1, Eq. 11.
    """
    return queries @ keys.T @ values


def centred_linear_attention(
    queries: Float[Tensor, "*m d"],
    keys: Float[Tensor, "T d"],
    values: Float[Tensor, "T d_v"],
    scale: float | None = None,
) -> Float[Tensor, "*m d_v"]:
    """Expand softmax attention to first order in the logits: mean(V) + (scale/T) sum_i v_i (k_i - mean(K)) . q.

    Source: Taylor expansion, softmax(l)_i = (1 + l_i - mean(l))/T + O(l^2).
    """
    linear = relaxed_attention(queries, keys - keys.mean(0), values)
    return values.mean(0) + _scale(queries, scale) / len(keys) * linear


@shaped
def taylor_features(x: Float[Tensor, "n d"], degree: int) -> Float[Tensor, "n features"]:
    """Map to all monomials up to a degree, so that phi(x) . phi(y) = sum_{p<=degree} (x . y)^p / p!."""
    powers = [torch.ones_like(x[:, :1])]
    for p in range(1, degree + 1):
        powers.append(torch.einsum("nf,nd->nfd", powers[-1], x).flatten(1) / math.sqrt(p))
    return torch.cat(powers, dim=1)


@shaped
def random_feature_attention(
    queries: Float[Tensor, "m d"],
    keys: Float[Tensor, "T d"],
    values: Float[Tensor, "T d_v"],
    projections: Float[Tensor, "features d"],
    scale: float | None = None,
) -> Float[Tensor, "m d_v"]:
    """Approximate softmax attention by normalised linear attention on positive random features of K and Q.

        phi(x)_r = exp(w_r . x - |x|^2 / 2),  E phi(k) . phi(q) / features = exp(k . q) over projections w_r ~ N(0, I)

    of x = sqrt(scale) times keys and queries.
    Source: Choromanski et al. 2021 (arXiv 2009.14794), section 2 and Lemma 1; the ratio: Katharopoulos et al. 2020.
    """
    root = math.sqrt(_scale(queries, scale))
    log_phi_K, log_phi_Q = (x @ projections.T - (x**2).sum(1, keepdim=True) / 2 for x in (root * keys, root * queries))
    # One factor for all keys and one per query cancel in the ratio; taking them out avoids 0/0 and overflow.
    phi_K = (log_phi_K - log_phi_K.max()).exp()
    phi_Q = (log_phi_Q - log_phi_Q.amax(1, keepdim=True)).exp()
    return linear_attention(values, phi_K, phi_Q) / linear_attention(torch.ones_like(values[:, :1]), phi_K, phi_Q)


def logit_spread(
    queries: Float[Tensor, "*m d"], keys: Float[Tensor, "T d"], scale: float | None = None
) -> Float[Tensor, "*m"]:
    """Measure how far softmax bends: the standard deviation of the scaled logits over the tokens (divisor T)."""
    return scaled_logits(queries, keys, scale).std(-1, correction=0)
