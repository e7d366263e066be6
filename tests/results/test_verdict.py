"""The verdict's rows: of tables made by hand, of the book's, and of those of another directory."""

import json
import math
import re
import shutil

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from toy_tables import assert_student, crossed

from explainer import commands
from explainer.data.files import PUBLISHED
from explainer.errors import ExperimentError, ExplainerError
from explainer.figures import verdict_figures as figures
from explainer.results import agreement_results, published, reporting, scorecard, verdict
from explainer.results.published import results
from explainer.theory import statistics

SIMILAR = {
    "own": 0.5,
    "both_other": 0.5,
    "training_other": 0.45,
    "context_other": 0.45,
    "context_foreign": 0.3,
    "contexts": 0.75,
    "trainings": 0.75,
}
LOWER = dict.fromkeys(SIMILAR, 0.9) | {"trainings": 0.95}


def tables():
    """Upper layers as in SIMILAR, lower ones all alike; two draws that agree."""
    similar = {name: lambda layer, name=name: (SIMILAR if layer >= 4 else LOWER)[name] for name in SIMILAR}
    layers = crossed(seed=(0, 1), task="a", layer=range(6), **similar)
    answers = queries(icl=3, vector=2, vector_foreign=1, zsl=0)
    strengths = crossed(seed=(0, 1), cue="suffix", own=0.1, contexts=0.5, trainings=0.32)
    changes = [
        {"seed": s, "cue": "suffix", "k": 16, "strength": n, "kind": kind, "lesson": lesson, "right_a": a, "right_b": b}
        for s in (0, 1)
        for n, kind, lesson, a, b in (
            (16, "ICL", "A", 0.7, 0.0),
            (16, "ICL", "B", 0.0, 0.9),
            (16, "ICL shuffled", "A", 0.2, 0.9),
            (8, "ICL", "A", 0.0, 0.0),
        )
    ]
    return iter((layers, answers, strengths, pd.DataFrame(changes)))


def test_rows_are_shares_between_floor_and_ceiling():
    found = {name: [of.estimate for of in one[:4]] for name, one in verdict._five_rows(*tables()).items()}
    for name, three in {
        "like training": (0.3, 0.5, 0.75),
        "on these examples": (0, 0.05, 0.5 * 0.25),
        "carried by one vector": (0.25, 0.5, 0.75),
        "new rule: learned": (0.2, 0.8, 1),
        "new rule: like training": (0, 0.1, 0.16**0.5),
    }.items():
        floor, measured, ceiling = three
        assert found.pop(name) == pytest.approx([*three, (measured - floor) / (ceiling - floor)]), name
    assert not found


def test_a_vector_that_answers_less_than_none_does_carries_nothing():
    answers = queries(icl=4, vector=2, vector_foreign=1, zsl=3)
    assert verdict._five_rows(None, answers, None, None)["carried by one vector"].share.estimate == -1


def test_a_question_without_its_table_or_a_draw_is_left_out():
    layers, answers, strengths, changes = tables()
    diverged = layers.assign(trainings=math.nan)  # of every training
    assert list(verdict._five_rows(diverged, answers)) == ["carried by one vector"]
    assert list(verdict._five_rows(strengths=strengths)) == ["new rule: like training"]
    assert list(verdict._five_rows(changes=changes)) == ["new rule: learned"]


def test_one_draw_or_a_ceiling_that_is_not_above_the_floor_gives_no_share():
    layers = next(tables())
    found = verdict._five_rows(layers[layers["seed"] == 0], None, None, None)["like training"]
    assert found.draws == 1 and found.measured.estimate == 0.5 and math.isnan(found.share.estimate)
    layers.loc[layers["seed"] == 1, "trainings"] = 0.2
    found = verdict._five_rows(layers, None, None, None)["like training"]
    assert math.isnan(found.share.estimate) and found.ceiling.estimate == pytest.approx(0.475)


def queries(**right):
    """Two draws that agree, with four queries for each intervention."""
    correct = lambda intervention, number: number < right[intervention]  # noqa: E731
    return crossed(seed=(0, 1), intervention=list(right), number=range(4), task="a", correct=correct)


