"""Executing the chapters: each once, side by side, and what happens where one fails."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import small_book
from conftest import ROOT
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from bookbuilder import build, execute, notebooks, portability, record
from bookbuilder.execute import EXECUTED, Execution
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


@pytest.mark.slow
@pytest.mark.parametrize("mended", [False, pytest.param(True, marks=pytest.mark.weekly)])
def test_a_book_of_which_chapters_fail_is_built_and_can_be_mended(tmp_path, mended):
    """In a path with a space; each build takes most of a minute."""
    folder = tmp_path / "a book"
    small_book.make(folder, PAGES)
    done = small_book.build(folder, EXPLAINER_REPOSITORY="https://github.com/org/name", EXPLAINER_BRANCH="main")
    require_failures_are_named_with_cell_error_and_remedy(done)
    require_pages_are_built_and_the_failing_ones_say_so(folder)
    require_boxes_and_buttons_come_from_one_address(folder, done)
    require_progress(done)
    require_findings_are_marked_and_listed(folder, done)
    if not mended:
        return
    for name in ("broken", "killed"):
        small_book.write_page(folder, name, SOUND)
    small_book.write_page(folder, "sound", SOUND, title="# Another title")
    done = small_book.build(folder, "--strict")
    assert done.returncode == 1 and done.stderr.rstrip().endswith("found: Three is <small>: 3, not < 2")
    assert "because it failed the last time: broken, killed\n" in done.stdout
    assert not re.search(r"(sound|found): running", done.stderr)  # its code is the same
    assert "Another title" in small_book.page(folder, "sound")
    assert "This chapter failed" not in small_book.page(folder, "broken")


def require_failures_are_named_with_cell_error_and_remedy(done):
    assert done.returncode == 1
    news = [line for line in done.stderr.splitlines() if line.startswith("FAILED")]
    assert len(news) == 2
    assert "FAILED broken: cell 3: ValueError: broken on purpose. Mend what it names" in done.stderr
    assert re.search(r"FAILED killed: .*memory ran out. Free memory, or run fewer .*WORKERS=1", done.stderr)


def require_pages_are_built_and_the_failing_ones_say_so(folder):
    assert "fine 42" in small_book.page(folder, "sound")
    assert "This chapter failed" not in small_book.page(folder, "sound")
    for name, what in {"broken": "broken on purpose", "killed": "memory ran out"}.items():
        text = re.sub(r"<[^>]+>", "", small_book.page(folder, name))
        assert "This chapter failed" in text and what in text
        assert "never" not in text.replace("print('never')", "")


def require_boxes_and_buttons_come_from_one_address(folder, done):
    assert "make serve" in done.stdout
    intro = small_book.page(folder, "intro")
    assert re.search(r'<div class="(?=[^"]*xp-box)(?=[^"]*tip)[^"]*admonition', intro)
    assert intro.count("<blockquote") == 1
    page = small_book.page(folder, "sound")
    assert "https://colab.research.google.com/github/org/name/blob/main/book/sound.ipynb" in page
    assert "https://mybinder.org/v2/gh/org/name/main" in page
    assert "https://github.com/org/name/edit/main/book/sound.ipynb" in page
    assert "pip install" not in page


def require_progress(done):
    assert re.search(r"^\[0 of 4 done, about \d+ min left\] \w+: running$", done.stderr, re.MULTILINE)
    assert re.search(r"^\[4 of 4 done\] \w+: (done|FAILED, .*) in \d+ s$", done.stderr, re.MULTILINE)


def require_findings_are_marked_and_listed(folder, done):
    last = "1 findings did not hold on this machine:\n  found: Three is <small>: 3, not < 2"
    assert done.stderr.rstrip().endswith(last)
    page, status = small_book.page(folder, "found"), small_book.page(folder, "status")
    assert page.count('class="xp-finding"') == 1 and page.count('class="xp-finding xp-fails"') == 1
    assert "found: Three is &lt;small&gt;: 3, not &lt; 2" in status and "1 of 2 hold" in status
    assert status.count("FAILED") == 2


def test_a_finding_that_does_not_hold_is_no_error_unless_strict():
    fails = {"found": [findings.Finding("Three is small", 3, "<", 2)]}
    assert build.summary({}, fails, strict=False) == 0
    assert build.summary({}, fails, strict=True) == 1


def keep(path, *found, made_of=None, failure=None):
    """Write the executed copy of a chapter, with these findings."""
    cells = [small_book.code_cell("1", outputs=[{"data": {findings.MIME: numbers}}]) for numbers in found]
    last = {"made_of": made_of or {}, "seconds": 1.0, "failure": failure}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(small_book.notebook_of(cells) | {"metadata": {"explainer": last}}))


def test_only_what_changed_is_executed_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chapter, copy = Path("a.ipynb"), EXECUTED / "a.ipynb"
    chapter.write_text(json.dumps(small_book.notebook_of([small_book.code_cell("1")])))
    now = execute.made_of(chapter, execute.surroundings())

    def reason(failure=None, **changed):
        keep(copy, made_of=now | changed, failure=failure)
        return execute.reason_to_execute(chapter, now)

    assert reason() is None
    assert reason(package="other", versions="other") == "changed: package, versions"
    assert reason(processor="Some other") == "it was executed on another processor, Some other"
    assert reason(failure={"cell": 1, "error": "e", "remedy": "r"}) == "it failed the last time"
    copy.write_text("{")
    assert execute.reason_to_execute(chapter, now) == "it was not executed here before"
    chapter.write_text(json.dumps(small_book.notebook_of([small_book.code_cell("2")])))
    assert execute.code_digest(json.loads(chapter.read_text())) != now["code cells"]


def test_elsewhere_too_only_what_changed_is_executed_again(tmp_path, monkeypatch):
    """The processor may differ from row to row; the code may not be older than the chapter's."""
    now = {"code cells": "a", "package": "b", "stored results": "c", "processor": "here"}
    keep(tmp_path / "row" / "same.ipynb", made_of=now | {"processor": "elsewhere"})
    keep(tmp_path / "row" / "old.ipynb", made_of=now | {"code cells": "older"})
    ran = []
    monkeypatch.setattr(portability, "FOLDER", tmp_path)
    monkeypatch.setattr(execute, "surroundings", dict)
    monkeypatch.setattr(execute, "made_of", lambda chapter, shared: now)
    monkeypatch.setattr(subprocess, "run", lambda command, **_: ran.append(command))
    chapters = [Path(f"{name}.ipynb") for name in ("same", "old", "new")]
    portability.run_chapters(portability.Row("row"), chapters, 1)
    assert [word for word in ran[0] if word.endswith(".ipynb")] == ["old.ipynb", "new.ipynb"]


