"""How long the computation of a live figure took: a clock that stands still between the cells of a notebook."""

from functools import cache
from time import perf_counter
from typing import Any

from IPython.core.interactiveshell import InteractiveShell


class Clock:
    """The seconds that cells have run since the last figure."""

    def __init__(self):
        """From now, which is inside a cell."""
        self._before, self._began = 0.0, perf_counter()

    def go(self, _cell: Any = None) -> None:
        """A cell begins."""
        self._began = perf_counter()

    def stand(self, _cell: Any = None) -> None:
        """A cell ends."""
        self._before += perf_counter() - self._began

    def read(self) -> float:
        """The seconds; from here, it counts for the next figure."""
        now = perf_counter()
        seconds = self._before + now - self._began
        self._before, self._began = 0.0, now
        return seconds


@cache
def clock(shell: InteractiveShell) -> Clock:
    """The one clock of a running notebook, which runs while a cell does."""
    its = Clock()
    shell.events.register("pre_run_cell", its.go)
    shell.events.register("post_run_cell", its.stand)
    return its


def live(seconds: float, facts: str) -> str:
    """Origin of a result computed in this page: how long that took from one second on, on what, with which settings."""
    import torch  # noqa: PLC0415 - the site's build needs this module without torch

    took = f" in {seconds:.0f} s" if seconds >= 1 else ""
    threads = torch.get_num_threads()
    return f"Live: computed in this page{took} on {threads} thread{'s' * (threads > 1)}{facts and f', {facts}'}."