def test_shares_by_mechanism_are_between_floor_and_ceiling():
    asked = queries(icl=4, vector=2, vector_foreign=1, heads=3, heads_foreign=0, off=1, off_induction=2, off_random=3)
    rules = queries(icl=4, vector=1, vector_foreign=1).rename(columns={"correct": "right_label"})
    left = {"effect 10": 0.3, "random 10": 0.6, "all": 0.2}
    edits = crossed(
        seed=(0, 1), cue=("suffix", "category"), heads=list(left), edit=("flat", "moved"), every_token=(False, True),
        right=lambda heads, edit, every_token: left[heads] if edit == "flat" and not every_token else 1.0,
    )  # fmt: skip
    found = verdict._mechanisms(asked, rules, edits)
    estimates = reporting.estimates(found)
    assert estimates["word pairs"] == pytest.approx(
        {
            "one vector, patched in": (2 - 1) / (4 - 1),
            "ten task heads, patched in": 3 / 4,
            "ten task heads, ablated": (3 - 1) / 3,
            "ten induction heads, ablated": (3 - 2) / 3,
        }
    )
    carried = {"one vector, patched in": 0, "ten vote heads, made equal": 3 / 4}
    assert estimates["a new rule"] == pytest.approx(carried)


def test_the_share_of_the_way_is_that_of_each_seed():
    floor, value, ceiling = (pd.Series(of, index=[0, 1]) for of in ([0.0, 0.2], [0.5, 0.4], [1.0, 1.2]))
    row = verdict.Row.over_seeds(floor, value, ceiling)
    assert row.share.estimate == pytest.approx((0.5 + 0.2) / 2)
    assert row.floor.estimate == pytest.approx(0.1) and row.draws == 2
    uneven = (pd.Series(range(len(seeds)), index=seeds, dtype=float) for seeds in ((0, 1, 2), (1, 2), (0, 1, 3)))
    assert verdict.Row.over_seeds(*uneven).draws == 1


def test_a_share_needs_a_ceiling_on_one_side_of_the_floor():
    def share(*ceiling):
        floor = pd.Series([0.0, 0.1])
        return verdict.Row.over_seeds(floor, floor + 0.1, pd.Series(ceiling)).share.estimate

    assert share(0.5, 0.6) == pytest.approx(0.2) and share(-0.5, -0.4) == pytest.approx(-0.2)
    assert math.isnan(share(0.5, -0.4)) and math.isnan(share(0.0, 0.6))


COLUMNS = ("own", "trainings", "contexts", *(f"{side}_{name}" for side in ("training", "context")
           for name in ("nonsense", "foreign", "shuffled")))  # fmt: skip


@pytest.fixture
def layers():
    """Two tasks, three seeds, six layers: a column is its number, a tenth of the layer, and noise of its seed."""
    columns = {
        name: lambda layer, seed, task, i=i: i + layer / 10 + seed * (layer + 1) / 100 + (task == "past")
        for i, name in enumerate(COLUMNS)
    }
    return crossed(layer=(3, 0, 5, 1, 4, 2), seed=range(3), task=("capitals", "past"), **columns)


@pytest.mark.parametrize(
    ("side", "floor", "column"),
    [
        ("training", "made-up words", "training_nonsense"),
        ("context", "another task", "context_foreign"),
        ("context", "shuffled answers", "context_shuffled"),
    ],
)
def test_the_share_of_the_way_in_each_third_of_the_layers(layers, side, floor, column):
    """A ratio of means over tasks, seeds and layers, whose interval is that of the jackknife over seeds."""
    values = {"lower third": (0.1, 0.4, 0.5), "middle third": (0.2, 0.3, 0.7), "upper third": (0.0, 0.6, 0.8)}
    of_layer = dict(zip(range(6), [v for v in values.values() for _ in range(2)], strict=True))
    for i, name in enumerate((column, "own", "trainings")):
        of = layers["layer"].map(lambda layer, i=i: of_layer[layer][i])
        layers[name] = of + layers["layer"] % 2 * 0.01 + (layers["task"] == "past") * 0.02 + layers["seed"] * 0.03 * i
    found = verdict.share_by_third(layers, side, floor)
    assert list(found) == list(values)
    for name, (low, own, high) in values.items():

        def share(seeds, low=low, own=own, high=high):
            seed = sum(seeds) / len(seeds)
            return (own + 0.03 * seed - low) / (high + 0.06 * seed - low)

        left = [share([seed for seed in range(3) if seed != out]) for out in range(3)]
        assert_student(found[name], [3 * share([0, 1, 2]) - 2 * each for each in left])
    assert verdict.share_by_third(layers, side) == verdict.share_by_third(layers, side, "made-up words")


