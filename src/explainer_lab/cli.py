"""The command `explainer-lab`: the experiments, each with its grids."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

from explainer import __version__, commands
from explainer.commands import (
    DRAWN,
    SELECTION_SEEDS,
    Values,
    add_checkpoint_options,
    add_values,
    asked_models,
    asked_tasks,
    own_data,
    positive_integer,
    print_table,
)
from explainer.errors import ExperimentError, ExplainerError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one experiment and return the exit code: see `commands.run`."""
    return commands.run(_parser, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="explainer-lab", description="The experiments behind the book.")
    parser.add_argument("--version", action="version", version=f"explainer-lab {__version__}")
    added = parser.add_subparsers(required=True, metavar="EXPERIMENT", parser_class=_Command)
    _add_of_grids(added)
    _add_language_models(added)
    _add_measurements(added)
    return parser


class _Command(argparse.ArgumentParser):
    """A command that `complete` gives the rest of its help when it is chosen: what it then imports loads torch."""

    complete: Callable[[argparse.ArgumentParser], None] | None = None

    # typeshed has overloads.
    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """As of every parser."""
        if self.complete:
            self.complete, complete = None, self.complete
            complete(self)
        return super().parse_known_args(args, namespace)


def _complete_comparison(command: argparse.ArgumentParser) -> None:
    """Say every name that a comparison knows."""
    from explainer.compare import comparison, controls  # noqa: PLC0415
    from explainer.data import tasks  # noqa: PLC0415

    tables = {
        "tasks": {task.name: task.source for task in tasks.TASKS.values()},
        "controls": {name: control.note for name, control in controls.CONTROLS.items()},
        "positions": comparison.POSITIONS,
        "splits": comparison.SPLITS,
    }
    command.epilog = "\n\n".join(_names(title, table) for title, table in tables.items())


def _names(title: str, table: Mapping[str, str]) -> str:
    return "\n".join([f"{title}:", *(f"  {name:<22}{meaning}" for name, meaning in table.items())])


def _on_checkpoint(kind: type, grids: Mapping[str, Sequence], options: argparse.Namespace) -> Any:
    """An experiment on a checkpoint, with data, number format and device of the options."""
    from explainer.models import memory  # noqa: PLC0415

    settings = [one for its in grids.values() for one in its]
    made = partial(
        kind,
        data=own_data(options, dict.fromkeys(name for one in settings for name in _task_names(one))),
        data_dir=options.data_dir,
        device=options.device or (None if options.engine == "local" or options.gpus else "cpu"),
    )
    asked = made()
    return made(
        dtype=memory.dtype_of(
            options.dtype, options.device, lambda dtype: max(asked.needs(one, dtype) for one in settings)
        )
    )


def _task_names(setting: Any) -> Sequence[str]:
    """The tasks of a setting, which has one, several or none."""
    if hasattr(setting, "names"):
        return setting.names
    return (setting.task,) if hasattr(setting, "task") else getattr(setting, "tasks", ())


def _add_laboratory(command: argparse.ArgumentParser) -> None:
    command.add_argument("--results", metavar="DIR", help="where unfinished studies are stored (default: in the cache)")
    command.add_argument("--grid", metavar="FILE", help="TOML file that describes grids")
    command.add_argument("--only", nargs="+", metavar="NAME", help="grids of the file (default: all)")
    command.add_argument("--list", "--dry-run", action="store_true", help="only show what is stored and what is not")
    command.add_argument(
        "--publish",
        nargs="?",
        const="",
        metavar="DIR",
        help="fold finished settings into the tables in DIR/<experiment> (default: those of the package)",
    )
    command.add_argument(
        "--threads",
        type=positive_integer,
        metavar="N",
        help="of the processor; the last digits of a result depend on it",
    )
    command.add_argument(
        "--workers", type=positive_integer, metavar="N", help="processes of this machine (default: this one)"
    )
    command.add_argument(
        "--within",
        type=positive_integer,
        metavar="MINUTES",
        help="draw after draw, begin none that would end later; the same command goes on",
    )
    command.add_argument("--engine", choices=["local", "ray"], default="local", help="what computes (default: local)")
    command.add_argument("--ray-address", metavar="HOST:PORT", help="of a Ray cluster (default: one on this machine)")
    command.add_argument("--gpus", type=float, metavar="N", help="for each task on Ray (default: 1 with --device cuda)")
    command.add_argument(
        "--cpus", type=positive_integer, metavar="N", help="for each task on Ray, as threads (default: 1)"
    )


