"""The explorable that shows where the checkpoint looks when it answers, with any of its demonstrations hidden."""

from itertools import combinations
from typing import Any

import numpy as np

from explainer.page import live_gpt
from explainer.page.asking import MORE_TASKS, book_checkpoint
from explainer.page.live_gpt import AskedText


class LiveAttention(AskedText):
    """The attention of the last token to each demonstration as arrows, beside what the checkpoint expects next.

    It is the mean over the heads of the upper third of the layers. The answers with every choice of hidden
    demonstrations are stored, so that an arrow vanishes, and the others change, without the model.
    """

    name = "live_attention"
    question = "Where does a real GPT look before it answers, and what does it expect next?"
    height = 907

    @classmethod
    def measured(cls) -> dict[str, Any]:
        """The presets of `LiveGPT` without `looks`, and in `hiding` what is found when demonstrations are hidden.

        An entry of `hiding` has the hidden ones, `with`, `alone` and `attention`, as `live_gpt.answers` names them.
        """
        return {name: _preset(name) for name in MORE_TASKS}


def attention(looks: list[list[list[int]]]) -> list[Any]:
    """The first and the last layer of the upper third, counted from 1, and the attention to each demonstration there.

    Mean over heads, in thousandths, of `looks`, the shares of each layer and head.
    """
    first = 2 * len(looks) // 3
    return [first + 1, len(looks), np.mean(looks[first:], axis=(0, 1)).round(1).tolist()]


def _preset(name: str) -> dict[str, Any]:
    its = live_gpt.preset(name)
    texts = {part: its[part] for part in ("pattern", "demonstrations", "query")}
    n, found = len(its["demonstrations"]), its["found"]
    choices = (list(hidden) for size in range(1, n + 1) for hidden in combinations(range(n), size))
    hiding = [
        [hidden, *_seen(live_gpt.answers(book_checkpoint(), **texts, hidden=hidden)).values()] for hidden in choices
    ]
    whole = {part: found[part] for part in ("of", "made", "without")} | _seen(found)
    return texts | {"hidden": [], "found": whole, "hiding": hiding}


def _seen(found: dict[str, Any]) -> dict[str, Any]:
    return {"with": found["with"], "alone": found["alone"], "attention": attention(found["looks"])}
