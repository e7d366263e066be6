"""All heads at the end of the running prompt, `Japan ->`: what `RealHead` shows of one, and `Ladder` of all."""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from explainer.data import tasks
from explainer.models import architectures, loading, recording, scoring
from explainer.models.loading import Checkpoint
from explainer.models.recording import Head
from explainer.theory import duality

_DRAWS = 1000
_N, _D = 4, 64  # demonstrations, and the width of a head of the checkpoint
_SHOWN, _ASKED = ("France", "Italy", "Egypt", "China"), "Japan"


def measured_head() -> dict[str, Any]:
    """The numbers of the head that `choose` finds in the starter checkpoint, in bases in which few are needed.

    `layer` and `head`, from 1; `tokens`, the rows, of which the first `n` are the demonstrations'. `query`: the
    length of q / sqrt(d). `keys`, shape (T, 2): along the query, and along the part of the mean key that is
    orthogonal to it; logits are query * keys[:, 0]. `values`, shape (T, rank): in an orthonormal basis whose first
    two axes span the change of softmax attention and the sum of the demonstrations' values. `answer`, shape (T,): v
    . direction, nats. `added`: what attention to the demonstrations adds. `cosine`: quartiles of the cosines of
    `_changes` over `heads` heads.
    """
    prompt = _read_heads(loading.load(device="cpu"))
    added, i, j = _strongest_head(prompt)
    head, direction, n = prompt.heads[i][j], prompt.directions[i][j], prompt.n
    soft, _ = _changes(head.query, head.keys, head.values, n)
    along, mean = head.query / head.query.norm(), head.keys.mean(0)
    across = mean - (mean @ along) * along
    keys = head.keys @ torch.stack([along, across / across.norm()], dim=1)
    basis = _basis(torch.stack([soft, head.values[:n].sum(0), *head.values]))
    both = [_changes(h.query, h.keys, h.values, n) for layer in prompt.heads for h in layer]
    cosines = [torch.cosine_similarity(soft, linear, dim=0).item() for soft, linear in both]
    return {
        "layer": i + 1,
        "head": j + 1,
        "tokens": prompt.tokens,
        "n": n,
        "query": head.query.norm().item() / math.sqrt(len(head.query)),
        "keys": keys.tolist(),
        "values": (head.values @ basis).tolist(),
        "answer": (head.values @ direction).tolist(),
        "added": added,
        "cosine": _quartiles(cosines),
        "heads": sum(map(len, prompt.heads)),
    }


class _RunningPrompt(NamedTuple):
    """All heads at the end of the running prompt, demonstrations first: rows 0 to n - 1 of keys and values.

    `tokens` are the texts of the rows. `directions[layer][head]`, shape (d_v,), says how much a vector of the head's
    output adds to the logit of " Tokyo" minus that of " Japan" on the direct path: v . direction, in nats, with the
    scale of the final norm held at its value in this pass.
    """

    heads: list[list[Head]]
    directions: list[list[Tensor]]
    tokens: list[str]
    n: int


def _read_heads(checkpoint: Checkpoint) -> _RunningPrompt:
    """Read the heads of the prompt of four capitals and `Japan ->` in a forward pass, and in another the final norm.

    Source of the direct path: Elhage et al. 2021, A Mathematical Framework for Transformer Circuits.
    """
    data = tasks.load("capitals")
    *shown, asked = data.examples_of(*_SHOWN, _ASKED)
    ids, ends = scoring.context_ids(checkpoint, data.task, shown)
    ids = ids + scoring.continuation_ids(checkpoint, ["\n"], [data.task.prompt(asked)])[0]
    n = ends[-1] - 1
    read = [[head.with_rows_first(1, n + 1) for head in layer] for layer in recording.read_heads(checkpoint, ids)]
    parts, last = architectures.architecture(checkpoint.model), {}
    norm = parts.final[0]
    hook = norm.register_forward_pre_hook(lambda _, inputs: last.update(x=inputs[0][0, -1]))
    with torch.no_grad(), hook:
        checkpoint.model(input_ids=torch.tensor([ids], device=checkpoint.device))
    with torch.no_grad():
        scale = norm(last["x"]) / last["x"]
    embedding = checkpoint.model.get_output_embeddings().weight
    answer, given = (checkpoint.tokenize(text)[0] for text in (" Tokyo", " Japan"))
    wanted = (scale * (embedding[answer] - embedding[given])).detach().double().cpu()
    directions = [
        list((wanted @ layer.output.weight.detach().double().cpu()).unflatten(0, (parts.n_heads, -1)))
        for layer in parts.layers
    ]
    tokens = [checkpoint.tokenizer.decode([i]) for i in ids]
    return _RunningPrompt(read, directions, tokens[1 : n + 1] + tokens[:1] + tokens[n + 1 :], n)


def _strongest_head(prompt: _RunningPrompt) -> tuple[float, int, int]:
    """What the strongest head's attention to the demonstrations adds to the answer, its layer and its number, from 0.

    Of each head, in nats, sum_{i<=n} p_i v_i . direction.
    """
    added = []
    for i, layer in enumerate(prompt.heads):
        for j, head in enumerate(layer):
            parts = duality.split_attention(head.query, head.keys, head.values, prompt.n)
            added.append(((parts.gate * parts.demonstrations @ prompt.directions[i][j]).item(), i, j))
    return max(added)


