"""The question before a figure."""

from explainer.figures import predict


def test_each_answer_opens_its_reply_and_only_one_is_open():
    shown = predict("Up or down?", {"up": "Yes: <0.3.", "down": "It goes up, to 0.3."})._repr_html_()
    assert shown.count("<details name=") == 2 and len({part.split('"')[1] for part in shown.split("<details")[1:]}) == 1
    assert "<summary>up</summary><p>Yes: &lt;0.3.</p>" in shown
