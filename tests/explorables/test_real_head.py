"""RealHead: softmax does not see a vector added to all keys, and what is stored is the head of the checkpoint."""

import math

import numpy as np
import pytest
import torch
from javascript import close, computed

from explainer.explorables import RealHead, running_prompt
from explainer.models import architectures, loading
from explainer.theory import duality

SHIFTS = (-4.0, -3.0, -1.0, 0.0, 0.7, 2.0)


def matrices(head: dict, shift: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Query, keys and values of the stored head in its bases, d = 2; the scale is in the query."""
    keys, values = (torch.tensor(head[name], dtype=torch.float64) for name in ("keys", "values"))
    query = torch.tensor([head["query"] * math.sqrt(2), 0.0], dtype=torch.float64)
    return query, keys + shift * keys.mean(0), values


def real_head_case(shift: float) -> dict:
    head = RealHead.stored()
    query, keys, values = matrices(head, shift)
    soft, linear = running_prompt._changes(query, keys, values, head["n"])
    answer = torch.tensor(head["answer"], dtype=torch.float64)[:, None]
    of_answer = [change.item() for change in running_prompt._changes(query, keys, answer, head["n"])]
    as_it_is = running_prompt._changes(*matrices(head, 0.0), head["n"])
    rate = (as_it_is[0] @ as_it_is[1] / (as_it_is[1] @ as_it_is[1])).item()
    return dict(
        shares=duality.scaled_logits(query, keys).softmax(0).tolist(),
        soft=soft.tolist(),
        linear=linear.tolist(),
        rate=rate,
        cosine=torch.cosine_similarity(soft, linear, dim=0).item(),
        nats=[of_answer[0], rate * of_answer[1]],
        length=(rate * linear.norm() / soft.norm()).item(),
    )


def test_javascript_has_the_numbers_of_python():
    """And softmax stands still in it, where the tip of the update moves along a line."""
    found = """{
        shares: m.shares(s), soft: m.softmaxChange(s), linear: m.linearChange(s), rate: m.rate(s), cosine: m.cosine(s),
        nats: m.towardsTokyo(s), length: m.stepLength(s), moved: m.moved(s), drawn: m.drawn(s),
    }"""
    own = computed("real_head", [RealHead(shift=shift).state() for shift in SHIFTS], found).results
    start = own[SHIFTS.index(0)]
    for shift, each in zip(SHIFTS, own, strict=True):
        for name, expected in real_head_case(shift).items():
            close(each[name], expected)
        assert each["moved"] < 1e-12
        close(each["soft"], start["soft"], 1e-12)
        assert not shift or abs(each["cosine"] - start["cosine"]) > 0.01
        written = f"{each['cosine']:.2f}".replace("-", "\u2212")
        assert f"cosine with softmax's change is {written}" in each["words"]
    a, b, c = (np.array(own[SHIFTS.index(shift)]["drawn"]["step"]) for shift in (-4, -1, 2))
    close((a + c) / 2, b, 1e-12)
    close(start["drawn"]["soft"], [1, 0], 1e-3)


def test_softmax_stands_still_and_the_update_moves_by_the_sum_of_values():
    head = RealHead.stored()
    query, keys, values = matrices(head, 0.0)
    soft, linear = running_prompt._changes(query, keys, values, head["n"])
    logit, total = query @ keys.mean(0) / math.sqrt(2), values[: head["n"]].sum(0) / len(keys)
    for shift in SHIFTS:
        query, keys, values = matrices(head, shift)
        assert duality.same(running_prompt._changes(query, keys, values, head["n"])[0], soft)
        assert duality.same(running_prompt._changes(query, keys, values, head["n"])[1], linear + shift * logit * total)


def test_first_axes_are_those_of_the_drawing():
    head = RealHead.stored()
    query, keys, values = matrices(head, 0.0)
    soft, _ = running_prompt._changes(query, keys, values, head["n"])
    total = values[: head["n"]].sum(0)
    assert soft[1:].norm() < 1e-3 * soft.norm() and total[2:].norm() < 1e-3 * total.norm()
    assert len(head["tokens"]) == len(keys) == len(values) == len(head["answer"]) == 19
    assert [head["tokens"][i] for i in (2, 6, 10, 14)] == [" Paris", " Rome", " Cairo", " Beijing"]


@pytest.fixture(scope="module")
def prompt():
    return running_prompt._read_heads(loading.load(dtype=torch.float32, device="cpu"))


@pytest.mark.slow
def test_stored_numbers_are_the_checkpoints():
    found, kept = RealHead.measured(), RealHead.stored()
    assert found.keys() == kept.keys()
    for name, theirs in kept.items():
        if name in ("keys", "values", "answer", "cosine"):
            np.testing.assert_allclose(found[name], theirs, atol=5e-3)
        else:
            assert found[name] == (pytest.approx(theirs, abs=2e-3) if isinstance(theirs, float) else theirs)


@pytest.mark.slow
def test_basis_and_direction_change_no_number(prompt):
    """Logits, cosine and nats of the stored numbers are those of the head itself, in all its dimensions."""
    kept, n = RealHead.stored(), prompt.n
    head, direction = (
        prompt.heads[kept["layer"] - 1][kept["head"] - 1],
        prompt.directions[kept["layer"] - 1][kept["head"] - 1],
    )
    for shift in SHIFTS:
        moved = head.keys + shift * head.keys.mean(0)
        soft, linear = running_prompt._changes(head.query, moved, head.values, n)
        case = real_head_case(shift)
        assert case["cosine"] == pytest.approx(torch.cosine_similarity(soft, linear, dim=0).item(), abs=2e-3)
        assert case["nats"][0] == pytest.approx((soft @ direction).item(), abs=2e-3)
        assert case["shares"] == pytest.approx(duality.scaled_logits(head.query, moved).softmax(0).tolist(), abs=1e-3)


@pytest.mark.slow
def test_directions_add_up_to_what_attention_writes(prompt):
    """On the direct path, all heads together add what their layers' outputs add to the logits of the last position."""
    checkpoint = loading.load(dtype=torch.float32, device="cpu")
    parts, written = architectures.architecture(checkpoint.model), []
    hooks = [
        layer.output.register_forward_hook(lambda *a: written.append(a[2][0, -1].double())) for layer in parts.layers
    ]
    norm, seen = parts.final[0], {}
    hooks.append(norm.register_forward_hook(lambda _, inputs, output: seen.update(x=inputs[0][0, -1], y=output[0, -1])))
    ids = [*checkpoint.tokenize("".join(prompt.tokens[: prompt.n])), *checkpoint.tokenize("Japan ->")]
    with torch.no_grad():
        checkpoint.model(input_ids=torch.tensor([[checkpoint.first_token_id, *ids]]))
    for hook in hooks:
        hook.remove()
    rows = checkpoint.model.get_output_embeddings().weight.detach().double()
    tokyo, japan = (rows[checkpoint.tokenize(text)[0]] for text in (" Tokyo", " Japan"))
    scale = (seen["y"] / seen["x"]).detach().double()
    whole = [(scale * out) @ (tokyo - japan) for out in written]
    for layer, directions, expected in zip(prompt.heads, prompt.directions, whole, strict=True):
        both = zip(layer, directions, strict=True)
        total = sum(duality.softmax_attention(h.query, h.keys, h.values) @ direction for h, direction in both)
        assert total.item() == pytest.approx(expected.item(), abs=2e-3)