def test_a_host_that_only_executes_needs_nothing_that_builds_pages():
    """As in the weekly runs of a hosted image and of the oldest packages."""
    script = "import sys; sys.modules['docutils'] = None; import bookbuilder.execute, bookbuilder.portability"
    subprocess.run([sys.executable, "-c", script], env=os.environ | small_book.BUILDER, check=True)


def test_the_numerical_tests_exist():
    assert [name for name in portability._NUMERICAL if not (ROOT / "tests" / name).exists()] == []


def test_the_report_of_other_environments_names_what_does_not_hold(tmp_path, monkeypatch):
    """With the seeds of the book one finding that fails is one too many, with other seeds one of twenty is not."""
    monkeypatch.setattr(portability, "FOLDER", tmp_path)
    chapter, rows = Path("a.ipynb"), portability.rows(None, 20)
    for row in rows:
        numbers = {"statement": "x | y", "value": 3.0 if row.shift == 1000 else 1.0, "relation": "<", "bound": 2.0}
        keep(row.folder / chapter.name, numbers)
    text, sound = portability.report(rows, [chapter], {"AVX2": "9 passed"})
    assert sound and "Edition " in text and "AVX2: 1 findings; 9 passed" in text and "everything holds" in text
    assert portability.table(rows, [chapter]).value.max() == 3
    text, sound = portability.report([*rows[:4], rows[4]], [chapter, Path("b.ipynb")], {"AVX2": "1 failed"})
    assert not sound and "AVX2: 1 failed" in text and "AVX2 b: not executed" in text
    assert "does not hold: a: x | y (0%)" in text


@pytest.mark.slow
def test_an_interrupted_build_keeps_what_is_finished_and_leaves_nothing_half_written(tmp_path):
    small_book.make(tmp_path, {"quick": SOUND, "slow": ["import time\ntime.sleep(600)"]})
    command = [sys.executable, "-m", "bookbuilder.build"]
    how = {"cwd": tmp_path, "env": os.environ | small_book.BUILDER, "start_new_session": True}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **how) as process:
        for line in process.stderr:
            if "quick: done" in line:
                break
        os.killpg(process.pid, signal.SIGINT)
        _, rest = process.communicate(timeout=600)
    assert process.returncode == 130, rest
    assert "run again to go on" in rest
    assert [path.name for path in (tmp_path / EXECUTED).glob("*.ipynb")] == ["quick.ipynb"]
    assert list((tmp_path / EXECUTED).glob(".*.tmp")) == []


