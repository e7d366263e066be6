"""explainer_lab.experiment: a run of any experiment resumes, refuses what is not its own, and says what failed."""

import itertools
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from toy_study import contents

from explainer.errors import ExperimentError, ResultsError, TaskError
from explainer_lab.experiment import Computed, Experiment
from explainer_lab.lab_store import Published, Store


@dataclass(frozen=True)
class Power:
    base: int
    exponent: float = 2.0
    kind: str = "plain"

    def __post_init__(self):
        if self.base < 0:
            raise ExperimentError(f"base {self.base} is negative.")

    @property
    def slug(self):
        return f"{self.base}-to-{self.exponent:g}-{self.kind}"


class Powers(Experiment[Power]):
    name = "powers"
    setting = Power
    protocol = 1
    slowest_first = ("kind", "base", "exponent")
    packages = ("numpy",)

    def __init__(self, weights="w"):
        self.made_of, self.computed = {"weights": weights}, []

    def parts(self, _):
        return self.made_of

    def compute(self, one, *, progress):
        self.computed.append(one)
        if one.base == 13:
            raise TaskError("13 has no power here; use another number.")
        table = {"i": list(range(one.base)), "power": [i**one.exponent / 3 for i in range(one.base)]}
        arrays = {"powers": torch.tensor(table["power"])}
        settings = {"value": one.base**one.exponent / 3}
        return Computed({"settings": settings, "steps": table}, {"source": "pencil"}, arrays=arrays)


def elsewhere(work, groups):
    """An engine of another process, as far as what travels is concerned."""
    work = pickle.loads(pickle.dumps(work))
    for group in groups:
        yield from pickle.loads(pickle.dumps(list(work(group))))


SETTINGS = Powers.grid(base=[2, 3, 4], exponent=[1, 2.5])


def test_grid_is_every_combination_in_its_order():
    assert [(one.base, one.exponent) for one in SETTINGS] == [(b, e) for b in (2, 3, 4) for e in (1.0, 2.5)]
    assert [one.kind for one in Powers.grid(base=1, kind=["b", "a", "b"])] == ["b", "a"]
    assert len({Powers().key(Powers.of(base=1, exponent=of)).key for of in (1, 1.0)}) == 1


def test_a_run_gives_the_tables_of_all_and_computes_none_twice(tmp_path):
    experiment, store = Powers(), Store(tmp_path)
    tables = experiment.run([*SETTINGS, SETTINGS[0]], store, progress=False)
    assert [row["value"] for row in tables["settings"].to_pylist()] == [0.6667, 1.886, 1.0, 5.196, 1.333, 10.67]
    assert len(tables["steps"]) == 2 * (2 + 3 + 4)
    assert experiment.computed == SETTINGS
    again = Powers()
    assert again.run(SETTINGS[::-1], store, progress=False)["settings"]["base"].to_pylist() == [4, 4, 3, 3, 2, 2]
    assert again.computed == []
    (row, *_) = tables["runs"].to_pylist()
    assert row["source"] == "pencil" and row["numpy"] and row["seconds"] >= 0 and "explainer" in row


def test_what_is_computed_elsewhere_is_the_same_bytes_and_goes_on_where_it_stopped(tmp_path):
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    Powers().run(SETTINGS, here, progress=False)

    def interrupted(work, groups):
        yield from itertools.islice(elsewhere(work, groups), 2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Powers().run(SETTINGS, there, engine=interrupted, progress=False)
    assert len(contents(there)) == 2
    Powers().run(SETTINGS, there, engine=elsewhere, progress=False)
    assert contents(there) == contents(here)
    for one in SETTINGS:
        kept = [store.arrays(Powers().identity(one))["powers"] for store in (here, there)]
        assert len(kept[0]) == one.base and np.array_equal(*kept)


def test_a_result_from_elsewhere_that_was_made_of_something_else_is_refused_and_the_others_are_stored(tmp_path):
    def other(work, groups):
        for group in groups:
            yield from work.func(Powers("others") if group == SETTINGS[:1] else Powers(), False, group)

    with pytest.raises(ExperimentError, match=r"2-to-1-plain, computed elsewhere, .* other weights"):
        Powers().run(SETTINGS[:3], store := Store(tmp_path), engine=other, progress=False)
    assert len(contents(store)) == 2


def test_published_results_are_finished_and_new_ones_are_folded_in(tmp_path):
    published, first, second = Published(tmp_path / "tables"), Store(tmp_path / "a"), Store(tmp_path / "b")
    Powers().run(SETTINGS[:4], first, published, progress=False)
    Powers().publish({"first": SETTINGS[:4]}, first, published)
    experiment = Powers()
    states = [state for *_, state in experiment.plan(SETTINGS, second, published)]
    assert states == ["published"] * 4 + ["waiting"] * 2
    tables = experiment.run(SETTINGS, second, published, progress=False)
    assert experiment.computed == SETTINGS[4:]
    assert tables["settings"]["base"].to_pylist() == [2, 2, 3, 3, 4, 4]
    experiment.publish({"all": SETTINGS}, second, published)
    assert [state for *_, state in experiment.plan(SETTINGS, Store(tmp_path / "c"), published)] == ["published"] * 6
    assert len(experiment.tables(SETTINGS, second, published)["settings"]) == 6  # once, what is stored as well
    with pytest.raises(ResultsError, match="other weights"):
        Powers("others").plan(SETTINGS, second, published)


def test_what_fails_is_named_and_the_others_are_stored(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(ExperimentError, match=r"1 of 3 could not be computed:\n13-to-2-plain: 13 has no power"):
        Powers().run(Powers.grid(base=[2, 13, 4]), store, progress=False)
    assert len(contents(store)) == 2


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"bases": 2}, "no key 'bases'; known keys: base, exponent, kind"),
        ({"base": "2"}, "base = '2' must be of type int, or a list of such"),
        ({"base": [1], "exponent": [1, "x"]}, "exponent = .* must be of type float"),
        ({"base": -1}, "base -1 is negative"),
    ],
)
def test_impossible_grids_are_refused(axes, message):
    with pytest.raises(ExperimentError, match=message):
        Powers.grid(**axes)
