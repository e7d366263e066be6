"""Explorables of what was measured once: `stored` is what they show, `measured` computes it again."""

from typing import Any

import traitlets

from explainer.explorables.explorable_base import Explorable, Rows, Stored
from explainer.results.thirds import layer_thirds

SIDES = ("training", "context")
LESSONS = ("own", "reordered", "other", "shuffled", "foreign", "nonsense")
"""As the columns of shared_part/layers.parquet name them."""
_UPPER = layer_thirds(30)["upper third"].start  # the first layer of the upper third, from 0


class Ladder(Explorable):
    """Six rungs from a linear layer to a real GPT: how much of attention's output the layer after one step misses.

    On every rung it is missed(F(q), (W_0 + Delta W) q): attention's output F(q) against the output of the layer after
    one gradient step on the demonstrations, at its best scale. Traits: `rung`, 0 to 5; `rungs`, what is stored.
    """

    name = "ladder"
    question = "How much of what attention does is a gradient step?"
    height = 745
    provenance = (
        "Stored: 1,000 random prompts, seed 0, and 270 heads, one prompt; {checkpoint}, float32; computed by "
        "explainer.explorables.Ladder.store()."
    )

    rung = traitlets.Int(5, min=0, max=5)
    rungs = Stored()

    @classmethod
    def measured(cls) -> dict[str, Any]:
        """What is missed on each rung: `running_prompt_explorables.measured_rungs`."""
        from explainer.explorables import running_prompt_explorables  # noqa: PLC0415 - torch is slow to import

        return running_prompt_explorables.measured_rungs()


class RealHead(Explorable):
    """One head of the checkpoint at the arrow of `Japan ->`, with `shift` times the mean key added to every key.

    Traits: `shift` (0: the keys as they are, -1: centred); `head`, the numbers that are stored. Softmax attention and
    all it gives do not depend on the shift; the update Delta W q = sum_i v_i (k_i . q) over the demonstrations changes
    by shift (k_mean . q) sum_i v_i.
    """

    name = "real_head"
    question = "What happens in a real head when one vector is added to all its keys?"
    height = 1060
    provenance = (
        "Stored: keys, values and query of one head; {checkpoint}, float32; read by "
        "explainer.explorables.RealHead.store(); the rest is computed by the page as you look."
    )

    shift = traitlets.Float(0.0, min=-4.0, max=2.0)
    head = Stored()

    @classmethod
    def measured(cls) -> dict[str, Any]:
        """The numbers of the head: `running_prompt_explorables.measured_head`."""
        from explainer.explorables import running_prompt_explorables  # noqa: PLC0415 - torch is slow to import

        return running_prompt_explorables.measured_head()


class LearnRule(Explorable):
    """Eight new words after sixteen lines of a made-up rule: the reader's labels, GPT's, and the vote of ten heads.

    Traits: `answers`, the reader's labels so far, by number; `shown`, whether GPT's stand beside words that are not
    answered yet; `target`, the label to whose lines `dose` per cent of the ten heads' attention to labels is moved, as
    in the study *The vote*; `rule`, what is stored.
    """

    name = "learn_rule"
    question = "Sixteen lines of a made-up rule: do you learn it better than GPT?"
    height = 560
    provenance = (
        "Stored: the first reported draw of suffixes (seed 0, fixed beforehand) and its first eight queries; "
        "{checkpoint}, float32; computed by explainer.explorables.LearnRule.store()."
    )
    digits = 3

    answers = traitlets.List(traitlets.Int(min=0, max=3), maxlen=8)
    shown = traitlets.Bool(False)
    target = traitlets.Int(3, min=0, max=3)
    dose = traitlets.Enum((0, 20, 50, 100), 0)
    rule = Stored()

    @classmethod
    def measured(cls) -> dict[str, Any]:
        """Lines, queries and answers: `rule_explorables.measured_rule`."""
        from explainer.explorables import rule_explorables  # noqa: PLC0415 - torch is slow to import

        return rule_explorables.measured_rule()


