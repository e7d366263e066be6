"""compare.comparison, compare.controls: the numbers of a setting are right, and controls change one thing."""

from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
import tiny_models
import torch
from toy_study import ALIKE, DATA, LABELS, TOY, N, compute, setting

from explainer.compare import comparison, controls
from explainer.compare.comparison import draw_queries, prepare, run_comparison
from explainer.compare.controls import CONTROLS, LESSONS
from explainer.compare.observations import Observed
from explainer.data import tasks
from explainer.data.files import rounded
from explainer.errors import ExperimentError, TaskError
from explainer.models import finetuning, loading, recording, scoring
from explainer.theory import metrics

# --- one setting --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result(directory, checkpoint):
    return compute(checkpoint, setting(directory))


def recorded(checkpoint, data, suffix=""):
    """ZSL, ICL and FT records, FT's queries of the training, and the context, from the modules below."""
    demonstrations, training = tasks.demonstrations(data, 3, 0), []
    ids, _ = scoring.context_ids(checkpoint, data.task, demonstrations)
    prompts = [data.task.prompt(query) + suffix for query in tasks.queries(data, N, 0)]
    sequences = finetuning.training_ids(checkpoint, data.task, demonstrations)
    keep = lambda _, queries: training.append(queries.clone())  # noqa: E731
    finetuned = finetuning.fine_tune(checkpoint, sequences, 1e-3, on_queries=keep)

    def record(prefix):
        labels = () if suffix else data.task.labels
        return tiny_models.record(checkpoint, scoring.encode(checkpoint, prefix), prompts, labels)

    first = [checkpoint.first_token_id]
    zsl, icl = record(first), record(ids)
    with finetuned.applied():
        return zsl, icl, record(first), training, ids


@pytest.fixture(scope="module")
def by_hand(checkpoint):
    """Records of the first setting, and its labels."""
    return *recorded(checkpoint, DATA), np.array([query.label for query in tasks.queries(DATA, N, 0)])


def predictions(result, *states):
    """What a result says of the predictions in some states, all by default."""
    starts = tuple(f"{state}_" for state in states or ("zsl", "icl", "ft"))
    return {name: result["queries"][name] for name in result["queries"] if name.startswith(starts)}


def test_predictions_are_those_of_scoring(result, by_hand):
    labels = by_hand[-1]
    queries, settings = result["queries"], result["settings"]
    assert queries["label"] == labels.tolist() and queries["query"] == list(range(N))
    assert queries["query_id"] == [comparison.query_id(query) for query in tasks.queries(DATA, N, 0)]
    for state, records in zip(("zsl", "icl", "ft"), by_hand, strict=False):
        np.testing.assert_allclose(queries[f"{state}_log_probs"], records.log_probs, rtol=1e-3)
        assert queries[f"{state}_correct"] == (records.log_probs.argmax(1) == labels).tolist()
        assert settings[f"{state}_accuracy"] == pytest.approx(np.mean(queries[f"{state}_correct"]), abs=1e-4)
        assert {f"{state}_calibrated_accuracy", f"{state}_auc"} <= settings.keys()


def test_a_query_has_the_same_id_whichever_seed_draws_it(directory):
    ids = [
        {comparison.query_id(query) for query in comparison.draw_queries(DATA, one)}
        for one in (setting(directory, seed=seed, n_queries=len(DATA.test)) for seed in (0, 1))
    ]
    assert ids[0] == ids[1] and len(ids[0]) == len(DATA.test)


def test_a_name_that_is_read_tells_two_checkpoints_of_one_name_apart():
    assert setting("owner/model@main", split="report").slug == f"owner-model-main-toy-k3-lr0.001-n{N}-seed0-report"
    assert setting("seed1/last").slug == f"seed1-last-toy-k3-lr0.001-n{N}-seed0" != setting("seed2/last").slug


