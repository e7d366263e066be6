"""Diagrams drawn by hand, as inline SVG; their words are in `words/drawings.toml`."""

from importlib import resources

from explainer.figures.figure_texts import Texts


def drawing(name: str):
    """The diagram `name.svg` of this folder, with its caption and its text alternative."""
    return Texts("drawings").drawing(name, (resources.files(__name__) / f"{name}.svg").read_text("utf-8"))
