"""The page on one's own model: every command is one, and all six run in order on a model that learns in context."""

import json
import re
import shlex
from itertools import islice

import pytest
from conftest import ROOT

from explainer import commands
from explainer.data import tasks
from explainer_lab import cli, in_context_llama, regression_words

TEXT = (ROOT / "book" / "reference" / "your_model.md").read_text("utf-8")
SCRIPTS = {"explainer": commands, "explainer-lab": cli}
SIX = re.search(r"^## The six$\n\n```bash\n(.*?)\n```", TEXT, re.MULTILINE | re.DOTALL)[1].splitlines()
_, *MORE = re.search(r"^## The other answers$.*?```bash\n(.*?)\n```", TEXT, re.MULTILINE | re.DOTALL)[1].splitlines()
OPTIONS = re.search(r'^O="(.*)"$', TEXT, re.MULTILINE)[1]
SCRIPT, DRAWN = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_the_script_writes_a_task_of_three_labels_that_the_commands_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(SCRIPT, {})
    (task,) = tasks.read_file(tmp_path / "my_data" / "tasks.toml")
    data = tasks.load(task, data_dir="my_data")
    assert len(task.labels) == 3 and (len(data.train), len(data.test)) == (80, 160)
    line = re.search(r"A line of .* is `(.*?)`", TEXT)[1]
    assert json.loads(line) in map(json.loads, (tmp_path / "my_data/kinds/train.jsonl").read_text().splitlines())


@pytest.mark.slow
def test_the_six_commands_in_their_order(tmp_path, monkeypatch, capsys):
    """On a small Llama that was trained to classify in context, and a direction of its own."""
    steps = in_context_llama.train(in_context_llama.LlamaSetting(), progress=False)
    ((_, model),) = islice(steps, 4, 5)
    in_context_llama.save(model, tmp_path / "my_model")
    pool = regression_words.data(regression_words.directions(3)[0]).train
    folder = tmp_path / "my_data" / "side"
    folder.mkdir(parents=True)
    for split, examples in (("train", pool[:43]), ("test", pool[43:])):
        rows = [{"word": one.fields["word"], "label": one.label} for one in examples]
        (folder / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "my_data" / "tasks.toml").write_text('[side]\ntemplate = "{word}"\nlabels = ["minus", "plus"]\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EXPLAINER_MODEL", "my_model")
    monkeypatch.setenv("EXPLAINER_CACHE", str(tmp_path / "cache"))

    def typed(command, *more):
        script, *words = shlex.split(command.replace("$O", OPTIONS))
        assert SCRIPTS[script].main([*words, *more]) == 0
        return capsys.readouterr()

    models, look, choose, run, publish, verdict = SIX
    assert "llama" in typed(models).out
    assert typed(look).out.rstrip().endswith("yes")
    chosen = re.search(r"chosen: --lr (\S+)", typed(choose, "--lr", "0.01", "0.03", "--seeds", "100", "101").out)[1]
    few = ["--lr", chosen, "--seeds", "0", "1"]
    shown = typed(run, *few)
    assert shown.out.count("my_model-side-k8") == 2 and "my_model: 2 to compute" in shown.err
    published = typed(publish, *few)
    assert published.out == shown.out and "to compute" not in published.err
    shared, rival, _, study, _, scorecard = MORE
    for command in (shared, rival, study):
        typed(command, *few)
    drawn = typed(verdict).out
    assert drawn.count("weights (cos ΔW)  ") == 2
    assert (
        "\nmy_model: For new rule: learned, new rule: like training, run `explainer-lab new-rule --model my_model"
        in drawn
    )
    assert [line.split()[0] for line in drawn.split("carried by one vector\n")[1].splitlines()[1:3]] == [
        "my_model", "SmolLM2-135M-Instruct"
    ]  # fmt: skip
    assert typed(scorecard).out.startswith("my_model: on side, not tasks of the paper; demonstrations add ")
    assert (tmp_path / "verdict.html").stat().st_size > 10**6
    names = {}
    exec(DRAWN, names)
    assert "my_model" in names["own"]
