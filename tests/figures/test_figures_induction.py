"""explainer.figures.induction: what is drawn is what was measured, in the places where it belongs."""

from explainer.figures import induction


def test_effects_show_the_control_beside_each():
    measured, control = {"capitals": {"a": -2.0, "b": -1.0}}, {"capitals": {"a": -0.5, "b": -0.75}}
    own, beside = induction.log_prob_changes(measured, control).data
    assert list(own.x) == [-2, -1] and list(beside.x) == [-0.5, -0.75] and list(own.y) == list(beside.y)
    assert len(induction.log_prob_changes(measured).data) == 1
