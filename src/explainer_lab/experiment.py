"""The laboratory: a grid of settings, each computed once, stored, and never computed again.

An experiment is a dataclass of settings and a function from a setting to tables. What all have in common is here: the
file of grids, what determines a result, how a run resumes, and what a reader finds later.
"""

import itertools
import os
import platform
import subprocess
import time
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from tqdm import tqdm

import explainer
from explainer.data.files import rounded
from explainer.errors import ExperimentError, ExplainerError, ResultsError, require
from explainer_lab.lab_store import SETTING, Computed, Frames, Identity, Published, Store, frames, joined, of_settings

AnySetting = TypeVar("AnySetting", bound=Any)
"""A frozen dataclass with a `slug`, a readable name."""

Engine = Callable[[Callable, Sequence], Iterator]
"""(work, groups of settings) -> what `work(group)` yields for every group, in any order; see `explainer_lab.pool`."""


class Experiment(ABC, Generic[AnySetting]):
    """What the laboratory has to know of an experiment; pickled, it takes along what it was made of, no results.

    `setting` is a frozen dataclass with a `slug`, a readable name; `slowest_first` its fields in the order in which a
    grid varies them; `protocol` the number of the arithmetic, raised, with a line in published/PROTOCOLS.md, when it
    changes a result; `packages` those whose versions a result names; `shown` the columns of a summary; `made_of` the
    arguments with which it was made.
    """

    name: ClassVar[str]
    setting: ClassVar[type]
    protocol: ClassVar[int]
    slowest_first: ClassVar[tuple[str, ...]]
    packages: ClassVar[tuple[str, ...]] = ("numpy", "torch", "transformers")
    shown: ClassVar[tuple[str, ...]] = ()
    made_of: Mapping[str, Any] = {}

    def __reduce__(self) -> tuple:
        """Another process loads for itself."""
        return partial(type(self), **self.made_of), ()

    @abstractmethod
    def parts(self, setting: AnySetting) -> Mapping[str, Any]:
        """What else than the setting and the protocol determines a result: weights, data; None where not known here."""

    @abstractmethod
    def compute(self, setting: AnySetting, *, progress: bool) -> Computed:
        """The tables of one setting."""

    def shares(self, setting: AnySetting) -> Hashable:
        """Equal for settings that are best computed together, one after the other."""
        return setting

    def key(self, setting: AnySetting) -> Identity:
        """What is asked for, and by which protocol: enough to find a result, and known without weights and data."""
        return Identity(setting.slug, {SETTING: asdict(setting), "protocol": self.protocol})

    def identity(self, setting: AnySetting) -> Identity:
        """Everything that determines the result of a setting."""
        return Identity(setting.slug, {**self.key(setting).parts, **self.parts(setting)})

    @classmethod
    def grid(cls, **axes: Any) -> list[AnySetting]:
        """Every combination of the fields of a setting, each given as a value or a list of values.

        Raises ExperimentError for an unknown key, a missing one, a value of another type, and an impossible setting.
        """
        known = {f.name: f.type for f in fields(cls.setting)}
        values = {name: value if isinstance(value, (list, tuple)) else [value] for name, value in axes.items()}
        for name, given in values.items():
            if name not in known:
                raise ExperimentError(f"there is no key {name!r}; known keys: {', '.join(known)}.")
            allowed = (float, int) if known[name] is float else (known[name],)  # an int is a float, a bool no int
            if not given or not all(type(value) in allowed for value in given):
                kind = getattr(known[name], "__name__", known[name])
                raise ExperimentError(f"{name} = {axes[name]!r} must be of type {kind}, or a list of such.")
        order = sorted(values, key=cls.slowest_first.index)
        combinations = itertools.product(*(values[name] for name in order))
        return list(dict.fromkeys(cls.of(**dict(zip(order, each, strict=True))) for each in combinations))

    @classmethod
    def of(cls, **values: Any) -> AnySetting:
        """The setting with these values; ExperimentError if one is missing."""
        numbers = {f.name for f in fields(cls.setting) if f.type is float}
        as_float = {name: float(values[name]) for name in numbers & set(values)}
        try:
            return cls.setting(**values | as_float)  # 1 and 1.0 are one setting, not two
        except TypeError as error:  # its message names what is missing
            raise ExperimentError(f"{str(error).partition('() ')[2]}; add it.") from error

    @classmethod
    def read_grids(cls, path: str | os.PathLike) -> dict[str, list[AnySetting]]:
        """The grids that a TOML file describes: one table for each, with the arguments of `grid` for its keys.

        Raises ExperimentError, which names file, table and key.
        """
        path = Path(path).expanduser()
        try:
            tables = tomllib.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise ExperimentError(f"cannot read {path} ({error}); give a TOML file with one table per grid.") from error
        require(bool(tables), f"{path} describes no grid.")
        grids = {}
        for name, table in tables.items():
            try:
                grids[name] = cls.grid(**table)
            except (ExperimentError, TypeError) as error:
                raise ExperimentError(f"{path}, [{name}]: {error}") from error
        return grids

    def plan(
        self, settings: Iterable[AnySetting], store: Store, published: Published | None = None
    ) -> list[tuple[AnySetting, Identity, str]]:
        """The settings without repetitions, what determines each, and its state; computes none.

        The state is "published" if the tables have the result, "stored" if the store has it, else "waiting". Raises
        ResultsError for a result that was made of something else than is asked for, CheckpointError and TaskError where
        a model or data are not to be had.
        """
        known, planned = published.identities() if published else {}, []
        for setting in dict.fromkeys(settings):
            identity = self.identity(setting)
            if identity.key in known:
                identity.require_same(known[identity.key], f"{identity.slug} in {published and published.directory}")
                state = "published"
            else:
                state = "stored" if store.load(identity) else "waiting"
            planned.append((setting, identity, state))
        return planned

    def run(
        self,
        settings: Iterable[AnySetting],
        store: Store,
        published: Published | None = None,
        *,
        engine: Engine | None = None,
        progress: bool = True,
    ) -> Frames:
        """Compute what is neither stored nor published, store each result when it comes, and return the tables of all.

        The engine computes elsewhere, if there is one; this process stores. Interrupted and started again, a run goes
        on with what is not stored and ends with the same bytes. A result is refused whose worker had other weights,
        data or another protocol than this process. A setting that cannot be computed does not stop the others:
        ExperimentError at the end names all such. Raises as `plan` does before anything is computed.
        """
        store.directory.mkdir(parents=True, exist_ok=True)
        planned = self.plan(settings, store, published)
        waiting = {setting: identity for setting, identity, state in planned if state == "waiting"}
        groups: dict[Hashable, list[AnySetting]] = {}
        for setting in waiting:
            groups.setdefault(self.shares(setting), []).append(setting)
        work, together = partial(_compute_group, self, progress and engine is None), list(groups.values())
        outcomes: Iterator[_Outcome]
        outcomes = engine(work, together) if engine else itertools.chain.from_iterable(map(work, together))
        failed = []
        with tqdm(total=len(planned), initial=len(planned) - len(waiting), disable=not progress) as bar:
            try:
                for setting, identity, found in outcomes:
                    bar.set_description(setting.slug)
                    bar.update()
                    if not identity or isinstance(found, str):
                        failed.append(f"{setting.slug}: {found}")
                        continue
                    try:
                        waiting[setting].require_same(identity.parts, f"{setting.slug}, computed elsewhere,")
                        store.save(identity, found)
                    except ResultsError as error:
                        failed.append(str(error))
            except ExperimentError as error:  # of the engine
                failed.append(str(error))
        if failed:
            raise ExperimentError(f"{len(failed)} of {len(waiting)} could not be computed:\n" + "\n".join(failed))
        return self.tables(settings, store, published)

    def tables(self, settings: Iterable[AnySetting], store: Store, published: Published | None = None) -> Frames:
        """The tables of those of the settings that are stored or published."""
        planned = self.plan(settings, store, published)
        parts = [published.tables()] if published else []
        parts.append(frames(one for _, its, state in planned if state == "stored" and (one := store.load(its))))
        return of_settings(joined(parts), [its.key for _, its, _ in planned])

    def publish(self, grids: Mapping[str, Sequence[AnySetting]], store: Store, published: Published) -> None:
        """Fold what the store has of these grids into the tables."""
        settings = dict.fromkeys(one for its in grids.values() for one in its)
        found = [stored for one in settings if (stored := store.load(self.identity(one)))]
        known = published.identities()
        if found or any(self.key(one).key in known for one in settings):
            keys = {name: map(self.key, its) for name, its in grids.items()}
            rows = {name: [{"setting": key.key, **key.parts[SETTING]} for key in its] for name, its in keys.items()}
            published.add(found, rows)


