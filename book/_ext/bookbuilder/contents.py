"""`{contents-of} Caption`: the pages of a part of the table of contents, with their questions and minutes."""

import re
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

from bookbuilder import minutes, pages

_QUESTION = re.compile(r"^> \*\*The question\.\*\* (.+)$", re.MULTILINE)
_LINK = re.compile(r"\[([^][]+)\]\([^)]*\)")


class ContentsOf(Directive):
    """A row for each page of the part with this caption: its title, its question, its minutes."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return one table."""
        environment = self.state.document.settings.env
        root, here = Path(environment.srcdir), Path(environment.docname)
        rows = rows_of(root, here, self.arguments[0])
        for path in pages.reading_order(root):
            environment.note_dependency(str(path))
        lines = ["| page | question | minutes |", "|---|---|---|", *rows]
        inside = nodes.section()
        inside.document = self.state.document
        self.state.nested_parse(StringList(lines, here.name), self.content_offset, inside)
        return inside.children


def rows_of(root: Path, here: Path, caption: str) -> list[str]:
    """The rows as Markdown; raises KeyError for a caption that the table of contents does not have."""
    toc = yaml.safe_load((root / "_toc.yml").read_text("utf-8"))
    parts: dict[str, Any] = {part["caption"]: part["chapters"] for part in toc["parts"]}
    names = [name for name in pages.below(parts[caption]) if name != str(here)]
    found = {path.with_suffix("").relative_to(root).as_posix(): path for path in pages.reading_order(root)}
    return [_row(found[name], pages.address(Path(name).name, root, here)) for name in names]


def _row(path: Path, address: str) -> str:
    question = _QUESTION.search("\n".join(pages.markdown(path)))
    asked = _LINK.sub(r"\1", question[1]).replace("|", r"\|") if question else ""
    cells = [f"[{pages.title(path)}]({address}{path.suffix})", asked]
    return f"| {' | '.join(cells)} | {max(1, round(minutes.of_page(path).minutes))} |"