class Swap(Explorable):
    """SimAOU of a context and a training in each layer, where one of them gets other texts than the other.

    Traits: `side`, which of the two is swapped, "training" or "context"; `lesson`, what it gets instead, one of
    `LESSONS`; `similarity`, what is stored. Beside it stand two trainings on different examples, the noise value, and
    the same swaps in a layer of linear attention where the context is a step of gradient descent.
    """

    name = "swap"
    question = "Which swap lowers the similarity of context and training?"
    height = 580
    provenance = (
        "Stored: 10 draws of four tasks of word pairs, 24 queries each; 16 demonstrations, 10 epochs; "
        "{checkpoint}, float32; computed by explainer-lab shared-part."
    )
    digits = 3

    side = traitlets.Enum(SIDES, "context")
    lesson = traitlets.Enum(LESSONS, "other")
    similarity = Stored()

    @classmethod
    def measured(cls) -> dict[str, Any]:
        """By layer, mean and half the width of its 95 % interval: `own`, `trainings`, and each swap of each side.

        `noise` holds noise values by layer, `upper` half the width of the interval of each mean over the upper third,
        and `true` the means of the layer where a context is a step.
        """
        from explainer.results.published import results  # noqa: PLC0415 - pandas and torch are slow to import
        from explainer.theory import statistics  # noqa: PLC0415
        from explainer.theory.gradient_step_attention import PositiveControlSetting, both_swaps  # noqa: PLC0415

        names = ["own", "trainings", *(f"{side}_{lesson}" for side in SIDES for lesson in LESSONS[1:])]
        layers = results("shared-part", "layers")
        by_layer = layers.groupby(["seed", "layer"])[[*names, *(f"{name}_noise" for name in names)]].mean()
        drawn = {name: statistics.student(by_layer[name].unstack().to_numpy()) for name in by_layer}
        with_half = lambda its: [its.estimate.tolist(), (its.high - its.estimate).tolist()]  # noqa: E731
        of_seeds = layers[layers["layer"] >= _UPPER].groupby("seed")[names].mean()
        upper = statistics.student(of_seeds.to_numpy())
        swaps = both_swaps(PositiveControlSetting(d=64, n_queries=24), range(10))
        true = {side: swaps[f"context and training, {side} swapped"] for side in SIDES}
        return {
            **{name: with_half(drawn[name]) for name in names},
            "noise": {name: drawn[f"{name}_noise"].estimate.tolist() for name in names},
            "upper": dict(zip(names, (upper.high - upper.estimate).tolist(), strict=True)),
            "true": {side: {lesson: its.estimate for lesson, its in each.items()} for side, each in true.items()},
        }


class Contrast(Explorable):
    """The changes by a context and by a training on two tasks A and B, and their differences, the contrasts.

        similarity    cos(c_A, f_A), mean of A and B
        contrast      cos(c_A - c_B, f_A - f_B)

    What both tasks share on one side falls out of its contrast. Traits: `points`, c_A, c_B, f_A and f_B in the plane,
    without `shared`, the length along the first axis that is added to all four; `exchanged`, whether the trainings on A
    and B have changed places; `found`, what the GPT scores.
    """

    name = "contrast"
    question = "What does the difference of two tasks keep, and what does it cancel?"
    height = 525
    provenance = (
        "Stored: similarity of 10 draws of four tasks of word pairs, contrast of 10 draws of five pairs of tasks; "
        "layers 21 to 30; 10 epochs; {checkpoint}, float32; computed by explainer-lab shared-part "
        "and explainer-lab minimal-pairs."
    )

    points = Rows(((-0.18, 0.92), (0.25, 0.36), (0.25, -0.36), (-0.18, -0.92)), most=4, fewest=4, limits=(4.0, 2.0))
    shared = traitlets.Float(1.1, min=0, max=1.6)
    exchanged = traitlets.Bool(False)
    found = Stored()

    @classmethod
    def measured(cls) -> dict[str, Any]:
        """Mean, low and high end in the upper third: the similarity, that of two tasks, and the cosine of contrasts."""
        from explainer.results import contrast_results  # noqa: PLC0415 - pandas and torch are slow to import
        from explainer.results.published import results  # noqa: PLC0415
        from explainer.theory import statistics  # noqa: PLC0415

        layers, pairs = results("shared-part", "layers"), results("minimal-pairs", "strengths")
        by_seed = layers[layers["layer"] >= _UPPER].groupby("seed")[["own", "training_foreign"]].mean()
        strongest = pairs.query("shots == k and epochs == epochs.max() and layers == 'upper third'")
        of = {
            "similarity": statistics.student(by_seed["own"]),
            "foreign": statistics.student(by_seed["training_foreign"]),
            "contrast": contrast_results.similarities(strongest)["own"],
        }
        return {name: [its.estimate, its.low, its.high] for name, its in of.items()}


