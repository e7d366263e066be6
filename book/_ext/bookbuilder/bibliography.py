"""The style of the bibliography: each entry ends with what was checked of it, its field `checked`."""

from typing import Any

from pybtex.database import Entry
from pybtex.richtext import Tag, Text
from pybtex.style import FormattedEntry
from pybtex.style.formatting.plain import Style


class Checked(Style):
    """The plain style with the field `checked`, its verdict in italics."""

    def format_entry(self, label: str, entry: Entry, bib_data: Any = None) -> FormattedEntry:
        """Append the field."""
        plain = super().format_entry(label, entry, bib_data=bib_data)
        verdict, _, reasons = entry.fields.get("checked", "").partition(":")
        note = Text(" ", Tag("em", verdict), ": ", Text.from_latex(reasons.strip())) if reasons else ""
        return FormattedEntry(plain.key, Text(plain.text, note), plain.label)
