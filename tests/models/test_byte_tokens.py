"""explainer.models.byte_tokens: bytes as text, whole characters or not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explainer.models import byte_tokens


def readable(data):
    """Of bytes that are each a token."""
    return byte_tokens.readable(f"<0x{byte:02X}>" for byte in data)


WHOLE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffd"))


@given(WHOLE)
def test_whole_characters_stay(text):
    assert readable(text.encode()) == text


@given(st.binary(max_size=12))
def test_any_bytes_are_said_without_a_replacement_character(data):
    assert "\ufffd" not in readable(data)


@given(WHOLE, st.characters(min_codepoint=0x80, exclude_categories=["Cs"]), st.data())
def test_a_beginning_says_how_many_bytes_are_missing(text, character, data):
    whole = character.encode()
    n = data.draw(st.integers(1, len(whole) - 1))
    said = readable(text.encode() + whole[:n])
    assert said == text + whole[:n].hex().upper() + "·" * (len(whole) - n)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b" \xe5\x86", " E586·"),
        (b"\xb7", "…B7"),
        (b"\xd0\xbe\xd0", "оD0·"),
        (b"\xb7\xe5", "…B7E5··"),
        (b"\xef\xbf\xbd", "EFBFBD"),
        (b"\xed\xa0\x80", "EDA080"),
    ],
)
def test_parts(data, said):
    assert readable(data) == said


def test_bytes_of_both_kinds_of_vocabulary():
    assert len(byte_tokens._BYTES) == 256 and set(byte_tokens._BYTES.values()) == set(range(256))
    found = [byte_tokens.readable([token]) for token in ("åĨ", "Ġä", "<0xE5>", "▁a")]
    assert found == ["E586·", " E4··", "E5··", "▁a"]
