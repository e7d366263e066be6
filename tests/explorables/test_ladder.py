"""Ladder: four rungs on which a step misses nothing, and two whose stored shares are computed again."""

import math

import pytest
import torch
from javascript import close, computed

from explainer.explorables import Ladder, running_prompt
from explainer.models import loading
from explainer.theory import duality

EXACT = range(4)  # rungs


def some_draws(n: int, seed: int = 1):
    kept = Ladder.stored()
    return running_prompt._draws(kept["spread"], kept["shared"], n, seed)


def test_missed_is_the_sine_of_the_angle():
    generator = torch.Generator().manual_seed(0)
    attention, step = (torch.randn(6, generator=generator, dtype=torch.float64) for _ in range(2))
    cosine = torch.cosine_similarity(attention, step, dim=0).item()
    assert running_prompt._missed(attention, step) == pytest.approx(math.sqrt(1 - cosine**2))
    assert running_prompt._missed(attention, -3 * attention) < 1e-15
    assert running_prompt._missed(attention, 0 * step) == 1
    scales = torch.linspace(-3, 3, 601, dtype=torch.float64)
    by_search = min(duality.relative_error(s * step, attention) for s in scales)
    assert running_prompt._missed(attention, step) == pytest.approx(by_search, abs=1e-4)


def test_a_step_misses_nothing_below_softmax_and_much_where_its_condition_fails():
    for one in some_draws(50):
        found = running_prompt._on_draw(one)
        assert len(found) == 5
        assert max(found[rung].here for rung in EXACT) < 1e-12
        assert min(found[rung].other for rung in EXACT[1:]) > 1e-6
        assert found[4].here > 1e-2


def test_draws_have_the_stored_spread():
    kept, draws = Ladder.stored(), some_draws(400)
    logits = torch.stack([one.inputs @ one.query for one in draws])
    assert logits.std().item() == pytest.approx(kept["spread"], rel=0.1)
    shared = torch.stack([one.shared @ one.query for one in draws])
    assert shared.abs().max().item() == pytest.approx(kept["spread"] * kept["shared"])
    assert 0.4 < (shared > 0).double().mean() < 0.6


def test_stored_shares_of_draws_are_computed_again():
    kept = Ladder.stored()
    draws = running_prompt._draws(kept["spread"], kept["shared"], running_prompt._DRAWS)
    for rung, sample in enumerate(running_prompt._on_draws(draws)):
        for column in ("here", "other"):
            _, median, _ = running_prompt._quartiles([getattr(one, column) for one in sample])
            assert median == pytest.approx(kept[column][rung][1], abs=1e-3), (rung, column)
    assert running_prompt._by_sign(draws) == pytest.approx(kept["signs"], abs=1e-3)


def test_stored_rungs_are_ordered():
    kept = Ladder.stored()
    medians = [middle for _, middle, _ in kept["here"]]
    assert medians == sorted(medians) and medians[:4] == [0] * 4
    assert all(low <= middle <= high for column in ("here", "other") for low, middle, high in kept[column])
    assert all(kept["other"][rung][1] < kept["here"][rung][1] for rung in (4, 5)), "the repair helps"


def test_the_drawing_keeps_the_shares_and_shows_all_rungs():
    """Tip and attention are as far apart as is missed, which is orthogonal to the step at its best scale."""
    states, shares = [Ladder(rung=rung).state() for rung in range(6)], [0, 0.2, 0.58, 0.83, 1]
    found = "{ missed: [0, 1, 2, 3, 4, 5].map((at) => m.percent(m.here(s, at)[1])) }"
    own = computed("ladder", states, found, "{ tips: full[0].shares.map(m.tip) }", shares=shares)
    for share, (a, b) in zip(shares, own.tips, strict=True):
        close([math.hypot(1 - a, b), a * (1 - a) - b * b], [share, 0], 1e-12)
    for rung, each in enumerate(own.results):
        assert each["words"].startswith(f"Rung {rung} of 5") and each["missed"][rung] in each["words"]
        assert ("returns what attention returns" in each["words"]) == (rung in EXACT)
        assert all(f'data-rung="{at}"' in each["still"] for at in range(6))
        assert all(percent in each["still"] for percent in each["missed"])


@pytest.mark.slow
def test_stored_shares_of_heads_are_the_checkpoints():
    kept, prompt = Ladder.stored(), running_prompt._read_heads(loading.load(dtype=torch.float32, device="cpu"))
    assert running_prompt._logits_of(prompt) == pytest.approx((kept["spread"], kept["shared"]), abs=0.02)
    found = [running_prompt._on_head(h.query, h.keys, h.values) for layer in prompt.heads for h in layer]
    assert len(found) == kept["heads"]
    for column in ("here", "other"):
        quartiles = running_prompt._quartiles([getattr(one, column) for one in found])
        assert quartiles == pytest.approx(kept[column][5], abs=5e-3)
    i, j = running_prompt._strongest_head(prompt)
    assert [i + 1, j + 1] == kept["chosen"][:2]
    head = prompt.heads[i][j]
    assert running_prompt._on_head(head.query, head.keys, head.values) == pytest.approx(kept["chosen"][2:], abs=5e-3)
