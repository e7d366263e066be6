"""The explorable that returns in five chapters: how much of attention a gradient step misses, rung by rung."""

import json
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import traitlets

from explainer.explorables import real_head
from explainer.explorables.base import FOLDER, Explorable

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from explainer.models.checkpoints import Checkpoint

STORED = FOLDER / "ladder.json"
"""What a gradient step misses on each rung, as `measured` gives it."""
RUNGS = 6
DRAWS, SEED = 1000, 0
N, D = 4, 64  # demonstrations, and the width of a head of the checkpoint


def stored() -> dict[str, Any]:
    """What is stored of the rungs; `measured` says which numbers these are."""
    return json.loads(STORED.read_text("utf-8"))


class Ladder(Explorable):
    """Six rungs from a linear layer to a real GPT: how much of attention's output the layer after one step misses.

    On every rung it is missed(F(q), (W_0 + Delta W) q): attention's output F(q) against the output of the layer after
    one gradient step on the demonstrations, at its best scale. Traits: `rung`, 0 to 5; `rungs`, what is stored.
    """

    name = "ladder"
    question = "How much of what attention does is a gradient step?"
    height = 865
    made = (
        "Stored: 1,000 random prompts, seed 0, and 270 heads of SmolLM2-135M, one prompt; computed by "
        "explainer.explorables.ladder.store()."
    )

    rung = traitlets.Int(RUNGS - 1, min=0, max=RUNGS - 1).tag(sync=True, explorable=True)
    rungs = traitlets.Dict().tag(sync=True, explorable=True)

    @traitlets.default("rungs")
    def _rungs(self) -> dict[str, Any]:
        return stored()


def missed(attention: "Tensor", step: "Tensor") -> float:
    """The share of attention's output that the step's output misses at its best scale, of either sign.

    min_s ||F - s o|| / ||F|| = sqrt(1 - cos(F, o)^2), with F attention's output and o = (W_0 + Delta W) q, both (d_v,).
    Raises ValueError if F is zero.
    """
    from explainer.theory import duality  # noqa: PLC0415 - a page that shows stored numbers needs no torch

    if not step.any():
        return 1.0
    return duality.relative_error(step * ((step @ attention) / (step @ step)), attention)


class Draw(NamedTuple):
    """A prompt of random numbers: n demonstrations and one token of the query's own text.

    Inputs x_i (n, d), errors e_i (n, d), the own text's key and value (1, d), the query q (d,); `strangers`, keys that
    know nothing of x_i (n, d); `shared`, a vector c (d,) along q.
    """

    inputs: "Tensor"
    errors: "Tensor"
    own_key: "Tensor"
    own_value: "Tensor"
    query: "Tensor"
    strangers: "Tensor"
    shared: "Tensor"


def draw(generator: "Generator", spread: float, shared: float) -> Draw:
    """Draw all vectors from isotropic Gaussians: e_i and v of length about 1, and logits x_i . q of standard deviation
    `spread`; c . q = +-`shared` times `spread`, either sign as often.
    """
    import torch  # noqa: PLC0415 - as above

    def normal(rows: int, size: float) -> "Tensor":
        return size * torch.randn(rows, D, generator=generator, dtype=torch.float64)

    size, unit = math.sqrt(spread / math.sqrt(D)), 1 / math.sqrt(D)
    inputs, own_key, strangers, query = normal(N, size), normal(1, size), normal(N, size), normal(1, size)[0]
    errors, own_value = normal(N, unit), normal(1, unit)
    sign = 1 - 2 * torch.randint(2, (), generator=generator).item()
    return Draw(
        inputs, errors, own_key, own_value, query, strangers, sign * shared * spread * query / query.norm() ** 2
    )


class Missed(NamedTuple):
    """What is missed on a rung, and with its one condition turned round (see `measured`)."""

    here: float
    other: float


def on_draw(one: Draw) -> list[Missed]:
    """What the step misses on rungs 0 to 4 for one draw.

    The step is computed as training does it, from the labels y_i = e_i + W_0 x_i at learning rate 1: Delta W =
    -sum_i (W_0 x_i - y_i) x_i^T. Attention sees keys and values only.
    """
    import torch  # noqa: PLC0415 - as above

    from explainer.theory import duality  # noqa: PLC0415 - as above

    q, errors, plain = one.query, one.errors, one.inputs
    own_value, own_key = one.own_value, one.own_key

    def after_step(W_0: "Tensor", inputs: "Tensor", labels: "Tensor") -> "Tensor":
        gradient = duality.squared_error_gradient(inputs @ W_0.T, labels)
        return (W_0 + duality.gradient_descent_update(-gradient, inputs)) @ q

    def attend(values: "Tensor", keys: "Tensor") -> "Tensor":
        return duality.linear_attention(values, keys, q[None])[0]

    def with_own(demonstrations: "Tensor", own: "Tensor") -> "Tensor":
        return torch.cat([demonstrations, own])

    def rows(keys: "Tensor", values: "Tensor") -> "Tensor":
        return attend(with_own(values, own_value), with_own(keys, own_key))

    zero, W_0 = torch.zeros(D, D, dtype=torch.float64), duality.gradient_descent_update(own_value, own_key)
    labels = errors + plain @ W_0.T
    step = after_step(W_0, plain, labels)
    first = missed(attend(errors, plain), after_step(zero, plain, errors))
    weights = Missed(missed(rows(plain, errors), step), missed(rows(plain, labels), step))
    # Two tokens each: the input's has no value, the label's has the key that a lower head brought it, or one of its own
    two = lambda keys: rows(torch.cat([plain, keys]), torch.cat([0 * errors, errors]))  # noqa: E731
    tokens = Missed(missed(two(plain), step), missed(two(one.strangers), step))
    shifted, own_shifted = plain + one.shared, own_key + one.shared
    W_shifted = duality.gradient_descent_update(own_value, own_shifted)
    step_shifted = after_step(W_shifted, shifted, errors + shifted @ W_shifted.T)
    keys, values = with_own(shifted, own_shifted), with_own(errors, own_value)
    linear = attend(values, keys)
    direction = Missed(missed(linear, step_shifted), missed(linear, step))
    soft = duality.softmax_attention(q, keys, values, scale=1.0)
    repaired = duality.centred_linear_attention(q, keys, values, scale=1.0)
    return [
        Missed(first, first),
        weights,
        tokens,
        direction,
        Missed(missed(soft, step_shifted), missed(soft, repaired)),
    ]


