"""All experiments of the book, the grids whose results are published, and the rows of their settings."""

import tomllib
from dataclasses import fields

import pandas as pd

from explainer.data.files import PUBLISHED, published_directory
from explainer.results.published import results
from explainer_lab.ablations import Ablations
from explainer_lab.agreement import Agreement
from explainer_lab.blocking import Blocking
from explainer_lab.causal_tests import CausalTests
from explainer_lab.comparison import Comparison
from explainer_lab.experiment import Experiment
from explainer_lab.label_lines import LabelLines
from explainer_lab.language_models import LanguageModels
from explainer_lab.minimal_pairs import MinimalPairs
from explainer_lab.new_rule import NewRule
from explainer_lab.recall import Recall
from explainer_lab.regression import Regression
from explainer_lab.reversal import Reversal
from explainer_lab.rival import Rival
from explainer_lab.rule_orders import RuleOrders
from explainer_lab.shared_part import SharedPart
from explainer_lab.trained_control import TrainedControl
from explainer_lab.vote import Vote

EXPERIMENTS = (
    Comparison, Agreement, SharedPart, MinimalPairs, NewRule, Blocking, Rival, CausalTests, TrainedControl,
    LanguageModels, Regression, Recall, Reversal, Vote, LabelLines, RuleOrders,
    Ablations,
)  # fmt: skip


def grids(experiment: type[Experiment]) -> dict[str, list]:
    """The published grids of an experiment and their settings, from the file beside its tables."""
    return experiment.read_grids(published_directory() / experiment.name / "grids.toml")


INTERVENTIONS = tomllib.loads((PUBLISHED / "interventions.toml").read_text("utf-8"))
"""What is asked of a model in the tables of each experiment, by the name of its folder."""

GRIDS = {name: (kind, settings) for kind in EXPERIMENTS for name, settings in grids(kind).items()}


def first(grid: str, **where):
    """The first setting of a grid with these values."""
    return next(one for one in GRIDS[grid][1] if all(getattr(one, name) == value for name, value in where.items()))


def stored(grid: str, setting, table: str = "settings") -> pd.DataFrame:
    """The published rows of one setting of a grid."""
    return results(grid, table, **{f.name: getattr(setting, f.name) for f in fields(setting)})