# Of a directory.

OWN = "/models/<b>mine"
BOOK = "SmolLM2-135M-Instruct (the book)"


@pytest.fixture(scope="module")
def of_book():
    return next(iter(verdict.ten_rows().values()))


def numbers(rows):
    """The three numbers of every interval, without the digits that the order of a sum decides."""
    return {name: [[round(each, 9) for each in one] for one in row[:4]] for name, row in rows.items()}


def publish(directory, name, change=lambda settings: settings, checkpoint=OWN):
    """The book's tables of an experiment under another checkpoint, as the settings of its verdict were changed."""
    shutil.copytree(PUBLISHED / name, directory / name)
    grids = pq.read_table(directory / name / "grids.parquet").to_pandas()
    chosen = grids.loc[grids["grid"].isin(published.GRIDS[name]), "setting"]
    own = lambda settings: change(settings[settings["setting"].isin(chosen)].assign(checkpoint=checkpoint))  # noqa: E731
    rewrite(directory / name / "settings.parquet", own)


def rewrite(path, change):
    """Change a table of a publication."""
    table, metadata = pq.read_table(path).to_pandas(), pq.read_metadata(path).metadata
    pq.write_table(pa.Table.from_pandas(change(table), preserve_index=False).replace_schema_metadata(metadata), path)


NOTHING_LEARNED = {
    "no more than without": lambda settings: settings.assign(icl_accuracy=settings["zsl_accuracy"]),
    "no more than one label": lambda settings: settings.assign(one_label_accuracy=settings["icl_accuracy"]),
}


def test_answers_of_the_books_tables_are_those_of_its_page(tmp_path):
    for name in dict.fromkeys(verdict.FOLDERS.values()):
        publish(tmp_path, name)
    ((checkpoint, found),) = verdict.five_rows(tmp_path).items()
    page = {name.removeprefix("word pairs: "): list(row.share) for name, row in verdict.rows_of_book().items()}
    assert checkpoint == OWN and {name: list(one.share) for name, one in found.items()} == page
    thirds = verdict.share_by_third(results("shared-part", "layers"), "context", "another task")
    assert [f"{of:.2f}" in found["like training"].sentence for of in thirds.values()] == [True] * 3
    of = found["on these examples"]
    assert f"the interval of one above {(of.share.high - of.share.low) / 2:.2f} would have excluded 0" in of.sentence


@pytest.mark.parametrize("change", NOTHING_LEARNED.values(), ids=NOTHING_LEARNED)
def test_a_model_that_learns_nothing_in_context_is_told_so_and_has_no_share(tmp_path, change):
    publish(tmp_path, "shared_part", change)
    publish(tmp_path, "agreement", change)
    for one in verdict.five_rows(tmp_path)[OWN].values():
        assert math.isnan(one.share.estimate) and "no learning in context is seen" in one.sentence
    (ten,) = verdict.ten_rows(tmp_path).values()
    assert {math.isnan(row.share.estimate) for row in ten.values()} == {True}


NAMES = {"icl": "", "zsl": "icl", "vector_random": "zsl"}


@pytest.mark.parametrize(
    ("change", "one_label"),
    [(lambda its: its.replace({"intervention": NAMES}), 0), (lambda its: its.assign(right_label=1.0), 0),
     (lambda its: its, 1)],
)  # fmt: skip
def test_a_vector_carries_nothing_of_what_is_not_learned(tmp_path, change, one_label):
    publish(
        tmp_path, "rival", lambda settings: settings.assign(one_label_accuracy=one_label * settings["icl_accuracy"])
    )
    rewrite(tmp_path / "rival" / "queries.parquet", change)
    (found,) = verdict.five_rows(tmp_path).values()
    assert "no learning in context is seen" in found["carried by one vector"].sentence


def test_a_model_that_names_one_label_less_often_learns(tmp_path):
    for name in ("shared_part", "agreement", "rival"):
        publish(tmp_path, name, lambda settings: settings.assign(one_label_accuracy=0.9 * settings["icl_accuracy"]))
    assert all(math.isfinite(one.share.low) for one in verdict.five_rows(tmp_path)[OWN].values())
    assert {row.sentence for row in verdict.ten_rows(tmp_path)[OWN].values()} == {""}


