"""Files that come with installed packages and are served from the site itself: plotly.js, MathJax, icon fonts."""

import filecmp
import re
import shutil
from importlib import metadata
from pathlib import Path

_PRIVATE_USE = re.compile(r"\\(f[0-9a-f]{3}|e[0-9a-f]{3})\b", re.IGNORECASE)
_PRIVATE_GLYPH = re.compile("[\ue000-\uf8ff]")
_ICON_RULE = re.compile(r"([^{}]*\.fa-[^{}]*)\{[^{}]*?(?:content|--fa):\s*\"\\([0-9a-f]+)\"[^{}]*\}")
_NOT_OURS = {"plotly.min.js", "searchindex.js", "fontawesome.js"}
_CLASS = re.compile(r"\bfa-[a-z0-9-]+")
_MATHJAX = (
    "startup.js", "core.js", "input/tex-base.js", "input/tex/extensions/ams.js", "input/tex/extensions/newcommand.js",
    "input/tex/extensions/html.js", "output/chtml.js", "output/chtml/fonts/", "a11y/assistive-mml.js",
)  # fmt: skip
"""TeX as input, CommonHTML as output, its fonts."""
MODEL = Path("_static", "explainer", "model")
"""Where a site has the model that runs in its pages."""


def copy_if_changed(source: Path, target: Path) -> None:
    """Copy a file, with its time, unless the target is the same."""
    if not target.exists() or not filecmp.cmp(source, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def copy_packages(static: Path) -> None:
    """The plotly.js of the plotly wheel, so that it always fits the figures, and the parts of MathJax that are used."""
    import plotly  # noqa: PLC0415

    script = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    copy_if_changed(script, static / "explainer" / script.name)
    for file in metadata.files("sphinx-mathjax-offline") or []:
        _, marker, name = str(file.as_posix()).partition("/static/mathjax/")
        if marker and name.startswith(_MATHJAX):
            copy_if_changed(Path(str(file.locate())), static / "mathjax" / name)


def used_icons(site: Path) -> tuple[set[str], set[int]]:
    """Class names and code points of the icons that the built pages, scripts and styles name."""
    points, names, rules = set(), set(), []
    for file in [*site.rglob("*.html"), *site.glob("_static/**/*.css"), *site.glob("_static/**/*.js")]:
        if file.name in _NOT_OURS or "mathjax" in file.parts:
            continue
        text = file.read_text("utf8", errors="ignore")
        if file.suffix == ".css":
            rules += _ICON_RULE.findall(text)
            text = _ICON_RULE.sub("", text)
        names.update(_CLASS.findall(text))
        points.update(int(code, 16) for code in _PRIVATE_USE.findall(text))
        points.update(ord(glyph) for glyph in _PRIVATE_GLYPH.findall(text))
    points |= {int(code, 16) for selectors, code in rules if names & set(_CLASS.findall(selectors))}
    return names, points


def subset_icon_fonts(site: Path) -> None:
    """Keep only the used icons of Font Awesome (300 kB -> some 5 kB) and drop its second, JavaScript copy."""
    from fontTools import subset  # noqa: PLC0415

    static = site / "_static"
    script = static / "scripts" / "fontawesome.js"
    if not script.exists() or script.stat().st_size == 0:
        return
    names, points = used_icons(site)
    for file in static.glob("**/*.css"):
        text = file.read_text("utf8")
        kept = _ICON_RULE.sub(lambda rule: rule[0] if names & set(_CLASS.findall(rule[1])) else "", text)
        if kept != text:
            file.write_text(kept, "utf8")
    for font_file in static.rglob("fontawesome/webfonts/*.woff2"):
        used = ",".join(f"{point:x}" for point in sorted(points))
        subset.main([str(font_file), f"--unicodes={used}", "--flavor=woff2", f"--output-file={font_file}"])
    script.write_text("")


_INLINE_SEARCH = re.compile(
    r'\s*<script src="[^"]*(?:searchindex|_static/searchtools|_static/language_data)\.js[^"]*"></script>'
)


def drop_inline_search(site: Path) -> None:
    """Leave the search index, which grows with the book, to the search page: no other page searches as you type."""
    for page in site.rglob("*.html"):
        text = page.read_text("utf8")
        if page.name != "search.html" and (lighter := _INLINE_SEARCH.sub("", text)) != text:
            page.write_text(lighter, "utf8")