def test_accuracies_are_raw_and_calibrated_by_the_batch():
    log_probs = np.array([[-1.0, -2.0], [-1.0, -1.2], [-1.0, -1.4], [-1.0, -1.9]])  # differences 1, .2, .4, .9
    observed = Observed(np.array([True, False, False, True]), log_probs, *[None] * 4)
    row = observed.accuracy_measures([0, 1, 1, 0])
    assert row["accuracy"] == 0.5
    assert row["calibrated_accuracy"] == 1  # less the mean, 0.625
    assert row["auc"] == 1
    assert "per_token_accuracy" not in row
    longer = replace(observed, label_tokens=np.array([[1, 2]] * 4)).accuracy_measures([0, 1, 1, 0])
    assert longer == row | {"per_token_accuracy": 0.75}  # means -1 and -1, -.6, -.7, -.95: all but the last
    alike = replace(observed, label_tokens=np.array([[2, 2]] * 4)).accuracy_measures([0, 1, 1, 0])
    assert alike == row


def numbers(values):
    """NaN where a value does not exist."""
    return np.array([np.nan if value is None else value for value in values])


def test_similarities_are_those_of_the_metrics(result, by_hand):
    zsl, icl, ft, training, ids, _ = by_hand
    z, i, f = zsl.outputs, icl.outputs, ft.outputs
    expected = {
        "sim_aou": metrics.sim_aou(z, i, f),
        "sim_aou_raw": metrics.sim_aou(z, i, f, normalize=False),
        "sim_aou_noise": metrics.normalised_noise_value(z, i, f),
        "sim_aou_isotropic": metrics.sim_aou(z, i, metrics.ft_with_random_directions(z, f, 0)),
        "sim_aou_permuted": metrics.sim_aou(z, i, metrics.ft_with_permuted_updates(z, f, 0)),
        "sim_aou_uniform": metrics.uniform_floor(z, i, 0),
        "sim_aou_tangent": metrics.sim_aou_tangent(z, i, f),
        "sim_aou_tangent_uncentred": metrics.sim_aou_tangent_uncentred(z, i, f),
        "sim_aou_residual": metrics.sim_aou_residual(z, i, f),
        "sim_aou_residual_permuted": metrics.sim_aou_residual(z, i, metrics.ft_with_permuted_updates(z, f, 0)),
        "sim_am": metrics.sim_am(icl.own_scores, ft.own_scores).mean(-1),
        "sim_am_zsl": metrics.sim_am(icl.own_scores, zsl.own_scores).mean(-1),
        "sim_am_delta": metrics.sim_am_delta(zsl.own_scores, icl.own_scores, ft.own_scores, len(ids)).nanmean(-1),
    }
    for name, values in expected.items():
        layers, there = numbers(result["layers"][name]), values.isfinite().any(0)
        assert there.tolist() == [name != "sim_am_delta", *[True] * (len(layers) - 1)], "noise in the first layer"
        np.testing.assert_allclose(layers, values.nanmean(0), atol=1e-4, err_msg=name)
        np.testing.assert_allclose(result["queries"][name], values.nanmean(1), atol=1e-4, err_msg=name)
        assert result["settings"][name] == pytest.approx(values.nanmean().item(), abs=1e-4)
    sequences = [s[1:] for s in _training_ids(by_hand)]
    m_icl, m_ft, at = [], [], 1
    for t, tokens in enumerate(sequences):
        assert ids[at : at + len(tokens)] == tokens
        m_icl.append(icl.context_scores[..., at : at + len(tokens)].sum(2))
        m_ft.append(torch.stack([(training[t][:, 1:] * q[:, None]).sum(-1) for q in ft.queries]))
        at += len(tokens) + 1  # the separator
    assert at == len(ids)
    m_icl, m_ft = torch.cat(m_icl, -1), torch.cat(m_ft, -1)
    tau = metrics.kendall_training_tokens(m_icl, m_ft)
    np.testing.assert_allclose(result["layers"]["kendall_tau_b"], tau.mean(0), atol=2e-3)
    assert abs(tau.mean()) > 0.01, "an agreement of zero would not tell one pairing of tokens from another"


def test_scores_that_are_alike_agree_on_tokens_and_examples():
    """124 tokens of 8 examples."""
    scores = torch.randn(1, 2, 170, generator=torch.Generator().manual_seed(0))
    spans = [(2 + 20 * e, 12 + e) for e in range(8)]
    training = [torch.nn.functional.pad(scores[0, :, start : start + n, None], (0, 0, 1, 0)) for start, n in spans]
    icl, ft = SimpleNamespace(context_scores=scores), SimpleNamespace(queries=torch.ones(1, 2, 1))
    found = comparison._of_training_tokens(icl, ft, training, spans)
    names = "kendall_tau_b", "kendall_tau_a", "example_tau_b", "example_mean_tau_b"
    assert {name: values.unique().tolist() for name, values in found.items()} == {name: [1] for name in names}


