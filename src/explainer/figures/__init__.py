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

__all__ = ["CAPTION_MIME", "PLOTLY_MIME", "STATIC_MIME", "Captioned", "Drawing", "Stored", "Table", "curves", "live"]
