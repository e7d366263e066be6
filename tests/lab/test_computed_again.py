"""What is published of the experiments on a checkpoint: what the code of today computes.

To the rounding of another processor, on which a close decision may flip, and which trainings amplify.
"""

import numpy as np
import pytest
import torch
from published_grids import GRIDS, first, grids, stored

from explainer.compare import comparison
from explainer.compare.observations import observe
from explainer.data import tasks
from explainer.data.files import rounded
from explainer.models import attention_edits, finetuning, loading, scoring
from explainer.theory import metrics
from explainer_lab import agreement, blocking, new_rule, reversal, rival, vote
from explainer_lab.causal_tests import CausalTests
from explainer_lab.minimal_pairs import LESSONS


@pytest.fixture(scope="module")
def starter():
    return loading.load(loading.STARTER, dtype=torch.float32)


def mean_difference(now, then):
    return np.abs(now - then).mean()


def largest_difference(now, then):
    assert (np.isnan(now) == np.isnan(then)).all()
    return np.nanmax(np.abs(now - then))


def share_of_allowed(now, then):
    """The largest difference, in units of 0.05 and 2 % of the value."""
    allowed = 0.05 + 0.02 * np.abs(then)
    return largest_difference(now / allowed, then / allowed)


def most_differ(now, then):
    """Seven of ten rows differ less; best-matched steps, the others, rest on differences that are near rounding."""
    return np.nanquantile(np.abs(now - then), 0.7)


BY_LAYER = ("icl_norm", "ft_norm", "task_vector_log_prob", "r2_descent_own", "r2_icl_equal")
OF_CAUSAL_TESTS = [
    ("queries", ("correct",), mean_difference, 0.02),
    ("queries", ("log_prob",), most_differ, 0.1),
    ("layers", BY_LAYER, share_of_allowed, 1),
    ("layers", ("r2_icl_own", "r2_icl_foreign", "r2_ft_own"), mean_difference, 0.05),
]
COMPARED = {
    **dict.fromkeys(grids(CausalTests), OF_CAUSAL_TESTS),
    "minimal-pairs": [
        ("settings", ("own", "other", "contexts", "trainings", "examples"), largest_difference, 0.03),
        ("interventions", ("log_odds",), largest_difference, 0.5),
    ],
    "shared-part": [
        ("queries", ("correct",), mean_difference, 0.03),
        ("pairs", ("sim_aou",), largest_difference, 0.02),
    ],
    "rule-strongest": [("changes", ("right_a",), mean_difference, 0.2)],
    "rule-text": [("changes", ("right_a",), mean_difference, 0.2)],
    "blocking": [("answers", ("right",), mean_difference, 0.2)],
    "rival-rules": [("queries", ("correct",), mean_difference, 0.1)],
}
"""For the first setting of a grid: which columns of which table are compared, how, and how much they may differ."""


@pytest.mark.slow
@pytest.mark.weekly  # minutes each; what the code does is tested on tiny models
@pytest.mark.parametrize("grid", COMPARED)
def test_a_whole_setting_computed_again_gives_what_is_stored(grid):
    kind, (setting, *_) = GRIDS[grid]
    again = rounded(kind().compute(setting, progress=False).tables)
    for table, columns, differ, least in COMPARED[grid]:
        then = stored(grid, setting, table)
        for name in ("intervention", "query_id"):
            if name in then:
                assert again[table][name] == then[name].to_list()
        for column in columns:
            now = np.atleast_1d(np.array(again[table][column], float))
            assert differ(now, then[column].to_numpy(float)) < least, (table, column)


# Contexts, without trainings.


@pytest.mark.slow
@pytest.mark.weekly
def test_contexts_and_the_first_epoch_are_as_alike_as_stored(starter):
    """Training is repeated one run at a time, not side by side as for the tables."""
    setting = first("agreement")
    data = tasks.load(setting.task)
    queries, given = comparison.draw_queries(data, setting.comparison), agreement._lessons_of(setting, tasks.load)

    def outputs(model, context):
        return observe(model, scoring.encode(model, context), data.task, queries).outputs

    def in_context(name):
        ids, _ = scoring.context_ids(starter, *given[name])
        return outputs(starter, ids)

    once = finetuning.training_ids(starter, data.task, given["own"][1])
    with finetuning.fine_tune(starter, once, setting.lr).applied() as tuned:
        trained = outputs(tuned, "")
    foreign = setting.foreign[0]
    found = [in_context("own"), in_context("other"), in_context(foreign), trained]
    S = metrics.pairwise_outputs(outputs(starter, ""), found)["sim_aou"].nanmean((-2, -1))
    pairs = stored("agreement", setting, "pairs").query("a == 'ICL own'").set_index("b")["sim_aou"]
    expected = [pairs[name] for name in ("ICL other", f"ICL {foreign}", f"FT own 1 {setting.lr:g}")]
    torch.testing.assert_close(S[0, 1:], torch.tensor(expected).double(), atol=0.01, rtol=0)


