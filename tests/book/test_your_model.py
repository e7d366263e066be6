"""The page on one's own model: its script is read, and all six commands run in order on a model that learns."""

import json
import re
import shlex

import pytest
from conftest import ROOT

from explainer import commands
from explainer.data import tasks
from explainer_lab import cli

TEXT = (ROOT / "book" / "reference" / "your_model.md").read_text("utf-8")
SCRIPTS = {"explainer": commands, "explainer-lab": cli}
SIX = re.search(r"^## The six$\n\n```bash\n(.*?)\n```", TEXT, re.MULTILINE | re.DOTALL)[1].splitlines()
_, *MORE = re.search(r"^## The other answers$.*?```bash\n(.*?)\n```", TEXT, re.MULTILINE | re.DOTALL)[1].splitlines()
OPTIONS = re.search(r'^O="(.*)"$', TEXT, re.MULTILINE)[1]
SCRIPT, MODELS, DRAWN = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_the_script_writes_a_task_of_three_labels_that_the_commands_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(SCRIPT, {})
    (task,) = tasks.read_file(tmp_path / "my_data" / "tasks.toml")
    data = tasks.load(task, data_dir="my_data")
    assert len(task.labels) == 3 and (len(data.train), len(data.test)) == (80, 160)
    line = re.search(r"A line of .* is `(.*?)`", TEXT)[1]
    assert json.loads(line) in map(json.loads, (tmp_path / "my_data/kinds/train.jsonl").read_text().splitlines())


@pytest.mark.slow
@pytest.mark.weekly  # each command is tested on smaller models
def test_the_six_commands_in_their_order(tmp_path, monkeypatch, capsys):
    """On the two models of the page, of which one was trained to classify in context."""
    monkeypatch.chdir(tmp_path)
    exec(MODELS, {})
    monkeypatch.setenv("EXPLAINER_CACHE", str(tmp_path / "cache"))

    def typed(command, *more):
        script, *words = shlex.split(command.replace("$O", OPTIONS))
        assert SCRIPTS[script].main([*words, *more]) == 0
        return capsys.readouterr()

    models, look, choose, run, publish, verdict = SIX
    both = shlex.split(re.search(r"use `(--model .*?)`", TEXT)[1])
    assert "llama" in typed(models).out
    seen = dict(re.findall(r"^(llama_\d+) .*  (.*)$", typed(look, *both).out, re.MULTILINE))
    assert seen == {"llama_0": "not seen", "llama_400": "yes"}
    tried = typed(choose, *both, "--model", "llama_400", "--lr", "0.01", "0.03", "--seeds", "100", "101").out
    few = [*both, "--epochs", "1", "--lr", re.search(r"chosen: --lr (\S+)", tried)[1], "--seeds", "0", "1"]
    shown = typed(run, *few)
    assert shown.out.count("llama_400-side-k8") == 2 and "llama_400: 2 to compute" in shown.err
    published = typed(publish, *few)
    assert published.out == shown.out and "to compute" not in published.err
    shared, rival, _, study, _, scorecard = MORE
    for command in (shared, rival, study):
        typed(command, *few)
    drawn = typed(verdict).out
    assert drawn.count("weights (cos ΔW)  ") == 3
    assert "\nllama_400: For new rule: learned, new rule: like training, run `explainer-lab new-rule" in drawn
    answers = drawn.split("carried by one vector\n")
    assert [line.split()[0] for line in answers[1].splitlines()[1:4]] == [
        "llama_0",
        "llama_400",
        "SmolLM2-135M-Instruct",
    ]
    for answer in answers:
        assert re.search(r"^llama_0: .* no learning in context is seen", answer, re.MULTILINE)
    assert "\nllama_400: on side, not tasks of the paper; demonstrations add " in typed(scorecard).out
    assert (tmp_path / "verdict.html").stat().st_size > 10**6
    exec(DRAWN, names := {})
    found = names["five_rows"]("mine")
    assert list(found) == ["llama_0", "llama_400"]
    for rows in found.values():
        assert list(rows) == ["like training", "on these examples", "carried by one vector"]
