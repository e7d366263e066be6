"""LiveExperiment, LiveSweep, LivePatch, LiveVector: what is stored is the checkpoint's and the study's, and said so."""

import hashlib
import json

import numpy as np
import pytest
import tiny_models
import torch
from conftest import ROOT
from javascript import told
from safetensors.torch import load_file
from scipy.stats import binomtest

from bookbuilder.explorables import run_module
from explainer.data import tasks
from explainer.models import finetuning, interventions, loading
from explainer.page import LiveExperiment, LivePatch, LiveSweep, LiveVector, live_base, live_experiment, live_tasks
from explainer.page.live_base import MORE_TASKS, TASKS, book_checkpoint
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
            assert found["query"] == live_base.QUERY[name]
            assert found["repaired"][2] <= min(found["repaired"][:2])
        for bounds in its["bounds"].values():
            assert bounds["floor"] < bounds["ceiling"]


def test_own_query_is_new():
    for name, its in LiveExperiment().lessons.items():
        taken = {x for rows in (its["queries"], *its["curves"].values()) for x, _ in rows}
        assert live_base.QUERY[name] not in taken


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


MEASURES = """
import { readFileSync } from "node:fs";
import { simAMDelta, simAOU, tensorsOf } from "#page/live_model.js";
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
    found = json.loads(run_module(MEASURES, {"seen": seen, "file": str(file)}))
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


# LiveSweep: stored counts are the checkpoint's, its texts the book's, its intervals Wilson's.


def test_texts_are_those_of_the_controls():
    stored = LiveSweep.stored()
    assert tuple(stored) == MORE_TASKS
    for name, its in stored.items():
        assert live_tasks._lesson(name) == {part: its[part] for part in ("pattern", "curves", "queries")}
        asked = {x for x, _ in its["queries"]}
        assert len(asked) == 30 and not asked & {x for x, _ in its["curves"]["right"]}
        assert sorted(y for _, y in its["curves"]["shuffled"]) == sorted(y for _, y in its["curves"]["right"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plurals", *(pytest.param(n, marks=WEEKLY) for n in MORE_TASKS if n != "plurals")])
def test_stored_counts_are_the_checkpoints(name):
    """One query of thirty may turn on the last digit."""
    its = LiveSweep.stored()[name]
    for kind, ks in (("right", (0, 3)), ("shuffled", (3,)), ("foreign", (1,))):
        found = live_tasks._counts(book_checkpoint(), its, kind, ks)
        assert all(abs(x - its["counts"][kind][k]) <= 1 for x, k in zip(found, ks, strict=True))


def test_chinese_words_are_translated_as_well_after_shuffled_answers():
    """The laboratory says how many stored answers are right, and that right and shuffled pairs do not differ much."""
    right, shuffled = (LiveSweep.stored()["chinese"]["counts"][kind][-1] for kind in ("right", "shuffled"))
    said = (ROOT / "book" / "reference" / "laboratory.md").read_text("utf-8")
    assert f"translates {right} of 30, and also {shuffled} of 30 when" in said
    assert abs(right - shuffled) / 30 < 0.1


WILSON = """
import { readFileSync } from "node:fs";
import sweep from "#page/live_sweep.js";
import { wilson } from "#page/live_parts.js";
const { cases, states } = JSON.parse(readFileSync(0, "utf8"));
const found = { intervals: cases.map(([x, n]) => wilson(x, n)), told: states.map(sweep.describe) };
process.stdout.write(JSON.stringify(found));
"""


def test_intervals_are_wilsons_and_the_last_counts_are_told():
    cases = [(0, 30), (1, 10), (17, 30), (30, 30)]
    result = json.loads(run_module(WILSON, {"cases": cases, "states": [LiveSweep().state()]}))
    for (x, n), interval in zip(cases, result["intervals"], strict=True):
        known = binomtest(x, n).proportion_ci(0.95, method="wilson")
        assert interval == pytest.approx([known.low, known.high], abs=1e-6)
    last = {kind: its[-1] for kind, its in LiveSweep.stored()["capitals"]["counts"].items()}
    assert f"After 16 right demonstrations it writes {last['right']} (" in result["told"][0]
    assert f"shuffled answers {last['shuffled']}, and after 16 of another task {last['foreign']}." in result["told"][0]


# LivePatch: stored answers are the checkpoint's, shares the study's; the view says to what its answers belong.


def test_what_is_stored_belongs_to_the_study_and_to_the_texts():
    stored = LivePatch.stored()
    assert tuple(stored) == TASKS == tuple(LivePatch().lessons)
    for name, its in stored.items():
        assert its["study"] == live_tasks._shares_of_study("causal-tests", name, live_tasks._OF_PATCH)
        assert its["study"]["foreign"] < its["study"]["mean"] < its["study"]["icl"]
        assert [int(n) for n in its["found"]] == list(live_tasks._DONORS)
        for n, found in its["found"].items():
            assert (found["task"], str(found["n"]), found["of"]) == (name, n, 22)
            assert found["query"] == live_base.QUERY[name]
            assert found["error"] < 1e-3


def require_close_patches(found, stored):
    """An answer of twenty-two may turn on the last digits."""
    for ours, theirs in zip((*found["right"], found["carried"]), (*stored["right"], stored["carried"]), strict=True):
        assert abs(ours - theirs) <= 1
    assert found["error"] < 1e-3
    for ours, theirs in zip(found["answers"], stored["answers"], strict=True):
        assert ours[0][1] == pytest.approx(theirs[0][1], abs=0.02)
    assert found["answers"][1] == [[token, pytest.approx(p, abs=1e-3)] for token, p in found["answers"][2]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n"),
    [("plurals", 2), *(pytest.param(name, n, marks=WEEKLY) for name in TASKS for n in live_tasks._DONORS)],
)
def test_live_patch_stored_answers_are_the_checkpoints(name, n):
    require_close_patches(live_tasks._patched(book_checkpoint(), name, n), LivePatch.stored()[name]["found"][str(n)])


def test_view_of_patches_says_to_which_choice_its_answers_belong():
    state = LivePatch().state()
    patches = [{}, {"donors": 2}, {"query": "Peru"}, {"found": state["found"] | {"error": 0, "n": 1}, "donors": 1}]
    belongs, words = told("live_patch", "n", state, patches)
    assert belongs == [[True, 8], [False, 2], [False, None], [True, 1]]
    zsl, icl, moved = state["found"]["right"]
    assert f"right for {zsl} without demonstrations, {icl} with them, and {moved} under the mean patch of 8" in words[0]
    assert words[1].startswith("Of an earlier choice: ")
    assert "the patch of another query" in words[3] and "more than 0." in words[3]


# LiveVector: stored answers are the checkpoint's, shares the study's; the view reads lines, one for each pair.

PATTERN = ["", " ->"]
PAIRS = [["a", "b"], ["c", "d"], ["e", "f"]]


def test_what_is_stored_belongs_to_the_study_and_to_the_demonstrations():
    stored = LiveVector.stored()
    assert tuple(stored) == TASKS
    for name, its in stored.items():
        assert its["study"] == live_tasks._shares_of_study("rival", name, live_tasks._OF_VECTOR)
        assert its["study"]["shuffled"] < its["study"]["vector"] < its["study"]["icl"]
        shown = tasks.demonstrations(tasks.load(name), live_tasks._DEMONSTRATIONS, live_tasks.SEED)
        pairs = [[one.fields["word"], one.answer] for one in shown]
        assert its["found"]["demonstrations"] == pairs and its["found"]["query"] == its["query"]
        assert its["query"] not in [x for x, _ in pairs]


def test_the_vector_is_the_mean_of_what_the_others_change(checkpoint):
    """Each demonstration is asked after all the others; added to all layers but one it changes nothing of that one."""
    changes = []
    for i, (x, _) in enumerate(PAIRS):
        prefix = live_base.context(checkpoint, PATTERN, [pair for pair in PAIRS if pair[0] != PAIRS[i][0]])
        after, without = (of(checkpoint, prefix, [f"{x} ->"]).run().stream for of in
                          (interventions.after_context, interventions.without_context))  # fmt: skip
        changes.append((after - without)[0])
    vectors = live_tasks._vectors(checkpoint, PATTERN, PAIRS)
    torch.testing.assert_close(vectors, sum(changes) / 3)
    empty = interventions.without_context(checkpoint, live_base.context(checkpoint, PATTERN, PAIRS), ["g ->"])
    for number, logits in enumerate(live_tasks._plus_each(empty, vectors)):
        edit = [interventions.at_last(empty.layers[number].block, vectors[number].add)]
        torch.testing.assert_close(logits, empty.run(edit).logits[0], atol=1e-4, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["plurals", *(pytest.param(name, marks=WEEKLY) for name in TASKS if name != "plurals")]
)
def test_live_vector_stored_answers_are_the_checkpoints(name):
    its = LiveVector.stored()[name]
    found = live_tasks._with_vectors(book_checkpoint(), PATTERN, its["found"]["demonstrations"], its["query"])
    for ours, theirs in zip(found["p"], its["found"]["p"], strict=True):
        assert ours == pytest.approx(theirs, abs=1e-3)
    assert [top[0][0] for top in found["layers"]] == [top[0][0] for top in its["found"]["layers"]]


def test_lines_are_read_as_demonstrations():
    refused = ["a -> b", "a -> b\nc", "a -> b\n -> c", "\n".join(["a -> b"] * 17), "a -> b -> c\nd -> e"]
    lessons = ["a -> b\n\n  c d->e ", *refused]
    script = """
import { readFileSync } from "node:fs";
import { demonstrationsOf } from "#page/live_vector.js";
process.stdout.write(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(demonstrationsOf)));
"""
    assert json.loads(run_module(script, lessons)) == [[["a", "b"], ["c d", "e"]], *[None] * 5]


def test_view_says_to_which_demonstrations_its_answers_belong():
    widget = LiveVector()
    state = widget.state()
    spaced = state["lesson"].replace(" -> ", "->") + "\n"
    belongs, words = told("live_vector", "query", state, [{}, {"lesson": spaced}, {"query": "Peru"}, {"layer": 1}])
    assert belongs == [[True, "bus"], [True, "bus"], [False, None], [True, "bus"]]
    own = state["found"]["p"][2]
    assert words[0].endswith(f"The vector does most after layer {own.index(max(own)) + 1}: {100 * max(own):.0f} %.")
    assert words[2].startswith("Of an earlier text: ") and "added after layer 1, it expects" in words[3]
