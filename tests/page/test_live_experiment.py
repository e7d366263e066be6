"""LiveExperiment: stored answers, updates and bounds are the checkpoint's and the study's; measures are Python's."""

import hashlib
import json

import numpy as np
import pytest
import tiny_models
import torch
from javascript import told
from safetensors.torch import load_file

from bookbuilder import explorables as builder
from explainer.models import finetuning, loading
from explainer.page import LiveExperiment, asking, live_experiment
from explainer.page.asking import TASKS, book_checkpoint
from explainer.theory import metrics

WEEKLY = pytest.mark.weekly


def test_what_is_stored_belongs_to_the_study():
    stored = LiveExperiment.stored()
    assert tuple(stored) == TASKS == tuple(LiveExperiment().lessons)
    for name, its in stored.items():
        assert its["order"] == live_experiment._order(name) != sorted(its["order"])
        assert its["bounds"] == live_experiment._bounds(name)
        assert tuple(its["found"]) == live_experiment._SECONDS
        for second, found in its["found"].items():
            assert (found["task"], found["second"], found["scale"], found["n"]) == (name, second, 1, 30)
            assert found["query"] == asking.QUERY[name]
            assert found["repaired"][2] <= min(found["repaired"][:2])
        for bounds in its["bounds"].values():
            assert bounds["floor"] < bounds["ceiling"]


def test_own_query_is_new():
    for name, its in LiveExperiment().lessons.items():
        taken = {x for rows in (its["queries"], *its["curves"].values()) for x, _ in rows}
        assert asking.QUERY[name] not in taken


def require_close(found, stored):
    """Two answers of thirty may turn on the last digits."""
    np.testing.assert_allclose(found["right"], stored["right"], atol=2)
    np.testing.assert_allclose(found["repaired"], stored["repaired"], atol=2)
    np.testing.assert_allclose(found["sim_aou"], stored["sim_aou"], atol=0.02)
    assert found["sim_am_delta"] == pytest.approx(stored["sim_am_delta"], abs=0.01)
    for ours, theirs in zip(found["answers"], stored["answers"], strict=True):
        assert ours[0][1] == pytest.approx(theirs[0][1], abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "second"),
    [("antonyms", "fine-tuned"), *(pytest.param(n, s, marks=WEEKLY) for n in TASKS for s in live_experiment._SECONDS)],
)
def test_stored_answers_are_the_checkpoints(name, second):
    require_close(
        live_experiment._answers(book_checkpoint(), name, second), LiveExperiment.stored()[name]["found"][second]
    )


# The updates


def test_updates_are_the_files_that_are_named():
    entries = json.loads((live_experiment.UPDATES / "updates.json").read_text("utf-8"))
    assert tuple(entries) == TASKS
    for entry in entries.values():
        content = (live_experiment.UPDATES / entry["name"]).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (entry["size"], entry["sha256"])
    assert sum(path.stat().st_size for path in live_experiment.UPDATES.iterdir()) < 1_600_000


def test_factors_are_those_of_the_truncated_update(tmp_path):
    checkpoint = loading.load(tiny_models.save("llama", tmp_path / "llama"), dtype=torch.float64)
    finetuned = finetuning.fine_tune(checkpoint, [[1, 2, 3, 4], [5, 6, 7]], 0.5)
    its, near = live_experiment._factors(finetuned, 2), finetuned.truncated(2)
    product = (its["in"].double() @ its["out"].double()).mT
    expected = [W.flatten(0, 1) for layer in near.update for W in (layer.key_weight, layer.value_weight)]
    assert its["in"].dtype == torch.float16
    for ours, theirs in zip(product, expected, strict=True):
        assert (ours - theirs).norm() < 2e-3 * theirs.norm()


@pytest.mark.slow
def test_stored_update_is_of_the_checkpoints_shape():
    """And it is scaled: twice the update is twice as long."""
    one, two = (live_experiment.update(book_checkpoint(), "plurals", scale) for scale in (1, 2))
    assert two.norm == pytest.approx(2 * one.norm)
    assert 0.1 < one.norm < 2


@WEEKLY
@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_stored_update_is_what_training_gives(name):
    trained = live_experiment._trained(book_checkpoint(), name).truncated(live_experiment._RANK)
    stored = live_experiment.update(book_checkpoint(), name)
    flat = [torch.cat([W.flatten() for layer in its.update for W in (layer[0], layer[2])]) for its in (trained, stored)]
    assert torch.cosine_similarity(*flat, dim=0) > 0.99


# JavaScript

