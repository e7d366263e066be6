"""The commands of the page on reproducing, as they stand there, on small grids, up to a page that shows the result."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import small_book
import tiny_models
from conftest import ROOT
from toy_study import write_mr

SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
TEXT = (ROOT / "book" / "reference" / "reproduce.md").read_text("utf-8")
PAGE = """\
from explainer.results import reporting
from explainer.results.published import results
from explainer.figures import Table
queries = results("word-pairs", "queries")
found = reporting.prediction_interval(queries, "icl")
rows = [(str(queries["setting"].nunique()), f"{found:.2f}")]
Table(("settings", "right in context"), rows, "A small study.", str(reporting.provenance(queries)))"""


def commands(section):
    """The commands that a section shows, without their comments."""
    block = re.search(rf"^## {section}$.*?^```bash\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)[1]
    return [line.partition("#")[0].strip() for line in block.splitlines()]


def run(command, folder, **environment):
    words = shlex.split(command)
    if words[0] in SCRIPTS:
        words[0] = str(Path(sys.executable).with_name(words[0]))
    done = subprocess.run(words, cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout


@pytest.mark.weekly
@pytest.mark.slow
def test_the_study_can_be_computed_from_its_grids_and_shown_on_a_page(tmp_path):
    """With a tiny model and 60 phrases for the starter checkpoint and its tasks."""
    model = tiny_models.save("llama", tmp_path / "model")
    small_book.make(tmp_path / "checkout", {"page": [PAGE]})
    folder = tmp_path / "checkout"
    write_mr(folder / "my_data")
    published = folder / "src" / "explainer" / "published"
    (published / "comparison").mkdir(parents=True)
    rows = f'checkpoint = "{model}"\ntask = "mr"\nk = 3\nn_queries = 6\nseed = [0, 1]\n'
    (published / "comparison" / "grids.toml").write_text(f"[word-pairs]\n{rows}")
    compute, look = commands("The stored studies")
    where = {"EXPLAINER_RESULTS": str(published), "EXPLAINER_CACHE": str(tmp_path / "cache")}
    assert "mr-k3" in run(compute, folder, **where)
    assert "2 published, 0 stored, 0 waiting" in run(look, folder, **where)
    done = small_book.build(folder, EXPLAINER_RESULTS=str(published))
    assert done.returncode == 0, done.stderr
    page = small_book.page(folder, "page")
    assert "2 settings, seeds 0, 1; 6 queries each; k = 3; " in page and "right in context" in page


def test_files_and_modules_of_the_page_exist():
    for word in re.findall(r"(?<![\w/.])(?:book|src|tests)/[\w./-]+", TEXT):
        assert Path(ROOT, word.rstrip(".")).exists(), word


def test_every_variable_of_the_environment_is_explained():
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "book" / "_ext").rglob("*.py")]
    read = {name for file in files for name in re.findall(r"EXPLAINER_[A-Z_]*[A-Z]", file.read_text("utf-8"))}
    assert len(read) > 7 and {name for name in read if name not in TEXT} == set()
