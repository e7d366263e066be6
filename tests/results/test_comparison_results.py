"""What the comparison's tables say: controls, depth, answers and repairs, of tables whose entries are known."""

import hypothesis
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explainer.errors import ExperimentError
from explainer.results import comparison_results, published, reporting, table_intervals
from explainer.results.published import results
from explainer.theory import statistics

N = 30


def setting(task="capitals", seed=0, control="none", k=4, *, shift=0.0, lr=1e-3, diverged=False) -> pd.DataFrame:
    """N queries whose similarities are the same for every control but for `shift`; maps for the first eight."""
    values = np.random.default_rng([seed, len(task)]).normal(0.2, 0.1, N) + shift
    setting = {"task": task, "seed": seed, "k": k, "lr": lr, "n_queries": N, "control": control}
    similar = np.full(N, np.nan) if diverged else values
    return pd.DataFrame(
        {
            "setting": f"{task}-{seed}-{control}-{k}-{lr:g}",
            **setting,
            "checkpoint": "m",
            "position": "prompt",
            "split": "all",
            "query": range(N),
            "query_id": [f"q{i}" for i in range(N)],
            "icl_correct": values > 0.2,
            "sim_aou": similar,
            "sim_am_delta": np.nan,
            "update_cosine": np.where(np.arange(N) < 8, similar, np.nan),
        }
    )


def frames(*each: dict, **shared) -> pd.DataFrame:
    return pd.concat([setting(**shared, **one) for one in each])


# Means


def test_what_diverged_is_left_out():
    frame = frames({"seed": 0}, {"seed": 1, "diverged": True}, {"control": "ascent", "diverged": True})
    found = comparison_results.means_by_control(frame, ["sim_aou", "icl_correct", "sim_am_delta"])
    assert list(found["none"]) == ["sim_aou", "icl_correct"] and list(found["ascent"]) == ["icl_correct"]
    assert found["none"]["sim_aou"].estimate == pytest.approx(setting()["sim_aou"].mean())


# Differences


def test_differences_are_students_over_seeds_corrected_together():
    real, ascent = (frames(*({"seed": s, "control": c, "shift": x * s} for s in range(4)))
                    for c, x in (("none", 0), ("ascent", -0.1)))  # fmt: skip
    pairs = {
        "yes": comparison_results._matched(ascent, real, "sim_aou"),
        "no": comparison_results._matched(real, real, "sim_aou"),
    }
    found = table_intervals.holm_corrected({name: statistics.paired_difference(*both) for name, both in pairs.items()})
    expected = statistics.student([0, -0.1, -0.2, -0.3])
    assert list(found) == ["yes", "no"]
    assert tuple(found["yes"]) == pytest.approx(tuple(expected))
    assert found["yes"].p_value == pytest.approx(2 * expected.p_value)
    assert found["no"].p_value == 1


def test_matched_values_are_of_the_same_queries():
    real = frames(*({"seed": s} for s in (0, 1, 2)))
    control = frames(*({"seed": s, "control": "ascent", "shift": -1} for s in (2, 0)))
    a, b = comparison_results._matched(control.sample(frac=1, random_state=0).sort_values("seed"), real, "sim_aou")
    assert len(a.groups) == 2 and all(np.allclose(x, y - 1) for (x,), (y,) in zip(a.groups, b.groups, strict=True))
    assert all((x == y).all() for x, y in zip(a.ids, b.ids, strict=True))
    assert comparison_results._matched(setting(k=8, control="ascent"), setting(k=4), "sim_aou") is None
    assert comparison_results._matched(setting(control="ascent"), setting(), "update_cosine")[0].sizes == (8,)


