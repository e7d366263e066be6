"""A book of a few pages with this book's own configuration, and how tests build it."""

import json
import os
import shutil
import subprocess
import sys

from conftest import ROOT

from bookbuilder import notebooks

_PLACES = [str(ROOT / "book" / "_ext"), os.environ.get("PYTHONPATH")]
BUILDER = {"PYTHONPATH": os.pathsep.join(filter(None, _PLACES))}
"""Where a process of its own finds the builder of the book."""


def notebook_of(cells):
    return {"cells": cells, "metadata": {"kernelspec": {"name": "python3"}}, "nbformat": 4, "nbformat_minor": 5}


def code_cell(source, **extra):
    cell = {"cell_type": "code", "id": "x", "metadata": {}, "source": source, "outputs": [], "execution_count": None}
    return cell | extra


def make(folder, pages):
    """Write a book with an introduction, a status page and chapters; `pages` are the code cells of each, by name."""
    (folder / "book").mkdir(parents=True)
    shutil.copy(ROOT / "_config.yml", folder)
    shutil.copytree(ROOT / "book" / "_assets", folder / "book" / "_assets")
    (folder / "book" / "references.bib").write_text("")
    (folder / "book" / "intro.md").write_text("# Intro\n\n> **Takeaway.** A box with $x$.\n\n> A plain quote.\n")
    (folder / "book" / "status.md").write_text("# Status\n\n```{executions}\n```\n")
    files = "".join(f"  - file: book/{name}\n" for name in (*pages, "status"))
    (folder / "_toc.yml").write_text(f"format: jb-book\nroot: book/intro\nchapters:\n{files}")
    for name, sources in pages.items():
        write_page(folder, name, sources)


def write_page(folder, name, sources, title="# Page"):
    """Write a chapter: the common first cell, a title, and code cells with these sources."""
    text = {"cell_type": "markdown", "id": "t", "metadata": {}, "source": title}
    cells = [text, *(code_cell(s, id=f"c{i}") for i, s in enumerate(sources))]
    content = json.dumps(notebooks.mended(notebook_of(cells)))
    (folder / "book" / f"{name}.ipynb").write_text(content)


def build(folder, *options, **environment):
    """Run what `make book` runs."""
    command = [sys.executable, "-m", "bookbuilder.build", *options]
    return subprocess.run(
        command, cwd=folder, env=os.environ | BUILDER | environment, capture_output=True, text=True, check=False
    )


def page(folder, name):
    """The HTML of a built page."""
    return (folder / "_build" / "html" / "book" / f"{name}.html").read_text("utf-8")
