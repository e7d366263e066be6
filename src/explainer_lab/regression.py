"""Linear regression in context with and without momentum attention: small GPTs, trained in matched sets.

The models of one seed start from the same weights and see the same prompts in the same order; they differ in the
average that is added to attention alone. All are tested on the same prompts.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from torch import Generator
from transformers import GPT2Model

from explainer.data.files import Tables
from explainer.errors import require
from explainer.models import in_context_gpt as gpt
from explainer.models import momentum_models
from explainer_lab.experiment import Computed, Experiment
from explainer_lab.language_models import NO_AVERAGE
from explainer_lab.small_model_training import train_gpt


@dataclass(frozen=True, kw_only=True)
class _RegressionSetting(gpt.InContextGPTSetting):
    """A model to train: an average of `momentum.AVERAGES` with its eta, or `none`, and what determines the rest."""

    average: str = NO_AVERAGE
    eta: float = 0.0

    def __post_init__(self):
        """Refuse an eta without an average and an average without an eta."""
        require(
            (self.average == NO_AVERAGE) == (self.eta == 0),
            f"eta = {self.eta} does not go with average = {self.average!r}: {NO_AVERAGE!r} has eta = 0, no other has.",
        )

    @property
    def slug(self) -> str:
        """A readable name."""
        variant = "plain" if self.average == NO_AVERAGE else f"{self.average}-eta{self.eta:g}"
        size = f"d{self.dimension}-{self.layers}x{self.width}-n{self.steps}-lr{self.learning_rate:g}"
        return f"{self.distribution.replace(' ', '-')}-{size}-seed{self.seed}-{variant}"

    @property
    def prepare(self) -> Callable[[GPT2Model], GPT2Model] | None:
        """What is done to the transformer before its training."""
        if self.average == NO_AVERAGE:
            return None
        return partial(momentum_models.with_momentum, eta=self.eta, average=self.average)


class Regression(Experiment[_RegressionSetting]):
    """Trains one model for each setting."""

    name = "regression"
    shown = ("parameters",)
    setting = _RegressionSetting
    protocol = 2
    slowest_first = ("seed", *(f.name for f in fields(gpt.InContextGPTSetting) if f.name != "seed"), "eta", "average")

    @classmethod
    def of(cls, **values: Any) -> _RegressionSetting:
        """Plain attention has no eta."""
        return super().of(**values | ({"eta": 0.0} if values.get("average") == NO_AVERAGE else {}))

    def parts(self, setting: _RegressionSetting) -> dict[str, Any]:
        """Nothing else: the prompts are drawn from the seed."""
        return {}

    def compute(self, setting: _RegressionSetting, *, progress: bool) -> Computed:
        """Train the model and test it."""
        trained = train_gpt(setting, prepare=setting.prepare, progress=progress)
        tables = _tables(trained.model)
        tables["settings"]["losses"] = trained.losses
        return Computed(tables, {})


def _tables(model: gpt.InContextGPT, n_prompts: int = gpt.N_TEST_PROMPTS) -> Tables:
    """`settings`, the number of parameters; `prompts`, squared errors after k examples and squared targets.

    The prompts are of the training's kind, from `in_context_gpt.TEST_SEED`: the same for all models of a setting. The
    numbers k are those of `in_context_gpt.TESTED_LENGTHS` that the setting has.
    """
    prompts = model.setting.prompts(n_prompts, Generator().manual_seed(gpt.TEST_SEED))
    of_prompts = {"squared_target": prompts.y_q**2}
    for k in gpt.TESTED_LENGTHS:
        if k <= model.setting.n_examples:
            shortened = prompts.shortened(k)
            of_prompts[f"squared_error_{k}"] = (gpt.query_prediction(model, shortened) - shortened.y_q) ** 2
    return {"settings": {"parameters": sum(p.numel() for p in model.parameters())}, "prompts": of_prompts}
