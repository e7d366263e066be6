"""LearnRule: what is stored is what the published tables of its draw say, and answers are opened one by one."""

import numpy as np
import pytest
import torch
from javascript import computed, opened

from explainer.compare import cued_words
from explainer.explorables import LearnRule, rule_explorables
from explainer.results.published import results

STORED = LearnRule.stored()
RIGHT = [label for _, label in STORED["queries"]]
EDITS = {(0, 0): STORED["plain"]} | {
    (int(dose), target): its for dose, of in STORED["moved"].items() for target, its in enumerate(of)
}


def of_draw(grid: str, table: str):
    """The rows of the draw under rule A."""
    rows = results(grid, table)
    of = (rows["cue"] == rule_explorables.CUE) & (rows["seed"] == rule_explorables.SEED) & (rows["rule"] == "A")
    return rows[of].sort_values("query") if "query" in rows else rows[of]


def test_words_follow_the_rule_and_shares_sum_to_one():
    words = STORED["lines"] + STORED["queries"]
    assert len({word for word, _ in words}) == rule_explorables.K + rule_explorables.SHOWN
    for word, label in words:
        assert [number for ending, number in STORED["endings"] if word.endswith(ending)] == [label]
    assert sorted(label for _, label in STORED["lines"]) == sorted(4 * [*range(4)])
    for its in EDITS.values():
        for shares in its.values():
            np.testing.assert_allclose(np.sum(shares, -1), 1, atol=3e-3)
            assert np.shape(shares) == (rule_explorables.SHOWN, 4) and np.min(shares) >= 0


def test_answers_and_votes_are_those_of_both_studies():
    vote, asked = (of_draw(*of)[: len(RIGHT)] for of in (("edits", "queries"), ("rule-contexts", "answers")))
    assert vote["right"].tolist() == asked["right"].tolist() == RIGHT
    assert asked["word"].tolist() == [word for word, _ in STORED["queries"]]
    assert np.argmax(STORED["plain"]["p"], -1).tolist() == vote["answer"].tolist() == asked["icl"].tolist()
    assert np.argmax(STORED["plain"]["votes"], -1).tolist() == vote["vote"].tolist()


def test_javascript_counts_what_is_right_and_what_is_alike():
    states = [LearnRule(answers=RIGHT[:5], dose=dose, target=target).state() for dose, target in EDITS]
    own = computed(
        "learn_rule", states, "{ ...m.answered(s), yours: m.score(s, s.answers), alike: m.alike(s) }"
    ).results
    for its, each in zip(EDITS.values(), own, strict=True):
        gpt, vote = (np.argmax(its[name], -1) for name in ("p", "votes"))
        assert each["yours"] == 5 and [each["gpt"], each["vote"]] == [gpt.tolist(), vote.tolist()]
        assert each["alike"] == ((gpt != RIGHT) & (gpt == vote)).tolist()
        said = f"GPT: {(gpt == RIGHT).sum()} of 8 right, vote: {(vote == RIGHT).sum()} of 8."
        assert said in each["words"] and said in each["still"]


@pytest.mark.browser
def test_answers_open_one_by_one_and_follow_the_attention(browser):
    with opened(browser, {"rule": LearnRule()}) as page:
        figure = page.locator("#rule")
        cells, buttons = figure.locator(".explorable-context"), figure.get_by_role("button", name="kel")
        assert cells.count() == 0
        assert "right, vote" not in figure.inner_text() and "The rule" not in figure.inner_text()
        buttons.focus()
        for number, label in enumerate(RIGHT, 1):
            page.keyboard.press(str(label + 1))
            assert cells.count() == 4 * number and f" of {number} right, vote: " in figure.inner_text()
        page.keyboard.press("1")  # nothing is asked any more
        assert page.evaluate("stages.rule.model.state.answers") == RIGHT
        assert "You: 8 of 8 right." in figure.inner_text() and "-ix → kel" in figure.inner_text()
        assert buttons.evaluate("(node) => node === document.activeElement && node.ariaDisabled === 'true'")
        figure.get_by_role("slider").press("ArrowRight")
        assert "20 % moved to vor: GPT answers it to 8 of 8 words." in figure.inner_text()
        figure.get_by_role("button", name="Reset").click()
        figure.get_by_role("button", name="Show all answers").click()
        assert cells.count() == 32 and "Word 1 of 8" in figure.inner_text()
        figure.get_by_role("button", name="Hide the answers").click()
        assert cells.count() == 0


@pytest.fixture(scope="module")
def draw():
    return rule_explorables.RuleDraw.read()


@pytest.mark.slow
def test_nothing_moved_is_the_unedited_answer(draw):
    unedited = draw.probabilities(draw.last.run().logits)
    torch.testing.assert_close(draw.moved(0, 0.0)["p"], unedited, rtol=0, atol=1e-4)


@pytest.mark.slow
def test_what_is_stored_is_measured_again_and_all_queries_give_the_tables_of_the_study(draw):
    """The label that is aimed at is each of the three that are not the answer, as in the study."""
    answer = draw.moved(0, 0.0)["p"].argmax(-1)
    edits = of_draw("edits", "edits").query("edit == 'moved' and heads == 'effect 10' and not every_token")
    right = torch.tensor([query.label for query in rule_explorables.rule_data().test])
    for dose in rule_explorables.DOSES:
        found = [draw.moved(target, dose / 100) for target in range(len(cued_words.LABELS))]
        for target, its in enumerate(found):
            for name, shares in its.items():
                kept = EDITS[dose, target][name]
                np.testing.assert_allclose(shares[: len(kept)], kept, atol=5e-3)
        given = torch.stack([its["p"].argmax(-1) for its in found])
        aims = torch.tensor([[target != answer[i] for i in range(len(answer))] for target in range(len(found))])
        (row,) = edits[edits["dose"] == dose / 100].to_dict("records")
        to = torch.arange(len(found))[:, None]
        assert (given == to)[aims].float().mean().item() == pytest.approx(row["aimed"], abs=1e-3)
        assert (given == right)[aims].float().mean().item() == pytest.approx(row["right"], abs=1e-3)
