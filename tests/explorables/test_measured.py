"""Explorables of what was measured: what is stored is computed again, and drawn as it is."""

import math

import numpy as np
import pytest
import torch
from javascript import close, computed

from explainer.explorables import (
    Bets,
    Contrast,
    Ladder,
    RealHead,
    Swap,
    WhichBox,
    Yardstick,
    measured_explorables,
    running_prompt_explorables,
)
from explainer.explorables.explorable_base import rounded_to
from explainer.explorables.measured_explorables import _LEARNERS, _PROBES, _UNNAMED, LESSONS, SIDES
from explainer.models import architectures, loading
from explainer.results import verdict
from explainer.results.published import results
from explainer.theory import duality, regression

# Ladder: four rungs on which a step misses nothing, and two whose stored shares are computed again.

EXACT = range(4)  # rungs


def some_draws(n: int, seed: int = 1):
    kept = Ladder.stored()
    return running_prompt_explorables._draws(kept["spread"], kept["shared"], n, seed)


def test_missed_is_the_sine_of_the_angle():
    generator = torch.Generator().manual_seed(0)
    attention, step = (torch.randn(6, generator=generator, dtype=torch.float64) for _ in range(2))
    cosine = torch.cosine_similarity(attention, step, dim=0).item()
    assert running_prompt_explorables._missed(attention, step) == pytest.approx(math.sqrt(1 - cosine**2))
    assert running_prompt_explorables._missed(attention, -3 * attention) < 1e-15
    assert running_prompt_explorables._missed(attention, 0 * step) == 1
    scales = torch.linspace(-3, 3, 601, dtype=torch.float64)
    by_search = min(duality.relative_error(s * step, attention) for s in scales)
    assert running_prompt_explorables._missed(attention, step) == pytest.approx(by_search, abs=1e-4)


def test_a_step_misses_nothing_below_softmax_and_much_where_its_condition_fails():
    for one in some_draws(50):
        found = running_prompt_explorables._on_draw(one)
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
    draws = running_prompt_explorables._draws(kept["spread"], kept["shared"], running_prompt_explorables._DRAWS)
    samples = running_prompt_explorables._on_draws(draws)
    for rung, sample in enumerate(samples):
        for column in ("here", "other"):
            _, median, _ = running_prompt_explorables._quartiles([getattr(one, column) for one in sample])
            assert median == pytest.approx(kept[column][rung][1], abs=1e-3), (rung, column)
    assert running_prompt_explorables._by_sign(draws, samples[4]) == pytest.approx(kept["signs"], abs=1e-3)


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
def test_stored_shares_of_heads_are_the_checkpoints(prompt):
    kept = Ladder.stored()
    assert running_prompt_explorables._logits_of(prompt) == pytest.approx((kept["spread"], kept["shared"]), abs=0.02)
    found = [running_prompt_explorables._on_head(h.query, h.keys, h.values) for layer in prompt.heads for h in layer]
    assert len(found) == kept["heads"]
    for column in ("here", "other"):
        quartiles = running_prompt_explorables._quartiles([getattr(one, column) for one in found])
        assert quartiles == pytest.approx(kept[column][5], abs=5e-3)
    _, i, j = running_prompt_explorables._strongest_head(prompt)
    assert [i + 1, j + 1] == kept["chosen"][:2]
    head = prompt.heads[i][j]
    assert running_prompt_explorables._on_head(head.query, head.keys, head.values) == pytest.approx(
        kept["chosen"][2:], abs=5e-3
    )


# RealHead: softmax does not see a vector added to all keys, and what is stored is the head of the checkpoint.

SHIFTS = (-4.0, -3.0, -1.0, 0.0, 0.7, 2.0)