def test_seeds_that_gain_alike_settle_no_more_than_their_queries_do():
    """Two seeds with 24 queries: 9 against 5 right is not settled, 19 against 5 is; of 240 queries 90 against 50 is."""
    rows = pd.DataFrame({"task": "pairs", "seed": [0, 1], "n_queries": 24, "zsl_accuracy": 5 / 24})
    few, many = (verdict.gain_in_context(rows.assign(icl_accuracy=right / 24)) for right in (9, 19))
    assert few.estimate == pytest.approx(4 / 24) and few.low < 0 < many.low
    assert verdict.gain_in_context(rows.assign(icl_accuracy=9 / 24, n_queries=240)).low > 0


def test_a_model_that_names_one_label_in_a_comparison_learns_nothing(tmp_path):
    publish(tmp_path, "comparison", lambda settings: settings[settings["task"].isin(["sst2", "cb"])])

    def names_one(queries):
        return queries.assign(icl_correct=queries["label"] == 1, zsl_correct=False)

    rewrite(tmp_path / "comparison" / "queries.parquet", names_one)
    assert "the claims say nothing about learning" in scorecard.cards(tmp_path)[OWN].note


def test_a_rule_that_is_not_learned_is_not_asked_how(tmp_path):
    publish(tmp_path, "new_rule")

    def by_chance(changes):
        right = changes.groupby("setting").cumcount() % 2 * 0.5
        return changes.assign(right_a=right, right_b=right)

    rewrite(tmp_path / "new_rule" / "changes.parquet", by_chance)
    (found,) = verdict.five_rows(tmp_path).values()
    assert "interval of the difference includes 0" in found["new rule: learned"].sentence
    assert "nothing is said of how" in found["new rule: like training"].sentence
    assert math.isnan(found["new rule: like training"].share.estimate)


def test_a_claim_about_what_is_not_measured_cannot_be_asked(tmp_path):
    queries = results("cb", "queries", control="none")
    of_layers = {"cb": results("cb", "layers", control="none")}
    full = scorecard._claims_under_protocol(queries, of_layers)
    found = scorecard._claims_under_protocol(queries.assign(sim_am=float("nan")), of_layers)
    assert {claim for claim in full if found[claim] != full[claim]} == {
        "SimAM is higher after FT than before", "SimAM rises with depth"
    }  # fmt: skip
    assert found["SimAM rises with depth"].verdict == "cannot be asked here"
    none = scorecard._claims_under_protocol(queries.assign(ft_correct=queries["zsl_correct"]), of_layers)
    assert "FT repairs none of" in none["ICL repairs what FT repairs: Rec2FTP"].because


def test_the_book_has_the_rows_of_its_chapter(of_book):
    assert list(of_book) == list(verdict.TEN_FOLDERS)
    pairs = agreement_results.pairs("agreement")
    six = verdict.similarity_rows(pairs)
    assert numbers(six) == numbers({name: of_book[name] for name in six})


def test_an_own_directory_has_the_rows_of_what_was_published(of_book, tmp_path):
    publish(tmp_path, "agreement")
    (six,) = verdict.ten_rows(tmp_path).values()
    assert len(six) == 6 and numbers(six) == numbers({name: of_book[name] for name in six})
    assert {verdict.TEN_FOLDERS[name] for name in six} == {"agreement"}
    publish(tmp_path, "shared_part")
    publish(tmp_path, "causal_tests")
    ((checkpoint, ten),) = verdict.ten_rows(tmp_path).items()
    assert checkpoint == OWN and numbers(ten) == numbers(of_book)


