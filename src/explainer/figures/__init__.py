"""Figures of the book: they take results, never models, and carry caption, alternative text and origin."""

from explainer.figures.base import (
    CAPTION_MIME,
    PLOTLY_MIME,
    STATIC_MIME,
    Captioned,
    Drawing,
    Stored,
    Table,
    curves,
    live,
)
from explainer.figures.texts import Texts

__all__ = [
    "CAPTION_MIME",
    "PLOTLY_MIME",
    "STATIC_MIME",
    "Captioned",
    "Drawing",
    "Stored",
    "Table",
    "Texts",
    "curves",
    "live",
]
