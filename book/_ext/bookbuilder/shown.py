"""How the site shows a chapter: minutes under the title, spare exercises and findings in folds, the code at the end.

The notebook stays plain: in Jupyter and Colab a finding stands where it is computed.
"""

import html
import re
from collections.abc import Mapping
from typing import Any

from bookbuilder import pages
from bookbuilder.execute import Failure
from explainer import findings
from explainer.findings import Finding

_FOLDERS = ("book/chapters/", "book/studies/")


def chapter(notebook: Mapping[str, Any], docname: str, code: str = "") -> dict[str, Any]:
    """The notebook with its outputs, as the site shows it; `code` is the line that names the modules it uses."""
    cells, found = _without_findings(_folded(notebook["cells"]))
    if found:
        cells = [*cells, _text("findings", _findings_fold(found))]
    if docname.startswith(_FOLDERS):
        to_read = pages.minutes(notebook["cells"]), pages.exercises(notebook["cells"])
        cells = [
            *_below_title(cells, _text("minutes", _minutes(*to_read))),
            *([_text("code", code)] if code else []),
        ]
    return {**notebook, "cells": cells}


def _minutes(minutes: int, exercises: int) -> str:
    """The line below the title; the time that exercises take differs too much to be said."""
    said = f"{minutes} minute{'s' * (minutes > 1)} to read"
    more = f", {exercises} exercise{'s' * (exercises > 1)} besides" if exercises else ""
    return f'<p class="xp-minutes">{said}{more}</p>'


def _below_title(cells: list[dict], line: dict) -> list[dict]:
    """The title is the first line of the first text; what follows it in the same cell goes below the new cell."""
    place = next((i for i, cell in enumerate(cells) if cell["cell_type"] == "markdown"), None)
    if place is None:
        return [line, *cells]
    title, _, rest = "".join(cells[place]["source"]).partition("\n")
    after = [{**cells[place], "id": f"after-{line['id']}", "source": rest.strip()}] if rest.strip() else []
    return [*cells[:place], {**cells[place], "source": title}, line, *after, *cells[place + 1 :]]


def marked(notebook: Mapping[str, Any], failure: Failure | None) -> dict[str, Any]:
    """A notebook that says below its title that it failed, or that it was not executed."""
    text = "> **This chapter was not executed.** Its outputs are missing: `make book` executes it."
    if failure:
        what = re.sub(r"([\\`*_{}\[\]<>#$|])", r"\\\1", " ".join(str(failure).split()))
        text = f"> **This chapter failed.** What follows is incomplete. {what}."
    return {**notebook, "cells": _below_title(notebook["cells"], _text("failure", text))}


def _text(name: str, source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": source}


def _findings_fold(found: list[tuple[Finding, str]]) -> str:
    """One line that says how many findings hold, and opens them; it stands open where one does not hold."""
    fails = sum(not one.holds for one, _ in found)
    number = f"{len(found)} finding{'s' * (len(found) > 1)} of this page"
    holds = "holds" if len(found) == 1 else "hold"
    said = f"{fails} of {number} did not hold here" if fails else f"{number} {holds} here"
    body = "\n".join(shown for _, shown in found)
    return f'<details class="xp-findings"{" open" * bool(fails)}><summary>{said}</summary>\n{body}\n</details>'


def _without_findings(cells: list[dict]) -> tuple[list[dict], list[tuple[Finding, str]]]:
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
    start = next((i for i, source in enumerate(sources) if source.startswith("## More exercises")), None)
    if start is None:
        return cells
    after = (i for i in range(start + 1, len(cells)) if sources[i].startswith(("# ", "## ")))
    end = next(after, len(cells))
    number = sum("> **Exercise" in source for source in sources[start:end])
    head = _text("spare", f'<details class="xp-spare"><summary>More exercises ({number})</summary>')
    rest = sources[start].partition("\n")[2].strip()
    inside = [*([{**cells[start], "source": rest}] if rest else []), *cells[start + 1 : end]]
    return [*cells[:start], head, *inside, _text("spare-end", "</details>"), *cells[end:]]
