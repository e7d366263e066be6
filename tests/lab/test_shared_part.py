"""What contexts and trainings share: both swaps have every corner, and what is put in or taken out is what it says."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from toy_study import ALIKE, column, rows, with_labels

from explainer.compare import comparison
from explainer.compare.observations import Observed
from explainer.data import tasks
from explainer.models import finetuning, interventions, scoring
from explainer.theory import metrics
from explainer_lab import shared_part
from explainer_lab.lab_lessons import PairedPasses
from explainer_lab.on_checkpoint import one_label_accuracy
from explainer_lab.shared_part import CONTEXTS, SharedPart

N, K = 5, 3


def draw(directory, **changes):
    usual = {"checkpoint": directory, "tasks": "capitals/plurals", "seed": 0, "k": K, "n_queries": N, "lr": 0.05}
    return SharedPart.of(**usual | {"epochs": 2} | changes)


def computed(setting, **given):
    return SharedPart(**given).compute(setting, progress=False).tables


@pytest.fixture(scope="module")
def tables(directory):
    return computed(draw(directory))


@pytest.fixture(scope="module")
def task(directory, checkpoint):
    return shared_part._task(checkpoint, tasks.load, draw(directory), "plurals")


def test_a_single_task_has_another_one_beside_it_in_the_context(directory, checkpoint):
    alone = draw(directory, tasks="plurals", lessons="few")
    found, both = computed(alone), computed(draw(directory, lessons="few"))
    wanted = column(both["layers"], "context_foreign", task="plurals")
    assert found["layers"]["context_foreign"] == pytest.approx(wanted, abs=1e-4)
    assert all(map(math.isnan, found["layers"]["training_foreign"]))
    assert found["settings"]["note"] == "", "nothing is missing"
    parts = [SharedPart().parts(each)["data"] for each in (alone, draw(directory))]
    assert parts[0] == parts[1] and set(parts[0]) == {"plurals", "capitals"}


@pytest.fixture(scope="module")
def trained(checkpoint, task):
    """All trainings, one after the other by the plain code."""
    found = {}
    for name in (*CONTEXTS, "capitals"):
        once = finetuning.training_ids(checkpoint, *task.lesson(name))
        found[name] = finetuning.fine_tune(checkpoint, finetuning.repeat_epochs(once, 2, 0), 0.05)
    return found


def outputs(task, model, prefix):
    return task.observed(model, prefix).outputs


def test_pairs_are_those_of_the_measures(tables, task, checkpoint, trained):
    zsl = outputs(task, checkpoint, scoring.encode(checkpoint, ""))
    icl = outputs(task, checkpoint, task.context("shuffled"))
    with trained["other"].applied() as tuned:
        ft = outputs(task, tuned, scoring.encode(tuned, ""))
    (row,) = rows(tables["pairs"], task="plurals", a_kind="ICL", a_lesson="shuffled", b_kind="FT", b_lesson="other")
    for name in ("sim_aou", "sim_aou_tangent_uncentred", "sim_aou_residual"):
        assert row[name] == pytest.approx(getattr(metrics, name)(zsl, icl, ft).nanmean().item(), abs=2e-3), name


def test_accuracies_of_a_setting_are_means_over_its_tasks(directory, checkpoint):
    setting = draw(directory, tasks="toy/plurals", seed=2, n_queries=8, k=4, lr=1e-3, lessons="own")
    toy = with_labels("no", "up")
    tables = computed(setting, data={"toy": toy})
    for name, its in {"zsl": ("ZSL", "none"), "icl": ("ICL", "own"), "ft": ("FT", "own")}.items():
        of_tasks = [row["accuracy"] for row in rows(tables["changes"], kind=its[0], lesson=its[1])]
        assert len(of_tasks) == 2 and tables["settings"][f"{name}_accuracy"] == np.mean(of_tasks)
    free = rows(tables["changes"], kind="ZSL", task="plurals")[0]["accuracy"]
    asked = comparison.ComparisonSetting(directory, "toy", 2, 4, lr=1e-3, n_queries=8, split="report")
    of_toy = one_label_accuracy(toy, comparison.draw_queries(toy, asked), 0.0, "report")
    assert 0 < of_toy < 1 and tables["settings"]["one_label_accuracy"] == np.mean([of_toy, free])
    assert tables["settings"]["note"] == "", "no training was lost"


def test_layers_have_the_corners_and_what_is_special(tables, task, checkpoint, trained):
    """The direct estimate, computed once more with other code."""

    def unit(h):
        h = h.double().numpy()
        return h / np.linalg.norm(h, axis=-1, keepdims=True)

    c = [unit(outputs(task, checkpoint, task.context(name))) for name in ("own", "other")]
    f = []
    for name in ("own", "other"):
        with trained[name].applied() as tuned:
            f.append(unit(outputs(task, tuned, scoring.encode(tuned, ""))))
    c, f = c[0] - c[1], f[0] - f[1]
    cosine = (c * f).sum(-1) / np.linalg.norm(c, axis=-1) / np.linalg.norm(f, axis=-1)
    found = rows(tables["layers"], task="plurals")
    assert [row["examples"] for row in found][1:] == pytest.approx(cosine.mean(0)[1:], abs=2e-3)
    corners = {
        "training_other": ("own", "other"),
        "both_other": ("other", "other"),
        "context_nonsense": ("nonsense", "own"),
        "training_foreign": ("own", "capitals"),
        "context_foreign": ("capitals", "own"),
    }
    for name, (one, two) in corners.items():
        (pair,) = rows(tables["pairs"], task="plurals", a_kind="ICL", a_lesson=one, b_kind="FT", b_lesson=two)
        for end, measure in (("", "sim_aou"), ("_noise", "sim_aou_noise")):
            assert np.nanmean([row[name + end] for row in found]) == pytest.approx(pair[measure]), name


def test_another_task_is_the_mean_over_all_others(directory, checkpoint):
    found = computed(draw(directory, tasks="past/plurals/capitals", epochs=1))
    of_own = rows(found["pairs"], task="past", a_kind="ICL", a_lesson="own", b_kind="FT")
    of_pairs = [row["sim_aou"] for row in of_own if row["b_lesson"] in ("plurals", "capitals")]
    assert len(of_pairs) == 2
    assert np.nanmean(column(found["layers"], "training_foreign", task="past")) == pytest.approx(
        np.mean(of_pairs), abs=1e-6
    )


def of(tables, intervention):
    return np.array(column(tables["queries"], "log_prob", task="plurals", intervention=intervention))


@pytest.fixture(scope="module")
def passes(task, checkpoint):
    prompts = task.prompts()
    after = interventions.after_context(checkpoint, task.context("own"), prompts)
    return after, interventions.without_context(checkpoint, scoring.encode(checkpoint, ""), prompts)


def log_probs(task, logits):
    tokens = scoring.distinguishing_tokens(task.checkpoint, task.data.task, task.queries)
    return logits.float().log_softmax(-1)[range(N), tokens].numpy()


def test_parts_are_put_in_and_taken_out_in_both_directions(tables, task, passes, trained):
    after, without = passes
    icl, zsl, ft = after.run(), without.run(), {}
    for name, state in trained.items():
        with state.applied():
            ft[name] = without.run()
    other = interventions.after_context(task.checkpoint, task.context("other"), task.prompts()).run()
    c, f = icl.attention - zsl.attention, ft["own"].attention - zsl.attention

    def along(x, y):
        return (x * y).sum(-1, keepdim=True) / (y * y).sum(-1, keepdim=True) * y

    held = {
        "along_ft": zsl.attention + along(c, f),
        "across_ft": icl.attention - along(c, f),
        "along_ft_other": zsl.attention + along(c, ft["other"].attention - zsl.attention),
        "across_ft_of_next": icl.attention - along(c, f.roll(1, 0)),
        "along_ft_factor_of_next": zsl.attention + ((c * f).sum(-1, True) / (f * f).sum(-1, True)).roll(1, 0) * f,
        **{
            f"along_ft_{name}": zsl.attention + along(c, ft[lesson].attention - zsl.attention)
            for name, lesson in {"shuffled": "shuffled", "nonsense": "nonsense", "foreign": "capitals"}.items()
        },
        "ft_along_icl": zsl.attention + along(f, c),
        "ft_across_icl": ft["own"].attention - along(f, c),
        "ft_across_icl_other": ft["own"].attention - along(f, other.attention - zsl.attention),
    }
    for name, values in held.items():
        pairs = zip(without.layers, values.unbind(1), strict=True)
        logits = without.run([interventions.at_last(layer.output, lambda _, v=v: v) for layer, v in pairs]).logits
        np.testing.assert_allclose(of(tables, name), log_probs(task, logits), atol=3e-3, err_msg=name)
    for name, state in (("icl", icl), ("zsl", zsl), ("ft", ft["own"]), ("ft_other", ft["other"])):
        np.testing.assert_allclose(of(tables, name), log_probs(task, state.logits), atol=3e-3, err_msg=name)


def test_the_passes_are_those_whose_outputs_are_compared(task, checkpoint, passes):
    for one, prefix in zip(passes, (task.context("own"), scoring.encode(checkpoint, "")), strict=True):
        torch.testing.assert_close(one.run().attention, outputs(task, checkpoint, prefix), atol=1e-4, rtol=1e-4)


def test_labels_that_begin_alike_are_judged_where_they_part(directory, checkpoint):
    """What is recorded of the contexts, what is put in, and the answer are those of one token."""
    setting = draw(directory, tasks="toy")
    task = shared_part._Task(setting, checkpoint, ALIKE, {}, None, tasks.queries(ALIKE, N, 0))
    asked = PairedPasses.of(checkpoint, task.context("own"), ALIKE.task, task.queries)
    seen = task.observed(checkpoint, task.context("own"))
    torch.testing.assert_close(asked.icl.attention, seen.outputs, atol=1e-4, rtol=1e-4)
    assert asked.answers.tolist() == [checkpoint.tokenize(f" {query.answer}")[3] for query in task.queries]


def test_no_two_purposes_tasks_or_seeds_share_their_random_numbers(directory):
    of = product([draw(directory, seed=seed) for seed in (0, 1)], (1, 2), ("plurals", "past"))
    assert len({setting.generator(number, name).initial_seed() for setting, number, name in of}) == 8


def test_random_parts_have_the_cosine_and_the_size(task):
    generator = torch.Generator().manual_seed(0)
    c, f = torch.randn(2, N, 3, 16, generator=generator, dtype=torch.float64)
    parts = dict(shared_part._parts(c, {"own": f}, generator, "ft"))
    wanted = torch.nn.functional.cosine_similarity(c, f, dim=-1).abs()
    for part in parts["near"]:
        torch.testing.assert_close(torch.nn.functional.cosine_similarity(c, part, dim=-1).abs(), wanted)
    for part in parts["random"]:
        torch.testing.assert_close(part.norm(dim=-1), parts["ft"][0].norm(dim=-1))


def test_changes_less_a_component_have_none_along_the_direction():
    zsl, seen, direction = torch.randn(3, 2, 4, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    before, changed = (Observed(*[None] * 2, outputs, *[None] * 4) for outputs in (zsl, seen))
    (found,) = shared_part._without(before, {("ICL", "own"): changed}, direction).values()
    torch.testing.assert_close(((found.outputs - zsl) * direction).sum(-1), torch.zeros(2, 4).double())


def test_layer_causal_descent_is_as_long_as_descent(directory, checkpoint):
    its = draw(directory, tasks="plurals", layer_causal_lr=1e-3)
    of_tasks = [shared_part._task(checkpoint, tasks.load, its, "plurals")]
    ((state, *_),) = (list(one.values()) for one in shared_part._train(checkpoint, of_tasks, its, progress=False))
    sequences = its.sequences(checkpoint, *of_tasks[0].lesson("own"))
    descent = finetuning.fine_tune(checkpoint, sequences, its.lr)
    alone = finetuning.fine_tune(checkpoint, sequences, 1e-3, layer_causal=True)
    assert state.norm == pytest.approx(descent.norm, rel=1e-4)
    factor = descent.norm / alone.norm
    torch.testing.assert_close(
        state.update[0].value_weight, factor * alone.update[0].value_weight, atol=1e-6, rtol=1e-3
    )
