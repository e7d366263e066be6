"""What the published trainings say: pairs of runs, perplexities and errors of small made-up tables."""

import math

import numpy as np
import pandas as pd
import pytest

from explainer.errors import ExperimentError
from explainer.results import language_model_results
from explainer.results.language_model_results import Matched
from explainer.theory import statistics


def table(columns, average="none", **setting):
    """The rows of a run with the columns of its setting, as `explainer.results` gives them."""
    setting = {"lr": 3e-3, "seed": 0, "average": average, "eta": 0.0 if average == "none" else 0.5} | setting
    return pd.DataFrame({"setting": f"{average}-{setting['seed']}-{setting['lr']:g}", **setting, **columns})


def runs(columns, average="none", seeds=range(3)):
    """Tables of several seeds; a column may depend on the seed."""
    return pd.concat(
        table({k: v(seed) if callable(v) else v for k, v in columns.items()}, average, seed=seed) for seed in seeds
    )


PLAIN_CURVE = runs({"tokens": [10, 20, 30], "held_out": lambda seed: [5.0, 4.0, 3.0 + seed]})
CURVE = runs({"tokens": [10, 20, 30], "held_out": [5.5, 3.5, 2.0]}, "momentum", (2, 0, 1))
DOCUMENTS = ["b", "a", "a", "c"]
PLAIN = runs({"tokens": 9, "document": DOCUMENTS, "nll": lambda seed: [1, 2, 3, 4 + seed]})
VARIANT = runs({"tokens": 9, "document": DOCUMENTS, "nll": [1, 1, 3, 4]}, "momentum", (2, 0, 1))


def test_runs_are_matched_by_all_but_the_average():
    names = [list(side["setting"].unique()) for side in Matched.runs(VARIANT, PLAIN)]
    assert names == [[f"{average}-{seed}-0.003" for seed in (2, 0, 1)] for average in ("momentum", "none")]
    with pytest.raises(ExperimentError, match=r"momentum, seed 7, setting momentum-7-0\.003 has no plain run"):
        Matched.runs(table({"tokens": [1]}, "momentum", seed=7), PLAIN)
    with pytest.raises(ExperimentError, match="has no plain run"):
        Matched.runs(table({"tokens": [1]}, "momentum", width=64), PLAIN)
    own_rate = table({"tokens": [1]}, "momentum", lr=1e-3)
    assert Matched.runs(own_rate, PLAIN)[1]["setting"].unique() == ["none-0-0.003"]


def test_tokens_to_reach_a_loss():
    curve = pd.Series([5.0, 4.0, 2.0], [10, 20, 30])
    reached = [language_model_results._tokens_to_reach(curve, loss) for loss in (6.0, 5.0, 4.5, 3.0, 2.0)]
    assert reached == pytest.approx([10, 10, 15, 25, 30])
    assert math.isnan(language_model_results._tokens_to_reach(curve, 1.9))
    again = pd.Series([5.0, 3.0, 6.0, 6.0, 6.0, 2.0], range(10, 70, 10))
    assert [language_model_results._tokens_to_reach(again, loss) for loss in (4.0, 3.0)] == [15, 20], (
        "where it first is there"
    )


def test_lead_is_how_much_later_plain_attention_has_the_loss():
    lead = Matched.runs(CURVE, PLAIN_CURVE).tokens_saved()
    assert lead.index.tolist() == [10, 20, 30]
    np.testing.assert_allclose(lead[0], [0, 5, np.nan])  # 5.5 at once, 3.5 at 25, never 2.0
    np.testing.assert_allclose(lead[2], [0, np.nan, np.nan])


def test_documents_keep_the_mean_over_blocks():
    sample = language_model_results._documents(PLAIN)
    total, count = sample.groups[0]
    assert (total.tolist(), count.tolist()) == ([5, 1, 4], [2, 1, 1])
    assert [ids.tolist() for ids in sample.ids] == [["a", "b", "c"]] * 3, "all runs are asked for the same documents"


def test_changes_are_paired():
    change = Matched.runs(VARIANT, PLAIN).loss_change()
    changes = [-1 / 4, -2 / 4, -3 / 4]
    assert change.estimate == pytest.approx(-0.5)
    assert change.high - change.low >= statistics.student(changes).high - statistics.student(changes).low
    none = Matched.runs(PLAIN, PLAIN).loss_change()
    assert (*none, none.p_value) == (0, 0, 0, 1)


REGRESSION = runs({"squared_error_2": lambda seed: [1.0 + seed, 2.0], "squared_target": [2.0, 4.0]})


def test_relative_error_is_a_ratio_of_sums():
    errors = language_model_results.relative_errors(REGRESSION, 2)
    assert errors.to_dict() == pytest.approx({0: 3 / 6, 1: 4 / 6, 2: 5 / 6})


def test_errors_are_compared_in_pairs():
    halved = REGRESSION.assign(average="momentum", eta=0.5, setting="m" + REGRESSION["setting"])
    halved["squared_error_2"] /= 2
    change = Matched.runs(halved, REGRESSION).relative_error_change(2)
    assert change.estimate == pytest.approx(-2 / 6) and change.low < -2 / 6 < change.high
    with pytest.raises(ExperimentError, match="has no plain run"):
        Matched.runs(halved, REGRESSION[REGRESSION["seed"] > 0])
