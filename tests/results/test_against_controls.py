"""explainer.results.against_controls: means and paired differences over queries and seeds, hundreds in seconds."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explainer.compare.controls import CONTROLS
from explainer.errors import ExperimentError
from explainer.results import against_controls, reporting
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
            "name": CONTROLS[control].short,
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
    found = against_controls.over_tasks(frame, ["sim_aou", "icl_correct", "sim_am_delta"])
    assert list(found["none"]) == ["sim_aou", "icl_correct"] and list(found["ascent"]) == ["icl_correct"]
    assert found["none"]["sim_aou"].estimate == pytest.approx(setting()["sim_aou"].mean())


# Differences


def test_differences_are_students_over_seeds_corrected_together():
    real, ascent = (frames(*({"seed": s, "control": c, "shift": x * s} for s in range(4)))
                    for c, x in (("none", 0), ("ascent", -0.1)))  # fmt: skip
    pairs = {
        "yes": against_controls._matched(ascent, real, "sim_aou"),
        "no": against_controls._matched(real, real, "sim_aou"),
    }
    found = reporting.comparisons(pairs)
    expected = statistics.student([0, -0.1, -0.2, -0.3])
    assert list(found) == ["yes", "no"]
    assert tuple(found["yes"]) == pytest.approx(tuple(expected))
    assert found["yes"].p_value == pytest.approx(2 * expected.p_value)
    assert found["no"].p_value == 1


def test_matched_values_are_of_the_same_queries():
    real = frames(*({"seed": s} for s in (0, 1, 2)))
    control = frames(*({"seed": s, "control": "ascent", "shift": -1} for s in (2, 0)))
    a, b = against_controls._matched(control.sample(frac=1, random_state=0).sort_values("seed"), real, "sim_aou")
    assert len(a.groups) == 2 and all(np.allclose(x, y - 1) for (x,), (y,) in zip(a.groups, b.groups, strict=True))
    assert all((x == y).all() for x, y in zip(a.ids, b.ids, strict=True))
    assert against_controls._matched(setting(k=8, control="ascent"), setting(k=4), "sim_aou") is None
    assert against_controls._matched(setting(control="ascent"), setting(), "update_cosine")[0].sizes == (8,)


def test_a_side_of_two_settings_is_refused():
    real, two = frames({"seed": 0}, {"seed": 1}), frames({"control": "ascent"}, {"control": "untrained"})
    with pytest.raises(ExperimentError, match="settings of capitals differ in control: ascent, untrained"):
        against_controls._matched(two, real, "sim_aou")
    with pytest.raises(
        ExperimentError, match=r"several settings for one of A, with \['ascent', 'untrained'\] as control"
    ):
        against_controls._matched(real, two, "sim_aou")
    more = frames({"seed": 0}, {"seed": 0, "k": 8}, {"seed": 0, "k": 16})
    assert against_controls._matched(setting(control="ascent", k=8), more, "sim_aou")[0].sizes == (N,), (
        "B may hold other settings"
    )


@settings(max_examples=20)
@given(st.floats(-1, 1), st.permutations(range(3)))
def test_what_both_conditions_share_cancels(shift, seeds):
    """A constant shift is its own interval, in whatever order the settings come."""
    frame = frames(*({"seed": s} for s in range(3)), *({"seed": s, "control": "ascent", "shift": shift} for s in seeds))
    (exact,) = against_controls.changes_under_controls({"all": frame}, ["ascent"], ["sim_aou"]).values()
    assert tuple(exact) == pytest.approx((shift,) * 3, abs=1e-5)


def test_what_was_learned_is_settled_over_seeds():
    """A task on which FT repairs a few answers of two seeds has not been learned, and a control there has no power."""
    frame = frames(*({"task": t, "seed": s} for t in ("past", "capitals", "plurals") for s in range(5)))
    frame = frame.assign(zsl_correct=False, ft_correct=False)
    frame.loc[(frame["task"] == "past") & (frame["query"] < 20), "ft_correct"] = True
    frame.loc[(frame["task"] == "capitals") & (frame["query"] < 3) & (frame["seed"] < 2), "ft_correct"] = True
    assert against_controls.tasks_learned(frame, "ft") == ["past"]
    lost = frame.assign(zsl_correct=frame["ft_correct"], ft_correct=False)
    assert against_controls.tasks_learned(lost, "ft") == []


def test_every_control_is_compared_with_the_real_one():
    frame = frames(
        *({"seed": s, "control": c, "shift": x} for c, x in (("ascent", -0.3), ("none", 0)) for s in range(3))
    )
    measures = ("sim_aou", "sim_am_delta", "update_cosine")
    compared = against_controls.changes_under_controls(
        {"pairs": frame, "other": frame[frame["control"] == "none"]}, measures=measures
    )
    assert set(compared) == {("pairs", "ascent", "sim_aou"), ("pairs", "ascent", "update_cosine")}
    assert all(each.estimate == pytest.approx(-0.3) for each in compared.values())
    (turned,) = against_controls.changes_under_controls({"pairs": frame}, ["none"], ["sim_aou"], than="ascent").values()
    assert turned.estimate == pytest.approx(0.3)
    table = against_controls.as_table(compared)
    assert table.loc[("pairs", "FT: ascent", "sim_aou"), "difference"].startswith("\N{MINUS SIGN}0.300")
    assert list(table.columns) == ["difference", "p (Holm)"]


# Tables of results


def test_a_setting_of_two_grids_counts_once(monkeypatch):
    grids = {"pairs": frames({"seed": 0}, {"seed": 1}), "rates": frames({"seed": 1}, {"seed": 1, "lr": 1e-2})}
    monkeypatch.setattr(against_controls, "results", lambda grid, table: grids[grid].drop(columns="name"))
    found = against_controls.queries("pairs", "rates")
    assert len(found) == 3 * N and found["name"].unique().tolist() == ["real comparison"]


def test_every_control_has_a_name_of_its_own():
    assert len(set(against_controls.NAMES.values())) == len(CONTROLS)


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
    found = against_controls.over_tasks(frame, ["sim_aou", "sim_am_delta"])
    real = frame[frame["control"] == "none"]
    expected = reporting.similarity_interval(real, "sim_aou", n_resamples=against_controls._RESAMPLES)
    assert found["none"]["sim_aou"] == expected
    by_setting = real.groupby(["task", "setting"])["sim_aou"].mean()
    assert found["none"]["sim_aou"].estimate == pytest.approx(by_setting.groupby("task").mean().mean())
    assert "sim_am_delta" not in found["none"] and set(found) == {"none", "ascent"}
