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


@pytest.mark.weekly
@pytest.mark.slow
def test_a_chapter_runs_in_an_empty_folder_and_its_memory_is_that_of_its_kernel(tmp_path, monkeypatch):
    """Also where the other Python is named from where the command was given."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    its = "import os; assert os.listdir() == ['chapter.ipynb'] and 'PYTHONPATH' not in os.environ"
    small, _ = alone.peak_mib(os.path.relpath(sys.executable), notebook(tmp_path, its))
    large, _ = alone.peak_mib(sys.executable, notebook(tmp_path, its, f"held = bytearray({HELD} * 2**20); del held"))
    assert small > 0 and HELD * 0.9 < large - small < HELD * 1.1


@pytest.mark.weekly
@pytest.mark.slow
def test_a_chapter_that_fails_says_why_and_is_reported(tmp_path, monkeypatch):
    chapter = notebook(tmp_path, "raise ValueError('no such data')")
    monkeypatch.setattr(alone, "chapters", lambda: [chapter])
    assert alone.main([sys.executable], tmp_path / "report.md") == 1
    text = (tmp_path / "report.md").read_text()
    assert "Edition " in text and "- chapter: inf MiB (ValueError: no such data)" in text
