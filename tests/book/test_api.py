"""The page of the package: every public function of a module, once, and its text as text."""

from types import ModuleType

import pytest

from bookbuilder import api
from explainer.theory import duality


def test_public_are_the_functions_and_classes_that_a_module_defines_in_the_order_of_its_source():
    names = list(api.public(duality))
    assert names[:2] == ["linear_attention", "gradient_descent_update"]
    assert not {name for name in names if name[0] == "_" or name in ("Tensor", "NamedTuple")}


@pytest.mark.parametrize("room", ["theory", "data", "models", "compare", "results", "study"])
def test_every_module_of_a_room_is_there_with_what_it_offers(room):
    text = api.room_html(room)
    for name in api.modules(room):
        assert text.count(f'<h3 id="api-{name}">') == 1
    assert text.count("<dt>") == text.count("<dd>") > len(api.modules(room))


def test_a_docstring_is_text():
    module = ModuleType("explainer.theory.made_up", "A <b> & `code`.")
    assert api._module_html(module).endswith('<p>A &lt;b&gt; &amp; <code>code</code>.</p><dl class="xp-api"></dl>')
