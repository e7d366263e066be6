"""Small tables whose entries are known, and intervals over their draws."""

import inspect
import itertools
from typing import Any

import pandas as pd
import pytest

from explainer.theory import statistics


def crossed(**columns: Any) -> pd.DataFrame:
    """A row for each combination of what is given in lists, tuples and ranges; functions of these by their names."""
    levels = {name: of for name, of in columns.items() if isinstance(of, list | tuple | range)}
    table = pd.DataFrame(itertools.product(*levels.values()), columns=list(levels))
    for name, of in columns.items():
        if callable(of):
            given = [table[level] for level in inspect.signature(of).parameters if level in levels]
            table[name] = [of(*row) for row in zip(*given, strict=True)]
        elif name not in levels:
            table[name] = of
    return table


def assert_student(found: statistics.Interval, of_draws: Any) -> None:
    """Student's interval of one number for each draw."""
    assert tuple(found) == pytest.approx(tuple(statistics.student(of_draws)))
