"""The explorable of three boxes that do regression in context: which one is the transformer?"""

from typing import TYPE_CHECKING, Any

import traitlets

from explainer.explorables.base import Explorable, Stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from explainer.theory.regression import Prompts

_LEARNERS = ("linear", "gpt", "ols")
"""One layer of linear attention, the small GPT of the book, and least squares."""
_UNNAMED = "?"
_PROBES = ("plain", "stretched", "targets", "outlier", "few")
_PROMPTS, _SHOWN, _SEED = 1000, 12, 1
_LENGTH, _EXAMPLES, _FEW = 1000, 20, 3
"""Examples in a training prompt of the linear layer, in a prompt of the probes, and in one of the probe `few`."""
_STRETCH, _FACTOR, _OUTLIER = (4.0, 1.0, 1.0, 1.0, 0.25), 4.0, 30.0
"""Eigenvalues of the stretched covariance, the factor on the targets, and what is added to one target."""
_MODEL = "gpt_random_covariance"


class WhichBox(Explorable):
    """Three unlabelled boxes, five probes and their stored answers: a plain probe cannot tell them apart, others can.

    Traits: `probe`, one of five kinds of prompts; `seed`, which shuffles the boxes; `a`, `b`, `c`, the reader's name
    for each box, or "?"; `shown`, whether the right names stand beside the boxes; `results`, what is stored.
    """

    name = "which_box"
    question = "Three boxes answer the same prompts. Which one is the small GPT?"
    height = 680
    provenance = (
        f"Stored: {_PROMPTS} prompts of each kind, seed {_SEED}; computed by explainer.explorables.WhichBox.store() "
        f"with the stored weights {_MODEL}."
    )

    probe = traitlets.Int(0, min=0, max=len(_PROBES) - 1)
    seed = traitlets.Int(0, min=0, max=2**31 - 1)
    a = traitlets.Enum((_UNNAMED, *_LEARNERS), _UNNAMED)
    b = traitlets.Enum((_UNNAMED, *_LEARNERS), _UNNAMED)
    c = traitlets.Enum((_UNNAMED, *_LEARNERS), _UNNAMED)
    shown = traitlets.Bool(False)
    results = Stored()

    @classmethod
    def measured(cls, n: int = _PROMPTS) -> dict[str, Any]:
        """What each box answers to each probe.

        `errors[probe][learner]`: sum (yhat - y_q)^2 / sum y_q^2 over n prompts, with the ends of a 95 % bootstrap
        interval over prompts; `right[probe]`: y_q of the first twelve; `answers[probe][learner]`: yhat of these; `n`.
        """
        from explainer.theory import regression, statistics  # noqa: PLC0415 - torch is slow to import

        found: dict[str, Any] = {"n": n, "errors": {}, "right": {}, "answers": {}}
        asked = _boxes()
        for probe, prompts in _probes(n).items():
            answers = {name: box(prompts) for name, box in asked.items()}
            squared = {name: regression.squared_errors(each, prompts).numpy() for name, each in answers.items()}
            found["errors"][probe] = {
                name: list(statistics.ratio_interval([(each, prompts.y_q.numpy() ** 2)], n_resamples=400)[:3])
                for name, each in squared.items()
            }
            found["right"][probe] = prompts.y_q[:_SHOWN].tolist()
            found["answers"][probe] = {name: each[:_SHOWN].tolist() for name, each in answers.items()}
        return found


def _probes(n: int = _PROMPTS, seed: int = _SEED) -> dict[str, "Prompts"]:
    """n prompts for each probe, without noise.

    `plain`: twenty orthogonal columns of inputs, X^T X / N = I, so that all directions are equally well covered;
    `stretched`: the same inputs times the roots of 4, 1, 1, 1, 1/4, the query's too; `targets`: tasks times 4;
    `outlier`: 30 added to the first target; `few`: three Gaussian examples of as many inputs as before.
    """
    import torch  # noqa: PLC0415

    from explainer.theory import regression  # noqa: PLC0415

    generator, d = torch.Generator().manual_seed(seed), len(_STRETCH)
    drawn = regression.draw_prompts(n, _EXAMPLES, torch.eye(d, dtype=torch.float64), generator=generator)
    even = torch.linalg.qr(drawn.X).Q * _EXAMPLES**0.5
    plain = regression.covariate_shift(drawn, torch.cat([even, drawn.inputs[:, -1:]], dim=1))
    wild = plain.targets.clone()
    wild[:, 0] += _OUTLIER
    return {
        "plain": plain,
        "stretched": regression.covariate_shift(plain, plain.inputs * torch.tensor(_STRETCH).sqrt().to(plain.inputs)),
        "targets": regression.task_shift(plain, _FACTOR * plain.tasks),
        "outlier": regression.Prompts(plain.inputs, wild, plain.tasks),
        "few": drawn.shortened(_FEW),
    }


def _boxes() -> dict[str, "Callable[[Prompts], Tensor]"]:
    """The estimator in each box.

    The linear layer is the one that training finds for isotropic inputs and prompts of 1000 examples, A = Gamma^-1.
    Raises CheckpointError if the stored weights are missing.
    """
    import torch  # noqa: PLC0415

    from explainer.models import in_context_gpt  # noqa: PLC0415
    from explainer.theory import linear_transformer, regression  # noqa: PLC0415

    identity = torch.eye(len(_STRETCH), dtype=torch.float64)
    A = torch.linalg.inv(linear_transformer.gamma(identity, _LENGTH))
    model = in_context_gpt.stored(_MODEL).model
    return {
        "linear": lambda prompts: linear_transformer.prediction(A, prompts),
        "gpt": lambda prompts: in_context_gpt.query_prediction(model, prompts).double(),
        "ols": regression.ordinary_least_squares,
    }
