"""The explorable of three boxes: its numbers are those of the package, and the probes do what the figure says."""

import numpy as np
import pytest
import torch
from javascript import computed

from explainer.explorables import WhichBox, which_box
from explainer.explorables.which_box import _LEARNERS, _PROBES, _UNNAMED
from explainer.theory import regression

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
    stored, few = WhichBox.stored(), WhichBox.measured(n=which_box._SHOWN)
    assert stored["n"] == which_box._PROMPTS and few.keys() == stored.keys()
    assert few["errors"].keys() == stored["errors"].keys() == set(_PROBES)
    for probe, prompts in which_box._probes().items():
        assert stored["right"][probe] == pytest.approx(prompts.y_q[: which_box._SHOWN].tolist(), abs=1e-3)
        for name, box in which_box._boxes().items():
            found = box(prompts)
            relative = (regression.squared_errors(found, prompts).sum() / (prompts.y_q**2).sum()).item()
            assert errors[probe][name][0] == pytest.approx(relative, abs=2e-3)
            assert stored["answers"][probe][name] == pytest.approx(found[: which_box._SHOWN].tolist(), abs=5e-3)
            middle, low, high = errors[probe][name]
            assert low <= middle <= high


def test_the_plain_inputs_cover_all_directions_evenly():
    plain = which_box._probes(3)["plain"]
    S = plain.X.mT @ plain.X / plain.n_examples
    assert torch.allclose(S, torch.eye(S.shape[-1], dtype=S.dtype), atol=1e-12)


def test_each_probe_changes_what_it_says():
    found = which_box._probes(5)
    plain = found["plain"]
    assert torch.allclose(found["targets"].targets, which_box._FACTOR * plain.targets)
    wild = found["outlier"].targets - plain.targets
    assert torch.allclose(wild[:, 0], torch.full((5,), which_box._OUTLIER).double()) and not wild[:, 1:].any()
    assert torch.allclose(found["outlier"].y_q, plain.y_q)
    ratio = (found["stretched"].inputs / plain.inputs).square()
    assert np.allclose(ratio, np.broadcast_to(which_box._STRETCH, ratio.shape))
    assert found["few"].n_examples == which_box._FEW < plain.x_q.shape[-1]


def test_plain_answers_are_alike_and_two_probes_identify_the_boxes(errors):
    assert max(errors["plain"][name][2] for name in _LEARNERS) < 0.05
    assert errors["stretched"]["linear"][1] > 1
    assert max(errors["stretched"][name][2] for name in ("gpt", "ols")) < 0.1
    assert errors["targets"]["gpt"][1] > 0.2
    assert max(errors["targets"][name][2] for name in ("linear", "ols")) < 0.01


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


def test_names_stay_hidden_until_they_are_shown(javascript):
    for state, found in zip(STATES, javascript.results, strict=True):
        told = "the small GPT" in found["words"] or "the small GPT" in found["still"]
        assert told == state["shown"]