def _training_ids(by_hand):
    ids = by_hand[4]
    newline = [i for i in range(1, len(ids)) if ids[i] == ids[-1]]
    # Every demonstration has two lines and ends with the separator.
    ends = newline[1::2]
    return [[None, *ids[a:b]] for a, b in zip([1, *(e + 1 for e in ends)], ends, strict=False)]


def test_fine_tuning_is_told(result, checkpoint):
    demonstrations = tasks.demonstrations(DATA, 3, 0)
    finetuned = finetuning.fine_tune(checkpoint, finetuning.training_ids(checkpoint, TOY, demonstrations), 1e-3)
    told = result["settings"] | result["layers"]
    np.testing.assert_allclose(told["losses"], finetuned.losses, rtol=1e-3)
    np.testing.assert_allclose(
        told["update_norm_values"], [d.value_weight.norm().item() for d in finetuned.update], rtol=1e-3
    )
    assert told["diverged_at"] is None
    assert told["note"] == "" or told["note"].startswith("FT repairs none")


def test_the_checkpoint_is_left_as_it_was(directory, checkpoint):
    before = {name: p.clone() for name, p in checkpoint.model.named_parameters()}
    plain = CONTROLS["none"]
    found = {
        name: predictions(compute(checkpoint, setting(directory, control=name, lr=1e-2)))
        for name, control in CONTROLS.items()
        if (control.context, control.training) == (plain.context, plain.training)  # others change data alone
    }
    assert all(torch.equal(p, before[name]) for name, p in checkpoint.model.named_parameters())
    assert all(a != b for a, b in combinations(found.values(), 2)), "each changes something else"


def test_rec2ftp_has_its_counts_and_its_chance():
    def observed(*correct):
        return Observed(np.array(correct, dtype=bool), *[None] * 5)

    notes = []
    states = {"zsl": observed(0, 0, 0, 0, 1), "icl": observed(1, 0, 1, 0, 1), "ft": observed(1, 1, 1, 0, 0)}
    row = comparison._rec2ftp(states, notes)
    counts = {"zsl_errors": 4, "ft_fixes": 3, "icl_fixes": 2, "both_fix": 2}
    assert row == counts | {"rec2ftp": 2 / 3, "rec2ftp_chance": 0.5} and notes == []
    row = comparison._rec2ftp(states | {"ft": states["zsl"]}, notes)
    assert row["rec2ftp"] is None and notes == ["FT repairs none of the 4 errors of ZSL"]


def test_summaries_leave_out_what_does_not_exist_and_fill_up_what_was_not_measured():
    values = torch.tensor([[1.0, 2.0, torch.nan], [3.0, torch.nan, torch.nan]], dtype=torch.float64)
    layers, queries = comparison._summaries({"measure": values}, 3)
    assert rounded(layers) == {"measure": [2.0, 2.0, None]}
    assert rounded(queries) == {"measure": [1.5, 3.0, None]}


def test_training_that_diverges_is_told_not_averaged(directory, checkpoint):
    result = compute(checkpoint, setting(directory, lr=1e4))
    assert not result["settings"].keys() & {"ft_accuracy", "rec2ftp", "sim_aou"}
    assert "ft_correct" not in result["queries"] and "sim_aou" not in result["layers"]
    assert result["settings"]["icl_accuracy"] is not None
    assert result["settings"]["diverged_at"] is not None
    assert "learning rate 10000 diverged at step" in result["settings"]["note"]


def test_free_answers_are_matched_exactly(directory, checkpoint, capsys):
    data = tasks.load("capitals")
    result = compute(checkpoint, setting(directory, task="capitals"), data)
    icl = {name for name in result["settings"] if name.startswith("icl_")}
    assert icl == {"icl_accuracy", "icl_fixes"} and capsys.readouterr().err == "", "a bar that nobody asked for"
    assert not result["queries"].keys() & {"label", "icl_log_probs"}
    assert len(result["queries"]["sim_aou"]) == N
    with pytest.raises(ExperimentError, match=r"capitals.*no labels"):
        compute(checkpoint, setting(directory, task="capitals", position="first-label"), data)


