"""Controls that need a running notebook, each with a stored example for the static page."""

import html
from collections.abc import Callable, Mapping, Sequence

import ipywidgets

from explainer.figures import Stored

Answers = Mapping[str, Sequence[tuple[str, float]]]
"""For each setting, the candidate answers with their probabilities."""


def answers_table(text: str, answers: Answers) -> str:
    """The candidates' probabilities under each setting, as an HTML table; the text is escaped."""
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in ["candidate", *answers])
    rows = zip(*answers.values(), strict=True)
    body = "".join(
        f'<tr><th scope="row">{html.escape(row[0][0])}</th>' + "".join(f"<td>{p:.2f}</td>" for _, p in row) + "</tr>"
        for row in rows
    )
    return (
        f"<p>Input: <q>{html.escape(text)}</q></p>"
        f'<table class="table"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    )


def try_it(predict: Callable[[str], Answers], example: str, label: str = "Your sentence") -> Stored:
    """A text field that shows what `predict` answers; on the static page, its answer to `example`."""
    field = ipywidgets.Text(value=example, description=label, continuous_update=False, layout={"width": "95%"})
    field.style.description_width = "initial"
    shown = ipywidgets.HTML(answers_table(example, predict(example)))

    def update(change: Mapping[str, str]) -> None:
        text = " ".join(change["new"].split())
        shown.value = answers_table(text, predict(text)) if text else "<p>Write a sentence first.</p>"

    field.observe(update, names="value")
    note = "<p><em>Stored example. In a running notebook this is a text field for your own sentence.</em></p>"
    return Stored(ipywidgets.VBox([field, shown]), shown.value + note)