_OWN_TABLES = (
    "{} of your own would be published under the names of the book's grids; give --publish a directory of your own."
)


def _run(
    experiment: Any,
    grids: Mapping[str, Sequence],
    options: argparse.Namespace,
    engine: Callable[..., Iterator],
    show: Callable[[Mapping], None] | None = None,
) -> int:
    """List or compute the settings of grids, show what came out, and publish it if that is asked for."""
    import torch  # noqa: PLC0415

    from explainer.data import assets  # noqa: PLC0415
    from explainer.data.files import published_directory  # noqa: PLC0415
    from explainer_lab.publication import Published  # noqa: PLC0415
    from explainer_lab.store import Store  # noqa: PLC0415

    settings = [one for its in grids.values() for one in its]
    if options.within:
        settings.sort(key=lambda one: one.seed)  # each draw is whole before the next begins
    store = Store(options.results or assets.cache_dir() / "results" / experiment.name)
    published = None
    if options.publish is not None:
        published = Published(Path(options.publish or published_directory()) / experiment.name)
    of_book = published_directory() / experiment.name / "grids.toml"
    if options.publish == "" and Path(os.path.expanduser(options.grid or "")).resolve() != of_book.resolve():
        raise ExplainerError(_OWN_TABLES.format("settings"))
    if options.list:
        planned, refused = experiment.plan_or_refuse(settings, store, published)
        _print_planned(planned, store)
        if refused:
            raise ExperimentError("\n".join([f"{len(refused)} have no state:", *dict.fromkeys(refused.values())]))
        return 0
    if options.threads:
        torch.set_num_threads(options.threads)
    if hasattr(options, "model"):
        from explainer_lab import estimate  # noqa: PLC0415

        for line in estimate.estimate_lines(experiment, experiment.plan(settings, store, published), store):
            print(line, file=sys.stderr)
    try:
        tables = experiment.run(settings, store, published, engine=engine)
    except ExperimentError:
        _print_finished(experiment, settings, store)
        if published is not None:
            experiment.publish(grids, store, published)  # what failed is missing, and named by who asks for it
        raise
    show = show or partial(_print_summary, experiment)
    show(tables)
    if published is not None:
        experiment.publish(grids, store, published)
    if options.within:
        planned = experiment.plan(settings, store, published)
        left = sum(state == "waiting" for *_, state in planned)
        print(f"{left} of {len(planned)} are left{'; the same command goes on' * (left > 0)}.", file=sys.stderr)
    return 0


def _print_finished(experiment: Any, settings: Iterable[Any], store: Any) -> None:
    """The summary of what is stored, where something failed."""
    from explainer_lab.publication import frames  # noqa: PLC0415

    found = [stored for one in settings if (stored := store.load(experiment.key(one)))]
    if found:
        _print_summary(experiment, frames(found))


def _print_summary(experiment: Any, tables: Mapping[str, Any]) -> None:
    names = [name for name in experiment.shown if name in tables["settings"].column_names]
    columns = [tables["runs"]["slug"].to_pylist(), *(tables["settings"][name].to_pylist() for name in names)]
    print_table([("setting", *names), *(tuple(map(_text, row)) for row in zip(*columns, strict=True))])


