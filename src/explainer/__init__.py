"""Why can GPT learn in-context? The code behind the book, in three floors (see CONTRIBUTING.md)."""

__version__ = "0.1.0"
