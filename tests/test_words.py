"""One word for each experiment: the table of CONTRIBUTING, command, modules, folders and pages agree."""

import ast
import json
import re
import subprocess
from functools import cache

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


@pytest.mark.parametrize("word", cli._MEASUREMENTS)
def test_command_modules_and_file_of_a_measurement_have_the_word(word, capsys):
    name = word.replace("-", "_")
    places = f"explainer_lab/{name}.py", f"explainer/compare/{name}.py", f"explainer/published/{name}.json"
    assert f"`{word}`" in TEXT and all((ROOT / "src" / place).is_file() for place in places)
    with pytest.raises(SystemExit):
        cli.main([word, "--help"])
    assert word in capsys.readouterr().out


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


@pytest.mark.parametrize("command", re.findall(r"`(grep [^`]+)`", re.sub(r"\n", " ", TEXT)))
def test_a_search_that_is_advised_finds_something(command):
    assert subprocess.check_output(command, shell=True, cwd=ROOT)


SOURCES = [*(ROOT / "src/explainer").rglob("*.py"), *(ROOT / "src/explainer_lab").rglob("*.py")]
OF_OTHERS = {"attn_kv", "save_to_disk"}  # an option of the released code, a function of a library
PAGES = {path.stem for path in (ROOT / "book").rglob("*.ipynb")}


def test_a_name_in_a_docstring_is_one_of_the_code():
    """Names with an underscore, which are no ordinary words; fields of configurations stand in strings."""
    texts = {path: path.read_text("utf-8") for path in SOURCES}
    code = "".join(re.sub(r"`[^`\n]*`", "", text) for text in texts.values())
    known = {*OF_OTHERS, *re.findall(r"\w+", code), *PAGES, *(path.stem for path in SOURCES)}
    quoted = {name: path for path, text in texts.items() for name in re.findall(r"`(?:\w+\.)*(\w+_\w+)[`(]", text)}
    assert not {name: str(path) for name, path in quoted.items() if name not in known}


def test_a_module_in_a_docstring_has_the_name_after_it():
    own = {path.stem: path for path in SOURCES}
    for path in SOURCES:
        for module, name in re.findall(r"`(?:\w+\.)*(\w+)\.(\w+)[`(]", path.read_text("utf-8")):
            homonyms = [its for its in SOURCES if its.stem == module]
            known = {word for its in homonyms for word in _names(its)}
            assert module not in own or name in known, f"{path}: {module}.{name}"


@cache
def _names(path):
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    return {getattr(node, key) for node in nodes for key in ("name", "id", "attr") if hasattr(node, key)}
