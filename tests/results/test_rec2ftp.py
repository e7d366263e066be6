"""explainer.results.rec2ftp: means over tasks, and what FT and ICL repair."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from explainer.errors import ExperimentError
from explainer.results import rec2ftp, reporting
from explainer.theory import statistics

ZSL = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0]
ICL = [0, 1, 1, 1, 1, 1, 0, 0, 0, 0]
FT = [1, 0, 1, 1, 0, 0, 0, 0, 0, 0]
LABELS = [0, 1, 0, 0, 0, 0, 1, 1, 1, 1]


def queries_of(seed=0, *, zsl=ZSL, icl=ICL, ft=FT, label=LABELS, **columns):
    correct = {f"{name}_correct": np.array(row, dtype=bool) for name, row in (("zsl", zsl), ("icl", icl), ("ft", ft))}
    setting = {"setting": f"c{seed}", "task": "a", "seed": seed, "control": "none", "k": 3}
    names = {"query": range(len(zsl)), "query_id": [f"q{i}" for i in range(len(zsl))]}
    return pd.DataFrame(setting | names | {"label": label} | correct | columns)


def test_similarities_by_task_leave_out_tasks_without_the_measure():
    a = pd.concat([queries_of(0, x=0.1, y=np.nan), queries_of(1, x=0.5, y=0.2)])
    both = pd.concat([a, a.assign(task="b", setting=a["setting"] + "b", y=0.3)])
    found = reporting.by_task(both, "x", n_resamples=200)
    assert list(found) == ["a", "b"] and found["a"].estimate == pytest.approx(0.3)
    assert found["a"].low < 0.3 < found["a"].high
    assert list(reporting.by_task(both, "y", n_resamples=20)) == ["b"]
    assert reporting.estimates({"x": found}) == {"x": {"a": found["a"].estimate, "b": found["b"].estimate}}


def over(task, seeds=3, shift=0.0, n=40):
    """Cells of a task whose seeds differ by 0.1, a floor 0.05 lower, and another that does not exist."""
    rng = np.random.default_rng(len(task))
    settings = []
    for seed in range(seeds):
        x = 0.2 + shift + 0.1 * rng.normal() + 0.05 * rng.normal(size=n)
        setting = queries_of(seed, zsl=[0] * n, icl=[0] * n, ft=[0] * n, label=0.0)
        settings.append(
            setting.assign(task=task, setting=f"{task}{seed}", x=x, floor=x - 0.05 - 0.01 * seed, none=np.nan)
        )
    return pd.concat(settings)


def test_tasks_are_no_replicates():
    """Three tasks far apart, each known well: their mean is known well. Student over tasks called it unknown."""
    three = pd.concat([over("a", shift=-1), over("bb"), over("ccc", shift=1)])
    interval = reporting.over_tasks(three, "x", n_resamples=300)
    means = three.groupby("task")["x"].mean()
    assert interval.estimate == pytest.approx(means.mean())
    assert interval.high - interval.low < 0.3 < statistics.student(means).high - statistics.student(means).low


def test_one_task_given_three_times_is_not_known_better():
    """SST-2 and SST-5 ask about the same sentences: ids tell, so that a copy of a task adds nothing to its queries."""
    one = over("a", seeds=1)
    copies = pd.concat([one.assign(task=name, setting=name) for name in "abc"])
    alone, thrice = (reporting.similarity_interval(each, "x", n_resamples=1000) for each in (one, copies))
    assert thrice.estimate == pytest.approx(alone.estimate)
    assert thrice.high - thrice.low == pytest.approx(alone.high - alone.low, rel=0.05)
    apart = copies.assign(query_id=copies["task"] + copies["query_id"])
    narrow = reporting.similarity_interval(apart, "x", n_resamples=1000)
    assert narrow.high - narrow.low < 0.7 * (alone.high - alone.low)


def test_repairs_by_hand():
    repairs = rec2ftp.repairs(queries_of())
    assert (repairs.n_errors, repairs.n_repaired, repairs.n_different) == (8, 2, 2)
    assert repairs.recall.estimate == 1 and repairs.recall.low < 0.5, "two of two is no certainty"
    assert repairs.chance.estimate == pytest.approx(4 / 8)
    assert repairs.within_label.estimate == pytest.approx(1)  # FT and ICL repair errors of label 0 only, ICL all
    assert repairs.excess.estimate == pytest.approx(0)
    assert rec2ftp.repairs(queries_of().drop(columns="label")).within_label.estimate == pytest.approx(4 / 8)


def test_repairs_weigh_seeds_by_what_ft_repairs():
    many = queries_of(0, zsl=[0] * 4, ft=[1, 1, 1, 0], icl=[1, 0, 0, 0], label=np.nan)  # chance 1/4, 3 repairs
    one = queries_of(1, zsl=[0] * 4, ft=[1, 0, 0, 0], icl=[1, 1, 1, 1], label=np.nan)  # chance 1, 1 repair
    repairs = rec2ftp.repairs(pd.concat([many, one]))
    assert repairs.recall.estimate == pytest.approx(2 / 4)
    assert repairs.chance.estimate == pytest.approx((3 * 1 / 4 + 1) / 4)
    assert tuple(repairs.within_label) == tuple(repairs.chance)  # no labels, no groups
    assert repairs.excess.estimate == pytest.approx(2 / 4 - (3 * 1 / 4 + 1) / 4)


def test_repairs_carry_a_share_from_twenty_on():
    def of(n):
        return rec2ftp.repairs(queries_of(zsl=[0] * 40, ft=[1] * n + [0] * (40 - n), icl=[1] * 40, label=np.nan))

    enough, nothing = of(20), of(0)
    of_resamples = {share: replace(enough.recall, undefined=share) for share in (0.01, 0.012)}
    assert [replace(enough, recall=recall).carries for recall in of_resamples.values()] == [True, False]
    assert enough.carries
    assert not of(19).carries
    assert not nothing.carries
    assert nothing.recall.undefined == 1


def test_repairs_refuse_ft_that_diverged():
    with pytest.raises(ExperimentError, match="no 'ft_correct'"):
        rec2ftp.repairs(queries_of().assign(ft_correct=None))


def test_ten_tasks_are_published_for_both_models():
    """Word pairs have fewer seeds with the untrained model, and no task is there twice."""
    trained, untrained = (rec2ftp.queries(control) for control in ("none", "untrained"))
    assert set(trained["task"]) == set(untrained["task"]) and trained["task"].nunique() == 10
    for each, control in ((trained, "none"), (untrained, "untrained")):
        reporting.require_only_seeds_differ(each)
        assert set(each["control"]) == {control} and each["ft_correct"].notna().all()
    assert set(untrained["setting"]).isdisjoint(trained["setting"])