def on_head(query: "Tensor", keys: "Tensor", values: "Tensor") -> Missed:
    """What the step misses on rung 5: softmax attention of a real head against (W_ZSL + Delta W_ICL) q = V^T K q."""
    from explainer.theory import duality  # noqa: PLC0415 - as above

    soft = duality.softmax_attention(query, keys, values)
    linear, repaired = (
        duality.relaxed_attention(query, keys, values),
        duality.centred_linear_attention(query, keys, values),
    )
    return Missed(missed(soft, linear), missed(soft, repaired))


def logits_of(prompt: real_head.RunningPrompt) -> tuple[float, float]:
    """Medians over all heads: the spread of the demonstrations' logits, and |their mean| divided by this spread."""
    import torch  # noqa: PLC0415 - as above

    from explainer.theory import duality  # noqa: PLC0415 - as above

    logits = [duality.scaled_logits(h.query, h.keys[: prompt.n]) for layer in prompt.heads for h in layer]
    spreads = torch.stack([each.std(correction=0) for each in logits])
    means = torch.stack([each.mean().abs() for each in logits])
    return spreads.median().item(), (means / spreads).median().item()


def random_rungs(spread: float, shared: float, draws: int = DRAWS, seed: int = SEED) -> list[list[Missed]]:
    """`on_draw` of many draws: a list for each of rungs 0 to 4."""
    import torch  # noqa: PLC0415 - as above

    generator = torch.Generator().manual_seed(seed)
    prompts = [draw(generator, spread, shared) for _ in range(draws)]
    return [list(rung) for rung in zip(*map(on_draw, prompts), strict=True)]


def by_sign(spread: float, shared: float, draws: int = DRAWS, seed: int = SEED) -> list[float]:
    """Medians of what is missed on rung 4 over the draws with c . q above 0, and over those below."""
    import torch  # noqa: PLC0415 - as above

    generator = torch.Generator().manual_seed(seed)
    prompts = [draw(generator, spread, shared) for _ in range(draws)]
    sides = [
        [on_draw(one)[4].here for one in prompts if (one.shared @ one.query > 0) == above] for above in (True, False)
    ]
    return [_quartiles(side)[1] for side in sides]


def measured(checkpoint: "Checkpoint") -> dict[str, Any]:
    """What is missed on each rung: quartiles over DRAWS prompts of random numbers, on rung 5 over all real heads.

    `here`: on rungs 0 to 3 with the condition met that makes attention a step, so exactly 0; on 4 and 5 for the step
    that the derivation reads off the head. `other`: on rung 1 where tokens hold labels in place of error signals; on
    2 where no head has brought the input to the label's token; on 3 for a step on the inputs without the shared
    vector; on 4 and 5 for the mean value plus the update of centred keys, at its best scale. `spread` and `shared` are
    the logits of the draws, those of the median head (`logits_of`); `signs` are those of `by_sign`; `chosen` is the
    head of RealHead: layer, head, and what is missed.
    """
    prompt = real_head.running_prompt(checkpoint)
    spread, shared = (round(x, 2) for x in logits_of(prompt))
    heads = [[on_head(h.query, h.keys, h.values) for h in layer] for layer in prompt.heads]
    i, j = real_head.choose(prompt)
    samples = [*random_rungs(spread, shared), [one for layer in heads for one in layer]]
    return {
        "spread": spread,
        "shared": shared,
        "draws": DRAWS,
        "heads": len(samples[-1]),
        "here": [_quartiles([one.here for one in sample]) for sample in samples],
        "other": [_quartiles([one.other for one in sample]) for sample in samples],
        "signs": by_sign(spread, shared),
        "chosen": [i + 1, j + 1, *heads[i][j]],
    }


def _quartiles(sample: list[float]) -> list[float]:
    import torch  # noqa: PLC0415 - as above

    levels = torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64)
    return torch.tensor(sample, dtype=torch.float64).quantile(levels).tolist()


def store() -> None:
    """Write STORED: random draws, and the heads of the starter checkpoint in float32."""
    from explainer.models import checkpoints  # noqa: PLC0415 - as above

    found = real_head.rounded(measured(checkpoints.load(device="cpu")))
    STORED.write_text(json.dumps(found, separators=(",", ":")) + "\n", "utf-8")
