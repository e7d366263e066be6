"""How numbers are written for readers."""

import re


def in_powers(text: str) -> str:
    """A text whose numbers like 6e-06 are 6 × 10⁻⁶, and those like 8.86e+04 are 88,600."""
    short = re.sub(r"(?<![\w#.])\d[\d.]*e[-+]?\d+\b", lambda number: f"{float(number[0]):,g}", text)
    return re.sub(
        r"(?<=\d)e([-+]\d+)\b", lambda power: f"\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10{raised(power[1])}", short
    )


def raised(power: str) -> str:
    """The power of ten that stands above the line."""
    return str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
