"""explainer.analysis.similarity: means over tasks, and what FT and ICL repair."""

import numpy as np
import pandas as pd
import pytest

from explainer.analysis import reporting, similarity
from explainer.errors import StudyError
from explainer.theory.statistics import Interval

ZSL = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0]
ICL = [0, 1, 1, 1, 1, 1, 0, 0, 0, 0]
FT = [1, 0, 1, 1, 0, 0, 0, 0, 0, 0]
LABELS = [0, 1, 0, 0, 0, 0, 1, 1, 1, 1]


def queries_of(seed=0, *, zsl=ZSL, icl=ICL, ft=FT, label=LABELS, **columns):
    correct = {f"{name}_correct": np.array(row, dtype=bool) for name, row in (("zsl", zsl), ("icl", icl), ("ft", ft))}
    setting = {"cell": f"c{seed}", "task": "a", "seed": seed, "control": "none", "k": 3}
    return pd.DataFrame(setting | {"query": range(len(zsl)), "label": label} | correct | columns)


def test_similarities_by_task_leave_out_tasks_without_the_measure():
    a = pd.concat([queries_of(0, x=0.1, y=np.nan), queries_of(1, x=0.5, y=0.2)])
    both = pd.concat([a, a.assign(task="b", cell=a["cell"] + "b", y=0.3)])
    found = reporting.by_task(both, "x", n_resamples=200)
    assert list(found) == ["a", "b"] and found["a"].estimate == pytest.approx(0.3)
    assert found["a"].low < 0.3 < found["a"].high
    assert list(reporting.by_task(both, "y", n_resamples=20)) == ["b"]
    assert reporting.estimates({"x": found}) == {"x": {"a": found["a"].estimate, "b": found["b"].estimate}}


def of(**values):
    return {task: Interval(value, value - 1, value + 1) for task, value in values.items()}


def test_mean_over_tasks_has_students_interval():
    half = 4.302652729911275 / 3**0.5
    assert tuple(similarity.over_tasks(of(a=1.0, b=2.0, c=3.0))) == pytest.approx((2.0, 2 - half, 2 + half))
    alone = similarity.over_tasks(of(a=0.5))
    assert alone.estimate == 0.5 and np.isnan([alone.low, alone.high]).all()


def test_difference_over_tasks_is_paired_and_ignores_unmatched_tasks():
    a, b = of(x=0.3, y=0.5, z=0.9, only=5.0), of(x=0.1, y=0.4, z=1.0)
    difference, above = similarity.difference_over_tasks(a, b)
    each = np.array([0.2, 0.1, -0.1])
    t = each.mean() / (each.std(ddof=1) / 3**0.5)
    assert difference.estimate == pytest.approx(each.mean()) and above == 2
    assert difference.p_value == pytest.approx(1 - t / (2 + t**2) ** 0.5)  # Student's t with 2 degrees of freedom


def test_repairs_by_hand():
    repairs = similarity.repairs(queries_of())
    assert (repairs.n_errors, repairs.n_repaired) == (8, 2)
    assert repairs.recall.estimate == 1
    assert repairs.chance.estimate == pytest.approx(4 / 8)
    assert repairs.within_label.estimate == pytest.approx(1)  # FT and ICL repair errors of label 0 only, ICL all
    assert repairs.excess.estimate == pytest.approx(0)


def test_repairs_weigh_seeds_by_what_ft_repairs():
    many = queries_of(0, zsl=[0] * 4, ft=[1, 1, 1, 0], icl=[1, 0, 0, 0], label=np.nan)  # chance 1/4, 3 repairs
    one = queries_of(1, zsl=[0] * 4, ft=[1, 0, 0, 0], icl=[1, 1, 1, 1], label=np.nan)  # chance 1, 1 repair
    repairs = similarity.repairs(pd.concat([many, one]))
    assert repairs.recall.estimate == pytest.approx(2 / 4)
    assert repairs.chance.estimate == pytest.approx((3 * 1 / 4 + 1) / 4)
    assert tuple(repairs.within_label) == tuple(repairs.chance)  # no labels, no groups
    assert repairs.excess.estimate == pytest.approx(2 / 4 - (3 * 1 / 4 + 1) / 4)


def test_repairs_carry_a_share_from_twenty_on():
    def of(n):
        return similarity.repairs(queries_of(zsl=[0] * 40, ft=[1] * n + [0] * (40 - n), icl=[1] * 40, label=np.nan))

    assert of(20).carries
    assert not of(19).carries
    nothing = of(0)
    assert not nothing.carries
    assert nothing.recall.undefined == 1


def test_repairs_refuse_ft_that_diverged():
    with pytest.raises(StudyError, match="no 'ft_correct'"):
        similarity.repairs(queries_of().assign(ft_correct=None))
