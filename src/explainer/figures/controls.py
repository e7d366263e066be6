"""The cells of the tables of the chapter `controls`."""

from collections.abc import Mapping

from explainer.results.against_controls import NAMES
from explainer.theory.statistics import Interval


def table_rows(compared: Mapping[tuple[str, str, str], Interval]) -> list[list[str]]:
    """A row for each control of each family: `compared[family, control, measure]`, a dash where there is none."""
    measures = dict.fromkeys(measure for _, _, measure in compared)
    rows = dict.fromkeys((family, control) for family, control, _ in compared)
    return [
        [NAMES[control], family, *(_difference_text(compared.get((family, control, m))) for m in measures)]
        for family, control in rows
    ]


def _difference_text(difference: Interval | None) -> str:
    """A difference, its interval and its corrected p-value, on three short lines of HTML; a dash for none."""
    if difference is None:
        return "-"
    estimate, ends = f"{difference:+.3f}".split("\N{NO-BREAK SPACE}", 1)
    p = f"p = {difference.p_value:.3f}" if difference.p_value >= 0.001 else "p &lt; 0.001"
    return f"{estimate}<br><small>{ends}<br>{p}</small>".replace(" ", "&nbsp;")