class Yardstick(Explorable):
    """How far other examples would lower a similarity if the special parts of both changes agreed as the whole does.

        yardstick = s sqrt((1 - C) (1 - F))

    Traits: `contexts`, C, the similarity of two contexts on different examples; `trainings`, F, that of two trainings;
    `own`, s, the similarity of a context and a training on the same examples; `falls`, the measured falls.
    """

    name = "yardstick"
    question = "How far would the similarity fall with other examples, if the examples mattered?"
    height = 555
    provenance = (
        "Stored: 10 draws of four tasks of word pairs, 24 queries each; layers 21 to 30; 10 epochs; "
        "{checkpoint}, float32; computed by explainer-lab shared-part."
    )

    contexts = traitlets.Float(0.89, min=0, max=1)
    trainings = traitlets.Float(0.78, min=0, max=1)
    own = traitlets.Float(0.5, min=0, max=1)
    falls = Stored()

    @classmethod
    def measured(cls) -> dict[str, Any]:
        """Mean, low and high end of the GPT's falls in the upper third of the layers, by what is swapped."""
        from explainer.results import verdict  # noqa: PLC0415 - pandas and torch are slow to import
        from explainer.results.published import results  # noqa: PLC0415
        from explainer.theory import statistics  # noqa: PLC0415

        layers = results("shared-part", "layers")
        by_seed = layers[layers["layer"] >= _UPPER].groupby("seed")[["own", "context_other"]].mean()
        both = verdict.three_rows_of_book()["word pairs: on these examples"].measured
        chosen = {"context": statistics.student(by_seed["own"] - by_seed["context_other"]), "both": both}
        return {name: [of.estimate, of.low, of.high] for name, of in chosen.items()}


_NUMBERS = ("agreement", "floor", "ceiling")
"""Questions that are answered by a similarity, a cosine from 0 to 1."""
_CHOICES = {
    "others": ("floor", "half", "stays"),
    "lowest": ("plain", "momentum", "previous"),
    "lasting": ("grows", "peaks", "stays"),
}
"""Questions that are answered by a choice, and the choices."""
_HEIGHTS = {"comparison": 580, "momentum": 310, "all": 820}


