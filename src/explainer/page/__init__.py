"""The model in the page: explorables that the checkpoint answers, by a worker in a page, by a kernel in a notebook."""

from explainer.explorables import Explorable
from explainer.page.live_experiment import LiveExperiment
from explainer.page.live_gpt import LiveGPT
from explainer.page.live_patch import LivePatch
from explainer.page.live_sweep import LiveSweep

__all__ = ["EXPLORABLES", "LiveExperiment", "LiveGPT", "LivePatch", "LiveSweep"]

EXPLORABLES: tuple[type[Explorable], ...] = (LiveGPT, LiveSweep, LiveExperiment, LivePatch)
