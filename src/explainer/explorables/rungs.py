"""What a gradient step misses of attention on each rung of `Ladder`: draws of random numbers, and all real heads."""

import math
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from explainer.explorables import running_prompt
from explainer.theory import duality

_DRAWS = 1000
_N, _D = 4, 64  # demonstrations, and the width of a head of the checkpoint


def measured() -> dict[str, Any]:
    """What is missed on each rung: quartiles over 1000 prompts of random numbers, on rung 5 over all real heads.

    `here`: on rungs 0 to 3 with the condition met that makes attention a step, so exactly 0; on 4 and 5 for the
    step that the derivation reads off the head. `other`: on rung 1 where tokens hold labels in place of error
    signals; on 2 where no head has brought the input to the label's token; on 3 for a step on the inputs without
    the shared vector; on 4 and 5 for the mean value plus the update of centred keys, at its best scale. `spread`
    and `shared` are the logits of the draws, those of the median head (`_logits_of`); `signs` are those of
    `_by_sign`; `chosen` is the head of RealHead: layer, head, and what is missed.
    """
    from explainer.models import loading  # noqa: PLC0415 - transformers is slow to import

    prompt = running_prompt.read_heads(loading.load(device="cpu"))
    spread, shared = (round(x, 2) for x in _logits_of(prompt))
    heads = [[_on_head(h.query, h.keys, h.values) for h in layer] for layer in prompt.heads]
    i, j = running_prompt.strongest_head(prompt)
    draws = _draws(spread, shared)
    samples = [*_random_rungs(draws), [one for layer in heads for one in layer]]
    return {
        "spread": spread,
        "shared": shared,
        "draws": _DRAWS,
        "heads": len(samples[-1]),
        "here": [running_prompt.quartiles([one.here for one in sample]) for sample in samples],
        "other": [running_prompt.quartiles([one.other for one in sample]) for sample in samples],
        "signs": _by_sign(draws),
        "chosen": [i + 1, j + 1, *heads[i][j]],
    }


def _missed(attention: Tensor, step: Tensor) -> float:
    """The share of attention's output that the step's output misses at its best scale, of either sign.

    min_s ||F - s o|| / ||F|| = sqrt(1 - cos(F, o)^2), with F attention's output and o = (W_0 + Delta W) q, both (d_v,).
    Raises ValueError if F is zero.
    """
    if not step.any():
        return 1.0
    return duality.relative_error(step * ((step @ attention) / (step @ step)), attention)


class _Draw(NamedTuple):
    """A prompt of random numbers: n demonstrations and one token of the query's own text.

    Inputs x_i (n, d), errors e_i (n, d), the own text's key and value (1, d), the query q (d,); `strangers`, keys that
    know nothing of x_i (n, d); `shared`, a vector c (d,) along q.
    """

    inputs: Tensor
    errors: Tensor
    own_key: Tensor
    own_value: Tensor
    query: Tensor
    strangers: Tensor
    shared: Tensor


def _draw(generator: Generator, spread: float, shared: float) -> _Draw:
    """Draw all vectors from isotropic Gaussians: e_i and v of length about 1, and logits x_i . q of standard deviation
    `spread`; c . q = +-`shared` times `spread`, either sign as often.
    """

    def normal(rows: int, size: float) -> Tensor:
        return size * torch.randn(rows, _D, generator=generator, dtype=torch.float64)

    size, unit = math.sqrt(spread / math.sqrt(_D)), 1 / math.sqrt(_D)
    inputs, own_key, strangers, query = normal(_N, size), normal(1, size), normal(_N, size), normal(1, size)[0]
    errors, own_value = normal(_N, unit), normal(1, unit)
    sign = 1 - 2 * torch.randint(2, (), generator=generator).item()
    return _Draw(
        inputs, errors, own_key, own_value, query, strangers, sign * shared * spread * query / query.norm() ** 2
    )


class _Missed(NamedTuple):
    """What is missed on a rung, and with its one condition turned round (see `measured`)."""

    here: float
    other: float