def test_a_side_of_two_settings_is_refused():
    real, two = frames({"seed": 0}, {"seed": 1}), frames({"control": "ascent"}, {"control": "untrained"})
    with pytest.raises(ExperimentError, match="settings of capitals differ in control: ascent, untrained"):
        comparison_results._matched(two, real, "sim_aou")
    with pytest.raises(
        ExperimentError, match=r"several settings for one of A, with \['ascent', 'untrained'\] as control"
    ):
        comparison_results._matched(real, two, "sim_aou")
    more = frames({"seed": 0}, {"seed": 0, "k": 8}, {"seed": 0, "k": 16})
    assert comparison_results._matched(setting(control="ascent", k=8), more, "sim_aou")[0].sizes == (N,), (
        "B may hold other settings"
    )


@hypothesis.settings(max_examples=20)
@given(st.floats(-1, 1), st.permutations(range(3)))
def test_what_both_conditions_share_cancels(shift, seeds):
    """A constant shift is its own interval, in whatever order the settings come."""
    frame = frames(*({"seed": s} for s in range(3)), *({"seed": s, "control": "ascent", "shift": shift} for s in seeds))
    (exact,) = comparison_results.changes_under_controls({"all": frame}, ["ascent"], ["sim_aou"]).values()
    assert tuple(exact) == pytest.approx((shift,) * 3, abs=1e-5)


def test_every_control_is_compared_with_the_real_one():
    frame = frames(
        *({"seed": s, "control": c, "shift": x} for c, x in (("ascent", -0.3), ("none", 0)) for s in range(3))
    )
    measures = ("sim_aou", "sim_am_delta", "update_cosine")
    compared = comparison_results.changes_under_controls(
        {"pairs": frame, "other": frame[frame["control"] == "none"]}, measures=measures
    )
    assert set(compared) == {("pairs", "ascent", "sim_aou"), ("pairs", "ascent", "update_cosine")}
    assert all(each.estimate == pytest.approx(-0.3) for each in compared.values())
    (turned,) = comparison_results.changes_under_controls(
        {"pairs": frame}, ["none"], ["sim_aou"], than="ascent"
    ).values()
    assert turned.estimate == pytest.approx(0.3)


def test_means_over_tasks_are_of_these_tasks():
    frame = frames(
        *(
            {"task": t, "seed": s, "control": c}
            for t in ("past", "capitals")
            for s in (0, 1)
            for c in ("none", "ascent")
        )
    )
    frame = pd.concat([frame, setting("past", 2)])
    found = comparison_results.means_by_control(frame, ["sim_aou", "sim_am_delta"])
    real = frame[frame["control"] == "none"]
    expected = reporting.similarity_interval(real, "sim_aou", n_resamples=comparison_results._RESAMPLES)
    assert found["none"]["sim_aou"] == expected
    by_setting = real.groupby(["task", "setting"])["sim_aou"].mean()
    assert found["none"]["sim_aou"].estimate == pytest.approx(by_setting.groupby("task").mean().mean())
    assert "sim_am_delta" not in found["none"] and set(found) == {"none", "ascent"}


# Depth.


def layers_of(rows) -> pd.DataFrame:
    """A table "layers" of one task with a row of values for each seed; NaN is an FT that diverged."""
    return pd.DataFrame(
        {"setting": f"c{seed}", "task": "sst2", "seed": seed, "layer": layer, "sim_aou": value, "floor": 0.0}
        for seed, curve in enumerate(rows)
        for layer, value in enumerate(curve)
    )


def trend(rows):
    return comparison_results.rank_trends({"sst2": layers_of(rows)}, "sim_aou", "floor")["sst2"]


def test_trend_is_the_mean_of_rank_correlations():
    assert trend([[0, 1, 2, 3], [3, 2, 1, 0], [0, 1, 3, 2]]).estimate == pytest.approx((1 - 1 + 0.8) / 3)
    rising = np.linspace(0, 1, 30) + 0.05 * np.random.default_rng(0).normal(size=(5, 30))
    assert trend(rising).low > 0.9 and trend(-rising).high < -0.9
    rising[0, 5] = np.nan
    assert trend(rising).estimate > 0.9
    assert trend([*rising, np.full(30, np.nan)]).estimate == trend(rising).estimate, "an FT that diverged"


