"""What the runs of associative recall say, on small made-up tables."""

import numpy as np
import pytest
from toy_tables import assert_student, crossed

from explainer.results import recall_results

HIGHER = {"delta": 0.0, "delta-momentum": 0.1, "softmax": 0.3}
SEEDS = range(4)


def kept(rule, seed, step, n_keys):
    return (0.5 + HIGHER[rule] + 0.01 * seed * (rule == "delta-momentum") - n_keys / 100) * (step > 0)


CURVE = crossed(seed=SEEDS, rule=list(HIGHER), step=(0, 20), n_keys=(10, 20), steps=20, kept=kept)
CURVE["revised"] = (CURVE["kept"] - 0.1).where(CURVE["step"] > 0, 0.0)


def test_columns_along_the_training_are_means_over_numbers_of_keys():
    found = recall_results.mean_over_keys(CURVE, "kept", ["delta", "delta-momentum"])
    assert list(found) == ["delta rule", "delta + momentum"] and list(found["delta rule"]) == [0, 20]
    assert found["delta rule"][0].estimate == 0
    assert_student(found["delta + momentum"][20], 0.6 - 0.15 + 0.01 * np.arange(4))


def test_no_end_leaves_zero_and_one():
    edge = CURVE.assign(kept=np.where(CURVE["seed"] == 0, 0.9, 1.0))
    assert recall_results.mean_over_keys(edge, "kept", ["delta"])["delta rule"][20].high == 1.0


def test_rules_are_compared_seed_by_seed():
    found = recall_results.rule_difference(CURVE, "delta-momentum", "delta", "revised")
    assert found.by_seed.to_dict() == pytest.approx({0: 0.1, 1: 0.11, 2: 0.12, 3: 0.13})
    assert_student(found.mean, found.by_seed)
    assert found.ahead == 4 and found.sign_p == pytest.approx(2 / 16)
    opposite = recall_results.rule_difference(CURVE, "delta", "delta-momentum", "revised")
    assert opposite.ahead == 0 and opposite.mean.estimate == pytest.approx(-found.mean.estimate)


def test_a_tie_is_not_ahead():
    tied, delta, other = CURVE.copy(), CURVE["rule"] == "delta", CURVE["rule"] == "delta-momentum"
    tied.loc[other & (CURVE["seed"] == 2), "revised"] = CURVE.loc[delta & (CURVE["seed"] == 2), "revised"].to_numpy()
    found = recall_results.rule_difference(tied, "delta-momentum", "delta", "revised")
    assert found.by_seed[2] == 0 and found.ahead == 3 and found.sign_p == pytest.approx(2 / 8)


def test_effects_of_momentum_are_corrected_for_their_number():
    rules = {"delta": 0.0, "delta-momentum": 0.02, "softmax": 0.1, "momentum-attention": 0.09}
    noise = np.random.default_rng(0).normal(scale=0.01, size=(len(rules), 8))
    kept = lambda rule, seed: 0.5 + rules[rule] + noise[list(rules).index(rule), seed]  # noqa: E731
    curve = crossed(rule=list(rules), seed=range(8), steps=1, step=1, n_keys=8, kept=kept)
    curve["revised"] = curve["kept"] ** 2
    effects = recall_results.momentum_effects(curve)
    assert {outcome: list(of) for outcome, of in effects.items()} == {
        outcome: ["delta-momentum", "momentum-attention"] for outcome in ("kept", "revised")
    }
    raw = recall_results.rule_difference(curve, "delta-momentum", "delta", "kept")
    corrected = effects["kept"]["delta-momentum"]
    assert corrected.mean.estimate == raw.mean.estimate and corrected.by_seed.equals(raw.by_seed)
    assert raw.mean.p_value < corrected.mean.p_value <= 4 * raw.mean.p_value
    assert raw.sign_p <= corrected.sign_p <= min(1, 4 * raw.sign_p)
