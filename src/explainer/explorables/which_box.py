"""The explorable of three boxes that do regression in context: which one is the transformer?"""

import json
from typing import TYPE_CHECKING, Any

import traitlets

from explainer.explorables.base import FOLDER, Explorable

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from explainer.theory.regression import Prompts

STORED = FOLDER / "which_box.json"
"""What the boxes answer, as `measured` gives it."""
LEARNERS = ("linear", "gpt", "ols")
"""One layer of linear attention, the small GPT of the book, and least squares."""
UNNAMED = "?"
PROBES = ("plain", "stretched", "targets", "outlier", "few")
PROMPTS, SHOWN, SEED = 1000, 12, 1
LENGTH, EXAMPLES, FEW = 1000, 20, 3
"""Examples in a training prompt of the linear layer, in a prompt of the probes, and in one of the probe `few`."""
STRETCH, FACTOR, OUTLIER = (4.0, 1.0, 1.0, 1.0, 0.25), 4.0, 30.0
"""Eigenvalues of the stretched covariance, the factor on the targets, and what is added to one target."""
MODEL = "gpt_random_covariance"


def stored() -> dict[str, Any]:
    """What is stored of the boxes; `measured` says which numbers these are."""
    return json.loads(STORED.read_text("utf-8"))


class WhichBox(Explorable):
    """Three unlabelled boxes, five probes and their stored answers: a plain probe cannot tell them apart, others can.

    Traits: `probe`, an index of PROBES; `seed`, which shuffles the boxes; `a`, `b`, `c`, the reader's name for each
    box, of LEARNERS or UNNAMED; `shown`, whether the right names stand beside the boxes; `results`, what is stored.
    """

    name = "which_box"
    question = "Three boxes answer the same prompts. Which one is the small GPT?"
    height = 680
    made = (
        f"Stored: {PROMPTS} prompts of each kind, seed {SEED}; computed by explainer.explorables.which_box.store() "
        f"with the stored weights {MODEL}."
    )

    probe = traitlets.Int(0, min=0, max=len(PROBES) - 1).tag(sync=True, explorable=True)
    seed = traitlets.Int(0, min=0, max=2**31 - 1).tag(sync=True, explorable=True)
    a = traitlets.Enum((UNNAMED, *LEARNERS), UNNAMED).tag(sync=True, explorable=True)
    b = traitlets.Enum((UNNAMED, *LEARNERS), UNNAMED).tag(sync=True, explorable=True)
    c = traitlets.Enum((UNNAMED, *LEARNERS), UNNAMED).tag(sync=True, explorable=True)
    shown = traitlets.Bool(False).tag(sync=True, explorable=True)
    results = traitlets.Dict().tag(sync=True, explorable=True)

    @traitlets.default("results")
    def _results(self) -> dict[str, Any]:
        return stored()


def probes(n: int = PROMPTS, seed: int = SEED) -> "dict[str, Prompts]":
    """n prompts for each of PROBES, without noise.

    `plain`: EXAMPLES orthogonal columns of inputs, X^T X / N = I, so that all directions are equally well covered;
    `stretched`: the same inputs times the roots of STRETCH, the query's too; `targets`: tasks times FACTOR;
    `outlier`: OUTLIER added to the first target; `few`: FEW Gaussian examples of as many inputs as before.
    """
    import torch  # noqa: PLC0415 - a page that shows stored numbers needs no torch

    from explainer.theory import regression  # noqa: PLC0415

    generator, d = torch.Generator().manual_seed(seed), len(STRETCH)
    drawn = regression.draw_prompts(n, EXAMPLES, torch.eye(d, dtype=torch.float64), generator=generator)
    even = torch.linalg.qr(drawn.X).Q * EXAMPLES**0.5
    plain = regression.covariate_shift(drawn, torch.cat([even, drawn.inputs[:, -1:]], dim=1))
    wild = plain.targets.clone()
    wild[:, 0] += OUTLIER
    return {
        "plain": plain,
        "stretched": regression.covariate_shift(plain, plain.inputs * torch.tensor(STRETCH).sqrt().to(plain.inputs)),
        "targets": regression.task_shift(plain, FACTOR * plain.tasks),
        "outlier": regression.Prompts(plain.inputs, wild, plain.tasks),
        "few": drawn.shortened(FEW),
    }


def boxes() -> "dict[str, Callable[[Prompts], Tensor]]":
    """The estimator of each of LEARNERS.

    The linear layer is the one that training finds for isotropic inputs and prompts of LENGTH examples, A = Gamma^-1.
    Raises CheckpointError if the stored weights of MODEL are missing.
    """
    import torch  # noqa: PLC0415 - as above

    from explainer.models import in_context_gpt  # noqa: PLC0415
    from explainer.theory import linear_transformer, regression  # noqa: PLC0415

    identity = torch.eye(len(STRETCH), dtype=torch.float64)
    A = torch.linalg.inv(linear_transformer.gamma(identity, LENGTH))
    model = in_context_gpt.stored(MODEL).model
    return {
        "linear": lambda prompts: linear_transformer.prediction(A, prompts),
        "gpt": lambda prompts: in_context_gpt.query_prediction(model, prompts).double(),
        "ols": regression.ordinary_least_squares,
    }


def measured(n: int = PROMPTS, seed: int = SEED) -> dict[str, Any]:
    """What each box answers to each probe.

    `errors[probe][learner]`: sum (yhat - y_q)^2 / sum y_q^2 over n prompts, with the ends of a 95 % bootstrap interval
    over prompts; `right[probe]`: y_q of the first SHOWN prompts; `answers[probe][learner]`: yhat of the same; `n`.
    """
    from explainer.theory import regression, statistics  # noqa: PLC0415 - as above

    found: dict[str, Any] = {"n": n, "errors": {}, "right": {}, "answers": {}}
    asked = boxes()
    for probe, prompts in probes(n, seed).items():
        answers = {name: box(prompts) for name, box in asked.items()}
        squared = {name: regression.squared_errors(each, prompts).numpy() for name, each in answers.items()}
        found["errors"][probe] = {
            name: list(statistics.ratio_interval([(each, prompts.y_q.numpy() ** 2)], n_resamples=400)[:3])
            for name, each in squared.items()
        }
        found["right"][probe] = prompts.y_q[:SHOWN].tolist()
        found["answers"][probe] = {name: each[:SHOWN].tolist() for name, each in answers.items()}
    return found


def store() -> None:
    """Write STORED."""
    from explainer.explorables.real_head import rounded  # noqa: PLC0415 - as above

    found = rounded(measured())
    STORED.write_text(json.dumps(found, separators=(",", ":")) + "\n", "utf-8")
