"""Linear regression in context with and without momentum attention: small GPTs, trained in matched sets and stored.

The models of one seed start from the same weights, to the bit, and see the same prompts in the same order
(`in_context_gpt.train`); they differ in the average that is added to attention alone. All are tested on the same
prompts.
"""

import argparse
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch import Generator

import explainer
from explainer.errors import ExplainerError
from explainer.lab.store import Identity, Store, Stored, published_directory, read
from explainer.models import in_context_gpt as gpt
from explainer.models import momentum_attention
from explainer.models.training import NO_AVERAGE
from explainer.theory import regression

SETTING = gpt.Setting(dimension=3, n_examples=10, layers=3, steps=1600, learning_rate=2e-3)
"""Of every model of the comparison, with another seed: d = 3, isotropic inputs, no noise."""

TESTED = (1, 2, 3, 4, 6, 8, 10)
"""Numbers k of examples whose errors are kept for every test prompt."""

N_PROMPTS = 1000

PROTOCOL = 1
"""Number of the arithmetic of a run; raised, with a line in book/results/PROTOCOLS.md, when it changes a result."""


class RegressionError(ExplainerError):
    """A run cannot be used, or is not stored."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A model to train: an average of `momentum.AVERAGES` with its eta, or `none`, and the seed of `setting`."""

    average: str = NO_AVERAGE
    eta: float = 0.0
    setting: gpt.Setting = SETTING

    def __post_init__(self):
        """Refuse an eta without an average and an average without an eta."""
        if (self.average == NO_AVERAGE) != (self.eta == 0):
            raise RegressionError(
                f"eta = {self.eta} does not go with average = {self.average!r}: plain attention is eta = 0 with "
                f"{NO_AVERAGE!r}, every average needs an eta > 0."
            )

    @property
    def prepare(self) -> gpt.Preparation | None:
        """What is done to the transformer before its training."""
        if self.average == NO_AVERAGE:
            return None
        return partial(momentum_attention.with_momentum, eta=self.eta, average=self.average)

    @property
    def identity(self) -> Identity:
        """Everything that determines the result: the setting and `PROTOCOL`."""
        size = f"d{self.setting.dimension}-{self.setting.layers}x{self.setting.width}-n{self.setting.steps}"
        variant = "plain" if self.average == NO_AVERAGE else f"{self.average}-eta{self.eta:g}"
        slug = f"regression-{size}-seed{self.setting.seed}-{variant}"
        return Identity(slug, {"cell": asdict(self), "protocol": PROTOCOL})


RUNS = tuple(
    Run(average=average, eta=eta, setting=replace(SETTING, seed=seed))
    for seed in range(3)
    for average, eta in ((NO_AVERAGE, 0.0), ("momentum", 0.5), ("previous", 0.5))
)
"""The runs of the book."""


def run(runs: Iterable[Run], store: Store, *, progress: bool = True) -> list[Stored]:
    """Train what is not stored yet, store each result at once, and return all, in the order given.

    Raises ResultsError as `Store` does and DivergenceError as `in_context_gpt.train`.
    """
    store.require_writable()
    return [store.load(one.identity) or _train_and_store(one, store, progress=progress) for one in runs]


def _train_and_store(one: Run, store: Store, *, progress: bool) -> Stored:
    trained = gpt.train(one.setting, prepare=one.prepare, progress=progress)
    provenance = {
        "device": platform.machine(),
        "threads": torch.get_num_threads(),
        "explainer": explainer.__version__,
        "python": platform.python_version(),
        "versions": {module.__name__: module.__version__ for module in (np, torch, transformers)},
    }
    result = {"losses": trained.losses} | measured(trained.model)
    path = store.save(one.identity, result, provenance=provenance, run={"cpu_seconds": trained.seconds})
    return read(path)


def measured(model: gpt.InContextGPT, n_prompts: int = N_PROMPTS) -> dict[str, Any]:
    """Squared errors after k examples and squared targets, per prompt, and the number of parameters.

    The prompts are of the training's kind, from `in_context_gpt.TEST_SEED`: the same for all models of a setting. The
    numbers k are those of `TESTED` that the setting has.
    """
    prompts = model.setting.prompts(n_prompts, Generator().manual_seed(gpt.TEST_SEED))
    ks = [k for k in TESTED if k <= model.setting.n_examples]

    def errors(k: int) -> torch.Tensor:
        shortened = prompts.shortened(k)
        return regression.squared_errors(gpt.query_prediction(model, shortened), shortened)

    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "squared_errors": {k: errors(k) for k in ks},
        "squared_targets": prompts.y_q**2,
    }


# Reading back


def directory() -> Path:
    """Where the stored runs of the book are; raises ResultsError as `explainer.store`."""
    return published_directory() / "regression"


def stored(average: str) -> list[Stored]:
    """The book's runs with an average, or with `none`, one for each seed.

    Raises RegressionError for an average that the book's runs do not have and for a run that is not stored, and
    ResultsError for a damaged file.
    """
    known = list(dict.fromkeys(one.average for one in RUNS))
    if average not in known:
        raise RegressionError(f"there are no runs with average = {average!r}; the book has {', '.join(known)}.")
    return [_result_of(one) for one in RUNS if one.average == average]


def _result_of(one: Run) -> Stored:
    found = Store(directory()).load(one.identity)
    if found is None:
        raise RegressionError(
            f"{one.identity.slug} is not stored in {directory()}; train it: "
            "python -m explainer.experiments.regression_runs"
        )
    return found


def groups(finished: Sequence[Stored], k: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Squared errors after k examples and squared targets, (n,) each, per run, as the groups of `statistics`."""
    return [
        (np.array(one.result["squared_errors"][str(k)]), np.array(one.result["squared_targets"])) for one in finished
    ]


def relative_error(errors: np.ndarray, targets: np.ndarray) -> float:
    """Error relative to that of predicting 0: sum (yhat - y)^2 / sum y^2, from the squares."""
    return float(errors.sum() / targets.sum())


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the book's runs that are not stored: python -m explainer.experiments.regression_runs."""
    parser = argparse.ArgumentParser(
        prog="python -m explainer.experiments.regression_runs", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--results", default="book/results/regression", help="where to write (default: %(default)s)")
    run(RUNS, Store(os.fspath(parser.parse_args(arguments).results)))


if __name__ == "__main__":
    main()