def _on_draw(one: _Draw) -> list[_Missed]:
    """What the step misses on rungs 0 to 4 for one draw.

    The step is computed as training does it, from the labels y_i = e_i + W_0 x_i at learning rate 1: Delta W =
    -sum_i (W_0 x_i - y_i) x_i^T. Attention sees keys and values only.
    """
    q, errors, plain = one.query, one.errors, one.inputs
    own_value, own_key = one.own_value, one.own_key

    def after_step(W_0: Tensor, inputs: Tensor, labels: Tensor) -> Tensor:
        gradient = duality.squared_error_gradient(inputs @ W_0.T, labels)
        return (W_0 + duality.gradient_descent_update(-gradient, inputs)) @ q

    def attend(values: Tensor, keys: Tensor) -> Tensor:
        return duality.linear_attention(values, keys, q[None])[0]

    def with_own(demonstrations: Tensor, own: Tensor) -> Tensor:
        return torch.cat([demonstrations, own])

    def rows(keys: Tensor, values: Tensor) -> Tensor:
        return attend(with_own(values, own_value), with_own(keys, own_key))

    zero, W_0 = torch.zeros(_D, _D, dtype=torch.float64), duality.gradient_descent_update(own_value, own_key)
    labels = errors + plain @ W_0.T
    step = after_step(W_0, plain, labels)
    first = _missed(attend(errors, plain), after_step(zero, plain, errors))
    weights = _Missed(_missed(rows(plain, errors), step), _missed(rows(plain, labels), step))
    # Two tokens each: the input's has no value, the label's has the key that a lower head brought it, or one of its own
    two = lambda keys: rows(torch.cat([plain, keys]), torch.cat([0 * errors, errors]))  # noqa: E731
    tokens = _Missed(_missed(two(plain), step), _missed(two(one.strangers), step))
    shifted, own_shifted = plain + one.shared, own_key + one.shared
    W_shifted = duality.gradient_descent_update(own_value, own_shifted)
    step_shifted = after_step(W_shifted, shifted, errors + shifted @ W_shifted.T)
    keys, values = with_own(shifted, own_shifted), with_own(errors, own_value)
    linear = attend(values, keys)
    direction = _Missed(_missed(linear, step_shifted), _missed(linear, step))
    soft = duality.softmax_attention(q, keys, values, scale=1.0)
    repaired = duality.centred_linear_attention(q, keys, values, scale=1.0)
    bend = _Missed(_missed(soft, step_shifted), _missed(soft, repaired))
    return [_Missed(first, first), weights, tokens, direction, bend]


def _on_head(query: Tensor, keys: Tensor, values: Tensor) -> _Missed:
    """What the step misses on rung 5: softmax attention of a real head against (W_ZSL + Delta W_ICL) q = V^T K q."""
    soft = duality.softmax_attention(query, keys, values)
    linear = duality.relaxed_attention(query, keys, values)
    repaired = duality.centred_linear_attention(query, keys, values)
    return _Missed(_missed(soft, linear), _missed(soft, repaired))


def _logits_of(prompt: running_prompt.RunningPrompt) -> tuple[float, float]:
    """Medians over all heads: the spread of the demonstrations' logits, and |their mean| divided by this spread."""
    logits = [duality.scaled_logits(h.query, h.keys[: prompt.n]) for layer in prompt.heads for h in layer]
    spreads = torch.stack([each.std(correction=0) for each in logits])
    means = torch.stack([each.mean().abs() for each in logits])
    return spreads.median().item(), (means / spreads).median().item()


def _draws(spread: float, shared: float, seed: int = 0) -> list[_Draw]:
    generator = torch.Generator().manual_seed(seed)
    return [_draw(generator, spread, shared) for _ in range(_DRAWS)]


def _random_rungs(draws: list[_Draw]) -> list[list[_Missed]]:
    """`_on_draw` of many draws: a list for each of rungs 0 to 4."""
    return [list(rung) for rung in zip(*map(_on_draw, draws), strict=True)]


def _by_sign(draws: list[_Draw]) -> list[float]:
    """Medians of what is missed on rung 4 over the draws with c . q above 0, and over those below."""
    sides = [[_on_draw(one)[4].here for one in draws if (one.shared @ one.query > 0) == up] for up in (True, False)]
    return [running_prompt.quartiles(side)[1] for side in sides]