def _changes(query: Tensor, keys: Tensor, values: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """What demonstrations change: of softmax attention, F(q) - z, and of linear attention, Delta W_ICL q / (T sqrt d).

    The factor is that of the expansion of softmax to first order; query (d,), keys (T, d), values (T, d_v).
    """
    parts = duality.split_attention(query, keys, values, n)
    linear = parts.delta_W_icl @ query / (len(keys) * math.sqrt(len(query)))
    return parts.attention - parts.zero_shot, linear


def _quartiles(sample: list[float]) -> list[float]:
    """The 25th, 50th and 75th percentile of a sample."""
    levels = torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64)
    return torch.tensor(sample, dtype=torch.float64).quantile(levels).tolist()


def _basis(rows: Tensor) -> Tensor:
    """An orthonormal basis of the span of the rows, as columns, by Gram-Schmidt in their order."""
    columns: list[Tensor] = []
    for row in rows:
        rest = row
        for _ in range(2):  # twice is enough for full precision
            rest = rest - sum((column * (column @ rest) for column in columns), torch.zeros_like(row))
        if rest.norm() > 1e-9 * row.norm():
            columns.append(rest / rest.norm())
    return torch.stack(columns, dim=1)


# The rungs


def measured_rungs() -> dict[str, Any]:
    """What is missed on each rung: quartiles over 1000 prompts of random numbers, on rung 5 over all real heads.

    `here`: on rungs 0 to 3 with the condition met that makes attention a step, so exactly 0; on 4 and 5 for the
    step that the derivation reads off the head. `other`: on rung 1 where tokens hold labels in place of error
    signals; on 2 where no head has brought the input to the label's token; on 3 for a step on the inputs without
    the shared vector; on 4 and 5 for the mean value plus the update of centred keys, at its best scale. `spread`
    and `shared` are the logits of the draws, those of the median head (`_logits_of`); `signs` are those of
    `_by_sign`; `chosen` is the head of RealHead: layer, head, and what is missed.
    """
    prompt = _read_heads(loading.load(device="cpu"))
    spread, shared = (round(x, 2) for x in _logits_of(prompt))
    of_heads = [[_on_head(h.query, h.keys, h.values) for h in layer] for layer in prompt.heads]
    _, i, j = _strongest_head(prompt)
    draws = _draws(spread, shared, _DRAWS)
    samples = [*_on_draws(draws), [one for layer in of_heads for one in layer]]
    return {
        "spread": spread,
        "shared": shared,
        "draws": _DRAWS,
        "heads": len(samples[-1]),
        "here": [_quartiles([one.here for one in sample]) for sample in samples],
        "other": [_quartiles([one.other for one in sample]) for sample in samples],
        "signs": _by_sign(draws),
        "chosen": [i + 1, j + 1, *of_heads[i][j]],
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


def _draws(spread: float, shared: float, n: int, seed: int = 0) -> list[_Draw]:
    """Draw n prompts, all vectors from isotropic Gaussians: e_i and v of length about 1, and logits x_i . q of standard
    deviation `spread`; c . q = +-`shared` times `spread`, either sign as often.
    """
    generator = torch.Generator().manual_seed(seed)

    def normal(rows: int, size: float) -> Tensor:
        return size * torch.randn(rows, _D, generator=generator, dtype=torch.float64)

    size, unit, draws = math.sqrt(spread / math.sqrt(_D)), 1 / math.sqrt(_D), []
    for _ in range(n):
        inputs, own_key, strangers, query = normal(_N, size), normal(1, size), normal(_N, size), normal(1, size)[0]
        errors, own_value = normal(_N, unit), normal(1, unit)
        sign = 1 - 2 * torch.randint(2, (), generator=generator).item()
        along = sign * shared * spread * query / query.norm() ** 2
        draws.append(_Draw(inputs, errors, own_key, own_value, query, strangers, along))
    return draws


class _Missed(NamedTuple):
    """What is missed on a rung, and with its one condition turned round (see `measured_rungs`)."""

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

    def rows(keys: Tensor, values: Tensor) -> Tensor:
        return attend(torch.cat([values, own_value]), torch.cat([keys, own_key]))

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
    keys, values = torch.cat([shifted, own_shifted]), torch.cat([errors, own_value])
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


def _logits_of(prompt: _RunningPrompt) -> tuple[float, float]:
    """Medians over all heads: the spread of the demonstrations' logits, and |their mean| divided by this spread."""
    logits = [duality.scaled_logits(h.query, h.keys[: prompt.n]) for layer in prompt.heads for h in layer]
    spreads = torch.stack([each.std(correction=0) for each in logits])
    means = torch.stack([each.mean().abs() for each in logits])
    return spreads.median().item(), (means / spreads).median().item()


def _on_draws(draws: list[_Draw]) -> list[list[_Missed]]:
    """A list for each of rungs 0 to 4."""
    return [list(rung) for rung in zip(*map(_on_draw, draws), strict=True)]


def _by_sign(draws: list[_Draw]) -> list[float]:
    """Medians of what is missed on rung 4 over the draws with c . q above 0, and over those below."""
    sides = [[_on_draw(one)[4].here for one in draws if (one.shared @ one.query > 0) == up] for up in (True, False)]
    return [_quartiles(side)[1] for side in sides]
