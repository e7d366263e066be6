"""explainer.results: the rows of a grid, in its order, or why there are none."""

import pytest
import tiny_models
import toy_study

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
