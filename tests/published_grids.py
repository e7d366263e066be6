"""All experiments of the book, and the grids whose results are published."""

from explainer.data.files import published_directory
from explainer_lab.agreement import Agreement
from explainer_lab.blocking import Blocking
from explainer_lab.causal_tests import CausalTests
from explainer_lab.comparison import Comparison
from explainer_lab.experiment import Experiment
from explainer_lab.language_models import LanguageModels
from explainer_lab.minimal_pairs import MinimalPairs
from explainer_lab.new_rule import NewRule
from explainer_lab.recall import Recall
from explainer_lab.regression import Regression
from explainer_lab.reversal import Reversal
from explainer_lab.rival import Rival
from explainer_lab.shared_part import SharedPart
from explainer_lab.trained_control import TrainedControl

EXPERIMENTS = (
    Comparison, Agreement, SharedPart, MinimalPairs, NewRule, Blocking, Rival, CausalTests, TrainedControl,
    LanguageModels, Regression, Recall, Reversal,
)  # fmt: skip


def grids(experiment: type[Experiment]) -> dict[str, list]:
    """The published grids of an experiment and their settings, from the file beside its tables."""
    return experiment.read_grids(published_directory() / experiment.name / "grids.toml")
