"""Build the book's other languages: their sources from the English ones, then their pages into a folder of the site."""

import filecmp
import json
import os
import re
from pathlib import Path
from typing import Any

import yaml

from bookbuilder import pages
from bookbuilder.locale import path_of
from bookbuilder.pages import main_line
from bookbuilder.translation import Edition
from bookbuilder.vendored import copy_if_changed
from explainer.data.files import replace_file

BUILD = Path("_build")
_LINK = re.compile(r"\[((?:[^][]|\[[^]]*\])*)\]\(([^)#\s]+)\.(?:ipynb|md)(#[^)]*)?\)")
_OWN = "terms.js"
"""A script that takes what lies beside it, so that each language has its own."""
_STATIC = re.compile(r'(\b(?:href|src)=")((?:\.\./)*)(_static/[^"?]+)')


def source_of(edition: Edition) -> Path:
    """The folder from which an edition's pages are built."""
    return BUILD / edition.folder.name


def write_source(edition: Edition, root: Path = Path()) -> Path:
    """Write an edition's sources, whole files and only changed ones: pages, contents, settings and what they need."""
    folder = source_of(edition)
    for name in main_line(root):
        path = path_of(name, root)
        _write(folder / path.relative_to(root), _page(edition, name, path))
    _write(folder / "_toc.yml", yaml.safe_dump(_contents(edition, root), allow_unicode=True, sort_keys=False))
    _write(folder / "_config.yml", yaml.safe_dump(_settings(edition, root), allow_unicode=True))
    for name in ("book/_assets", "book/references.bib", "_build/executed"):
        place = folder / name
        if not place.is_symlink():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to((root / name).resolve())
    return folder


def _write(file: Path, text: str) -> None:
    if not file.exists() or file.read_text("utf-8") != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, text)


def _page(edition: Edition, name: str, path: Path) -> str:
    """A page with its Markdown translated; links to pages that stay English lead there and say so."""
    if path.suffix == ".md":
        return _linked(edition, name, edition.page(path.stem, path.read_text("utf-8")))
    notebook = json.loads(path.read_text("utf-8"))
    notebook["metadata"]["to_read"] = pages.minutes(notebook["cells"]), pages.exercises(notebook["cells"])
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = _linked(edition, name, edition.page(path.stem, "".join(cell["source"])))
    return json.dumps(notebook, ensure_ascii=False)


def _linked(edition: Edition, name: str, text: str) -> str:
    ours, here = set(main_line()), Path(name).parent

    def link(found: re.Match) -> str:
        target = os.path.normpath(here / found[2])
        if target in ours or "://" in found[2]:
            return found[0]
        way = os.path.relpath(f"{target}.html", Path(edition.folder.name) / here)
        return f'<a href="{way}{found[3] or ""}" hreflang="en">{found[1]}{edition.settings["english"]}</a>'

    return _LINK.sub(link, text)


def _contents(edition: Edition, root: Path) -> dict[str, Any]:
    toc, ours = yaml.safe_load((root / "_toc.yml").read_text("utf-8")), set(main_line(root))
    parts = []
    for part in toc["parts"]:
        if kept := [{"file": entry["file"]} for entry in part["chapters"] if entry["file"] in ours]:
            parts.append(part | {"caption": edition.settings["parts"][part["caption"]], "chapters": kept})
    return toc | {"parts": parts}


def _settings(edition: Edition, root: Path) -> dict[str, Any]:
    settings = yaml.safe_load((root / "_config.yml").read_text("utf-8"))
    settings["title"] = edition.settings["title"]
    sphinx = settings["sphinx"]["config"]
    sphinx["html_theme_options"]["logo"] = {"text": edition.settings["title"]}
    settings["exclude_patterns"] = ["_build"]
    sphinx |= {"language": edition.settings["language"], "book_edition": str(edition.folder.resolve())}
    return settings


def install(edition: Edition, site: Path) -> None:
    """Put an edition's built pages into the site; files that the site has already are not there twice."""
    built, place = source_of(edition) / "_build" / "html", site / edition.folder.name
    kept, ours = set(), set(main_line())
    for file in sorted(path for path in built.rglob("*") if path.is_file()):
        name = file.relative_to(built)
        left = name.parts[0] == "book" and name.with_suffix("").as_posix() not in ours  # a page that was renamed
        if left or _is_shared(file, site / name):
            continue
        kept.add(place / name)
        if file.suffix == ".html":
            _write(place / name, _shared_files(file.read_text("utf-8"), built, site))
        else:
            copy_if_changed(file, place / name)
    for stale in {path for path in place.rglob("*") if path.is_file()} - kept:
        stale.unlink()


def _is_shared(file: Path, there: Path) -> bool:
    """Whether the English pages have the same file; one that this edition has not is taken from there."""
    if "_static" not in file.parts or file.name == _OWN or not there.exists():
        return False
    return not file.exists() or filecmp.cmp(file, there, shallow=False)


def _shared_files(page: str, built: Path, site: Path) -> str:
    """A page's HTML in which a file that the site has already is taken from there."""

    def way(found: re.Match) -> str:
        up = "../" * _is_shared(built / found[3], site / found[3])
        return f"{found[1]}{up}{found[2]}{found[3]}"

    return _STATIC.sub(way, page)
