"""Build the main line in the book's other languages, from the same sources, into a folder of the site."""

import filecmp
import re
from pathlib import Path
from typing import Any

import yaml

from bookbuilder.pages import main_line
from bookbuilder.translation import Edition
from bookbuilder.vendored import copy_if_changed
from explainer.data.files import replace_file

_OWN = "terms.js"
"""A script that takes what lies beside it, so that each language has its own."""
_STATIC = re.compile(r'(\b(?:href|src)=")((?:\.\./)*)(_static/[^"?]+)')


def folder_of(edition: Edition) -> Path:
    """Where an edition is built."""
    return Path("_build", edition.folder.name)


def configure(edition: Edition, root: Path = Path()) -> Path:
    """Write contents and settings of an edition into its folder, and return this."""
    folder = folder_of(edition)
    _write(folder / "_toc.yml", yaml.safe_dump(_contents(edition, root), sort_keys=False))
    _write(folder / "_config.yml", yaml.safe_dump(_settings(edition, root), allow_unicode=True))
    return folder


def _write(file: Path, text: str) -> None:
    if not file.exists() or file.read_text("utf-8") != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, text)


def _contents(edition: Edition, root: Path) -> dict[str, Any]:
    toc, ours = yaml.safe_load((root / "_toc.yml").read_text("utf-8")), set(main_line(root))
    said, parts = edition.texts(f"LC_MESSAGES/{toc['root']}"), []  # Sphinx would look for captions too early
    for part in toc["parts"]:
        if kept := [{"file": entry["file"]} for entry in part["chapters"] if entry["file"] in ours]:
            parts.append(part | {"caption": said[part["caption"]], "chapters": kept})
    return toc | {"parts": parts}


def _settings(edition: Edition, root: Path) -> dict[str, Any]:
    settings = yaml.safe_load((root / "_config.yml").read_text("utf-8")) | {"title": edition.settings["title"]}
    sphinx = settings["sphinx"]["config"]
    sphinx["html_theme_options"]["logo"] = {"text": edition.settings["title"]}
    locale = edition.folder.resolve()
    sphinx |= {"language": locale.name, "locale_dirs": [str(locale.parent)], "gettext_compact": False}
    # Pages that lack a translation of a text are found by this class.
    sphinx |= {"translation_progress_classes": "untranslated", "book_edition": str(locale)}
    return settings


def install(edition: Edition, site: Path) -> None:
    """Put an edition's built pages into the site; files that the site has already are not there twice."""
    built, place = folder_of(edition) / "_build" / "html", site / edition.settings["address"]
    redirects = yaml.safe_load(Path("_config.yml").read_text("utf-8"))["sphinx"]["config"].get("redirects", {})
    kept, ours = set(), {*main_line(), *(old for old in redirects if old.startswith("book/chapters/"))}
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
