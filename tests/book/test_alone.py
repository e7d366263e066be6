"""A chapter alone: an empty folder, another Python, and how much memory it held."""

import os
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


def test_the_other_python_is_found_from_where_the_command_was_given(tmp_path):
    its = f"import sys; assert sys.prefix == {sys.prefix!r}"
    assert not alone.run_alone(os.path.relpath(sys.executable), notebook(tmp_path, its)).failure
    assert "Python" in alone.versions(os.path.relpath(sys.executable))


def test_a_chapter_that_fails_says_why(tmp_path):
    failed = alone.run_alone(sys.executable, notebook(tmp_path, "raise ValueError('no such data')"))
    assert "no such data" in failed.failure and not failed.fits


def test_the_report_tells_what_fits():
    newest = [
        alone.Outcome("small", 12.3, 900.0),
        alone.Outcome("large", 40.0, alone.BINDER_MIB + 1),
        alone.Outcome("broken", failure="ValueError: a | b"),
    ]
    lean = [
        alone.Outcome("small", 12.3, 500.0),
        alone.Outcome("large", 40.0, alone.BINDER_MIB),
        alone.Outcome("broken", 1.0, alone.BINDER_MIB + 1),
    ]
    lines = alone.report([({"torch": "9.9"}, newest), ({"torch": "9.8"}, lean)]).splitlines()
    assert "- A: torch 9.9." in lines and "- B: torch 9.8." in lines
    assert lines[-3:] == [
        "| small | 12 | 900 | 12 | 500 | yes |",
        f"| large | 40 | {alone.BINDER_MIB + 1} | 40 | {alone.BINDER_MIB} | yes |",
        f"| broken | failed: ValueError: a \\| b |  | 1 | {alone.BINDER_MIB + 1} | no |",
    ]
