"""The table of the study on optimisers as attention."""

from explainer.figures import optimisers


def test_a_form_is_exact_where_no_error_exceeds_rounding():
    found = optimisers.exactness({"one": [1e-16, 3e-16, 2e-16], "other": [0.0, 0.3, 0.1]})
    assert found == {"one": "exact, 2e-16 (3e-16)", "other": "<strong>no</strong>, 0.10 (0.30)"}