class Bets(Explorable):
    """Questions that the reader answers before a chapter, kept in the browser and shown beside the results in another.

    Traits: `about`, which questions, "comparison" or "momentum", or "all", which asks nothing and shows bets and
    results. `agreement`, `floor`, `ceiling`, `others`, `lowest`, `lasting`: the bets, or None; what
    the reader's browser keeps takes their place. `shown`, the questions whose results are shown before their chapter;
    `results`, what is stored.
    """

    name = "bets"
    question = "What do you expect, and what was found?"
    height = _HEIGHTS["comparison"]
    provenance = (
        "Stored: 10 seeds of four tasks, eight sets of small language models; {checkpoint}, float32; computed by "
        "explainer-lab shared-part and explainer-lab language-models."
    )
    digits = 6

    about = traitlets.Enum(tuple(_HEIGHTS), "comparison")
    agreement, floor, ceiling = (traitlets.Float(None, allow_none=True, min=0, max=1) for _ in _NUMBERS)
    others, lowest, lasting = (traitlets.Enum(of, None, allow_none=True) for of in _CHOICES.values())
    shown = traitlets.List(traitlets.Enum((*_NUMBERS, *_CHOICES)))
    results = Stored()

    def __init__(self, **traits: Any):
        """Take traits by name."""
        super().__init__(**traits)
        self.height = _HEIGHTS[self.about]

    @classmethod
    def measured(cls) -> dict[str, Any]:
        """The result of each question: a similarity with its interval, or `is`, the choices that hold.

        Similarities are SimAOU of a context and a training, or of two trainings, means over tasks and the upper third
        of the layers. It `stays` if other examples lower it by less than a quarter of what another task does, and falls
        `half` way below three quarters. Losses are differences in nats per token, paired by set; `lowest` is every
        model that none is below for certain.
        """
        from explainer.results import language_model_results, published  # noqa: PLC0415 - pandas is slow to import
        from explainer.theory import statistics  # noqa: PLC0415 - torch is slow to import

        layers = published.results("shared-part", "layers")
        by_seed = layers[layers["layer"] >= _UPPER].groupby("seed").mean(numeric_only=True)
        own, floor, ceiling = (statistics.student(by_seed[name]) for name in ("own", "context_foreign", "trainings"))
        change = statistics.student(by_seed["context_other"] - by_seed["own"])
        share = -change.estimate / (own.estimate - floor.estimate)
        arms, gains = _CHOICES["lowest"], language_model_results.change_at_budgets("plain", "momentum")
        longest = max(gains)
        below = lambda arm, other: language_model_results.change_at_budgets(other, arm)[longest]  # noqa: E731
        start, *_, end = gains.values()
        peak = max(gains.values(), key=lambda gain: gain.estimate)
        kept = "stays" if share < 1 / 4 else "half" if share < 3 / 4 else "floor"
        lasts = "peaks" if end.high < peak.low else "grows" if start.high < end.low else "stays"
        lowest = [arm for arm in arms if not any(below(another, arm).low > 0 for another in arms)]
        leads = {arm: [*below(arm, "plain")] for arm in arms[1:]} | {"between": [*below("previous", "momentum")]}
        return {
            "seeds": len(by_seed), "sets": published.results("plain-longer")["seed"].nunique(),
            "agreement": [*own], "floor": [*floor], "ceiling": [*ceiling],
            "others": {"is": [kept], "change": [*change]},
            "lowest": {"is": lowest, "tokens": longest, **leads},
            "lasting": {"is": [lasts], "gains": [[at, *gain] for at, gain in gains.items()]},
        }  # fmt: skip


_LEARNERS = ("linear", "gpt", "ols")
"""One layer of linear attention, the small GPT of the book, and least squares."""
_UNNAMED = "?"
_PROBES = ("plain", "stretched", "targets", "outlier", "few")
_PROMPTS, _SHOWN, _SEED = 1000, 12, 1
_LENGTH, _EXAMPLES, _FEW = 1000, 20, 3
"""Examples in a training prompt of the linear layer, in a prompt of the probes, and in one of the probe `few`."""
_STRETCH, _FACTOR, _OUTLIER = (4.0, 1.0, 1.0, 1.0, 0.25), 4.0, 30.0
"""Eigenvalues of the stretched covariance, the factor on the targets, and what is added to one target."""
_MODEL = "gpt_random_covariance"


