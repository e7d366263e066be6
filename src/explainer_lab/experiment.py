"""The laboratory: a grid of settings, each computed once, stored at once, and never computed again.

An experiment is a dataclass of settings and a function from a setting to tables. What all have in common is here: the
file of grids, what determines a result, how a run resumes, who computes, who stores, and what a reader finds later.
"""

import itertools
import os
import platform
import subprocess
import time
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, asdict, dataclass, field, fields
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from tqdm import tqdm

import explainer
from explainer.data.files import Tables, rounded
from explainer.errors import CheckpointError, EngineError, ExperimentError, ExplainerError, TaskError
from explainer.models import memory
from explainer_lab import engines
from explainer_lab.publication import Frames, Published, frames, joined, of_settings
from explainer_lab.store import SETTING, Identity, Store


class Setting(Protocol):
    """A frozen dataclass with a `slug`, a readable name."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def slug(self) -> str:
        """As it stands in the names of files."""
        ...


AnySetting = TypeVar("AnySetting", bound=Setting)
Engine = Callable[[Sequence[tuple], Callable], Iterator]
"""(groups of settings, work) -> what `work(group)` yields for every group, in any order; see `engines`."""


@dataclass(frozen=True)
class Computed:
    """What a setting gives: its tables, where they come from, and what may differ between two runs of it."""

    tables: Tables
    provenance: Mapping[str, Any]
    run: Mapping[str, Any] = field(default_factory=dict)


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

    def __getstate__(self) -> Mapping[str, Any]:
        """Another process loads for itself."""
        return self.made_of

    def __setstate__(self, made_of: Mapping[str, Any]) -> None:
        """See `__getstate__`."""
        self.__init__(**made_of)

    @abstractmethod
    def parts(self, setting: AnySetting) -> Mapping[str, Any]:
        """What else than the setting and the protocol determines a result: weights, data; None where not known here."""

    @abstractmethod
    def compute(self, setting: AnySetting, *, progress: bool) -> Computed:
        """The tables of one setting."""

    def prepare(self, settings: Sequence[AnySetting]) -> None:
        """Load what could be missing, before the work begins."""

    def require_room(self, setting: AnySetting, at_once: int) -> None:
        """Raise CheckpointError where this machine has no memory for so many processes that compute a setting."""

    def finished(self, identity: Identity) -> None:
        """Clear away what only an unfinished computation needs; called when its result is stored."""

    def groups(self, settings: Sequence[AnySetting]) -> list[tuple[AnySetting, ...]]:
        """Settings that are best computed together, one after the other."""
        return [(setting,) for setting in settings]

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
        path = Path(os.path.expanduser(path))
        try:
            tables = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except (OSError, ValueError, RecursionError) as error:
            raise ExperimentError(
                f"cannot read {path} ({error}); give the path of a TOML file with one table per grid."
            ) from error
        if not tables or not all(isinstance(table, dict) for table in tables.values()):
            raise ExperimentError(f"{path} must hold tables only, like [pairs], with the keys of a setting below each.")
        grids = {}
        for name, table in tables.items():
            try:
                grids[name] = cls.grid(**table)
            except ExperimentError as error:
                raise ExperimentError(f"{path}, [{name}]: {error}") from error
        return grids

    def plan(
        self, settings: Iterable[AnySetting], store: Store, published: Published | None = None
    ) -> list[tuple[AnySetting, Identity, str]]:
        """The settings without repetitions, what determines each, and its state; computes none.

        The state is "published" if the tables have the result, "stored" if the store has it, else "waiting". Raises
        ResultsError for a result that was made of something else than is asked for.
        """
        planned, _ = self.plan_or_refuse(settings, store, published)
        return planned

    def plan_or_refuse(
        self, settings: Iterable[AnySetting], store: Store, published: Published | None
    ) -> tuple[list[tuple[AnySetting, Identity, str]], dict[AnySetting, str]]:
        """What `plan` gives of the settings that can be identified, and why the others cannot."""
        identities, refused = {}, {}
        for setting in dict.fromkeys(settings):
            try:
                identities[setting] = self.identity(setting)
            except (CheckpointError, TaskError) as error:  # a model or data that are not to be had
                refused[setting] = str(error)
        return [(one, of, _state(of, store, published)) for one, of in identities.items()], refused

    def run(
        self,
        settings: Iterable[AnySetting],
        store: Store,
        published: Published | None = None,
        *,
        engine: Engine = engines.local,
        progress: bool = True,
    ) -> Frames:
        """Compute what is neither stored nor published, store each result at once, and return the tables of all.

        The engine computes, here or elsewhere; this process stores. Interrupted and started again, a run goes on with
        what is not stored and ends with the same bytes. A result is refused whose worker had other weights, data or
        another protocol than this process.

        A setting that cannot be computed does not stop the others: ExperimentError at the end names all such. Raises
        ResultsError at once if the directory cannot be written or a result in it is damaged or was made of something
        else than is asked for.
        """
        store.require_writable()
        store.all()  # reads, and so checks, every result
        planned, refused = self.plan_or_refuse(settings, store, published)
        waiting = [setting for setting, _, state in planned if state == "waiting"]
        for setting in list(waiting):
            try:
                self.require_room(setting, engines.n_parallel(engine))
                self.prepare([setting])
            except (CheckpointError, TaskError) as error:
                refused[setting] = str(error)
                waiting.remove(setting)
        identities = {setting: self.identity(setting) for setting, _, _ in planned if setting not in refused}
        self._compute(waiting, identities, store, engine, progress=progress, refused=refused)
        states = [state for *_, state in planned]
        found = [store.load(identities[setting]) for setting, _, state in planned if state != "published"]
        kept = [stored for stored in found if stored]  # an engine may have stopped at its time
        parts = [frames(kept)] if kept else []
        if published and "published" in states:
            parts.append(published.tables())
        return of_settings(joined(parts), [identity.key for identity in identities.values()])

    def publish(self, grids: Mapping[str, Sequence[AnySetting]], store: Store, published: Published) -> None:
        """Fold what the store has of these grids into the tables; ResultsError if they cannot be written."""
        settings = dict.fromkeys(one for its in grids.values() for one in its)
        planned, _ = self.plan_or_refuse(settings, store, None)
        found = [stored for _, identity, _ in planned if (stored := store.load(identity))]
        keys = {name: map(self.key, its) for name, its in grids.items()}
        rows = {name: [{"setting": key.key, **key.parts[SETTING]} for key in its] for name, its in keys.items()}
        if found or published.directory.is_dir():
            with published.alone():
                known = [published.has(identity) for _, identity, _ in planned]
                if found or any(known):
                    published.add(found, rows)

    def _compute(
        self,
        settings: Sequence[AnySetting],
        identities: Mapping[AnySetting, Identity],
        store: Store,
        engine: Engine,
        *,
        progress: bool,
        refused: Mapping[AnySetting, str],
    ) -> None:
        asked = len(settings) + len(refused)
        if refused and asked == len(refused) and len(set(refused.values())) == 1:
            raise ExperimentError(next(iter(refused.values())))
        failed = [f"{setting.slug}: {why}" for setting, why in refused.items()]
        outcomes = engine(self.groups(settings), _Work(self, progress and engines.is_local(engine)))
        with tqdm(total=len(identities), initial=len(identities) - len(settings), disable=not progress) as bar:
            try:
                for outcome in outcomes:
                    bar.set_description(outcome.setting.slug)
                    bar.update()
                    if error := _save(outcome, identities[outcome.setting], store):
                        failed.append(f"{outcome.setting.slug}: {error}")
                    else:
                        self.finished(identities[outcome.setting])
            except EngineError as error:
                if not failed:
                    raise
                failed.append(str(error))
            finally:
                if isinstance(outcomes, Generator):
                    outcomes.close()  # ends what computes elsewhere
        if failed:
            raise ExperimentError(f"{len(failed)} of {asked} could not be computed:\n" + "\n".join(failed))


def _state(identity: Identity, store: Store, published: Published | None) -> str:
    if published and published.has(identity):
        return "published"
    return "stored" if store.load(identity) else "waiting"


@dataclass(frozen=True)
class _Outcome:
    """What became of one setting: its identity and what was computed, or why there is no result."""

    setting: Any
    identity: Identity | None = None
    computed: Computed | None = None
    error: str | None = None


@dataclass(frozen=True)
class _Work:
    """Computes the settings of a group one after the other."""

    experiment: Experiment
    progress: bool

    def __call__(self, group: Sequence[Any]) -> Iterator[_Outcome]:
        """Yield each as soon as it is finished."""
        for setting in group:
            wall, cpu = time.perf_counter(), time.process_time()
            try:
                computed = self.experiment.compute(setting, progress=self.progress)
                identity = self.experiment.identity(setting)
            except ExplainerError as error:
                yield _Outcome(setting, error=str(error))
                continue
            except Exception as error:  # what no check foresaw ends its own setting, and says where it happened
                yield _Outcome(setting, error=memory.report_unexpected(error))
                continue
            run = {
                "seconds": time.perf_counter() - wall,
                "cpu_seconds": time.process_time() - cpu,
                "commit": _commit(),
                **computed.run,
            }
            provenance = {**_software(self.experiment.packages), **computed.provenance}
            # Rounded here, because plain numbers travel between processes of any kind.
            yield _Outcome(setting, identity, Computed(rounded(computed.tables), provenance, rounded(run)))


def _software(packages: Iterable[str]) -> dict[str, Any]:
    import torch  # noqa: PLC0415 (`explainer --help` answers without it)

    return {
        "device": platform.machine(),
        "threads": torch.get_num_threads(),
        "explainer": explainer.__version__,
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def _save(outcome: _Outcome, identity: Identity, store: Store) -> str | None:
    """Store a result; returns why there is none."""
    computed = outcome.computed
    if outcome.identity is None or computed is None:
        return outcome.error or "its worker gave no result."
    if differing := identity.differences(outcome.identity.parts):
        return (
            f"it was computed elsewhere with other {', '.join(differing)} than here; install and copy the same there."
        )
    store.save(identity, computed.tables, provenance=computed.provenance, run=computed.run)
    return None


def _commit() -> str | None:
    """The last commit that changed this package, with a plus if files have changed since; None outside of git."""
    directory = Path(__file__).parents[1]
    git = partial(subprocess.run, cwd=directory, capture_output=True, text=True, check=True, timeout=10)
    try:
        commit = git(["git", "log", "-1", "--format=%H", "--", "."]).stdout.strip()
        changed = git(["git", "status", "--porcelain", "--", "."]).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
    return (commit + "+" * bool(changed)) or None
