"""Why can GPT learn in-context? The code behind the book, in rooms (see CONTRIBUTING.md)."""

__version__ = "0.5.0"
