"""The explorable that asks before two chapters what they find, and shows the bets beside the results in the last."""

from typing import TYPE_CHECKING, Any

import traitlets

from explainer.explorables.base import Explorable, Number, Stored

if TYPE_CHECKING:
    from explainer.theory.statistics import Interval

_NUMBERS = ("agreement", "floor", "ceiling")
"""Questions that are answered by a similarity, a cosine from 0 to 1."""
_CHOICES = {
    "others": ("floor", "half", "stays"),
    "lowest": ("plain", "momentum", "previous"),
    "lasting": ("grows", "peaks", "stays"),
}
"""Questions that are answered by a choice, and the choices."""
_HEIGHTS = {"comparison": 700, "momentum": 400, "all": 1130}


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
        "Stored: 20 seeds of four tasks, eight sets of small language models; {checkpoint}, float32; computed by "
        "explainer-lab agreement and explainer-lab language-models."
    )
    digits = 6

    about = traitlets.Enum(tuple(_HEIGHTS), "comparison")
    agreement, floor, ceiling = (Number(None, allow_none=True, min=0, max=1) for _ in _NUMBERS)
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

        Similarities are SimAOU of a context and a training of ten epochs, or of two trainings, means over tasks. It
        `stays` if other examples cost less than a quarter of what made-up words cost, and falls `half` way below three
        quarters. Losses are differences in nats per token, paired by set; `lowest` is every model that none is below
        for certain.
        """
        from explainer.results import agreement, language_models, published  # noqa: PLC0415 - pandas is slow to import

        pairs = agreement.pairs("agreement")
        trained, context, trainings, _ = agreement.lesson_swaps(pairs, "sim_aou").values()
        own, other, made_up = trained["the same"], "other examples of the task", "made-up words"
        falls = agreement.cost_of_other_examples(pairs, "sim_aou")["training swapped"]
        share = falls.estimate / (own.estimate - trained[made_up].estimate)
        arms, read = _CHOICES["lowest"], published.results
        first, last = ({arm: read(f"{arm}{run}", "blocks") for arm in arms} for run in ("", "-longer"))
        early, longest = (sorted(map(int, runs["plain"]["tokens"].unique())) for runs in (first, last))

        def below(arm: str, other: str) -> "Interval":
            return language_models.loss_change(last[other], last[arm], *longest)

        gains = [language_models.loss_change(first["plain"], first["momentum"], at) for at in early]
        gains.append(below("momentum", "plain"))
        start, peak, end = gains[0], max(gains, key=lambda gain: gain.estimate), gains[-1]
        kept = "stays" if share < 1 / 4 else "half" if share < 3 / 4 else "floor"
        lasts = "peaks" if end.high < peak.low else "grows" if start.high < end.low else "stays"
        lowest = [arm for arm in arms if not any(below(another, arm).low > 0 for another in arms)]
        leads = {arm: [*below(arm, "plain")] for arm in arms[1:]} | {"between": [*below("previous", "momentum")]}
        change = [-falls.estimate, -falls.high, -falls.low]
        return {
            "seeds": pairs["seed"].nunique(), "sets": last["plain"]["seed"].nunique(),
            "agreement": [*own], "floor": [*trained[made_up]], "floor_context": [*context[made_up]],
            "ceiling": [*trainings[other]], "others": {"is": [kept], "other": [*trained[other]], "change": change},
            "lowest": {"is": lowest, "tokens": longest[-1], **leads},
            "lasting": {"is": [lasts], "gains": [[at, *gain] for at, gain in zip(early + longest, gains, strict=True)]},
        }  # fmt: skip
