"""Why can GPT learn in-context? The code behind the book, in rooms (see CONTRIBUTING.md).

Modules are loaded when they are first asked for, wherever they live: `from explainer import duality, tasks`.
"""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType

__version__ = "0.1.0"

ROOMS = {
    "theory": (
        "changes", "counting", "directions", "duality", "fast_weights", "learning_head", "linear_transformer",
        "metrics", "momentum", "optimisation", "patches", "positive_control", "regression", "statistics",
        "task_diversity",
        "order", "wrong_labels",
    ),
    "data": ("assets", "corpora", "package_index", "recall", "regression_words", "tasks"),
    "models": (
        "architectures", "checkpoints", "circuits", "deep_linear", "fast_weight_model", "finetuning", "heads",
        "in_context_gpt", "in_context_llama", "interventions", "lockstep", "momentum_attention", "probes", "recording",
        "scoring",
        "training",
    ),
    "lab": ("engines", "experiment", "store", "tables"),
    "experiments": (
        "agreement", "causal", "comparison", "contradictions", "controls", "few_shots", "head_circuits",
        "language_models", "minimal_pairs", "positive_pipeline", "recall_runs", "regression_runs", "reversal",
        "shared_part", "study",
    ),
    "analysis": (
        "accuracy", "alike", "contrasts", "coverage", "effects", "floors", "papers", "positive", "published",
        "recalled", "reporting", "scorecard", "similarity", "softmax_forms", "training_runs",
    ),
}  # fmt: skip
"""The modules that can be imported by their short names, by room."""

_ROOM_OF = {module: room for room, modules in ROOMS.items() for module in modules}


def __getattr__(name: str) -> ModuleType | Callable:
    """Load a module of a room by its short name; `results` is the function."""
    if name == "results":
        return import_module(f"{__name__}.analysis.published").results
    if name not in _ROOM_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{_ROOM_OF[name]}.{name}")


def __dir__() -> list[str]:
    """The short names, too."""
    return sorted({*globals(), *_ROOM_OF, "results"})
