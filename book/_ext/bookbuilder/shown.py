"""How the site shows a chapter: minutes under the title, spare exercises and findings in folds, the code at the end.

The notebook stays plain: in Jupyter and Colab a finding stands where it is computed.
"""

import html
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import explainer
from bookbuilder import pages
from bookbuilder.repository import branch
from explainer import findings
from explainer.findings import Finding

REPORT = {
    "report": "Report an error on this page",
    "tell": "No public repository of this copy is known. Tell whoever gave it to you, with these lines and with what "
    "the page should say:",
    "page": "Page:",
    "section": "Section:",
    "error": "Error on the page:",
    "what": "What is wrong, and what should the page say?",
}
"""What the button says; another language has its own words in `edition.toml`."""
_FOLDERS = ("book/chapters/", "book/studies/")


def chapter(notebook: Mapping[str, Any], docname: str, repository: str | None) -> dict[str, Any]:
    """The notebook with its outputs, as the site shows it; sources are in a `repository` where one is known."""
    cells, found = _without_findings(_folded(notebook["cells"]))
    if found:
        cells = [*cells, _text("findings", _findings_fold(found))]
    if docname.startswith(_FOLDERS):
        minutes = _minutes(pages.minutes(notebook["cells"]), pages.exercises(notebook["cells"]))
        code = _code_line(notebook["cells"], docname, repository)
        cells = [*_below_title(cells, _text("minutes", minutes)), _text("code", code)]
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


def _code_line(cells: list[dict], page: str, repository: str | None) -> str:
    """The line "Code: the notebook of this page, theory/duality.py, ...", with links where the repository is known."""
    package, names = Path(explainer.__file__).parent, set()
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    for room, imported in re.findall(r"^from explainer([\w.]*) import (\([^)]*|.*)", code, re.MULTILINE):
        place = room.lstrip(".").replace(".", "/")
        for file in (f"{place}.py", *(f"{place}/{name}.py".lstrip("/") for name in re.findall(r"\w+", imported))):
            names |= {file} if (package / file).is_file() else set()
    source = f"{repository}/blob/{branch()}/src/explainer" if repository else None
    own = f'<a href="{os.path.relpath("_sources", Path(page).parent)}/{page}.ipynb">the notebook of this page</a>'
    links = own, *(f'<a href="{source}/{name}">{name}</a>' if source else name for name in sorted(names))
    return f'<p class="xp-code">Code: {", ".join(links)}</p>'


def report(page: str, title: str, repository: str | None, words: Mapping[str, str]) -> str:
    """The button of an error report: an issue on GitHub with page and section filled in, or what to tell whom.

    `title` is HTML. `static/explainer/report.js` writes the section that is on the screen behind the colon.
    """
    place = f"{words['page']} {page}\n{words['section']} "
    known = f'class="xp-report" data-section="{words["section"]}"'
    if repository is None or "github.com" not in repository:
        body = f"<p>{words['tell']}</p><pre>{html.escape(place)}</pre>"
        return f"<details {known}><summary>{words['report']}</summary>{body}</details>"
    named = f"{words['error']} {html.unescape(re.sub('<[^>]+>', '', title))}"
    query = urlencode({"title": named, "body": f"{place}\n\n{words['what']}\n"})
    return f'<a {known} href="{html.escape(f"{repository}/issues/new?{query}")}">{words["report"]}</a>'


def marked(notebook: Mapping[str, Any], failure: str | None) -> dict[str, Any]:
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
