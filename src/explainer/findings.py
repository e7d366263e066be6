"""Findings: statements about something that was trained or measured, with the numbers that decide them.

An identity holds in exact arithmetic and is an `assert`. What was trained or measured may come out otherwise on
another processor. `finding` says, beside the statement, the numbers and whether it holds where the page was made.
"""

import html
import json
import math
import operator
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from IPython.display import display

from explainer.errors import ExplainerError

MIME = "application/vnd.explainer.finding+json"
RECORD = "published.json"
"""File beside the stored studies with every finding of the published book."""

_HOLDS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SIGNS = {"<=": "≤", ">=": "≥"}


class FindingError(ExplainerError, ValueError):
    """A finding lacks its numbers, or compares them in a way that is not known."""


@dataclass(frozen=True)
class Finding:
    """A statement, and the comparison `value relation bound` that decides whether it holds.

    Raises FindingError unless both numbers are finite and the relation is one of <, <=, > and >=.
    """

    statement: str
    value: float
    relation: str
    bound: float

    def __post_init__(self):
        """Refuse what decides nothing."""
        if self.relation not in _HOLDS:
            raise FindingError(f"{self.statement!r} compares with {self.relation!r}; use one of {', '.join(_HOLDS)}.")
        for name in ("value", "bound"):
            object.__setattr__(self, name, self._number(name, getattr(self, name)))

    def _number(self, name: str, given: Any) -> float:
        """The number as a float: neither a truth value, which hides by how much a statement holds, nor NaN."""
        number = math.nan
        if not isinstance(given, bool) and str(getattr(given, "dtype", "")) not in ("bool", "torch.bool"):
            with suppress(TypeError, ValueError, RuntimeError):  # RuntimeError: a tensor of several numbers
                number = float(given)
        if not math.isfinite(number):
            raise FindingError(f"{self.statement!r} has the {name} {given!r}; give a finite number.")
        return number

    @property
    def holds(self) -> bool:
        """Whether the value stands in the relation to the bound."""
        return _HOLDS[self.relation](self.value, self.bound)

    @property
    def margin(self) -> float:
        """Distance from the bound, in the unit of the value: positive on the side where the statement holds."""
        return self.value - self.bound if self.relation.startswith(">") else self.bound - self.value

    @property
    def comparison(self) -> str:
        """`0.023 < 0.5`, or `0.63, not < 0.5`."""
        relation = _SIGNS.get(self.relation, self.relation)
        return f"{self.value:.3g}{' ' if self.holds else ', not '}{relation} {self.bound:.3g}"


def finding(statement: str, value: float, relation: str, bound: float) -> None:
    """Show a statement about a measurement, its numbers, and whether it holds here: value <, <=, > or >= bound.

    The statement is a sentence without its full stop. Value and bound have the same unit; both may be measured. Where
    the statement does not hold, the mark says what the numbers were on the machine of the published book. Nothing is
    raised then: `make book` goes on, lists what did not hold, and with STRICT=1 ends with an error. Raises
    FindingError where there is nothing to compare.
    """
    here = Finding(statement, value, relation, bound)
    text, page = _shown(here, None if here.holds else published().get(statement))
    numbers = {"statement": statement, "value": here.value, "relation": relation, "bound": here.bound}
    display({"text/plain": text, "text/html": page, MIME: numbers}, raw=True)


def _shown(here: Finding, there: Finding | None) -> tuple[str, str]:
    """As text, and as HTML in which nothing that the statement contains is markup."""
    mark, kind, rest = "✓ Finding.", "xp-finding", f"{here.statement}: {here.comparison}."
    if not here.holds:
        mark, kind = "✗ Did not hold on this machine.", "xp-finding xp-fails"
        rest += f" On the machine of the published book: {there.comparison if there else 'no number is stored'}."
    return f"{mark} {rest}", f'<p class="{kind}"><strong>{mark}</strong> {html.escape(rest)}</p>'


def published() -> dict[str, Finding]:
    """The findings of the published book, by their statements; none where no stored studies are installed."""
    from explainer import reporting  # noqa: PLC0415 - loads transformers, which most pages do without

    try:
        record = json.loads((reporting.directory() / RECORD).read_text("utf-8"))
    except (ExplainerError, OSError, ValueError):
        return {}
    return {one["statement"]: Finding(**one) for chapter in record["chapters"].values() for one in chapter["findings"]}


def of_notebook(notebook: Mapping[str, Any]) -> list[Finding]:
    """The findings that an executed notebook shows, in their order."""
    outputs = (output for cell in notebook["cells"] for output in cell.get("outputs", ()))
    bundles = (output.get("data", {}) for output in outputs)
    return [Finding(**bundle[MIME]) for bundle in bundles if MIME in bundle]
