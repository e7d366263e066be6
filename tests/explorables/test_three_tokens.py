"""ThreeTokens and OneHead: attention and the update of weights by its demonstrations, as Python computes them."""

import numpy as np
from javascript import close, computed, tensor

from explainer.explorables import OneHead
from explainer.theory import duality

RANDOM = np.random.default_rng(0)
KINDS = ("softmax", "linear")


def drawn(n: int) -> dict:
    shapes = dict(token_keys=(n, 2), token_values=(n, 2), query=2)
    return {name: RANDOM.uniform(-2, 2, shape).tolist() for name, shape in shapes.items()}


def of_zeros(n: int) -> dict:
    return dict(token_keys=[[0, 0]] * n, token_values=[[0, 0]] * n, query=[0, 0])


def test_three_tokens_are_attended_to_as_in_python():
    states = [drawn(3) | dict(attention=kind) for _ in range(50) for kind in KINDS]
    states += [of_zeros(3) | dict(attention=kind) for kind in KINDS]
    found = "{ logits: m.logits(s), weights: m.weights(s), output: m.output(s) }"
    for state, own in zip(states, computed("three_tokens", states, found).results, strict=True):
        keys, values, query = (tensor(state[name]) for name in ("token_keys", "token_values", "query"))
        if state["attention"] == "softmax":
            logits = duality.scaled_logits(query, keys)
            close(own["logits"], logits)
            close(own["weights"], logits.softmax(-1))
            close(own["output"], duality.softmax_attention(query, keys, values))
            close(sum(own["weights"]), 1, 1e-13)
            assert "together 1." in own["words"]
        else:
            close(own["weights"], keys @ query)
            close(own["output"], duality.linear_attention(values, keys, query[None])[0])
            assert "Without softmax" in own["words"]


HEADS = [drawn(5) | dict(demonstrations=i % 5) for i in range(20)]
PROMPTS = [OneHead(demonstrations=n).state() for n in range(5)]
STATES = [
    OneHead().state() | state | dict(attention=kind, token=token)
    for state in [*HEADS, *PROMPTS, of_zeros(5)]
    for kind in KINDS
    for token in (0, 1, 4)
]
OF_HEAD = """{
    zero_shot: m.zeroShot(s), update: m.update(s), inner: m.inner(s), soft: m.bySoftmax(s), linear: m.bySum(s),
    matrix: m.byMatrix(s), gap: m.gap(s), output: m.output(s), weights: m.weights(s), looked: m.looked(s),
    answer: m.answer(m.output(s)), turned: m.update({ ...s, query: [1, -1] }),
    turned_weights: m.weights({ ...s, query: [1, -1] }),
}"""


def test_one_head_is_split_as_by_the_package():
    """And its sum over tokens is the product with one matrix, which does not know the query, as softmax weights do."""
    for state, own in zip(STATES, computed("one_head", STATES, OF_HEAD).results, strict=True):
        n, query, softmax = state["demonstrations"], tensor(state["query"]), state["attention"] == "softmax"
        keys, values = (tensor(state[name])[[*range(n), 4]] for name in ("token_keys", "token_values"))
        split, relaxed = duality.split_attention(query, keys, values, n), duality.relaxed_attention(query, keys, values)
        close(own["zero_shot"], split.W_zsl)
        close(own["update"], split.delta_W_icl)
        close(own["inner"], keys @ query)
        close(own["soft"], split.attention)
        close(own["linear"], relaxed)
        close(own["output"], split.attention if softmax else relaxed)
        close(own["matrix"], own["linear"], 1e-13)
        assert own["turned"] == own["update"] and own["looked"] == min(state["token"], n)
        if values.any():
            close(own["gap"], duality.relative_error(relaxed, split.attention))
            assert ("% of the softmax output" if softmax else "They are equal") in own["words"]
        if softmax and values.any() and n:
            assert own["turned_weights"] != own["weights"]
        if state["token_values"] == PROMPTS[0]["token_values"]:
            assert own["answer"] == ("Japan" if n < 2 else "Tokyo")
