"""The choice of a rate by hand: the most right answers, the least training of equals, none that diverged."""

import pandas as pd
import pyarrow as pa
import pytest

from explainer_lab import cli


def printed(capsys, accuracies, **columns):
    """What is printed of the accuracies of two seeds after ten epochs, by rate."""
    rows = [
        {"task": "t", "seed": seed, "epochs": 10, "lr": lr, "ft_accuracy": value, "checkpoint": "mine"}
        for lr, values in accuracies.items()
        for seed, value in enumerate(values)
    ]
    settings = pd.DataFrame(rows).assign(zsl_accuracy=0.2, icl_accuracy=0.4, **columns)
    cli._print_choice({"settings": pa.Table.from_pandas(settings)})
    return capsys.readouterr().out.splitlines()


def test_each_rate_has_its_mean_and_none_where_a_training_diverged(capsys):
    _, *rates, known, advice = printed(capsys, {0.01: (0.5, 0.7), 0.1: (0.9, None), 0.001: (0.2, 0.4)})
    found = [row.split() for row in rates]
    assert [row[:3] for row in found] == [["0.001", "10", "0.30"], ["0.01", "10", "0.60"], ["0.1", "10", "diverged"]]
    assert found[1][3:] == ["[0.00,", "1.00]"] and "zero-shot 0.20" in known and "in context 0.40" in known
    assert "--lr 0.01 --epochs 10. Report" in advice


@pytest.mark.parametrize(("one_label", "expected"), [(0.1, "chosen"), (0.5, "teaches the task")])
def test_a_rate_that_teaches_one_label_teaches_nothing(capsys, one_label, expected):
    assert expected in printed(capsys, {0.1: (0.5, 0.5)}, one_label_accuracy=one_label)[-1]


def test_of_equals_the_one_with_the_least_training_is_taken_and_only_of_equals():
    known = {(5, 0.01): 0.5, (5, 0.1): 0.5, (10, 0.001): 0.5}
    assert "--lr 0.01 --epochs 5." in cli._advice(known, 0.2, (0.001, 0.01, 0.1))
    assert "--epochs 20;" in cli._advice({**known, (20, 1.0): 0.6}, 0.2, (0.001, 1.0))
    assert "every rate diverged" in cli._advice({}, 0.2, (0.001, 0.01))
