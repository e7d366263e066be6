"""A question before a figure: the reader chooses an answer, and what was computed replies."""

import html
from collections.abc import Mapping
from dataclasses import dataclass
from zlib import crc32


@dataclass(frozen=True)
class Prediction:
    """A question, and for each answer that a reader may choose the reply. Plain HTML: it needs no script."""

    question: str
    replies: Mapping[str, str]

    def _repr_html_(self) -> str:
        group = f"predict-{crc32(self.question.encode()):08x}"
        answers = "".join(
            f'<details name="{group}"><summary>{html.escape(answer)}</summary><p>{html.escape(reply)}</p></details>'
            for answer, reply in self.replies.items()
        )
        question = f'<p id="{group}"><strong>Predict first.</strong> {html.escape(self.question)}</p>'
        return f'<div class="explainer-predict" role="group" aria-labelledby="{group}">{question}{answers}</div>'


def predict(question: str, replies: Mapping[str, str]) -> Prediction:
    """Ask before the figure is seen: each answer opens its reply, which says what was found and why.

    Plain text, escaped; a reply quotes numbers from the cells above it. One answer is open at a time.
    """
    return Prediction(question, replies)
