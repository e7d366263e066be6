"""The verdict redrawn from the tables of another directory: the same numbers, what may be missing, what is refused."""

import json
import math
import re
import shutil

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from explainer import commands
from explainer.data.files import PUBLISHED
from explainer.errors import ExperimentError, ExplainerError
from explainer.figures import verdict
from explainer.results import agreement, published, reporting, verdict_scale
from explainer.results.published import results
from explainer.theory import statistics

OWN = "/models/<b>mine"


@pytest.fixture(scope="module")
def of_book():
    return next(iter(verdict_scale.of_book().values()))


def numbers(rows):
    """The three numbers of every interval, without the digits that the order of a sum decides."""
    return {name: [[round(each, 9) for each in one] for one in its.values()] for name, its in rows.items()}


def publish(directory, name, change=lambda settings: settings):
    """The book's tables of an experiment under another checkpoint, as the settings of its verdict were changed."""
    shutil.copytree(PUBLISHED / name, directory / name)
    grids = pq.read_table(directory / name / "grids.parquet").to_pandas()
    settings = pq.read_table(directory / name / "settings.parquet").to_pandas()
    chosen = settings["setting"].isin(grids.loc[grids["grid"] == verdict_scale._BOOK[name], "setting"])
    own = change(settings[chosen].assign(checkpoint=OWN))
    metadata = pq.read_metadata(directory / name / "runs.parquet").metadata
    table = pa.Table.from_pandas(own, preserve_index=False).replace_schema_metadata(metadata)
    pq.write_table(table, directory / name / "settings.parquet")


def test_a_model_that_does_not_learn_in_context_is_named(tmp_path):
    publish(tmp_path, "agreement", lambda settings: settings.assign(icl_accuracy=settings["zsl_accuracy"]))
    (line,) = verdict_scale.unlearned(tmp_path)
    assert OWN in line and "0.00" in line


def test_the_book_has_the_rows_of_its_chapter(of_book):
    rows = verdict_scale.of_seeds(
        agreement.pairs("agreement"),
        results("shared-part", "queries"),
        results("causal-tests", "queries"),
        results("causal-tests"),
    )
    assert numbers(of_book) == numbers(
        {name: verdict_scale.normalised_position(*three) for name, three in rows.items()}
    )


def test_an_own_directory_has_the_rows_of_what_was_published(of_book, tmp_path):
    publish(tmp_path, "agreement")
    (six,) = verdict_scale.verdict(tmp_path).values()
    assert len(six) == 6 and numbers(six) == numbers({name: of_book[name] for name in six})
    assert [line.rpartition("; ")[2] for line in verdict_scale.missing(tmp_path)] == [
        f"explainer-lab {name} --publish {tmp_path}" for name in ("shared-part", "causal-tests")
    ]
    assert verdict_scale.unlearned(tmp_path) == []
    publish(tmp_path, "shared_part")
    publish(tmp_path, "causal_tests")
    ((checkpoint, ten),) = verdict_scale.verdict(tmp_path).items()
    assert checkpoint == OWN and numbers(ten) == numbers(of_book) and not verdict_scale.missing(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (None, "there are no tables of results in .*compute them, .*: explainer-lab agreement --publish"),
        (
            lambda settings: settings.assign(split="selection"),
            "has no setting with all lessons that reports; .*--splits",
        ),
        (lambda settings: settings.assign(lessons="own"), "has no setting with all lessons that reports"),
        (
            lambda settings: settings.assign(k=[8, *[16] * (len(settings) - 1)]),
            "differ in k: .*; only seeds may differ, so publish each in a directory of its own",
        ),
    ],
)
def test_what_is_missing_or_mixed_is_said(tmp_path, change, message):
    if change:
        publish(tmp_path, "agreement", change)
    with pytest.raises(ExplainerError, match=message):
        verdict_scale.verdict(tmp_path)


def in_bfloat16(path, setting):
    """One run of a table as if it had been computed in bfloat16."""
    runs, metadata = pq.read_table(path).to_pandas(), pq.read_metadata(path).metadata
    its = runs["setting"] == setting
    runs.loc[its, "identity"] = [json.dumps(json.loads(each) | {"dtype": "bfloat16"}) for each in runs["identity"][its]]
    pq.write_table(pa.Table.from_pandas(runs, preserve_index=False).replace_schema_metadata(metadata), path)


def test_two_number_formats_are_not_averaged_and_each_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("EXPLAINER_RESULTS", str(tmp_path))
    publish(tmp_path, "agreement")
    settings = published.of_experiment(tmp_path / "agreement")
    verdict_scale.verdict(tmp_path)
    assert ", float32, " in reporting.provenance(settings)
    in_bfloat16(tmp_path / "agreement" / "runs.parquet", settings["setting"].iloc[0])
    assert ", bfloat16 and float32, " in reporting.provenance(settings)
    with pytest.raises(ExperimentError, match="mine are in bfloat16 and float32; one format is averaged"):
        verdict_scale.verdict(tmp_path)


@pytest.mark.parametrize(("lacking", "there"), [({0}, True), (range(100), False)])
def test_a_row_rests_on_the_seeds_that_have_it_and_is_left_out_if_none_has(of_book, tmp_path, lacking, there):
    def without(settings):
        return settings.assign(r2_icl_own=settings["r2_icl_own"].mask(settings["seed"].isin(lacking)))

    publish(tmp_path, "agreement")
    publish(tmp_path, "causal_tests", without)
    (rows,) = verdict_scale.verdict(tmp_path).values()
    (name,) = verdict_scale._EXPLAINED
    assert set(of_book) - set(rows) == {*verdict_scale._SHARED, *([] if there else [name])}
    if there:
        settings = results("causal-tests").query("seed != 0")
        assert numbers({name: rows[name]})[name][1] == [
            round(each, 9) for each in statistics.student(settings.groupby("seed")["r2_icl_own"].mean())
        ]


def test_a_share_needs_a_ceiling_on_one_side_of_the_floor():
    def share(*ceiling):
        floor = pd.Series([0.0, 0.1])
        return verdict_scale._way(floor, floor + 0.1, pd.Series(ceiling))["share of the way"].estimate

    assert share(0.5, 0.6) == pytest.approx(0.2) and share(-0.5, -0.4) == pytest.approx(-0.2)
    assert math.isnan(share(0.5, -0.4)) and math.isnan(share(0.0, 0.6))


def test_the_command_prints_and_draws_own_points_beside_those_of_the_book(tmp_path, capsys, monkeypatch):
    publish(tmp_path / "mine", "agreement")
    monkeypatch.chdir(tmp_path)
    assert commands.main(["verdict", "--results", "mine", "--output", "own.html"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(OWN) and out.rstrip().endswith("own.html")
    rows = re.findall(r"^attention outputs \(SimAOU\) .*", out, re.MULTILINE)
    assert len(rows) == 2 and rows[0].split() == rows[1].split()
    page = (tmp_path / "own.html").read_text("utf-8")
    assert "<b>mine" not in page.partition("<table>")[2] and "&lt;b&gt;mine" in page
    assert not re.search(r"<script[^>]* src=|<link", page), "nothing is fetched"
    drawn = verdict.normalised_positions(verdict_scale.verdict("mine"))
    assert [list(trace.x) for trace in drawn.data] == [
        [
            pytest.approx(its["share of the way"].estimate, abs=1e-3)
            for its in verdict_scale.verdict("mine")[OWN].values()
        ]
    ]
