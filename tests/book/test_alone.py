"""A chapter alone: an empty folder, another Python, and how much memory it held."""

import sys

import nbformat
import pytest

from bookbuilder import alone

HELD = 300  # MiB


def notebook(folder, *sources):
    path = folder / "chapter.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(s) for s in sources]), path)
    return path


@pytest.mark.slow
def test_a_chapter_runs_in_an_empty_folder_and_its_memory_is_that_of_its_kernel(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    its = "import os; assert os.listdir() == ['chapter.ipynb'] and 'PYTHONPATH' not in os.environ"
    small = alone.run_alone(sys.executable, notebook(tmp_path, its))
    large = alone.run_alone(sys.executable, notebook(tmp_path, its, f"held = bytearray({HELD} * 2**20); del held"))
    assert not small.failure and not large.failure
    assert small.fits and small.seconds > 0
    assert HELD * 0.9 < large.peak_mib - small.peak_mib < HELD * 1.1


def test_a_chapter_that_fails_says_why(tmp_path):
    failed = alone.run_alone(sys.executable, notebook(tmp_path, "raise ValueError('no such data')"))
    assert "no such data" in failed.failure and not failed.fits


def test_the_report_tells_what_fits(tmp_path):
    outcomes = [
        alone.Outcome("small", 12.3, 900.0),
        alone.Outcome("large", 40.0, alone.BINDER_MIB + 1),
        alone.Outcome("broken", failure="ValueError: a | b"),
    ]
    rows = alone.report(outcomes, {"torch": "9.9"}).splitlines()[-3:]
    assert rows[0] == "| small | yes | 12 | 900 | yes |"
    assert rows[1].endswith("| no |")
    assert rows[2] == "| broken | no: ValueError: a \\| b |  |  | no |"
