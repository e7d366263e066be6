"""The choice of a rate by hand: the most right answers, the least training of equals, none that diverged."""

import pandas as pd

from explainer.theory.statistics import Interval
from explainer_lab import learning_rates


def settings(**accuracies):
    """Accuracies of two seeds by rate, named as r0_001."""
    return pd.DataFrame(
        [
            {"task": "t", "seed": seed, "epochs": 10, "lr": float(name[1:].replace("_", ".")), "ft_accuracy": value}
            for name, values in accuracies.items()
            for seed, value in enumerate(values)
        ]
    )


def test_each_rate_has_its_mean_and_none_where_a_training_diverged():
    found = learning_rates.accuracy_by_rate(settings(r0_01=(0.5, 0.7), r0_1=(0.9, None), r0_001=(0.2, 0.4)))
    assert [(one.lr, one.epochs) for one in found] == [(0.001, 10), (0.01, 10), (0.1, 10)]
    assert [one.right and round(one.right.estimate, 3) for one in found] == [0.3, 0.6, None]
    assert found[1].right.low == 0 and found[1].right.high == 1
    assert learning_rates.best(found).lr == 0.01
    assert "--lr 0.01 --epochs 10. Report" in learning_rates.advice(
        found, learning_rates.best(found), Interval(0.5, 0.4, 0.6)
    )


def test_a_rate_that_teaches_one_label_teaches_nothing():
    its = settings(r0_1=(0.5, 0.5)).assign(zsl_accuracy=0.2)
    tried = learning_rates.accuracy_by_rate(its)
    assert "chosen" in learning_rates.advice(tried, tried[0], learning_rates.untaught(its))
    its = its.assign(one_label_accuracy=0.5)
    assert "teaches the task" in learning_rates.advice(tried, tried[0], learning_rates.untaught(its))


def test_of_equals_the_one_with_the_least_training_is_taken_and_only_of_equals():
    half, more = Interval(0.5, 0.4, 0.6), Interval(0.6, 0.5, 0.7)
    equals = [learning_rates._Tried(lr, epochs, half) for lr, epochs in ((0.1, 5), (0.01, 5), (0.001, 10))]
    assert learning_rates.best(equals) == equals[1]
    assert learning_rates.best([*equals, learning_rates._Tried(1.0, 20, more)]).epochs == 20