@pytest.mark.parametrize("family", tiny_models.CONFIGS)
def test_every_family(family, saved):
    result = compute(loading.load(saved[family]), setting(str(saved[family])))
    assert result["settings"]["note"] == "" or result["settings"]["note"].startswith("FT repairs none")
    measures = result["layers"].keys() & result["queries"].keys()
    assert len(measures) > 25 and all(result["settings"][name] is not None for name in measures)


def test_position_of_the_released_code(directory, checkpoint, result):
    released = compute(checkpoint, setting(directory, position="first-label"))
    assert predictions(released) == predictions(result)
    z, i, *_ = recorded(checkpoint, DATA, " Negative")
    expected = metrics.sim_am(i.own_scores, z.own_scores).mean(-1)
    np.testing.assert_allclose(released["layers"]["sim_am_zsl"], expected.mean(0), atol=1e-4)


def test_labels_that_begin_alike_are_recorded_where_they_part_and_have_an_accuracy_per_token(directory, checkpoint):
    result, queries = compute(checkpoint, setting(directory), ALIKE), tasks.queries(ALIKE, N, 0)
    z, i, f, *_ = recorded(checkpoint, ALIKE, " un")
    expected = {
        "sim_aou": metrics.sim_aou(z.outputs, i.outputs, f.outputs),
        "sim_am": metrics.sim_am(i.own_scores, f.own_scores).mean(-1),
    }
    for name, values in expected.items():
        np.testing.assert_allclose(result["queries"][name], values.nanmean(1), atol=1e-4)
    for state in ("zsl", "icl", "ft"):
        means = np.array(result["queries"][f"{state}_log_probs"]) / [8, 6]
        right = means.argmax(1) == [query.label for query in queries]
        assert result["settings"][f"{state}_per_token_accuracy"] == pytest.approx(right.mean(), abs=1e-4)


# --- controls and splits ---------------------------------------------------------------------------------------


def test_ascent_and_random_direction_change_fine_tuning_only(directory, checkpoint, result):
    ascent, random = (compute(checkpoint, setting(directory, control=c)) for c in ("ascent", "random-direction"))
    for other in (ascent, random):
        assert predictions(other, "icl") == predictions(result, "icl")
        assert predictions(other, "ft") != predictions(result, "ft")
    assert ascent["settings"]["loss_after"] > ascent["settings"]["losses"][0]
    np.testing.assert_allclose(random["layers"]["update_norm_keys"], result["layers"]["update_norm_keys"], rtol=1e-3)
    assert random["settings"]["losses"] == result["settings"]["losses"]


def test_layer_causal_sums_the_losses_of_all_layers(directory, checkpoint, result):
    layer_causal = compute(checkpoint, setting(directory, control="layer-causal"))
    assert layer_causal["settings"]["losses"][0] > 2 * result["settings"]["losses"][0]


@pytest.mark.parametrize("lost", [False, True])
def test_layer_causal_descent_is_not_scaled_to_what_diverged(checkpoint, monkeypatch, lost):
    fine_tune = finetuning.fine_tune

    def diverging(*given, layer_causal=False):
        found = fine_tune(*given, layer_causal=layer_causal)
        return replace(found, diverged_at=1) if layer_causal == lost else found

    monkeypatch.setattr(finetuning, "fine_tune", diverging)
    found = fine_tune(checkpoint, [[3, 5, 7, 9]], 1e-2, layer_causal=True)
    assert controls._layer_causal(checkpoint, [[3, 5, 7, 9]], 1e-2).norm == found.norm


def test_controls_of_one_side_leave_the_other_alone(directory, checkpoint):
    plain = compute(checkpoint, setting(directory, k=6))
    kinds = ("shuffled", "flipped", "nonsense", "reordered")
    of_training = [f"{kind}-training" for kind in (*kinds, "other")]
    for control in (*(f"{kind}-context" for kind in kinds), *of_training):
        result, of_context = compute(checkpoint, setting(directory, k=6, control=control)), control not in of_training
        kept, moved = ("ft", "icl") if of_context else ("icl", "ft")
        assert predictions(result, "zsl", kept) == predictions(plain, "zsl", kept)
        assert predictions(result, moved) != predictions(plain, moved)
        assert (result["settings"]["losses"] == plain["settings"]["losses"]) == of_context
        same, other = ("training_labels", "context_labels")[:: 1 if of_context else -1]
        assert result["settings"][same] == plain["settings"][same]
        assert not of_context or result["settings"][other] != plain["settings"][other]


