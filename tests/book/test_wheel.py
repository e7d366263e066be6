"""The installed package has all that it needs, wherever it is installed."""

import os
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

SCRIPT = """
import explainer
from explainer.models import deep_linear_model, in_context_gpt
from explainer.results.published import results
from explainer.explorables import NoiseValue, OneStep
from explainer.figures import Texts, drawings
from explainer.findings import _published
from explainer.page import LiveGPT

assert explainer.__file__.startswith({place!r}), explainer.__file__
assert len(results("word-pairs")) == 80 and len(results("plain", "curve")) == 8 * 32
assert len(results("lines-plain")) == 8
assert in_context_gpt.stored("gpt_line").model and deep_linear_model.stored("GD++", 2)
assert "<svg" in drawings.drawing("claim").svg and _published()
assert all("export default" in one._esm for one in (LiveGPT(), OneStep(), NoiseValue()))
"""


@pytest.mark.weekly
@pytest.mark.slow
def test_a_wheel_in_any_directory_has_results_weights_words_and_scripts(tmp_path):
    place = str(tmp_path / "target")
    source = tmp_path / "source"  # a build writes beside its sources
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--target", place]
    install = [sys.executable, "-m", "pip", "install", *options, str(source)]
    subprocess.run(install, check=True, capture_output=True, text=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("EXPLAINER_")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(place=place)],
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": place},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
