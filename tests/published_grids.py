"""All experiments of the book, and the grids whose results are published."""

from explainer.data.files import published_directory
from explainer.study.agreement_runs import Agreement
from explainer.study.blocking import Blocking
from explainer.study.causal_runs import CausalTests
from explainer.study.comparison_runs import Study
from explainer.study.experiment import Experiment
from explainer.study.language_model_runs import LanguageModels
from explainer.study.minimal_pair_runs import MinimalPairs
from explainer.study.new_rule import NewRule
from explainer.study.recall_runs import RecallRuns
from explainer.study.regression_runs import RegressionRuns
from explainer.study.reversal_runs import Reversal
from explainer.study.rival import Rival
from explainer.study.shared_part_runs import SharedPart
from explainer.study.trained_control_runs import PositivePipeline

EXPERIMENTS = (
    Study, Agreement, SharedPart, MinimalPairs, NewRule, Blocking, Rival, CausalTests, PositivePipeline,
    LanguageModels, RegressionRuns, RecallRuns, Reversal,
)  # fmt: skip


def grids(experiment: type[Experiment]) -> dict[str, list]:
    """The published grids of an experiment and their settings, from the file beside its tables."""
    return experiment.read_grids(published_directory() / experiment.name / "grids.toml")
