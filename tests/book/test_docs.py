"""The code that README and prose pages show runs as it stands."""

import json
import re
import subprocess

from conftest import ROOT

PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)


FOREIGN = re.compile(r"pip3? install[^\n]*[ \t][\"'`]*explainer\b(?![/.])|explainer\[[a-z]")
"""Advice to install `explainer` from the package index, where the name belongs to another project."""


def _tracked():
    """The texts of the project, without this file."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    kinds = (".py", ".md", ".ipynb", ".toml", ".yml", ".js", ".cff", ".txt", ".html", ".sh", "Makefile", "run")
    files = [ROOT / name for name in listed.splitlines() if name.endswith(kinds)]
    return [path for path in files if path.is_file() and path.name != "test_docs.py"]


def test_nobody_is_told_to_install_a_package_of_another_project():
    for bad in ('pip install "explainer[ray]"', "pip install explainer", "pip3 install -U explainer\n"):
        assert FOREIGN.search(bad)
    for good in ('pip install -e ".[ray]"', "pip install -e .", "pip install ./explainer.tar.gz", "explainer study"):
        assert not FOREIGN.search(good)
    told = {str(path.relative_to(ROOT)): FOREIGN.search(path.read_text("utf-8")) for path in _tracked()}
    assert len(told) > 300 and [name for name, found in told.items() if found] == []


def test_files_that_workflows_hash_exist():
    """The hash of no file is the same for ever, and so is a cache with it in its key."""
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    named = [name for path in workflows for name in re.findall(r"hashFiles\('([^']+)'\)", path.read_text("utf-8"))]
    assert named and all(list(ROOT.glob(name)) for name in named), named


def _blocks(name):
    blocks = PYTHON.findall((ROOT / name).read_text("utf8"))
    assert blocks, f"{name} shows no Python"
    return blocks


def test_readme_code_runs():
    for block in _blocks("README.md"):
        exec(block, {})


def test_own_task_of_the_reproduction_page(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "my_data" / "tone"
    folder.mkdir(parents=True)
    row = json.dumps({"text": "Could you please send it?", "label": 1}) + "\n"
    for split in ("train", "test"):
        (folder / f"{split}.jsonl").write_text(row)
    monkeypatch.chdir(tmp_path)
    for block in _blocks("book/reference/reproduce.md"):
        exec(block, {})
    assert capsys.readouterr().out == "Message: Could you please send it?\nTone: polite\n"


def test_what_to_read_next_quotes_the_verdict():
    """Each sentence that a newer paper bears on stands in the verdict as it is quoted."""
    cells = json.loads((ROOT / "book" / "chapters" / "verdict.ipynb").read_text("utf-8"))["cells"]
    verdict = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    quoted = re.findall("“([^”]+)”", (ROOT / "book" / "reference" / "further.md").read_text("utf-8"))
    assert len(quoted) > 5
    assert [sentence for sentence in quoted if sentence not in verdict] == []