def test_two_positions_or_two_grids_of_a_task_are_no_more_seeds():
    """The published grid [position] has both positions: read as one, the trend was -.18 (-.34, -.02), n = 10."""

    def trends(grids, **where):
        of_task = dict(list(results(grids, "layers", control="none", **where).groupby("task")))
        return comparison_results.rank_trends(of_task, "sim_aou")

    with pytest.raises(ExperimentError, match=r"settings of sst2 differ in position: prompt, first-label"):
        trends("position")
    assert trends("position", position="first-label")
    with pytest.raises(ExperimentError, match="settings of sst2 differ in n_queries: 150, 60"):
        trends(("classification", "controls"))


# Repairs.

ZSL = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0]
ICL = [0, 1, 1, 1, 1, 1, 0, 0, 0, 0]
FT = [1, 0, 1, 1, 0, 0, 0, 0, 0, 0]
LABELS = [0, 1, 0, 0, 0, 0, 1, 1, 1, 1]


def queries_of(seed=0, *, zsl=ZSL, icl=ICL, ft=FT, label=LABELS, **columns):
    correct = {f"{name}_correct": np.array(row, dtype=bool) for name, row in (("zsl", zsl), ("icl", icl), ("ft", ft))}
    setting = {"setting": f"c{seed}", "task": "a", "seed": seed, "control": "none", "k": 3}
    names = {"query": range(len(zsl)), "query_id": [f"q{i}" for i in range(len(zsl))]}
    return pd.DataFrame(setting | names | {"label": label} | correct | columns)


def test_repairs_by_hand():
    repairs = comparison_results.repairs(queries_of())
    assert (repairs.n_errors, repairs.n_repaired, repairs.n_different) == (8, 2, 2)
    assert repairs.recall.estimate == 1 and repairs.recall.low < 0.5, "two of two is no certainty"
    assert repairs.chance.estimate == pytest.approx(4 / 8)
    assert repairs.within_label.estimate == pytest.approx(1)  # FT and ICL repair errors of label 0 only, ICL all
    assert repairs.excess.estimate == pytest.approx(0)
    assert comparison_results.repairs(queries_of().drop(columns="label")).within_label.estimate == pytest.approx(4 / 8)


def test_repairs_weigh_seeds_by_what_ft_repairs():
    many = queries_of(0, zsl=[0] * 4, ft=[1, 1, 1, 0], icl=[1, 0, 0, 0], label=np.nan)  # chance 1/4, 3 repairs
    one = queries_of(1, zsl=[0] * 4, ft=[1, 0, 0, 0], icl=[1, 1, 1, 1], label=np.nan)  # chance 1, 1 repair
    repairs = comparison_results.repairs(pd.concat([many, one]))
    assert repairs.recall.estimate == pytest.approx(2 / 4)
    assert repairs.chance.estimate == pytest.approx((3 * 1 / 4 + 1) / 4)
    assert tuple(repairs.within_label) == tuple(repairs.chance)  # no labels, no groups
    assert repairs.excess.estimate == pytest.approx(2 / 4 - (3 * 1 / 4 + 1) / 4)


def test_no_repairs_have_no_share():
    nothing = comparison_results.repairs(queries_of(zsl=[0] * 40, ft=[0] * 40, icl=[1] * 40, label=np.nan))
    assert nothing.n_repaired == 0 and nothing.recall.undefined == 1


def test_ten_tasks_are_published_for_both_models():
    """Word pairs have fewer seeds with the untrained model, and no task is there twice."""
    trained, untrained = (comparison_results.queries_of_ten_tasks(control) for control in ("none", "untrained"))
    assert set(trained["task"]) == set(untrained["task"]) and trained["task"].nunique() == 10
    for each, control in ((trained, "none"), (untrained, "untrained")):
        published.require_only_seeds_differ(each)
        assert set(each["control"]) == {control} and each["ft_correct"].notna().all()
    assert set(untrained["setting"]).isdisjoint(trained["setting"])
