"""The figures of the chapter on the linear transformer."""

from explainer.figures import linear_transformer_figures as figures


def test_a_cell_has_an_interval_over_seeds_and_none_for_one_run():
    assert figures.format_interval([3.2e-9]) == "3e-09"
    # Student's with 2 degrees: 4.303 sd / sqrt(3), sd = 0.1
    assert figures.format_interval([0.1, 0.2, 0.3]) == "0.20 (-0.05 to 0.45)"
