"""Which learning rate teaches most, on queries that nothing is reported on."""

from typing import NamedTuple

import pandas as pd

from explainer.results import intervals
from explainer.theory.statistics import Interval


class _Tried(NamedTuple):
    """A rate and a number of epochs, and the share of right answers after that training; None where one diverged."""

    lr: float
    epochs: int
    right: Interval | None


def accuracy_by_rate(settings: pd.DataFrame) -> list[_Tried]:
    """What each rate and number of epochs gives: mean over tasks, Student's interval over seeds."""
    found = []
    for _, its in settings.groupby(["epochs", "lr"]):
        epochs, lr = its["epochs"].iloc[0], its["lr"].iloc[0]
        whole = its["ft_accuracy"].notna().all()
        found.append(_Tried(lr, epochs, accuracy_of_state(its, "ft") if whole else None))
    return found


def accuracy_of_state(settings: pd.DataFrame, state: str) -> Interval:
    """Right answers, zsl, one_label, icl or ft: mean over tasks, Student's interval over seeds, within [0, 1]."""
    return intervals.over_seeds(settings, f"{state}_accuracy").of_share


def untaught(settings: pd.DataFrame) -> Interval:
    """Right answers without training: zero-shot, or with the most frequent label for all where that is more."""
    known = (state for state in ("zsl", "one_label") if f"{state}_accuracy" in settings)
    return max((accuracy_of_state(settings, state) for state in known), key=lambda right: right.estimate)


def best(found: list[_Tried]) -> _Tried | None:
    """The one with the most right answers; of equals that with fewer epochs, then that with the smaller rate."""
    known = {one: one.right.estimate for one in found if one.right}
    return max(known, key=lambda one: (known[one], -one.epochs, -one.lr), default=None)


def advice(found: list[_Tried], chosen: _Tried | None, without: Interval) -> str:
    """Which rate to take, or why none and what to try next; `without` are right answers without training."""
    if chosen is None or chosen.right is None:
        return "every rate diverged; try smaller ones."
    if chosen.right.estimate <= without.estimate:
        return "no rate that was tried teaches the task; try larger ones, or more --epochs."
    rates = [one.lr for one in found]
    beyond = {max(rates): "larger", min(rates): "smaller"}.get(chosen.lr)
    more = f"; it stands at the end of those that were tried, so try {beyond} ones, too" if beyond else ""
    return f"chosen: --lr {chosen.lr:g} --epochs {chosen.epochs}{more}. Report on the other queries: --splits report"
