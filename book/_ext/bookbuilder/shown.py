"""How the site shows a chapter: minutes under the title, findings in one fold at the end, spare exercises in another.

The notebook stays plain: in Jupyter and Colab a finding stands where it is computed.
"""

import html
from collections.abc import Mapping
from typing import Any

from bookbuilder import minutes
from explainer import findings
from explainer.findings import Finding

SPARE = "## More exercises"
"""The heading of a section that the site folds."""
_FOLDERS = ("book/chapters/", "book/studies/")


def chapter(notebook: Mapping[str, Any], docname: str) -> dict[str, Any]:
    """The notebook with its outputs, as the site shows it."""
    cells = _folded(notebook["cells"])
    cells, found = _without_findings(cells)
    if found:
        cells = [*cells, _text("findings", findings_fold(found))]
    if docname.startswith(_FOLDERS):
        cells = _after_title(cells, _text("minutes", minutes_line(minutes.count(notebook))))
    return {**notebook, "cells": cells}


def minutes_line(its: minutes.Count) -> str:
    """The reading time as a line of its own."""
    whole = max(1, round(its.minutes))
    return f'<p class="xp-minutes">{whole} minute{"s" * (whole > 1)} to read</p>'


def findings_fold(found: list[tuple[Finding, str]]) -> str:
    """One line that says how many findings hold, and opens them; it stands open where one does not hold."""
    fails = sum(not one.holds for one, _ in found)
    number = f"{len(found)} finding{'s' * (len(found) > 1)} of this page"
    holds = "holds" if len(found) == 1 else "hold"
    said = f"{fails} of {number} did not hold here" if fails else f"{number} {holds} here"
    body = "\n".join(shown for _, shown in found)
    return f'<details class="xp-findings"{" open" * bool(fails)}><summary>{said}</summary>\n{body}\n</details>'


def _text(name: str, source: str) -> dict[str, Any]:
    return {
        "cell_type": "markdown",
        "id": name,
        "metadata": {},
        "source": source,
    }


def _after_title(cells: list[dict], line: dict) -> list[dict]:
    """The title is the first line of the first text; what follows it in the same cell goes below the new line."""
    place = next(
        (i for i, cell in enumerate(cells) if cell["cell_type"] == "markdown"),
        None,
    )
    if place is None:
        return [line, *cells]
    title, _, rest = "".join(cells[place]["source"]).partition("\n")
    parts = [
        {**cells[place], "source": title},
        line,
        {**cells[place], "id": "after-title", "source": rest.strip()},
    ]
    return [
        *cells[:place],
        *(part for part in parts if part["source"]),
        *cells[place + 1 :],
    ]


def _without_findings(
    cells: list[dict],
) -> tuple[list[dict], list[tuple[Finding, str]]]:
    """The cells without the findings that they show, and these; a cell that shows nothing else is left out."""
    kept, found = [], []
    for cell in cells:
        outputs = cell.get("outputs", ())
        mine = [output["data"] for output in outputs if findings.MIME in output.get("data", {})]
        found += [(Finding(**data[findings.MIME]), _shown(data)) for data in mine]
        others = [output for output in outputs if findings.MIME not in output.get("data", {})]
        if not mine:
            kept.append(cell)
        elif others:
            kept.append({**cell, "outputs": others})
    return kept, found


def _shown(data: Mapping[str, Any]) -> str:
    given = data.get("text/html")
    return "".join(given) if given else f"<p>{html.escape(''.join(data['text/plain']))}</p>"


def _folded(cells: list[dict]) -> list[dict]:
    """The cells with the section of spare exercises as one fold."""
    sources = ["".join(cell["source"]) if cell["cell_type"] == "markdown" else "" for cell in cells]
    start = next(
        (i for i, source in enumerate(sources) if source.startswith(SPARE)),
        None,
    )
    if start is None:
        return cells
    end = next(
        (i for i in range(start + 1, len(cells)) if sources[i].startswith(("# ", "## "))),
        len(cells),
    )
    number = sum("> **Exercise" in source for source in sources[start:end])
    head = f'<details class="xp-spare"><summary>More exercises ({number})</summary>'
    rest = sources[start].removeprefix(SPARE).strip()
    inside = [
        *([{**cells[start], "source": rest}] if rest else []),
        *cells[start + 1 : end],
    ]
    return [
        *cells[:start],
        _text("spare", head),
        *inside,
        _text("spare-end", "</details>"),
        *cells[end:],
    ]
