"""What is declared: packages that are imported, the lock of the environment, the name of a release."""

import re
import sys
import tomllib
from importlib.metadata import packages_distributions

import yaml
from conftest import ROOT
from packaging.requirements import Requirement
from test_floors import LAB_SOURCES, SOURCES, imported

import explainer

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
HOSTED = {
    "anywidget": "0.9.21", "ipywidgets": "7.7.1", "numpy": "2.1.3", "pandas": "2.2.3",
    "plotly": "5.24.1", "pyarrow": "18.1.0", "requests": "2.32.4", "safetensors": "0.8.0", "scipy": "1.16.3",
    "tokenizers": "0.22.2", "tqdm": "4.67.3", "traitlets": "5.7.1", "transformers": "5.15.0",
}  # fmt: skip
"""What a hosted notebook service published of its image in August 2026."""
NOT_IMPORTED = {"ipywidgets", "accelerate"}
"""What a widget is drawn by, and what transformers asks for where it loads a model."""


def _plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def _named(lines):
    """Requirements by the name of their package, of lines like those of pip; comments and options left out."""
    bare = (re.split(r"(?:^|\s)#", line)[0].strip() for line in lines)
    found = [Requirement(line) for line in bare if line and not line.startswith("-")]
    return {_plain(one.name): one for one in found}


def _distributions(sources):
    """The distributions of what sources import, but for the standard library and the package itself."""
    known = packages_distributions()
    modules = {name.partition(".")[0] for source in sources for name in imported(source)}
    outside = modules - set(sys.stdlib_module_names) - {"explainer", "explainer_lab"}
    return {_plain(known.get(module, [module])[0]) for module in outside}


def _stale(required, lock):
    """What a lock says of the given requirements that is not so, by name; its lines say who asked for a package."""
    locked, asked = {}, set()
    for line in lock.splitlines():
        if found := re.match(r"([\w.-]+)==([\w.]+)", line):
            locked.setdefault(found[1], []).append(found[2])
            asked |= {found[1]} if "-r requirements.txt" in line else set()
    fits = {name for name, one in required.items() if all(map(one.specifier.contains, locked.get(name, [""])))}
    return (asked ^ set(required)) | (set(required) - fits)


def test_the_package_imports_what_it_declares_and_declares_what_it_imports():
    needed = set(_named(PROJECT["dependencies"]))
    optional = set(_named(EXTRAS["lab"] + EXTRAS["ray"] + EXTRAS["web-model"]))
    found = _distributions([*SOURCES.values(), *LAB_SOURCES.values()])
    assert found - needed == optional
    assert needed - found == NOT_IMPORTED
    assert {"accelerate", "gguf"} <= needed, "with these `explainer fetch` converts the starter checkpoint"


def test_installation_replaces_nothing_that_a_hosted_notebook_brings():
    """A package that is replaced while a kernel has it loaded breaks that kernel."""
    needed = _named(PROJECT["dependencies"])
    assert {name for name, version in HOSTED.items() if version not in needed[name].specifier} == set()


def test_the_lock_is_of_these_requirements():
    """A package more, one less, and another version are found; what it resolves to needs the network."""
    required = _named((ROOT / "requirements.txt").read_text("utf-8").splitlines())
    assert _stale(required, (ROOT / "requirements.lock").read_text("utf-8")) == set(), "run `make lock`"


def test_the_last_release_has_one_name_everywhere():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    versions = re.findall(r"^## (\d+\.\d+\.\d+) \((.*)\)$", changes, re.MULTILINE)
    assert versions[0] == (explainer.__version__, str(cited["date-released"]))
    assert cited["version"] == explainer.__version__
    assert f"Version {explainer.__version__}}}" in (ROOT / "book" / "reference" / "cite.md").read_text("utf-8")
    assert PROJECT["authors"] == cited["authors"]
