"""The code that README and prose pages show runs as it stands."""

import json
import re

from conftest import ROOT

PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)


def _blocks(name):
    blocks = PYTHON.findall((ROOT / name).read_text("utf8"))
    assert blocks, f"{name} shows no Python"
    return blocks


def test_readme_code_runs():
    for block in _blocks("README.md"):
        exec(block, {})


def test_own_task_of_the_reproduction_page(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "my_data" / "tone"
    folder.mkdir(parents=True)
    row = json.dumps({"text": "Could you please send it?", "label": 1}) + "\n"
    for split in ("train", "test"):
        (folder / f"{split}.jsonl").write_text(row)
    monkeypatch.chdir(tmp_path)
    for block in _blocks("book/reference/reproduce.md"):
        exec(block, {})
    assert capsys.readouterr().out == "Message: Could you please send it?\nTone: polite\n"