def test_what_the_controls_show_and_train_on():
    _, examples = controls.own(DATA, 6, 0)
    labels = [e.label for e in examples]
    _, shuffled = LESSONS["shuffled"](DATA, 6, 0)
    assert [e.fields for e in shuffled] == [e.fields for e in examples]
    assert sorted(e.label for e in shuffled) == sorted(labels) and [e.label for e in shuffled] != labels
    _, flipped = LESSONS["flipped"](DATA, 6, 0)
    assert [e.fields for e in flipped] == [e.fields for e in examples]
    assert [e.label for e in flipped] == [1 - y for y in labels]
    assert all(e.answer == LABELS[e.label] for e in (*flipped, *shuffled))
    _, reordered = LESSONS["reordered"](DATA, 6, 0)
    assert reordered == [examples[i] for i in (1, 4, 3, 0, 2, 5)], "not the order of what is stored"
    _, nonsense = LESSONS["nonsense"](tasks.load("capitals"), 2, 0)
    assert [e.answer for e in nonsense] == ["lamegem", "voror"], "not the words of what is stored"
    _, other = LESSONS["other"](DATA, 6, 0)
    assert len(other) == 6 and not {repr(e) for e in other} & {repr(e) for e in examples}
    task, foreign = LESSONS["foreign"](DATA, 6, 0)
    assert task.name == "news" and foreign == tasks.demonstrations(tasks.load("news"), 6, 0)
    with pytest.raises(TaskError, match="no labels to flip"):
        LESSONS["flipped"](tasks.load("capitals"), 6, 0)


def test_foreign_demonstrations_keep_their_template_and_the_queries_theirs(directory, checkpoint):
    short = {"k": 1, "task": "capitals"}
    data = tasks.load("capitals")
    plain, foreign = (
        prepare(checkpoint, data, setting(directory, control=c, **short)) for c in ("none", "foreign-context")
    )
    (pair,) = tasks.demonstrations(tasks.load("plurals"), 1, 0)
    shown = checkpoint.tokenizer.decode(foreign.context[0][1:])
    assert shown == f"{pair.fields['word']} -> {pair.answer}\n"
    assert torch.equal(plain.zsl.outputs, foreign.zsl.outputs)
    result = compute(checkpoint, setting(directory, control="foreign-training", **short), data)
    assert "other tokens" in result["settings"]["note"]
    assert result["settings"]["sim_aou"] is not None


def test_attention_to_training_tokens_is_compared_where_the_tokens_are_the_same(directory, checkpoint):
    shuffled = setting(directory, k=6, control="shuffled-context")
    own = replace(shuffled, control="none")
    plain, baseline = (prepare(checkpoint, DATA, c) for c in (own, shuffled))
    demonstrations, shown = (source(DATA, 6, 0)[1] for source in (controls.own, LESSONS["shuffled"]))
    answers = [checkpoint.tokenize(f" {d.answer}") for d in demonstrations]
    lengths = [n for _, n in comparison.demonstration_spans(plain, own)]
    fewer = [n for _, n in comparison.demonstration_spans(baseline, shuffled)]
    for full, common, ids, d, s in zip(lengths, fewer, answers, demonstrations, shown, strict=True):
        assert full - len(ids) <= common <= full
        assert (common == full) == (d.answer == s.answer)
    assert 0 < sum(fewer) < sum(lengths)
    result = compute(checkpoint, shuffled)
    assert result["settings"]["kendall_tau_b"] is not None
    (ids, ends) = baseline.context
    misread = replace(baseline, context=([*ids[:2], 399, *ids[3:]], ends))
    assert comparison.demonstration_spans(misread, shuffled) is None
    assert comparison.demonstration_spans(plain, replace(own, control="other-training")) is None


