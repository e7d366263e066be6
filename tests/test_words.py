"""One word for each experiment: the table of CONTRIBUTING, command, modules, folders and pages agree."""

import json
import re

import pytest
from conftest import ROOT
from published_grids import EXPERIMENTS, grids

from explainer.results.published import COMMANDS
from explainer_lab import cli

TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
ROWS = re.findall(r"^\| `([a-z-]+)` \| [^|]+ \| (`[^|]+`) \| `(\w+)` \|$", TEXT, re.MULTILINE)


def test_the_table_has_every_experiment_once():
    assert sorted(word for word, *_ in ROWS) == sorted(one.name.replace("_", "-") for one in EXPERIMENTS)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_command_module_class_folder_and_setting_have_the_word(experiment, capsys):
    word = experiment.name.replace("_", "-")
    assert experiment.__module__ == f"explainer_lab.{experiment.name}"
    assert experiment.__name__ == "".join(map(str.capitalize, word.split("-")))
    assert COMMANDS[experiment.name] == f"explainer-lab {word}"
    assert grids(experiment) and (ROOT / "src/explainer/published" / experiment.name / "settings.parquet").is_file()
    with pytest.raises(SystemExit):
        cli.main([word, "--help"])
    assert word in capsys.readouterr().out


def test_no_two_experiments_have_a_setting_of_one_name():
    own = [one.setting for one in EXPERIMENTS]
    names = [one.__name__ for one in own]
    assert len(set(names)) == len(names) and "Setting" not in names and all(name.endswith("Setting") for name in names)


@pytest.mark.parametrize(("word", "modules", "page"), ROWS)
def test_results_and_page_are_there_and_the_page_reads_the_tables(word, modules, page):
    for module in re.findall(r"`(\w+)`", modules):
        assert (ROOT / "src/explainer/results" / f"{module}.py").is_file(), module
    (path,) = (ROOT / "book").rglob(f"{page}.ipynb")
    code = "".join(
        "".join(c["source"]) for c in json.loads(path.read_text("utf-8"))["cells"] if c["cell_type"] == "code"
    )
    experiment = next(one for one in EXPERIMENTS if one.name == word.replace("-", "_"))
    stems = {grid for grid in grids(experiment)} | {
        f"{grid.partition('-')[0]}-{{" for grid in grids(experiment) if "-" in grid
    }
    named = any(f'"{stem}' in code for stem in stems)
    own = set(re.findall(r"`(\w+)`", modules)) - {"published"}
    imported = {name for line in re.findall(r"from explainer\.results import (.*)", code) for name in line.split(", ")}
    assert named or own & imported, f"the page {page} reads no table of {word}"