SHY = """\
import pathlib, runpy, sys
been = pathlib.Path(__file__).with_name("been")
if not been.exists():
    been.touch()
    sys.exit("Address already in use")
sys.argv = ["ipykernel_launcher", "-f", sys.argv[1]]
runpy.run_module("ipykernel_launcher", run_name="__main__")"""


@pytest.mark.slow
def test_a_kernel_that_does_not_start_is_started_once_more_and_asks_no_pip(tmp_path):
    """As where two that start at the same moment pick the same port."""
    kernel = tmp_path / "kernels" / "shy"
    kernel.mkdir(parents=True)
    (kernel / "shy.py").write_text(SHY)
    argv = [sys.executable, str(kernel / "shy.py"), "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "shy", "language": "python"}))
    notebook = small_book.notebook_of([notebooks.SETUP, small_book.code_cell(SOUND[0])])
    notebook["metadata"]["kernelspec"]["name"] = "shy"
    (tmp_path / "page.ipynb").write_text(json.dumps(notebook))
    command = [sys.executable, "-m", "bookbuilder.execute", "done", "1", "page.ipynb"]
    environment = os.environ | small_book.BUILDER | {"JUPYTER_PATH": str(tmp_path)}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "page: its kernel did not start; once more" in run.stderr
    assert run.returncode == 0, run.stderr
    setup, sound = json.loads((tmp_path / "done" / "page.ipynb").read_text())["cells"]
    assert sound["outputs"][0]["text"] == ["fine 42\n"] and setup["outputs"] == []


def test_a_full_disk_is_one_clear_failure_and_leaves_no_part(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    notebook = nbformat.from_dict(small_book.notebook_of([small_book.code_cell("1")]))
    failure = execute._kept(notebook, tmp_path / "a.ipynb", Execution({}, 1.0)).failure
    assert "No space left" in failure.error and failure.remedy == "Free some space and run again"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("raised", "cell", "error", "remedy"),
    [
        (CellExecutionError("----> 3 assert 1 == 2", "AssertionError", ""), 4, "AssertionError: assert 1 == 2", "Mend"),
        (DeadKernelError("Kernel died"), 4, "memory ran out", "WORKERS=1"),
        (RuntimeError("Kernel died before replying to kernel_info"), None, "did not start", "log.txt"),
        (CellTimeoutError("Cell execution timed out"), 4, "took longer than", "less busy"),
        (ValueError("never seen"), 4, "never seen", "log.txt"),
    ],
)
def test_every_failure_is_explained(raised, cell, error, remedy):
    failure = execute._failure(raised, cell)
    assert failure.cell == cell and error in failure.error and remedy in failure.remedy


def test_outputs_go_to_their_cells_whatever_the_texts_are():
    code = [small_book.code_cell(source) for source in "ab"]
    source = {"cells": [code[0], {"cell_type": "markdown", "source": "new"}, code[1]], "metadata": {}}
    ran = [cell | {"outputs": [cell["source"]], "execution_count": 1} for cell in code]
    shown = execute.with_outputs(source, {"cells": ran, "metadata": {"widgets": {"w": 1}}})
    assert [cell.get("outputs") for cell in shown["cells"]] == [["a"], None, ["b"]]
    assert shown["metadata"] == {"widgets": {"w": 1}}


def test_the_record_refuses_a_statement_that_is_made_twice(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    numbers = {"statement": "s", "value": 1.23456, "relation": "<", "bound": 2.0}
    (tmp_path / "book").mkdir()
    (tmp_path / "_toc.yml").write_text("root: book/a\nchapters:\n  - file: book/b\n")
    for name, found in (("a", [numbers]), ("b", [])):
        (tmp_path / "book" / f"{name}.ipynb").write_text("{}")
        keep(EXECUTED / f"{name}.ipynb", *found, made_of={"processor": "p", "versions": "v"})
    made = record.of_executed()
    assert made["processor"] == "p" and made["chapters"]["a"]["findings"] == [numbers | {"value": 1.235}]
    keep(EXECUTED / "b.ipynb", numbers)
    with pytest.raises(findings.FindingError, match="'s' is said twice"):
        record.of_executed()
