"""Numbers that stand in sentences of the main line, computed once more from the tables that the sentences speak of."""

import json
import re
import tomllib

import numpy as np
from conftest import ROOT

from explainer.compare import head_circuits
from explainer.results import (
    aggregate,
    agreement,
    intervention_effects,
    language_models,
    minimal_pairs,
    papers,
    rec2ftp,
    scorecard,
    verdict,
    verdict_scale,
)
from explainer.results.published import results
from explainer.theory import statistics

CAPTIONS = {
    "story": ["swaps"], "agreement": ["swaps"], "claims": ["claims"],
    "floors_and_ceilings": ["measures", "lessons"], "update_matrices": ["swaps"],
}  # fmt: skip
"""Figures and tables with rows of trainings on other examples or on shuffled answers."""


def sentences(page: str, about: str) -> list[str]:
    """The paragraphs of a page that have these words."""
    (path,) = (ROOT / "book").rglob(f"{page}.ipynb")
    cells = json.loads(path.read_text("utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return [line for line in text.split("\n") if about in line]


def sentence(page: str, about: str) -> str:
    """The first of them."""
    return sentences(page, about)[0]


def per_cent(*shares: float) -> set[str]:
    return {f"{100 * share:.0f} %" for share in shares}


# What the papers print.


def test_a_mean_over_tasks_stands_beside_its_lowest_task():
    """The recall of a context is above 85 per cent on average only."""
    averages, lowest = papers.REC2FTP_AVERAGE.values(), (min(of.values()) for of in papers.REC2FTP.values())
    said = re.findall(r"\d+ %", sentence("story", "errors that fine-tuning repairs"))
    assert set(said) == per_cent(*averages, *lowest)


def test_a_rate_that_the_search_did_not_list_is_named():
    grid = [i * step for i in range(1, 10) for step in (0.1, 0.01, 0.001, 0.0001)]
    rates = {rate for of in papers.LEARNING_RATE.values() for rate in of.values()}
    outside = [rate for rate in rates if not np.isclose(rate, grid).any()]
    assert outside and all(f"{rate:f}".rstrip("0") in sentence("comparison_protocol", "36 rates") for rate in outside)


def test_the_four_questions_have_the_numbers_of_paper_and_tables():
    """In bold: the paper's number, what it is read against, ours with its interval, what that is read against."""
    asked = scorecard.beside_paper()
    for line, measure in zip(
        sentences("comparison", "**The paper: "), ("Rec2FTP", "SimAOU", "SimAM", "τ"), strict=True
    ):
        said, of = re.findall(r"\d\.\d+", line.split("**")[1]), asked[measure]
        printed = [number for number in (of.paper, of.paper_floor) if number is not None]
        known = [*printed, of.here.estimate, of.here.low, of.here.high, of.floor.estimate, of.floor.low, of.floor.high]
        assert len(said) >= len(printed) + 3
        for text, number in zip(said, known, strict=False):  # some floors stand without their interval
            assert abs(float(text) - abs(number)) <= 0.5001 * 10.0 ** -len(text.split(".")[1]), (measure, text)


def test_what_recall_has_beyond_chance():
    queries = rec2ftp.queries()
    found = rec2ftp.repairs(queries[queries["task"].isin(papers.TASKS)])
    line = sentence("comparison", "The difference is")
    assert f"{found.excess:.2f}".replace("\N{NO-BREAK SPACE}", " ") in line
    assert "a tenth of the errors" in line and round(found.n_repaired / found.n_errors, 2) == 0.1


# What is lost, in the unit that the sentence has.


def test_what_a_cut_takes_of_the_right_answers():
    """Of those that the demonstrations bring; of the log-probability it is 61 and 38 per cent."""
    lost = []
    for task in head_circuits.TASKS:
        answers = head_circuits.stored(task).answers
        whole, cut, alone = (np.mean([one.correct for one in answers[n]]) for n in ("whole", "cut: input", "alone"))
        lost.append((whole - cut) / (whole - alone))
    for page, about in (
        ("story", "hides the inputs from the arrows"),
        ("what_makes_it_learning", "right answers that eight"),
    ):
        assert set(re.findall(r"\d+ %", sentence(page, about))) == per_cent(*lost)


def numbers(text: str) -> set[str]:
    return set(re.findall(r"-?\d+\.\d+", text.replace("\N{MINUS SIGN}", "-")))


def test_what_a_test_without_power_cannot_tell_stands_beside_its_number():
    """Steps on another task explain a descent on the own examples as well as its own steps do."""
    foreign = (
        f"{intervention_effects.column_means(results('causal-tests'), {'r2_descent_foreign': 'R²'})['R²'].estimate:.2f}"
    )
    assert foreign in numbers(sentence("claims", "last row"))


def test_a_gain_stands_beside_that_on_another_genre():
    _, *larger = language_models.change_on_other_genre("plain", "momentum").values()
    assert all(gain.low < 0 < gain.high for gain in larger)
    assert {f"{gain.estimate:.3f}" for gain in larger} <= numbers(sentence("story", "news articles"))
    assert {f"{each:.3f}" for gain in larger for each in gain} <= numbers(sentence("idea_it_inspired", "news articles"))


def test_what_is_settled_with_one_pair_of_tasks_only_is_not_called_settled():
    """Minimal pairs: what other words cost, without the pair with capitals, and without what all queries share."""
    settings = results("minimal-pairs")
    whole = minimal_pairs.similarities(settings)["own - other"]
    without = minimal_pairs.similarities(settings[settings["pair"] != "capitals/nationalities"])["own - other"]
    settings["cost"] = settings["own_residual"] - settings["other_residual"]
    residual = aggregate.mean(settings, "cost", ["seed", "pair"])
    assert whole.low > 0 > max(without.low, residual.low)
    said = {f"{each:.4f}" for of in (without, residual) for each in of}
    assert said <= numbers(sentence("minimal_pairs", "not settled without the pair with capitals"))


def test_the_cost_of_other_examples_is_that_of_the_verdict():
    """Chapter 11 says of the upper third what the second row of the verdict measures, and what descent would cost."""
    row = next(one for name, one in verdict.three_of_book().items() if "examples" in name)
    said = sentence("minimal_pairs", "In the upper third of the layers, which the verdict takes")
    assert f"the yardstick is {row.ceiling.estimate:.2f}, and the fall is 0.000" in said
    assert {f"{abs(end):.3f}" for end in (row.measured.low, row.measured.high)} <= numbers(said.replace("−", ""))
    assert f"{row.measured.estimate:.3f}" == "0.000"


def test_first_tokens_stand_beside_whole_answers():
    """Interventions count first tokens, all else whole answers: both stand where a page has the first."""
    first, whole = results("shared-part", "queries"), results("shared-part", "changes").query("lesson == 'own'")
    right = [intervention_effects.over_tasks(first, name).estimate for name in ("icl", "ft")]
    right += [whole[whole["kind"] == kind]["accuracy"].mean() for kind in ("ICL", "FT")]
    said = {f"{100 * share:.0f}" for share in right}
    for page, about in (("story", "67 of 100"), ("shared_part", "left panel")):
        assert said <= set(re.findall(r"\b\d+\b", sentence(page, about)))


def test_what_a_part_does_stands_beside_a_random_part():
    """Chapter 11 in shares of the way to A; chapter 12 in answers of a hundred that are kept."""
    put_in = minimal_pairs.share_of_the_whole(results("minimal-pairs", "interventions"))
    names = ("context_along_ft", "context_along_near", "ft_along_icl", "ft_along_near")
    said = numbers(sentence("minimal_pairs", "What does the part of one contrast along the other"))
    assert said == {f"{put_in[name].estimate:.2f}" for name in names}

    def kept(name: str) -> str:
        return f"{100 * intervention_effects.over_tasks(results('shared-part', 'queries'), name).estimate:.0f}"

    names = ("ft_across_icl", "ft_across_near", "across_ft", "across_near", "across_ft_other")
    assert {kept(name) for name in names} <= set(re.findall(r"\b\d+\b", sentence("shared_part", "left panel")))
    of_next, near = kept("across_ft_of_next"), kept("across_near")
    assert f"({of_next} and {near} answers are left)" in sentence("shared_part", "is needed no more than a random")


# How many draws, and of what.


def test_captions_say_the_draws_that_their_intervals_have():
    """Fewer with other examples and with shuffled answers, where trainings diverged."""
    pairs = agreement.pairs("agreement")
    found = verdict_scale.n_complete_seeds(pairs)
    assert (found["the same"], found["shuffled answers"], found["other examples of the task"]) == (20, 19, 18)
    assert {verdict_scale.n_draws(*three) for three in verdict_scale.of_similarities(pairs).values()} == {18}
    for chapter, names in CAPTIONS.items():
        words = tomllib.loads((ROOT / "src" / "explainer" / "figures" / "words" / f"{chapter}.toml").read_text("utf-8"))
        for name in names:
            said = words[name]["caption"] + words[name].get("sample", "")
            assert "{draws[other examples of the task]}" in said, (chapter, name)


def test_with_the_tasks_as_the_sample():
    pairs, shares = agreement.pairs("agreement"), []
    for task in pairs["task"].unique():
        three = verdict_scale.of_similarities(pairs[pairs["task"] == task])["attention outputs (SimAOU)"]
        floor, value, ceiling = (of.mean() for of in three)
        shares.append((value - floor) / (ceiling - floor))
    said = {f"{each:.2f}" for each in statistics.student(shares)}
    assert said <= numbers(sentence("agreement", "tasks as the sample"))