MEASURES = """
import { readFileSync } from "node:fs";
import { simAMDelta, simAOU, tensorsOf } from "#page/live_gpt_core.js";
const { seen, file } = JSON.parse(readFileSync(0, "utf8"));
const tensors = tensorsOf(new Uint8Array(readFileSync(file))), sums = {};
for (const [name, { shape, data }] of Object.entries(tensors))
  sums[name] = [shape, data[0], data.at(-1), data.reduce((a, x) => a + x * x, 0)];
process.stdout.write(JSON.stringify({ aou: simAOU(...seen), am: simAMDelta(...seen), sums }));
"""


def test_measures_and_files_of_the_page_are_those_of_python():
    random = np.random.default_rng(0)
    outputs = torch.tensor(random.normal(size=(3, 5, 4, 6)))
    scores = [torch.tensor(random.normal(size=(3, 4, 2, n))) for n in (2, 3, 4, 5, 2)]
    outputs[2, 1, 2] = outputs[0, 1, 2]  # no change: this query does not count there
    outputs, scores = outputs.float(), [its.float() for its in scores]
    contexts = 1, 101, 1
    for its in scores:  # rounding after a hundred tokens of context, and a change that is small and counts
        its[1, 0] = its[0, 0] * (1 + 100 * torch.finfo(torch.float32).eps)
        its[2, 1] = its[0, 1] * (1 + 100 * torch.finfo(torch.float32).eps)
    seen = [
        [{"outputs": outputs[k, i].tolist(), "scores": scores[i][k].tolist(), "context": contexts[k]} for i in range(5)]
        for k in range(3)
    ]
    file = live_experiment.UPDATES / "past.safetensors"
    found = json.loads(builder.run_module(MEASURES, {"seen": seen, "file": str(file)}))
    np.testing.assert_allclose(found["aou"], metrics.sim_aou(*outputs).nanmean(0), atol=1e-12)
    of = [[its[k] for its in scores] for k in range(3)]
    delta = metrics.sim_am_delta(*of, context_tokens=contexts[1] - contexts[0])
    assert delta[:, 0].isnan().all() and not delta[:, 1:].isnan().any()
    assert found["am"] == pytest.approx(delta.nanmean().item(), abs=1e-12)
    for name, tensor in load_file(file).items():
        flat = tensor.double().flatten()
        shape, first, last, square = found["sums"][name]
        assert shape == list(tensor.shape)
        np.testing.assert_allclose([first, last, square], [flat[0], flat[-1], flat @ flat], rtol=1e-6)


def test_view_says_to_which_choice_its_answers_belong():
    state = LiveExperiment().state()
    patches = [{}, {"second": "shuffled"}, {"scale": 0.5}, {"second": "shuffled", "scale": 0.5}, {"query": "Peru"}]
    nothing = state["found"] | {"scale": 0, "sim_aou": [None] * 30, "sim_am_delta": None}
    patches.append({"found": nothing, "scale": 0})
    belongs, words = told("live_experiment", "second", state, patches)
    assert belongs == [
        [True, "fine-tuned"],
        [False, "shuffled"],
        [False, None],
        [False, "shuffled"],
        [False, None],
        [True, None],
    ]
    right = state["found"]["right"]
    assert f"right are {right[0]} without demonstrations, {right[1]} in context, and {right[2]} when" in words[0]
    assert words[1].startswith("Of an earlier choice: ")
    assert "changes is not defined" in words[5] and "times 0" in words[5]


def test_updates_that_are_not_finished_leave_the_old_ones(tmp_path, monkeypatch):
    """A digest in `updates.json` that is not its file's makes the page refuse the update."""
    folder = tmp_path / "updates"
    folder.mkdir()
    (folder / "updates.json").write_text("old")
    monkeypatch.setattr(live_experiment, "UPDATES", folder)
    monkeypatch.setattr(live_experiment, "book_checkpoint", lambda: None)
    monkeypatch.setattr(live_experiment, "_factors", lambda *_: {"in": torch.ones(1)})
    trained = dict.fromkeys(TASKS[:1])
    monkeypatch.setattr(live_experiment, "_trained", lambda _, name: trained[name])
    with pytest.raises(KeyError):
        live_experiment.store_updates()
    assert [path.name for path in tmp_path.rglob("*")] == ["updates", "updates.json"]
    trained |= dict.fromkeys(TASKS)
    live_experiment.store_updates()
    for entry in json.loads((folder / "updates.json").read_text()).values():
        assert entry["sha256"] == hashlib.sha256((folder / entry["name"]).read_bytes()).hexdigest()