def _text(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _print_planned(planned: Sequence[tuple], store: Any) -> None:
    """The state of every planned setting, and what killed runs have left."""
    print_table([("state", "file"), *((state, identity.filename) for _, identity, state in planned)])
    from explainer_lab.store import SETTING  # noqa: PLC0415

    states = [state for *_, state in planned]
    print(", ".join(f"{states.count(state)} {state}" for state in ("published", "stored", "waiting")))
    seen = [identity for _, identity, state in planned if state != "waiting"]
    if unseen := dict.fromkeys(i.parts[SETTING]["task"] for i in seen if i.parts.get("data", "") is None):
        print(f"not compared with the data, which are not here: {', '.join(unseen)} (--data-dir)")
    for path in store.remains():
        print(f"left by a run that was killed while writing, may be deleted: {path}")


def _chosen(grids: Mapping[str, list], options: argparse.Namespace) -> dict[str, list]:
    """The grids that were asked for."""
    for name in options.only or ():
        if name not in grids:
            raise ExplainerError(f"{options.grid} has no grid {name!r}; it has {', '.join(grids)}.")
    return {name: grids[name] for name in options.only or grids}


def _engine(options: argparse.Namespace) -> Callable[..., Iterator]:
    """What computes the settings; an option that the engine would ignore is an error."""
    of_ray = {"address": options.ray_address, "gpus": options.gpus, "cpus": options.cpus}
    given = {name: value for name, value in of_ray.items() if value is not None}
    if options.engine == "local" and given:
        raise ExplainerError("--ray-address, --gpus and --cpus are for a Ray cluster; add --engine ray.")
    if options.engine == "ray" and (options.threads or options.workers):
        raise ExplainerError("--threads and --workers do not reach the tasks on Ray; give --cpus.")
    from explainer_lab import engines  # noqa: PLC0415

    device = getattr(options, "device", None)
    if options.engine == "ray" and getattr(options, "dtype", None) == "auto":
        raise ExplainerError("--dtype auto asks this machine, and Ray's tasks run on others; give bfloat16 or float32.")
    if options.within and (options.engine == "ray" or options.workers):
        raise ExplainerError("--within is for one process; leave out --workers and --engine.")
    if options.engine == "ray":
        return partial(engines.on_ray, **({"gpus": 1} if device == "cuda" else {}) | given)
    if options.within:
        return partial(engines.local, seconds=60 * options.within)
    if options.workers:
        shared = {"threads": options.threads or 1, "gpus": engines.gpus_of(device)}
        return partial(engines.in_processes, workers=options.workers, **shared)
    return engines.local


def _add_language_models(commands: argparse._SubParsersAction) -> None:
    train = commands.add_parser(
        "language-models",
        help="train language models from scratch, with and without momentum attention",
        description=(
            "Train every combination of the given values that is not stored yet. Runs that differ in --eta and\n"
            "--average alone start from the same weights and see the same text. Interrupt at any time and run the\n"
            "same command again to go on from the last checkpoint, with the same bits."
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_laboratory(train)
    train.add_argument(
        "--every", type=positive_integer, default=100, metavar="N", help="steps between checkpoints (default: 100)"
    )
    train.complete = _complete_language_models
    train.set_defaults(run=_language_models)


def _complete_language_models(command: argparse.ArgumentParser) -> None:
    """Add an option for each field of a setting."""
    from explainer_lab.training import TrainingSetting  # noqa: PLC0415

    for its in fields(TrainingSetting):
        command.add_argument(
            "--seeds" if its.name == "seed" else f"--{its.name}",
            dest=its.name,
            nargs=None if its.name == "device" else "+",  # a run has one device
            type=its.type,
            metavar={int: "N", float: "X", str: "NAME"}[its.type],
            help=f"{its.metadata.get('help', '')} (default: {its.default})".lstrip(),
        )


def _language_models(options: argparse.Namespace) -> int:
    # Imported here so that `explainer-lab --help` answers at once.
    from explainer_lab.language_models import LanguageModels  # noqa: PLC0415

    names = (field.name for field in fields(LanguageModels.setting))
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    if options.grid and given:
        raise ExplainerError(f"--grid and --{min(given)} both say what to train; give one of them.")
    if options.only and not options.grid:
        raise ExplainerError("--only chooses grids of a file; give it with --grid.")
    if options.grid:
        grids = _chosen(LanguageModels.read_grids(options.grid), options)
    else:
        grids = {LanguageModels.name: LanguageModels.grid(**given)}
    return _run(LanguageModels(every=options.every), grids, options, _engine(options))


_EXPERIMENTS = {
    "comparison": "compare in-context learning with fine-tuning on a checkpoint",
    "agreement": "compare contexts and trainings of one model, each with each",
    "blocking": "ask for a cue whose label another cue had already told, in the context or by training",
    "causal-tests": "put in patches, task vectors and gradient steps in place of the context, and count the answers",
    "new-rule": "learn a rule that nobody could know, in the context or by training, and ask for other words",
    "minimal-pairs": "compare contexts and trainings of two lessons that differ in nothing but their answers",
    "reversal": "learn pairs in one direction, in the context or by fine-tuning, and ask in the other",
    "rival": "put in and switch off what a context may do instead of descent: vectors, and the outputs of some heads",
    "shared-part": "swap the lesson of the context and that of the training, put in or take out what both share",
    "recall": "train small models to recall what was written last, with memories that learn by different rules",
    "regression": "train small GPTs to do linear regression in context, with and without momentum attention",
    "trained-control": "compare in-context learning with fine-tuning on small models that only learn in context",
}
"""Experiments whose settings come from a file of grids. The word names the module, the class and the folder, too."""

_ON_CHECKPOINT = tuple(_EXPERIMENTS)[:9]
"""Those that can be put to another model; what is given on the command line takes the place of a grid's values."""


def _experiment(name: str) -> type:
    """The class of an experiment: `MinimalPairs` of `explainer_lab.minimal_pairs` for "minimal-pairs"."""
    module = import_module(f"explainer_lab.{name.replace('-', '_')}")
    return getattr(module, "".join(word.capitalize() for word in name.split("-")))


_MEASUREMENTS = {
    "few-shots": "count the right answers after 0 to 32 demonstrations",
    "head-circuits": "cut what a prompt's tokens read, or switch heads off, and count the answers",
    "contradictions": "ask for a made-up word whose four answers contradict each other, in all orders",
}
"""What is measured once, on the starter checkpoint, by `measure` of the module of this name; a JSON file for each."""


def _add_measurements(commands: argparse._SubParsersAction) -> None:
    where = {"nargs": "?", "const": "", "metavar": "DIR", "help": "write it into DIR (default: that of the package)"}
    for name, what in _MEASUREMENTS.items():
        command = commands.add_parser(name, help=what, description=f"On the starter checkpoint, in minutes: {what}.")
        command.add_argument("--publish", required=True, **where)
        command.set_defaults(run=partial(_measure, name.replace("-", "_")))


def _measure(name: str, options: argparse.Namespace) -> int:
    from explainer.data.files import published_directory, replace_file  # noqa: PLC0415
    from explainer.models import loading  # noqa: PLC0415
    from explainer_lab.store import Store  # noqa: PLC0415

    store = Store(options.publish or published_directory())
    store.require_writable()
    checkpoint = loading.load(loading.STARTER, device="cpu")
    text = json.dumps(import_module(f"explainer_lab.{name}").measure(checkpoint), separators=(",", ":"))
    end = "}," if "}," in text else "]],"  # of a line: a record, else a matrix
    replace_file(store.directory / f"{name}.json", text.replace(end, f"{end}\n") + "\n")
    return 0


_TRAINED = {
    "lr": Values("learning rates of FT", ("lr",), "LR", float),
    "epochs": Values("of FT", ("epochs",), "N", positive_integer),
    "splits": Values("queries to draw from: all, selection, report", ("split",)),
    "lessons": Values("which others stand beside the own: all; agreement: bounds, few", ("lessons",)),
}

_COMPARED = {
    "controls": Values("see below (default: none)", ("control",)),
    "positions": Values("see below (default: prompt)", ("position",)),
}
"""What a comparison has beside these."""


_TO_CHOOSE = {"lr": [1e-4, 3e-4, 1e-3, 3e-3], "seed": list(SELECTION_SEEDS)}
"""Rates that are tried if none are given, and seeds that are not among those reported."""


def _add_of_grids(commands: argparse._SubParsersAction) -> None:
    for name, what in _EXPERIMENTS.items():
        takes = " Values that are given here take the place of those in the file." * (name in _ON_CHECKPOINT)
        command = commands.add_parser(
            name,
            help=what,
            description=(
                f"Compute every setting of a file of grids that is not stored yet.{takes} Each is stored as soon as it "
                "is finished: interrupt at any time and run the same command again to go on."
            ),
            formatter_class=argparse.RawDescriptionHelpFormatter if name == "comparison" else argparse.HelpFormatter,
        )
        _add_laboratory(command)
        if name in _ON_CHECKPOINT:
            add_checkpoint_options(command)
            add_values(command, _TRAINED)
        if name == "comparison":
            add_values(command, _COMPARED)
            command.complete = _complete_comparison
        if name == "agreement":
            command.add_argument(
                "--choose", action="store_true", help="compare rates on the split 'selection', and say which is best"
            )
        command.set_defaults(run=partial(_run_grids, name))


def _run_grids(name: str, options: argparse.Namespace) -> int:
    """Run the settings of a file of grids, which is that of the published results if none is given."""
    from explainer.data.files import PUBLISHED, published_directory  # noqa: PLC0415

    engine = _engine(options)
    kind = _experiment(name)
    given = _values(kind, name, options) if name in _ON_CHECKPOINT else {}
    if given and options.publish == "":
        raise ExplainerError(_OWN_TABLES.format(", ".join(given)))
    chooses = getattr(options, "choose", False)
    if chooses:
        given = _to_choose(given, options)
    if given.keys() & set(DRAWN["tasks"].fields) and not (options.grid or options.only):
        grids = {kind.name: kind.grid(**{"seed": [0]} | given)}
    elif name == "comparison" and not (options.grid or options.only or options.publish == ""):
        raise ExplainerError("say what to compute: --tasks or --task-file, or --grid with a file and perhaps --only.")
    else:
        of_book = PUBLISHED / kind.name / "grids.toml"  # beside tables of one's own there is none
        there = published_directory() / kind.name / "grids.toml"
        options.grid = options.grid or (there if there.is_file() else of_book)
        grids = {n: _with_values(its, given) for n, its in _chosen(kind.read_grids(options.grid), options).items()}
    experiment = _on_checkpoint(kind, grids, options) if name in _ON_CHECKPOINT else kind()
    return _run(experiment, grids, options, engine, _print_choice if chooses else None)


def _values(kind: type, name: str, options: argparse.Namespace) -> dict[str, list]:
    """Fields of a setting that the options give, each with its values; one it does not have is named, left out."""
    if not options.grid:
        options.model = asked_models(options)
    options.tasks = asked_tasks(options)
    known, found = {field.name for field in fields(kind.setting)}, {}
    for option, its_values in (DRAWN | _TRAINED | _COMPARED).items():
        if values := getattr(options, option, None):
            its = [field for field in its_values.fields if field in known]
            if not its:
                print(f"explainer: `explainer-lab {name}` has no --{option}; it is left out.", file=sys.stderr)
                continue
            found[its[0]] = ["/".join(values)] if its[0] in ("tasks", "pair") else values
    return found


def _to_choose(given: Mapping[str, list], options: argparse.Namespace) -> dict[str, list]:
    """The settings among which a rate is chosen, on queries that are never reported."""
    if "task" not in given or options.grid or options.only or options.splits or options.publish is not None:
        raise ExplainerError(
            "--choose compares rates on tasks, of --tasks or --task-file, and on its own split; leave out --grid, "
            "--only, --splits and --publish."
        )
    return {**_TO_CHOOSE, **given, "split": ["selection"], "lessons": ["own"]}


def _print_choice(tables: Mapping[str, Any]) -> None:
    """What each rate gives, and which is the best, by checkpoint."""
    from explainer.results import learning_rates  # noqa: PLC0415

    for checkpoint, settings in tables["settings"].to_pandas().groupby("checkpoint", sort=False):
        tried = learning_rates.accuracy_by_rate(settings)
        best = learning_rates.best(tried)
        rows = [(f"{lr:g}", str(n), f"{right:.2f}" if right else "diverged") for lr, n, right in tried]
        print_table([("rate", "epochs", "right after fine-tuning"), *rows])
        zero_shot, in_context = (learning_rates.accuracy_of_state(settings, state) for state in ("zsl", "icl"))
        print(f"{checkpoint}: zero-shot {zero_shot:.2f}, in context {in_context:.2f}")
        print(learning_rates.advice(tried, best, learning_rates.untaught(settings)))


def _with_values(settings: Iterable[Any], given: Mapping[str, Sequence]) -> list:
    """The settings with every combination of the given values in place of their own, each once."""
    combinations = [dict(zip(given, values, strict=True)) for values in product(*given.values())]
    return list(dict.fromkeys(replace(one, **values) for one in settings for values in combinations))