@pytest.mark.slow
@pytest.mark.weekly
def test_a_context_of_pairs_answers_as_it_did(starter):
    """One of eight answers may turn on the last digit."""
    draw = first("reversal")
    pairs = reversal._draw_pairs(draw.n_pairs, draw.seed)
    for lesson in reversal.LESSONS:
        found = reversal._answer_log_probs(starter, reversal.lesson(pairs, lesson, draw.seed), pairs)
        for direction, log_probs in found.items():
            then = stored("reversal", draw, "answers").query("kind == 'icl' and lesson == @lesson")
            then = then[then["direction"] == direction]
            now = reversal._scored(log_probs)
            np.testing.assert_allclose(now["log_prob"], then["log_prob"].astype(float), atol=0.02)
            assert (now["correct"] != then["correct"].to_numpy(bool)).sum() <= 1


@pytest.mark.slow
def test_a_context_of_a_rule_and_its_votes_computed_again_give_what_is_stored(starter):
    """One answer of 24 may flip on another processor, and a vote that is close."""
    setting = first("rule-contexts")
    rules = new_rule._Rules(setting, starter)
    answers = rules.see(starter, rules.context(rules.demonstrations(LESSONS[0])))[1]
    then = stored("rule-contexts", setting, "answers").query("rule == 'A'")
    assert (answers != then["icl"]).sum() <= 1
    assert rules.right("A").tolist() == then["right"].tolist()
    assert (new_rule._voted(rules, LESSONS[0]) != then["vote"]).sum() <= 1


@pytest.mark.slow
def test_edits_of_a_rule_computed_again_give_what_is_stored(starter):
    """One lesson of one draw: no edit, the ten heads made equal, and a fifth of their attention moved."""
    setting = first("edits-category")
    lesson = vote.VoteLesson.of(starter, setting, "A")
    sets = vote.head_sets(setting, (30, 9), "A")
    last, y, n = lesson.passed(lesson.queries).at_last(), lesson.label_of_line, len(lesson.queries)
    answer = last.run().logits[:, lesson.tokens].argmax(-1)
    mixes = [
        torch.eye(16).expand(n, -1, -1),
        torch.full((n, 16, 16), 1 / 16),
        attention_edits.moved(y, (answer + 1) % 4, 0.2),
    ]
    ten = sets["effect 10"].expand(len(mixes), -1, -1)
    given = vote._edited(last, lesson, ten, torch.stack(mixes))[0].argmax(-1)
    right = torch.tensor([query.label for query in lesson.queries])
    then = stored("edits-category", setting, "edits").query("rule == 'A' and not every_token")
    of_edit = then.set_index(["edit", "heads"])["right"]
    for key, now in ((("none", "all"), given[0] == right), (("flat", "effect 10"), given[1] == right)):
        assert abs(now.float().mean().item() - of_edit.loc[key].item()) < 0.1
    (again,) = vote._calibrated(lesson, {"effect 10": sets["effect 10"]})
    calibrated = stored("calibrated-category", first("calibrated-category"), "calibrated")
    of_ten = calibrated.query("rule == 'A' and heads == 'effect 10'")
    assert all(abs(again[of] - of_ten[of].item()) < 0.1 for of in ("right", "calibrated", "one_label"))
    queries = stored("edits-category", setting, "queries").query("rule == 'A'")
    assert (queries["answer"].to_numpy() == answer.numpy()).sum() >= n - 1
    assert (given[2] == (answer + 1) % 4).float().mean() > (given[0] == (answer + 1) % 4).float().mean()


@pytest.mark.slow
@pytest.mark.weekly
def test_contexts_with_compound_cues_computed_again_give_what_is_stored(starter, monkeypatch):
    monkeypatch.setattr(blocking, "_trained", lambda *_: iter(()))
    setting = first("blocking")
    again = blocking._run_blocking(starter, setting)["answers"]
    then = stored("blocking", setting, "answers").query("kind == 'ICL'")
    for name in ("right", "log_prob"):
        np.testing.assert_allclose(again[name], then[name], atol=0.05)


@pytest.mark.slow
@pytest.mark.weekly
def test_a_task_vector_computed_again_gives_what_is_stored(starter):
    setting = first("rival", task="plurals")
    its = rival._Rival.of(starter, *rival.Rival()._both(setting), setting)
    layer = int(stored("rival", setting)["vector_layer"].iloc[0])
    selected = its.selected[""]
    vector = selected.stream_change.mean(0)
    right = selected.by_layer(vector.expand_as(selected.stream_change))["correct"]
    assert right[layer] >= max(right) - 0.13  # two of sixteen
    again = its.rows("vector", its.asked.with_added(layer, vector[layer]))
    then = stored("rival", setting, "queries").query("intervention == 'vector'")
    np.testing.assert_allclose([row["log_prob"] for row in again], then["log_prob"], atol=0.1)
