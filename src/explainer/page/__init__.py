"""The model in the page: explorables that the checkpoint answers, by a worker in a page, by a kernel in a notebook."""

from explainer.page.live_experiment import LiveExperiment
from explainer.page.live_gpt import LiveAttention, LiveGPT
from explainer.page.live_tasks import LivePatch, LiveSweep, LiveVector

__all__ = ["LiveAttention", "LiveExperiment", "LiveGPT", "LivePatch", "LiveSweep", "LiveVector"]
