"""Tokens that are bytes: a character of most scripts is several tokens, and one token may be a part of a character."""

import re
from collections.abc import Iterable

_PARTS = re.compile("[\udcc2-\udcf4][\udc80-\udcbf]*|[\udc80-\udcc1\udcf5-\udcff]+")
"""Bytes that are no whole character, as Python decodes them (surrogateescape): a first one with what follows it."""


def readable(tokens: Iterable[str]) -> str:
    """The text of tokens of a vocabulary, read as UTF-8. Bytes of a character that is not whole are hexadecimal.

    A vocabulary has one character for each byte, or writes one byte as `<0xE5>`.

    A dot stands for each byte that is missing at its end (`E586·` begins U+51B7), and an ellipsis where its beginning
    is missing. `live_model.js` writes the same.
    """
    text = b"".join(map(_bytes_of, tokens)).decode("utf-8", "surrogateescape")
    return _PARTS.sub(_in_hexadecimal, text.replace("\ufffd", "\udcef\udcbf\udcbd"))  # which marks what is no character


def _in_hexadecimal(found: re.Match) -> str:
    data = found[0].encode("utf-8", "surrogateescape")
    begins = 0xC2 <= data[0] <= 0xF4
    length = 2 + (data[0] >= 0xE0) + (data[0] >= 0xF0)
    return ("" if begins else "…") + data.hex().upper() + "·" * (begins * (length - len(data)))


def _bytes_of(token: str) -> bytes:
    if found := re.fullmatch("<0x([0-9A-F]{2})>", token):
        return bytes.fromhex(found[1])
    return b"".join(bytes([_BYTES[c]]) if c in _BYTES else c.encode() for c in token)


def _bytes() -> dict[str, int]:
    """By character: printable ones stand for their own byte, and those from U+0100 on for the others (GPT-2)."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in own]
    return {chr(byte): byte for byte in own} | {chr(0x100 + i): byte for i, byte in enumerate(others)}


_BYTES = _bytes()