def test_updates_are_compared_query_by_query(directory, checkpoint, result, by_hand):
    """By a pass of its own for each query, and the definition of the maps."""
    prompts = [TOY.prompt(query) for query in tasks.queries(DATA, N, 0)]
    empty, context = scoring.encode(checkpoint, ""), scoring.encode(checkpoint, by_hand[4])
    demonstrations = tasks.demonstrations(DATA, 3, 0)
    finetuned = finetuning.fine_tune(checkpoint, finetuning.training_ids(checkpoint, TOY, demonstrations), 1e-3)
    dW_icl = [maps.context for maps in recording.linear_maps(checkpoint, context, prompts)]
    W_zsl = [maps.own for maps in recording.linear_maps(checkpoint, empty, prompts)]
    with finetuned.applied():
        W_ft = [maps.own for maps in recording.linear_maps(checkpoint, scoring.encode(checkpoint, ""), prompts)]
    cosines = torch.stack(
        [metrics.update_cosines(icl, ft - zsl).mean(-1) for icl, ft, zsl in zip(dW_icl, W_ft, W_zsl, strict=True)]
    )
    np.testing.assert_allclose(result["queries"]["update_cosine"], cosines.mean(1), atol=2e-3)
    assert result["layers"]["update_cosine"] != result["layers"]["update_cosine_permuted"]


def test_half_trained_and_permuted_models_keep_what_they_say(checkpoint):
    own = checkpoint.model.state_dict()
    matrix, norm = "model.layers.1.mlp.up_proj.weight", "model.layers.1.input_layernorm.weight"
    half = CONTROLS["untrained-layers"].model(checkpoint, 0).model.state_dict()
    permuted = CONTROLS["permuted-weights"].model(checkpoint, 0).model.state_dict()
    for state in (half, permuted):
        assert torch.equal(state[norm], own[norm])
        assert torch.equal(state["model.embed_tokens.weight"], own["model.embed_tokens.weight"])
        assert not torch.equal(state[matrix], own[matrix])
    assert half[matrix].std() == pytest.approx(0.02, rel=0.2)
    assert torch.equal(permuted[matrix].flatten().sort()[0], own[matrix].flatten().sort()[0])


def test_untrained_is_another_model_of_the_same_shape_the_same_for_a_seed(checkpoint):
    state = torch.get_rng_state()
    a, b, c = (CONTROLS["untrained"].model(checkpoint, seed).model.state_dict() for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), state)
    name = "model.layers.0.self_attn.k_proj.weight"
    assert torch.equal(a[name], b[name])
    assert not torch.equal(a[name], c[name])
    assert a[name].std() == pytest.approx(0.02, rel=0.2)  # the initializer of the configuration, not our 0.3
    assert checkpoint.model.state_dict()[name].std() > 0.2


def test_split_halves_are_disjoint_for_all_seeds_and_selection_reports_nothing(directory, checkpoint):
    halves = {
        split: {
            q.fields["text"]
            for seed in range(5)
            for q in draw_queries(DATA, setting(directory, n_queries=10, seed=seed, split=split))
        }
        for split in ("selection", "report")
    }
    assert not halves["selection"] & halves["report"]
    all_queries = draw_queries(DATA, setting(directory, n_queries=36))
    assert all_queries == tasks.queries(DATA, 36, 0)
    assert 10 <= sum(comparison.in_split(q, "report") for q in all_queries) <= 26
    with pytest.raises(TaskError, match="36 queries asked for, 18 available"):
        draw_queries(DATA, setting(directory, n_queries=36, split="report"))
    result = compute(checkpoint, setting(directory, split="selection"))
    assert "sim_aou" not in result["settings"] and "selection" in result["settings"]["note"]
    assert result["settings"]["ft_accuracy"] is not None


def test_a_baseline_serves_its_own_cells_only(directory, checkpoint):
    baseline = prepare(checkpoint, DATA, setting(directory))
    for changes in ({"lr": 0.5}, {"control": "ascent"}, {"control": "random-direction"}, {"control": "layer-causal"}):
        assert baseline.serves(checkpoint, setting(directory, **changes))
    others = ({"seed": 1}, {"k": 4}, {"n_queries": 7}, {"control": "untrained"}, {"control": "shuffled-context"})
    for changes in (*others, {"split": "report"}, {"position": "first-label"}, {"task": "mr"}):
        assert not baseline.serves(checkpoint, setting(directory, **changes))
        with pytest.raises(ExperimentError, match="prepare another"):
            run_comparison(baseline, setting(directory, **changes))
    assert not baseline.serves(loading.load(directory), setting(directory))