class WhichBox(Explorable):
    """Three unlabelled boxes, five probes and their stored answers: a plain probe cannot tell them apart, others can.

    Traits: `probe`, one of five kinds of prompts; `seed`, which shuffles the boxes; `a`, `b`, `c`, the reader's name
    for each box, or "?"; `shown`, whether the right names stand beside the boxes; `results`, what is stored.
    """

    name = "which_box"
    question = "Three boxes answer the same prompts. Which one is the small GPT?"
    height = 680
    provenance = (
        f"Stored: {_PROMPTS} prompts of each kind, seed {_SEED}; computed by explainer.explorables.WhichBox.store() "
        f"with the stored weights {_MODEL}."
    )

    probe = traitlets.Int(0, min=0, max=len(_PROBES) - 1)
    seed = traitlets.Int(0, min=0, max=2**31 - 1)
    a = traitlets.Enum((_UNNAMED, *_LEARNERS), _UNNAMED)
    b = traitlets.Enum((_UNNAMED, *_LEARNERS), _UNNAMED)
    c = traitlets.Enum((_UNNAMED, *_LEARNERS), _UNNAMED)
    shown = traitlets.Bool(False)
    results = Stored()

    @classmethod
    def measured(cls, n: int = _PROMPTS) -> dict[str, Any]:
        """What each box answers to each probe.

        `errors[probe][learner]`: sum (yhat - y_q)^2 / sum y_q^2 over n prompts, with the ends of a 95 % bootstrap
        interval over prompts; `right[probe]`: y_q of the first twelve; `answers[probe][learner]`: yhat of these; `n`.
        """
        from explainer.theory import regression, statistics  # noqa: PLC0415 - torch is slow to import

        found: dict[str, Any] = {"n": n, "errors": {}, "right": {}, "answers": {}}
        asked = _boxes()
        for probe, prompts in _probes(n).items():
            answers = {name: box(prompts) for name, box in asked.items()}
            squared = {name: regression.squared_errors(each, prompts).numpy() for name, each in answers.items()}
            found["errors"][probe] = {
                name: list(statistics.ratio_interval([(each, prompts.y_q.numpy() ** 2)], n_resamples=400)[:3])
                for name, each in squared.items()
            }
            found["right"][probe] = prompts.y_q[:_SHOWN].tolist()
            found["answers"][probe] = {name: each[:_SHOWN].tolist() for name, each in answers.items()}
        return found


def _probes(n: int = _PROMPTS, seed: int = _SEED) -> dict[str, Any]:
    """n prompts for each probe, without noise.

    `plain`: twenty orthogonal columns of inputs, X^T X / N = I, so that all directions are equally well covered;
    `stretched`: the same inputs times the roots of 4, 1, 1, 1, 1/4, the query's too; `targets`: tasks times 4;
    `outlier`: 30 added to the first target; `few`: three Gaussian examples of as many inputs as before.
    """
    import torch  # noqa: PLC0415

    from explainer.theory import regression  # noqa: PLC0415

    generator, d = torch.Generator().manual_seed(seed), len(_STRETCH)
    drawn = regression.draw_prompts(n, _EXAMPLES, torch.eye(d, dtype=torch.float64), generator=generator)
    even = torch.linalg.qr(drawn.X).Q * _EXAMPLES**0.5
    plain = regression.covariate_shift(drawn, torch.cat([even, drawn.inputs[:, -1:]], dim=1))
    wild = plain.targets.clone()
    wild[:, 0] += _OUTLIER
    return {
        "plain": plain,
        "stretched": regression.covariate_shift(plain, plain.inputs * torch.tensor(_STRETCH).sqrt().to(plain.inputs)),
        "targets": regression.task_shift(plain, _FACTOR * plain.tasks),
        "outlier": regression.Prompts(plain.inputs, wild, plain.tasks),
        "few": drawn.shortened(_FEW),
    }


def _boxes() -> dict[str, Any]:
    """The estimator in each box.

    The linear layer is the one that training finds for isotropic inputs and prompts of 1000 examples, A = Gamma^-1.
    Raises CheckpointError if the stored weights are missing.
    """
    import torch  # noqa: PLC0415

    from explainer.models import in_context_gpt  # noqa: PLC0415
    from explainer.theory import linear_transformer, regression  # noqa: PLC0415

    identity = torch.eye(len(_STRETCH), dtype=torch.float64)
    A = torch.linalg.inv(linear_transformer.gamma(identity, _LENGTH))
    model = in_context_gpt.stored(_MODEL).model
    return {
        "linear": lambda prompts: linear_transformer.prediction(A, prompts),
        "gpt": lambda prompts: in_context_gpt.query_prediction(model, prompts).double(),
        "ols": regression.ordinary_least_squares,
    }
