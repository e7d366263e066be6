"""The code that README and prose pages show runs as it stands."""

import json
import re
import shlex
import subprocess
import tomllib
from itertools import chain

import pytest
from conftest import ROOT

from bookbuilder.pages import markdown
from explainer import commands
from explainer_lab import cli

PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
PROSE = [ROOT / "README.md", *(ROOT / "book" / "reference").glob("*.md")]
COMMAND = re.compile(r"(?:^|(?<=`))explainer(?:-lab)? [a-z-]+(?: [^`#\n]+)?", re.MULTILINE)
COMMANDS = {found.strip() for path in PROSE for found in COMMAND.findall(path.read_text("utf-8"))}
INSTALL = re.compile(
    r"pip3? install((?: -[\w-]+(?:[= ](?:\S+://\S+|\S+\.txt))?)*) [\"'`\\]*([A-Za-z][\w-]*)(?![\w+:/.-])"
)
"""The options and the first name of advice to install from the package index."""
OTHERS = {"build", "uv", "lm-eval", "openicl"}
"""What the Makefile and the benchmarks install beside our own requirements; each was looked up on the package index."""


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


def _foreign(text, known):
    return {name for _, name in INSTALL.findall(text)} - known


def test_nobody_is_told_to_install_a_package_of_another_project():
    """The name `explainer` belongs to a stranger on the package index; every name that is told is ours or required."""
    for bad in ('pip install "explainer[ray]"', "pip install explainer", "pip3 install -U explainer\n"):
        assert _foreign(bad, set()) == {"explainer"}
    for good in ('pip install -e ".[ray]"', "pip install -e .", "pip install ./explainer.tar.gz", "pip install git+x"):
        assert _foreign(good, set()) == set()
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    required = chain(ours["dependencies"], *ours["optional-dependencies"].values(), lines)
    known = {ours["name"], *OTHERS} | {found[0] for line in required if (found := re.match(r"[\w-]+", line))}
    assert "explainer" not in known
    told = {str(path.relative_to(ROOT)): _foreign(path.read_text("utf-8"), known) for path in _tracked()}
    assert len(told) > 300 and {name: found for name, found in told.items() if found} == {}


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_the_parser_takes_every_command_that_is_shown(command):
    options = re.search(r'^O="(.*)"$', (ROOT / "book/reference/your_model.md").read_text("utf-8"), re.MULTILINE)[1]
    script, *words = shlex.split(command.replace("$SLURM_ARRAY_TASK_ID", "3").replace("$O", options))
    parser = {"explainer": commands, "explainer-lab": cli}[script]._parser()
    assert callable(parser.parse_args([word for word in words if word != "--help"]).run)


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
    verdict = "\n".join(markdown(ROOT / "book" / "chapters" / "verdict.ipynb"))
    quoted = re.findall("“([^”]+)”", (ROOT / "book" / "reference" / "further.md").read_text("utf-8"))
    assert len(quoted) > 5
    assert [sentence for sentence in quoted if sentence not in verdict] == []
