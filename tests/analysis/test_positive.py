"""What the tables of the positive control are folded into."""

import numpy as np
import pandas as pd
import pytest

from explainer.analysis import positive

SETTING = {"checkpoint": "two-layers", "k": 16, "n_queries": 2, "split": "report"}


def frame(rows):
    return pd.DataFrame([SETTING | {"step": 0, "seed": 0, "lr": 0.1, "control": "none"} | r for r in rows])


def test_models_weigh_alike_however_many_tasks_they_have():
    rows = [{"model": 0, "sim_aou": v} for v in (0.1, 0.3)] + [{"model": 1, "sim_aou": 0.6}, {"model": 1}]
    found = positive.interval(frame(rows), "sim_aou")
    assert found.estimate == pytest.approx(0.4) and found.low < 0 < found.high


def test_over_training_leaves_out_steps_without_a_value():
    rows = [{"model": m, "step": s, "x": s + m} for m in (0, 1) for s in (0, 100)] + [{"model": 0, "step": 200}]
    found = positive.over_training(frame(rows), "x")
    assert {step: one.estimate for step, one in found.items()} == {0: 0.5, 100: 100.5}


def test_differences_are_between_cells_that_differ_in_the_control_only():
    rows = [
        {"model": 0, "sim_aou": 0.5},
        {"model": 0, "sim_aou": 0.1, "control": "foreign-context"},
        {"model": 0, "sim_aou": 0.9, "step": 10},
        {"model": 1, "sim_aou": 0.2, "control": "foreign-context"},
    ]
    found = positive.own_minus(frame(rows), "foreign-context", "sim_aou")
    assert found["sim_aou"].tolist() == pytest.approx([0.4]) and found["model"].tolist() == [0]


def test_the_best_rate_that_never_diverges_is_chosen():
    tried = [(0.01, 0.6, np.nan), (0.1, 0.8, np.nan), (0.2, 0.8, np.nan), (0.3, 1.0, np.nan), (0.3, np.nan, 3)]
    rows = [{"lr": lr, "ft_accuracy": accuracy, "diverged_at": diverged} for lr, accuracy, diverged in tried]
    assert positive.chosen_rate(frame(rows)) == 0.1


def test_agreement_is_of_answers_and_missing_where_fine_tuning_diverged():
    queries = pd.DataFrame(
        {
            "label": [1, 0],
            "least_squares": [0.2, 0.3],
            "gradient_step": [0.1, -0.1],
            "icl_log_probs": [[-2.0, -0.1], [-0.1, -2.0]],
            "ft_log_probs": [None, None],
        }
    )
    found = positive.with_agreement(queries)
    assert found["icl_as_least_squares"].tolist() == [1.0, 0.0]
    assert found["icl_as_gradient_step"].tolist() == [1.0, 1.0]
    assert found["least_squares_correct"].tolist() == [True, False]
    assert found["ft_as_least_squares"].isna().all()


def test_a_share_stays_within_its_bounds():
    rows = [{"model": m, "right": right} for m, right in enumerate((1.0, 1.0, 0.9))]
    found = positive.share(frame(rows), "right")
    assert found.estimate == pytest.approx(2.9 / 3) and 0.8 < found.low < found.high == 1


def test_learners_that_err_by_themselves_agree_as_often_as_two_coins_would():
    generator = np.random.default_rng(0)
    right = {name: (generator.random(40_000) < share).astype(float) for name, share in (("a", 0.9), ("b", 0.7))}
    queries = pd.DataFrame(right | {"model": 0})
    found = positive.agreement_of_independent(queries, "a", "b")
    assert found == pytest.approx(0.9 * 0.7 + 0.1 * 0.3, abs=0.01)
    assert found == pytest.approx((queries["a"] == queries["b"]).mean(), abs=0.01)
