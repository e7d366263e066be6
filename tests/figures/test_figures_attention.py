"""explainer.figures.attention: every token has its bar, and the marked ones do not need their colour."""

import torch

from explainer.figures import attention


def test_every_token_has_its_bar_at_its_place():
    tokens, weights = ["a", " ->", "b", "\n"], torch.tensor([0.1, 0.2, 0.65, 0.05])
    figure = attention.bar_per_token(tokens, weights, [2], "after an arrow")
    bars = {place: share for trace in figure.data for place, share in zip(trace.y, trace.x, strict=True)}
    assert [round(bars[i], 2) for i in range(4)] == [0.1, 0.2, 0.65, 0.05]
    marked, others = figure.data
    assert (marked.name, list(marked.y)) == ("after an arrow", [2])
    assert marked.marker.pattern.shape != others.marker.pattern.shape
    assert figure.layout.yaxis.ticktext == ("a", " ->", "b", "\\n")
    assert figure.layout.yaxis.autorange == "reversed"
