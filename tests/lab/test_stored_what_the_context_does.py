"""The published runs of the rule, of blocking and of the rival: what the code of today computes of a sample."""

import numpy as np
import pytest
from published_grids import grids

from explainer.models import loading
from explainer.results.published import results
from explainer_lab import blocking, new_rule, rival
from explainer_lab.blocking import Blocking
from explainer_lab.minimal_pairs import LESSONS
from explainer_lab.new_rule import NewRule, Rules
from explainer_lab.rival import Rival

KINDS = {kind: grids(kind) for kind in (NewRule, Blocking, Rival)}


@pytest.fixture(scope="module")
def checkpoint():
    return loading.load(loading.STARTER)


@pytest.mark.parametrize("kind", KINDS)
def test_none_is_missing(kind):
    for grid, settings in KINDS[kind].items():
        assert len(results(grid)) == len(settings), grid


def test_as_many_heads_are_chosen_as_today():
    chosen = results("rule-contexts", "heads").groupby(["setting", "rule"])["chosen"].sum()
    assert (set(chosen), set(results("rival")["n_heads"])) == ({new_rule.N_HEADS}, {rival.N_HEADS})


def stored(grid, setting, table, **more):
    where = {name: getattr(setting, name) for name in ("seed", "cue", "task", "last") if hasattr(setting, name)}
    return results(grid, table, **where | more)


@pytest.mark.slow
def test_a_context_and_its_votes_computed_again_give_what_is_stored(checkpoint):
    """One answer of 24 may flip on another processor, and a vote that is close."""
    grid = "rule-contexts"
    setting = KINDS[NewRule][grid][0]
    rules = Rules(setting, checkpoint)
    answers = rules.see(checkpoint, rules.context(rules.demonstrations(LESSONS[0])))[1]
    then = stored(grid, setting, "answers")
    then = then[then["rule"] == LESSONS[0].task]
    assert (answers != then["icl"]).sum() <= 1
    assert rules.right("A").tolist() == then["right"].tolist()
    votes = new_rule.votes(checkpoint, rules.demonstrations(LESSONS[0]), rules.prompts)
    heads = stored(grid, setting, "heads")
    heads = heads[(heads["rule"] == "A") & heads["chosen"]]
    chosen = votes[:, heads["layer"].tolist(), heads["head"].tolist()].sum(1).argmax(-1).numpy()
    assert (chosen != then["vote"]).sum() <= 1
    np.testing.assert_allclose(
        votes.sum(-1).mean(0)[heads["layer"].tolist(), heads["head"].tolist()], heads["attention"], atol=0.01
    )


@pytest.mark.slow
@pytest.mark.weekly
def test_contexts_with_compound_cues_computed_again_give_what_is_stored(checkpoint, monkeypatch):
    monkeypatch.setattr(blocking, "_trained", lambda *_: iter(()))
    setting = KINDS[Blocking]["blocking"][0]
    again = blocking.run_blocking(checkpoint, setting)["answers"]
    then = stored("blocking", setting, "answers")
    then = then[then["kind"] == "ICL"]
    for name, tolerance in (("right", 0.05), ("log_prob", 0.05)):
        np.testing.assert_allclose(again[name], then[name], atol=tolerance)


@pytest.mark.slow
def test_a_task_vector_computed_again_gives_what_is_stored(checkpoint):
    grid = "rival"
    setting = next(one for one in KINDS[Rival][grid] if one.task == "plurals")
    its = rival._Rival.of(checkpoint, *Rival()._both(setting), setting)
    layer = int(stored(grid, setting, "settings")["vector_layer"].iloc[0])
    selected = its.selected[""]
    right = selected.by_layer(selected.stream_change * 0 + selected.stream_change.mean(0))["correct"]
    assert right[layer] >= max(right) - 0.13  # two of sixteen
    vector = selected.stream_change.mean(0)[layer]
    again = its.rows("vector", its.asked.with_added(layer, vector))
    then = stored(grid, setting, "queries").query("intervention == 'vector'")
    np.testing.assert_allclose([row["log_prob"] for row in again], then["log_prob"], atol=0.1)


@pytest.mark.slow
@pytest.mark.weekly
@pytest.mark.parametrize(
    ("kind", "grid", "table", "column", "tolerance"),
    [
        (NewRule, "rule-strongest", "changes", "right_a", 0.2),
        (NewRule, "rule-text", "changes", "right_a", 0.2),
        (Blocking, "blocking", "answers", "right", 0.2),
        (Rival, "rival-rules", "queries", "correct", 0.1),
    ],
)
def test_a_whole_setting_computed_again_gives_what_is_stored(kind, grid, table, column, tolerance):
    """Weekly only: minutes each. Trainings amplify the rounding of another processor."""
    setting = KINDS[kind][grid][0]
    again = np.array(kind().compute(setting, progress=False).tables[table][column], float)
    then = stored(grid, setting, table)[column].to_numpy(float)
    assert np.abs(again - then).mean() < tolerance
