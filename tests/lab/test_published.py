"""explainer.results: the rows of a grid, in its order, or why there are none."""

import pytest
import tiny_models
import toy_study
from conftest import ROOT

from explainer.errors import ExperimentError
from explainer.results.published import results
from explainer_lab.comparison import Comparison
from explainer_lab.store import Published, Store


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The published results of a small study of its own."""
    directory = tiny_models.save("llama", tmp_path / "model")
    folder = tmp_path / "published" / "comparison"
    folder.mkdir(parents=True)
    grid = f'checkpoint = "{directory}"\ntask = "toy"\nk = 3\nn_queries = {toy_study.N}\nseed = [1, 0]\n'
    (folder / "grids.toml").write_text(f'[toy]\n{grid}control = ["none", "ascent"]\n')
    settings, store = Comparison.read_grids(folder / "grids.toml")["toy"], Store(tmp_path / "store")
    toy_study.start(settings[:3], store)
    Comparison(data={"toy": toy_study.DATA}).publish({"toy": settings}, store, Published(folder))
    monkeypatch.setenv("EXPLAINER_RESULTS", str(tmp_path / "published"))
    return folder


def test_rows_come_in_the_order_of_the_grid_with_the_columns_of_their_setting(place):
    queries = results("toy", "queries", seed=1)
    assert queries[["seed", "control", "query"]].values.tolist() == [
        [1, control, query] for control in ("none", "ascent") for query in range(toy_study.N)
    ]
    (setting,) = results("toy", seed=0, control="none").to_dict("records")
    assert setting["task"] == "toy" and 0 <= setting["icl_accuracy"] <= 1


def test_a_table_keeps_its_own_column_where_the_setting_has_one_of_that_name():
    runs = results("plain", "runs", seed=0)
    assert set(runs["device"]) == {"x86_64"} and not [name for name in runs if name.endswith(("_x", "_y"))]
    assert set(results("plain", seed=0)["device"]) == {"cpu"}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ((("none",), {}), "no grid 'none'; known: toy"),
        ((("toy",), {"seed": 7}), r"no setting of the grid 'toy' has \{'seed': 7\}"),
        ((("toy", "heads"), {"seed": 1}), "no table 'heads' of comparison; it has grids, layers, queries, runs, sett"),
        ((("toy",), {}), "1 of the 4 .* not published in .*; compute them: explainer-lab comparison --grid .* --publ"),
    ],
)
def test_what_is_not_there_is_said(place, asked, message):
    arguments, where = asked
    with pytest.raises(ExperimentError, match=message):
        results(*arguments, **where)


def test_the_card_names_every_file():
    folder = ROOT / "src" / "explainer" / "published"
    text = (folder / "README.md").read_text("utf-8")
    for path in folder.glob("*/*.parquet"):
        assert f"data_files: {path.parent.name}/{path.name}" in text
