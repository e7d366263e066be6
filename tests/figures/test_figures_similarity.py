import json
from pathlib import Path

import numpy as np
import pytest

from explainer.errors import ExplainerError
from explainer.figures import drawings, similarity
from explainer.lab.store import Stored
from explainer.theory.statistics import Interval

ZSL = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0]
ICL = [0, 1, 1, 1, 1, 1, 0, 0, 0, 0]
FT = [1, 0, 1, 1, 0, 0, 0, 0, 0, 0]
LABELS = [0, 1, 0, 0, 0, 0, 1, 1, 1, 1]


def stored(values=(0.1, 0.3), *, zsl=ZSL, icl=ICL, ft=FT, labels=LABELS, **measures):
    similarities = {"sim_aou": {"queries": list(values)}} | {n: {"queries": list(v)} for n, v in measures.items()}
    correct = {name: {"correct": row} for name, row in (("zsl", zsl), ("icl", icl), ("ft", ft))}
    result = {"similarity": similarities, "predictions": correct, "setting": {"labels": labels}, "reasons": {}}
    return Stored(Path("x.json"), {}, {}, result)


def test_intervals_are_means_over_seeds_and_leave_out_tasks_without_the_measure():
    finished = {"a": [stored((0.0, 0.2)), stored((0.4, 0.6))], "b": [stored(other=(0.5, 0.5)), stored()]}
    found = similarity.intervals(finished, "sim_aou")
    assert found["a"].estimate == pytest.approx(0.3)
    assert found["a"].low < 0.3 < found["a"].high
    assert list(found) == ["a", "b"]
    assert list(similarity.intervals(finished, "other")) == []


def test_mean_over_tasks_has_students_interval():
    mean = similarity.mean_over({"a": Interval(1.0, 0.0, 2.0), "b": 2.0, "c": 3.0})
    assert mean == pytest.approx((2.0, 2 - 4.302652729911275 / 3**0.5, 2 + 4.302652729911275 / 3**0.5))
    alone = similarity.mean_over({"a": 0.5})
    assert alone.estimate == 0.5
    assert np.isnan(alone[1:]).all()


def test_difference_over_tasks_is_paired_and_ignores_unmatched_tasks():
    a, b = {"x": 0.3, "y": 0.5, "z": 0.9, "only": 5.0}, {"x": 0.1, "y": 0.4, "z": 1.0}
    difference = similarity.difference_over(a, b)
    each = np.array([0.2, 0.1, -0.1])
    t = each.mean() / (each.std(ddof=1) / 3**0.5)
    assert difference.estimate == pytest.approx(each.mean())
    assert difference.above == 2
    assert difference.p_value == pytest.approx(1 - t / (2 + t**2) ** 0.5)  # Student's t with 2 degrees of freedom
    assert np.isnan(similarity.difference_over({"x": 1.0}, {"x": 0.0}).p_value)


def test_repairs_by_hand():
    repairs = similarity.repairs([stored()])
    assert (repairs.n_errors, repairs.n_repaired) == (8, 2)
    assert repairs.recall.estimate == 1
    assert repairs.chance.estimate == pytest.approx(4 / 8)
    assert repairs.within_label.estimate == pytest.approx(1)  # FT and ICL repair errors of label 0 only, ICL all
    assert repairs.excess.estimate == pytest.approx(0)


def test_repairs_weigh_seeds_by_what_ft_repairs():
    many = stored(zsl=[0] * 4, ft=[1, 1, 1, 0], icl=[1, 0, 0, 0], labels=None)  # chance 1/4, 3 repairs
    one = stored(zsl=[0] * 4, ft=[1, 0, 0, 0], icl=[1, 1, 1, 1], labels=None)  # chance 1, 1 repair
    repairs = similarity.repairs([many, one])
    assert repairs.recall.estimate == pytest.approx(2 / 4)
    assert repairs.chance.estimate == pytest.approx((3 * 1 / 4 + 1) / 4)
    assert repairs.within_label == repairs.chance  # no labels, no groups
    assert repairs.excess.estimate == pytest.approx(2 / 4 - (3 * 1 / 4 + 1) / 4)


def test_repairs_carry_a_share_from_twenty_on():
    def of(n):
        return similarity.repairs([stored(zsl=[0] * 40, ft=[1] * n + [0] * (40 - n), icl=[1] * 40, labels=None)])

    assert of(20).carries
    assert not of(19).carries
    nothing = of(0)
    assert not nothing.carries
    assert nothing.recall.undefined == 1


def test_repairs_refuse_ft_that_diverged():
    broken = stored()
    broken.result["predictions"]["ft"] = None
    with pytest.raises(ExplainerError, match="no predictions of 'ft'"):
        similarity.repairs([broken])


def drawn():
    return similarity.dots(
        {"ours": {"a": Interval(0.2, 0.1, 0.4), "b": 0.3}},
        {"floor": {"a": Interval(0.1, 0.1, 0.1), "b": 0.0}, "nothing": {}},
        {"quoted": {"b": 0.5, "c": 0.6}},
        "similarity",
    )


def test_dots_have_a_row_for_each_task_of_any_series():
    figure = drawn()
    assert list(figure.layout.yaxis.ticktext) == ["a", "b", "c"]
    names = [trace.name for trace in figure.data]
    assert names == ["ours", "floor", "quoted"]
    for trace in figure.data:
        for y, row in zip(trace.y, trace.customdata, strict=True):
            assert abs(y - ["a", "b", "c"].index(row)) < 0.5
    assert list(figure.data[0].x) == [0.2, 0.3]


def test_dots_show_ends_of_intervals_where_there_are_any():
    ours, floor, quoted = drawn().data
    np.testing.assert_allclose(ours.error_x.array, [0.2, 0])
    np.testing.assert_allclose(ours.error_x.arrayminus, [0.1, 0])
    assert floor.error_x.array is None
    assert quoted.error_x.array is None


def test_dots_tell_classes_of_results_apart_without_colour():
    ours, floor, quoted = (trace.marker.symbol for trace in drawn().data)
    assert not ours.endswith("-open")
    assert quoted.endswith("-open")
    assert floor not in (ours, quoted)


def test_scatter_draws_ranks_and_sizes():
    pair = np.array([0.5, -1.0, 7.0]), np.array([3.0, 2.0, 1.0])
    figure = similarity.scatter({"one": pair, "two": pair[::-1]}, np.array([10, 20, 40]), "x", "y")
    first, second = figure.data
    assert list(first.x) == [2, 1, 3]
    assert list(first.y) == [3, 2, 1]
    assert list(second.x) == [3, 2, 1]
    assert first.marker.size[0] < first.marker.size[1] < first.marker.size[2]
    json.dumps(figure.to_plotly_json()["data"][0]["x"])  # plain numbers


@pytest.mark.parametrize("name", ["repairs", "update_angle", "two_maps", "pair_order"])
def test_drawings_are_readable_on_a_phone_and_in_the_dark(name):
    drawing = drawings.drawing(name)
    assert 'viewBox="0 0 520 ' in drawing.svg
    assert "currentColor" in drawing.svg
    assert "#000" not in drawing.svg
    assert drawing.caption.endswith(".")
    assert drawing.alt.endswith(".")
