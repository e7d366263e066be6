"""Executing the chapters: each once, side by side, and what happens where one fails."""

import html
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import parse_qs, urlsplit

import pytest
import small_book

from bookbuilder import build, execute, executed, notebooks
from explainer import findings

FINDING = """\
from explainer.findings import finding
finding("One is small", 1, "<", 2)
finding("Three is <small>", 3, "<", 2)"""
SOUND = ["print('fine', 6 * 7)"]
PAGES = {
    "sound": SOUND,
    "broken": ["x = 1", "raise ValueError('broken on purpose')", "print('never')"],
    "killed": ["import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"],
    "found": [FINDING],
}


@pytest.mark.weekly
@pytest.mark.slow
@pytest.mark.parametrize("mend", [False, True])
def test_a_book_of_which_chapters_fail_is_built_and_can_be_mended(tmp_path, mend):
    """In a path with a space; nothing is executed again that is as it was."""
    folder = tmp_path / "a book"
    small_book.make(folder, PAGES)
    where = {"EXPLAINER_REPOSITORY": "https://github.com/org/name", "EXPLAINER_BRANCH": "main", "EXPLAINER_SITE": ""}
    done = small_book.build(folder, **where)
    assert done.returncode == 1 and "make serve" in done.stdout
    assert "FAILED broken: cell 3: ValueError: broken on purpose. Mend" in done.stderr
    assert "FAILED killed: Its process was killed, most likely because memory ran out." in done.stderr
    assert done.stderr.endswith("1 findings did not hold on this machine:\n  found: Three is <small>: 3, not < 2\n")
    pages = {name: small_book.page(folder, name) for name in (*PAGES, "intro", "status")}
    assert "fine 42" in pages["sound"] and "This chapter failed" not in pages["sound"]
    for name, what in {"broken": "broken on purpose", "killed": "memory ran out"}.items():
        text = re.sub(r"<[^>]+>", "", pages[name])
        assert "This chapter failed" in text and what in text and "never" not in text.replace("print('never')", "")
    assert re.search(r'<div class="(?=[^"]*xp-box)(?=[^"]*tip)[^"]*admonition', pages["intro"])
    assert pages["intro"].count("<blockquote") == 1
    assert "https://colab.research.google.com/github/org/name/blob/main/book/sound.ipynb" in pages["sound"]
    assert "https://mybinder.org/v2/gh/org/name/main" in pages["sound"] and "pip install" not in pages["sound"]
    assert pages["found"].count('class="xp-finding"') == 1 == pages["found"].count('class="xp-finding xp-fails"')
    assert "found: Three is &lt;small&gt;: 3, not &lt; 2" in pages["status"] and "1 of 2 hold" in pages["status"]
    assert pages["status"].count("FAILED") == 2
    require_tags(folder / "_build" / "html", pages["intro"])
    if not mend:
        return
    for name in ("broken", "killed"):
        small_book.write_page(folder, name, SOUND)
    small_book.write_page(folder, "sound", SOUND, title="# Another title")
    done = small_book.build(folder, "--strict")
    assert done.returncode == 1 and "FAILED" not in done.stderr
    assert (
        "because changed: code cells: broken.ipynb, killed.ipynb\n" in done.stdout and "found.ipynb" not in done.stdout
    )
    assert "Another title" in small_book.page(folder, "sound") and "fine 42" in small_book.page(folder, "sound")
    assert "This chapter failed" not in small_book.page(folder, "broken")


def require_tags(site, page):
    """A page says what it is, where it is, and whom to tell of an error."""
    base = "https://org.github.io/name/"
    tags = dict(re.findall(r'<meta (?:name|property)="([\w:]+)" content="([^"]*)"', page))
    assert tags["og:title"] == "Intro" and tags["og:url"] == f"{base}book/intro.html" and tags["og:description"]
    assert tags["og:image"] == f"{base}_static/laboratory.png" and (site / "_static" / "laboratory.png").exists()
    assert f'<link rel="canonical" href="{base}book/intro.html"' in page
    assert "url=book/intro.html" in (site / "index.html").read_text("utf-8")
    listed = re.findall("<loc>(.*?)</loc>", (site / "sitemap.xml").read_text())
    assert set(listed) == {f"{base}book/{name}.html" for name in ("intro", "status", *PAGES)}
    link = urlsplit(html.unescape(re.search(r'<a class="xp-report"[^>]* href="([^"]*)"', page)[1]))
    assert (link.netloc, link.path) == ("github.com", "/org/name/issues/new")
    assert parse_qs(link.query)["title"] == ["Error on the page: Intro"]
    assert parse_qs(link.query)["body"][0].startswith("Page: book/intro\nSection: \n")