def test_bounds_give_the_same_rows_and_beside_all_lessons_they_are_not_counted(of_book, tmp_path):
    publish(tmp_path, "agreement", lambda settings: settings.assign(lessons="bounds"))
    (six,) = verdict.ten_rows(tmp_path).values()
    assert len(six) == 6 and numbers(six) == numbers({name: of_book[name] for name in six})
    both, of = tmp_path / "both", {True: "bounds", False: "all"}
    publish(both, "agreement", lambda settings: settings.assign(lessons=(settings["seed"] < 3).map(of)))
    (some,) = verdict.ten_rows(both).values()
    pairs = agreement_results.pairs("agreement")
    later = verdict.similarity_rows(pairs[pairs["seed"] >= 3])
    assert numbers(some) == numbers(later)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (None, "has no setting of the agreement with all lessons that reports; .*--splits"),
        (lambda settings: settings.assign(split="selection"), "has no setting of the agreement with all lessons"),
        (lambda settings: settings.assign(lessons="own"), "has no setting of the agreement with all lessons"),
        (
            lambda settings: settings.assign(k=[8, *[16] * (len(settings) - 1)]),
            "settings of .* differ in k: 8, 16; only seeds may differ",
        ),
    ],
)
def test_what_is_missing_or_mixed_is_said(tmp_path, change, message):
    if change:
        publish(tmp_path, "agreement", change)
    with pytest.raises(ExplainerError, match=message):
        verdict.ten_rows(tmp_path)


def in_bfloat16(folder):
    """The first published setting of an experiment as if it had been computed in bfloat16."""
    first = published.rows_of_experiment(folder)["setting"].iloc[0]

    def half(runs):
        its = runs["setting"] == first
        named = [json.dumps(json.loads(each) | {"dtype": "bfloat16"}) for each in runs["identity"][its]]
        return runs.assign(identity=runs["identity"].mask(its, pd.Series(named, runs.index[its])))

    rewrite(folder / "runs.parquet", half)


def test_two_number_formats_are_not_averaged_and_each_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("EXPLAINER_RESULTS", str(tmp_path))
    for name, read in (("agreement", verdict.ten_rows), ("new_rule", verdict.five_rows)):
        publish(tmp_path, name)
        settings = published.rows_of_experiment(tmp_path / name)
        read(tmp_path)
        assert ", float32, " in str(reporting.provenance(settings))
        in_bfloat16(tmp_path / name)
        assert ", bfloat16 and float32, " in str(reporting.provenance(settings))
        with pytest.raises(ExperimentError, match="mine are in bfloat16 and float32; one format is averaged"):
            read(tmp_path)
        shutil.rmtree(tmp_path / name)


@pytest.mark.parametrize(("lacking", "there"), [({0}, True), (range(100), False)])
def test_a_row_rests_on_the_seeds_that_have_it_and_is_left_out_if_none_has(of_book, tmp_path, lacking, there):
    def without(settings):
        return settings.assign(r2_icl_own=settings["r2_icl_own"].mask(settings["seed"].isin(lacking)))

    publish(tmp_path, "agreement")
    publish(tmp_path, "causal_tests", without)
    (rows,) = verdict.ten_rows(tmp_path).values()
    name = verdict._EXPLAINED
    assert set(of_book) - set(rows) == {*verdict._SHARED, *([] if there else [name])}
    if there:
        settings = results("causal-tests").query("seed != 0")
        assert numbers({name: rows[name]})[name][1] == [
            round(each, 9) for each in statistics.student(settings.groupby("seed")["r2_icl_own"].mean())
        ]


def test_the_command_prints_and_draws_own_points_beside_those_of_the_book(tmp_path, capsys, monkeypatch):
    publish(tmp_path / "mine", "agreement")
    monkeypatch.chdir(tmp_path)
    assert commands.main(["verdict", "--results", "mine", "--output", "own.html"]) == 0
    out = capsys.readouterr().out
    assert f"\n{OWN}: For like training, on these examples, 2 of the ten rows, run `explainer-lab shared-part" in out
    assert out.rstrip().endswith("own.html")
    rows = re.findall(r"^attention outputs \(SimAOU\) .*", out, re.MULTILINE)
    assert len(rows) == 2 and rows[0].split() == rows[1].split()
    page = (tmp_path / "own.html").read_text("utf-8")
    assert "<b>mine" not in page and "&lt;b&gt;mine" in page
    assert not re.search(r"<script[^>]* src=|<link", page), "nothing is fetched"
    drawn = figures.row_positions(verdict.ten_rows("mine"))
    assert drawn.layout.showlegend is False  # of one model
    assert [list(trace.x) for trace in drawn.data] == [
        [pytest.approx(row.share.estimate, abs=1e-3) for row in verdict.ten_rows("mine")[OWN].values()]
    ]