def matrices(head: dict, shift: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Query, keys and values of the stored head in its bases, d = 2; the scale is in the query."""
    keys, values = (torch.tensor(head[name], dtype=torch.float64) for name in ("keys", "values"))
    query = torch.tensor([head["query"] * math.sqrt(2), 0.0], dtype=torch.float64)
    return query, keys + shift * keys.mean(0), values


def real_head_case(shift: float) -> dict:
    head = RealHead.stored()
    query, keys, values = matrices(head, shift)
    soft, linear = running_prompt_explorables._changes(query, keys, values, head["n"])
    answer = torch.tensor(head["answer"], dtype=torch.float64)[:, None]
    of_answer = [change.item() for change in running_prompt_explorables._changes(query, keys, answer, head["n"])]
    as_it_is = running_prompt_explorables._changes(*matrices(head, 0.0), head["n"])
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


@pytest.fixture(scope="module")
def prompt():
    return running_prompt_explorables._read_heads(loading.load(dtype=torch.float32, device="cpu"))


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
    i, j = kept["layer"] - 1, kept["head"] - 1
    head, direction = prompt.heads[i][j], prompt.directions[i][j]
    for shift in SHIFTS:
        moved = head.keys + shift * head.keys.mean(0)
        soft, linear = running_prompt_explorables._changes(head.query, moved, head.values, n)
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


# Swap: what is stored is what the published tables say, and what JavaScript shows of it.


def upper_third() -> dict[str, float]:
    layers = results("shared-part", "layers")
    columns = ["own", *(f"{side}_{lesson}" for side in SIDES for lesson in LESSONS[1:])]
    return layers[layers["layer"] >= 20][columns].mean().to_dict()


def test_javascript_says_the_mean_of_the_upper_third_and_draws_all_lessons():
    states = [Swap(side=side, lesson=lesson).state() for side in SIDES for lesson in LESSONS]
    found = "{ mean: m.upper(m.series(s)[0]), column: m.column(s.lesson, s.side) }"
    own, upper = computed("swap", states, found, "{ lessons: m.LESSONS.map(([key]) => key) }"), upper_third()
    assert own.lessons == list(LESSONS)
    for each in own.results:
        close(each["mean"], upper[each["column"]], 1e-3)
        assert f"{each['mean']:.2f}" in each["words"]
        assert all(f'data-lesson="{lesson}"' in each["still"] for lesson in LESSONS)


def test_stored_similarities_are_those_of_the_tables():
    stored, found = Swap.stored(), rounded_to(Swap.measured(), Swap.digits)
    exact, again = stored.pop("true"), found.pop("true")
    assert stored == found
    for side in SIDES:
        assert again[side] == pytest.approx(exact[side], abs=2e-3)


# Contrast: what is stored is what the published tables say, and the default state is drawn to it.


def _cosine(a, b) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def _expected(widget: Contrast) -> dict[str, float]:
    c_A, c_B, f_A, f_B = np.add(widget.points, [widget.shared, 0])
    if widget.exchanged:
        f_A, f_B = f_B, f_A
    similarity = (_cosine(c_A, f_A) + _cosine(c_B, f_B)) / 2
    return {"similarity": similarity, "contrast": _cosine(c_A - c_B, f_A - f_B)}


def test_javascript_has_the_cosines_of_python():
    """What all four share falls out of the contrasts, and exchanging the trainings turns their cosine."""
    rng = np.random.default_rng(0)
    rows = [Contrast().points, *(rng.uniform(-2, 2, (4, 2)) for _ in range(10))]
    widgets = [Contrast()] + [
        Contrast(points=points, shared=shared, exchanged=exchanged)
        for points in rows
        for shared in (0, 1.1, 1.6)
        for exchanged in (False, True)
    ]
    alike = Contrast(points=[[0.5, 0.5]] * 4).state()
    found = """{
        ...m.cosines(s), changes: m.changes(s), swapped: m.changes({ ...s, exchanged: true }),
        same: m.cosines({ ...s, shared: 0.3 }).contrast, turned: m.cosines({ ...s, exchanged: !s.exchanged }).contrast,
        written: Object.values(m.cosines(s)).map((cosine) => (isNaN(cosine) ? "–" : Math.abs(cosine).toFixed(2))),
    }"""
    states = [*(widget.state() for widget in widgets), alike]
    own = computed("contrast", states, found, "{ without: m.cosine([0, 0], [1, 0]) }")
    assert own.without is None, "points that coincide have no direction"
    for widget, each in zip(widgets, own.results, strict=False):
        close([each["similarity"], each["contrast"]], [*_expected(widget).values()], 1e-12)
        close([each["same"], each["turned"]], [each["contrast"], -each["contrast"]])
        c_A, c_B, f_A, f_B = each["changes"]
        assert each["swapped"] == ([c_A, c_B, f_A, f_B] if widget.exchanged else [c_A, c_B, f_B, f_A])
    assert all(cosine in each["words"] for each in own.results for cosine in each["written"])
    apart, together = (own.results[i]["similarity"] for i in (0, 5))
    assert together > apart + 0.1


@pytest.mark.parametrize("of", [Bets, Contrast, Yardstick])
def test_what_is_stored_is_what_the_tables_say(of):
    assert of.stored() == rounded_to(of.measured(), of.digits)


def test_the_default_is_drawn_as_measured():
    drawn, found = _expected(Contrast()), Contrast.stored()
    for name, value in drawn.items():
        assert value == pytest.approx(found[name][0], abs=5e-3)
    assert found["similarity"][1] > found["foreign"][2] > found["contrast"][2] > 0


# Yardstick: its default and what is stored are what the published tables say.


def yardstick() -> float:
    return verdict.three_rows_of_book()["word pairs: on these examples"].ceiling.estimate


def test_javascript_has_the_yardstick_of_the_tables():
    """The parts of a change have length 1, and the shared one squared is the cosine of two changes."""
    ends = [Yardstick(contexts=c, trainings=f, own=s).state() for c in (0, 1) for f in (0, 0.5) for s in (0, 1)]
    states, alike = [Yardstick().state(), *ends], [0, 0.3, 0.71, 0.94, 1]
    found = "{ fall: m.yardstick(s), written: m.yardstick(s).toFixed(3) }"
    own = computed("yardstick", states, found, "{ parts: full[0].alike.map(m.parts) }", alike=alike)
    for cosine, (shared, special) in zip(alike, own.parts, strict=True):
        close([math.hypot(shared, special), shared**2], [1, cosine], 1e-12)
    close(own.results[0]["fall"], yardstick(), 2e-3)
    assert all(each["written"] in each["words"] for each in own.results)


def test_the_measured_fall_is_less_than_a_tenth_of_the_yardstick():
    fall = yardstick()
    assert fall == pytest.approx(0.5 * (0.11 * 0.22) ** 0.5, abs=2e-3)
    assert Yardstick.stored()["both"][2] < fall / 10


# The explorable of three boxes: its numbers are those of the package, and the probes do what the figure says.

DEFAULT = WhichBox().state()
STATES = [
    DEFAULT | dict(probe=probe, seed=seed, shown=seed == 2) for probe in range(len(_PROBES)) for seed in (0, 1, 2)
]
STATES += [DEFAULT | dict(seed=3, a=first, b=second, c="ols") for first in _LEARNERS for second in (_UNNAMED, "gpt")]

PAIRS = [["linear", "ols"], ["gpt", "ols"], ["linear", "gpt"], ["ols", "linear"]]
MORE = f"""{{
  orders: Array.from({{ length: 60 }}, (_, seed) => m.order(seed).join()), learners: m.LEARNERS,
  keys: m.PROBES.map((each) => each.key), deciding: {PAIRS}.map((pair) => m.decisive(full[0], ...pair).key),
}}"""


@pytest.fixture(scope="module")
def javascript():
    found = "{ order: m.order(s.seed), verdicts: [0, 1, 2].map((box) => m.verdict(s, box)) }"
    return computed("which_box", STATES, found, MORE)


@pytest.fixture(scope="module")
def errors() -> dict:
    return WhichBox.stored()["errors"]


def test_the_stored_answers_are_computed_again(errors):
    stored, few = WhichBox.stored(), WhichBox.measured(n=measured_explorables._SHOWN)
    assert stored["n"] == measured_explorables._PROMPTS and few.keys() == stored.keys()
    assert few["errors"].keys() == stored["errors"].keys() == set(_PROBES)
    for probe, prompts in measured_explorables._probes().items():
        assert stored["right"][probe] == pytest.approx(prompts.y_q[: measured_explorables._SHOWN].tolist(), abs=1e-3)
        for name, box in measured_explorables._boxes().items():
            found = box(prompts)
            relative = (regression.squared_errors(found, prompts).sum() / (prompts.y_q**2).sum()).item()
            assert errors[probe][name][0] == pytest.approx(relative, abs=2e-3)
            assert stored["answers"][probe][name] == pytest.approx(
                found[: measured_explorables._SHOWN].tolist(), abs=5e-3
            )
            middle, low, high = errors[probe][name]
            assert low <= middle <= high


def test_the_deciding_probes(javascript):
    assert (javascript.keys, javascript.learners) == (list(_PROBES), list(_LEARNERS))
    assert javascript.deciding == ["stretched", "targets", "stretched", "stretched"]


def test_every_order_occurs_and_every_box_is_judged(javascript):
    assert len(set(javascript.orders)) == 6
    for state, found in zip(STATES, javascript.results, strict=True):
        assert sorted(found["order"]) == sorted(_LEARNERS)
        for box, named, its in zip("abc", found["verdicts"], found["order"], strict=True):
            guess = state[box]
            opening = "right: " if guess == its else "not " if guess != _UNNAMED else ""
            assert named.startswith(opening)
            assert state["shown"] or guess != _UNNAMED or named == "not named yet"
