"""Figures of the book: they take results, never models, and carry caption, alternative text and origin."""

from explainer.figures.figure_forms import curve_panels, curves, dot_panels, dot_plot
from explainer.figures.figure_texts import CAPTION_MIME, PLOTLY_MIME, STATIC_MIME, Table, Texts, predict

__all__ = [
    "CAPTION_MIME",
    "PLOTLY_MIME",
    "STATIC_MIME",
    "Table",
    "Texts",
    "curve_panels",
    "curves",
    "dot_panels",
    "dot_plot",
    "predict",
]