def keep(path, *found, made_of=None, failure=None):
    """Write the executed copy of a chapter, with these findings."""
    cells = [small_book.code_cell("1", outputs=[{"data": {findings.MIME: numbers}}]) for numbers in found]
    last = {"made_of": made_of or {}, "seconds": 1.0, "failure": failure}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(small_book.notebook_of(cells) | {"metadata": {"explainer": last}}))


@pytest.mark.parametrize(
    ("last", "why"),
    [
        ({}, None),
        ({"package": "other", "versions": "other"}, "changed: package, versions"),
        ({"code cells": "other"}, "changed: code cells"),
        ({"failure": "cell 1: e"}, "it failed"),
        (None, "it was not executed"),
    ],
)
def test_only_what_changed_is_executed_again_and_asks_no_pip(tmp_path, monkeypatch, capsys, last, why):
    monkeypatch.chdir(tmp_path)
    now = {"package": "p", "versions": "v"}
    monkeypatch.setattr(execute, "surroundings", lambda: now)
    text = {"cell_type": "markdown", "source": "A text.", "metadata": {}}
    notebook = notebooks.mended(small_book.notebook_of([text, small_book.code_cell("1")]))
    Path("a.ipynb").write_text(json.dumps(notebook))
    if last is not None:
        made_of = now | {"code cells": executed.code_digest(notebook)} | last
        keep(executed.FOLDER / "a.ipynb", made_of=made_of, failure=last.pop("failure", None))
    given = []

    def ran(options, plugins):
        given.append(json.loads(Path(options[-1]).read_text()))
        return pytest.ExitCode.OK

    monkeypatch.setattr(pytest, "main", ran)
    text["source"] = "Another text."
    execute.run([Path("a.ipynb")], workers=1)
    assert capsys.readouterr().out == (f"To execute, because {why}: a.ipynb\n" if why else "")
    assert [one["cells"][0]["metadata"]["tags"] for one in given] == ([["skip-execution"]] if why else [])
    if why:
        monkeypatch.setattr(pytest, "main", Mock(return_value=pytest.ExitCode.INTERRUPTED))
        monkeypatch.setattr(executed, "chapters", lambda: [Path("a.ipynb")])
        assert build.main([]) == 130 and "run again to go on" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.weekly
def test_an_interrupted_build_keeps_what_is_finished_and_leaves_nothing_half_written(tmp_path):
    small_book.make(tmp_path, {"quick": SOUND, "slow": ["import time\ntime.sleep(600)"]})
    command = [sys.executable, "-m", "bookbuilder.build"]
    how = {"cwd": tmp_path, "env": os.environ | small_book.BUILDER, "start_new_session": True}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **how) as process:
        while not (tmp_path / executed.FOLDER / "quick.ipynb").exists():
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=600)
    assert process.returncode == 130, said
    assert "run again to go on" in said
    assert [path.name for path in (tmp_path / executed.FOLDER).glob("*.ipynb")] == ["quick.ipynb"]
    assert list((tmp_path / executed.FOLDER).glob(".*.tmp")) == []


def test_a_chapter_that_was_not_executed_or_a_finding_that_does_not_hold_is_an_error_where_it_is_strict(tmp_path):
    keep(tmp_path / "a.ipynb", {"statement": "s", "value": 3.0, "relation": "<", "bound": 2.0})
    assert [executed.summary([tmp_path / "a.ipynb"], strict=strict) for strict in (False, True)] == [0, 1]
    assert executed.summary([tmp_path / "b.ipynb"], strict=False) == 1


def test_the_record_refuses_a_statement_that_is_made_twice(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    numbers = {"statement": "s", "value": 1.23456, "relation": "<", "bound": 2.0}
    (tmp_path / "book").mkdir()
    (tmp_path / "_toc.yml").write_text("root: book/a\nchapters:\n  - file: book/b\n")
    for name, found in (("a", [numbers]), ("b", [])):
        (tmp_path / "book" / f"{name}.ipynb").write_text("{}")
        keep(executed.FOLDER / f"{name}.ipynb", *found, made_of={"processor": "p", "versions": "v"})
    made = executed.new_record()
    assert made["processor"] == "p" and made["chapters"]["a"]["findings"] == [numbers | {"value": 1.235}]
    keep(executed.FOLDER / "b.ipynb", numbers)
    with pytest.raises(ValueError, match="'s' is said twice"):
        executed.new_record()