_Outcome = tuple[Any, Identity | None, Computed | str]
"""A setting, its identity and what was computed, or None and why there is no result."""


def _compute_group(experiment: Experiment, progress: bool, group: Sequence[Any]) -> Iterator[_Outcome]:
    """Compute the settings of a group one after the other; yield each as soon as it is finished."""
    import torch  # noqa: PLC0415 (`explainer-lab --help` answers without it)

    for setting in group:
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            computed = experiment.compute(setting, progress=progress)
            identity = experiment.identity(setting)
        except Exception as error:  # one that no check foresaw ends its own setting, too
            kind = "" if isinstance(error, ExplainerError) else f"{type(error).__name__}: "
            yield setting, None, f"{kind}{error}"
            continue
        run = {
            "seconds": time.perf_counter() - wall,
            "cpu_seconds": time.process_time() - cpu,
            "commit": _commit(),
            **computed.run,
        }
        provenance = {
            "device": platform.machine(),
            "threads": torch.get_num_threads(),
            "explainer": explainer.__version__,
            "python": platform.python_version(),
            **{name: version(name) for name in experiment.packages},
            **computed.provenance,
        }
        # Rounded here, because plain numbers travel between processes of any kind.
        arrays = {name: tensor.half().cpu().numpy() for name, tensor in computed.arrays.items()}
        yield setting, identity, Computed(rounded(computed.tables), provenance, rounded(run), arrays)


def _commit() -> str | None:
    """The last commit that changed this package, with a plus if files have changed since; None outside of git."""
    git = partial(subprocess.run, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True, timeout=10)
    try:
        commit = git(["git", "log", "-1", "--format=%H", "--", "."]).stdout.strip()
        changed = git(["git", "status", "--porcelain", "--", "."]).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
    return (commit + "+" * bool(changed)) or None
