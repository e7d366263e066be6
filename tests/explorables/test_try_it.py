"""Controls of a live kernel and their stored examples."""

import pytest

from explainer.explorables.try_it import answers_table, try_it
from explainer.figures import STATIC_MIME


def predict(text):
    return {"k = 0": [("No", 0.25), ("Yes", 0.75)], "k = 8": [("No", len(text) / 100), ("Yes", 1 - len(text) / 100)]}


def test_text_is_escaped():
    table = answers_table("<script>alert(1)</script>", {"<b>": [("<i>", 0.5)]})
    assert "<script>" not in table
    assert "<b>" not in table
    assert "<i>" not in table


def test_control_answers_to_a_new_sentence_and_page_keeps_the_example():
    stored = try_it(predict, "a fine film .")
    field, shown = stored.control.children
    before = shown.value
    field.value = "  a much longer\n sentence   "
    assert "a much longer sentence" in shown.value
    assert shown.value != before
    bundle = stored._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "a fine film ." in bundle[STATIC_MIME]["html"]
    assert "Stored example" in bundle[STATIC_MIME]["html"]


@pytest.mark.parametrize("text", ["", "   "])
def test_empty_sentence_gets_a_hint(text):
    stored = try_it(predict, "a fine film .")
    field, shown = stored.control.children
    field.value = text
    assert "Write a sentence first" in shown.value
