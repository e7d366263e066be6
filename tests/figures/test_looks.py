"""How each form of figure looks: what Plotly is told of the same made-up numbers, beside what it was told before.

The floor below the tests that say what a figure shows: nothing moves, grows, hides or changes its mark unseen. Who
changes a look on purpose runs this file and reads the difference: python tests/figures/test_looks.py
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bookbuilder.renderers import _values
from explainer import figures
from explainer.figures import (
    attention_figures,
    learning_in_context_figures,
    linear_transformer_figures,
    measurement_figures,
    momentum_figures,
    verdict_figures,
)
from explainer.results.verdict import Row
from explainer.theory.statistics import Interval

LOOKS = Path(__file__).with_name("looks.json")
A, B, ALIKE = Interval(0.2, 0.1, 0.45), Interval(0.62, 0.5, 0.7), Interval(0.3, 0.3, 0.3)
X = np.geomspace(0.5, 2, 12).reshape(4, 3)
ENDS = X[0], X[0] - 0.1, X[0] + 0.2
DOTS = {
    "one": {"in context": {"a": A, "b": 0.3}, "y": {"b": B}},
    "two": {"y": {"a": 0.1}, "none": {}},
    "three": {"z": {"c": A}},
}
FLOORS, QUOTED = {"one": {"y": {"b": 0.1}, "chance": {"a": ALIKE}}}, {"one": {"y": {"b": 0.5}, "paper": {"c": 0.4}}}
CURVES = {"one": {"s": {16: B, 1: A}, "t": {4: ALIKE, 16: A}}, "two": {"t": {4: B}}, "three": {"s": {1: B}}}
TIMES = [0, 0.1, 0.4, 2.0, 9.0]
BOTH = {"N = 5": ([1, 10], [1.0, 0.1]), "N = 20": ([2, 10], [2.0, 0.5])}
DRAWN = {
    "dots": lambda: figures.dot_plot(DOTS["one"], "x", floors=FLOORS["one"], quoted=QUOTED["one"]),
    "dots in a column": lambda: figures.dot_panels(DOTS, "x", floors=FLOORS, quoted=QUOTED, line={"y": 0, "": 1}),
    "dots in two columns": lambda: figures.dot_panels(DOTS, "x", columns=2, line=None),
    "curves": lambda: figures.curves([1, 4, 9], {"s": ENDS, "FT": ENDS}, "x", "y"),
    "curves by rank": lambda: learning_in_context_figures.against_k(
        [1, 4, 9], {"s": ENDS, "t": ENDS}, "y", (0, 1)
    ).add_hline(y=0.4, line_dash="dot"),
    "panels of curves": lambda: figures.curve_panels(CURVES, "x", floors={"one": {"t": {4: A}}}),
    "panels of curves by rank": lambda: figures.curve_panels(CURVES, "x", columns=2, by_rank=True, line={"y": 1}),
    "tokens": lambda: attention_figures.bar_per_token(
        ["a", "\n", "c"], torch.tensor([0.2, 0.5, 0.3]), [1], "line ends"
    ),
    "effects": lambda: momentum_figures.effect_sizes({"a, b": ([0.1, 0.2, 0.31], A), "c": ([0.5], B)}, "x"),
    "layer and step": lambda: linear_transformer_figures.layer_against_step(X[0], {"a": X[1], "b": -X[2]}),
    "learning": lambda: linear_transformer_figures.learning_curves(
        TIMES, np.arange(10).reshape(5, 2) / 9, [0.3, 5.5], [2, 1]
    ),
    "conserved": lambda: linear_transformer_figures.conserved_over_training(
        {"a": [np.arange(101.0), X[:, 0]], "b": [X[:, 1]]}
    ),
    "dots on a log axis": lambda: measurement_figures.log_dot_plot(
        {"s": {"a b": A, "c": B}, "t": {"c": ALIKE}}, "y", smallest=0.25, floors={"c": 0.4}
    ),
    "points on curves": lambda: measurement_figures.points_on_curves(
        BOTH, {"N = 20": {10: A}, "GPT": {5: B}}, "x", "y", levels={"third": 1 / 3}, marks={"here": 8}, smallest=0.15
    ),
    "points on one log axis": lambda: measurement_figures.points_on_curves(
        BOTH, {"GPT": {5: B}}, "x", "y", levels={"third": 1 / 3}, marks={"here": 8}, log="y"
    ),
    "errors by spread": lambda: attention_figures.quartile_bands(
        [0.25, 1, 4], {"a": X.T, "b": X.T / 2}, "x", "y", [0.01, 0.1, 1]
    ),
    "drift": lambda: attention_figures.quartile_bands(range(1, len(X) + 1), {"a": X, "b": X / 2}, "x", "y"),
    "shares": lambda: verdict_figures.row_positions({n: {"row": Row(A, A, A, A, 3)} for n in ("<a>", "b")}),
}


def told(of: Any) -> Any:
    """What Plotly is told, with six digits; of a title, that there is one, not how it is worded."""
    if isinstance(of, dict) and "bdata" not in of:
        return {key: bool(one["text"]) if key == "title" else told(one) for key, one in of.items() if key != "template"}
    if isinstance(of, np.ndarray | list | tuple | dict):
        return [told(one) for one in _values(of)]
    return float(f"{of:.6g}") if isinstance(of, float | np.floating) else int(of) if isinstance(of, np.integer) else of


def flat(of: Any, path: str = "") -> dict[str, Any]:
    """The same by path."""
    inner = of.items() if isinstance(of, dict) else enumerate(of) if isinstance(of, list) else ()
    return {path: of} if not inner else {k: v for key, one in inner for k, v in flat(one, f"{path}.{key}").items()}


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_looks_as_before(name):
    before = flat(json.loads(LOOKS.read_text("utf-8"))[name])
    near = {path: pytest.approx(one, rel=1e-4) if isinstance(one, float) else one for path, one in before.items()}
    assert flat(told(DRAWN[name]().to_plotly_json())) == near


if __name__ == "__main__":
    lines = (f"{json.dumps(name)}: {json.dumps(told(draw().to_plotly_json()))}" for name, draw in DRAWN.items())
    LOOKS.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
