"""The command `explainer-lab`: the experiments, each with its grids."""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from explainer import __version__, commands
from explainer.commands import SELECTION_SEEDS, add_checkpoint_options, own_data, print_table
from explainer.errors import ExperimentError, ExplainerError

if TYPE_CHECKING:  # what loads torch is imported where it is used, so that `explainer-lab --help` answers at once
    from explainer_lab.experiment import Engine, Experiment
    from explainer_lab.lab_store import Frames, Identity

_ON_CHECKPOINT = {
    "ablations": "hold each layer's attention and MLP, and some heads, at their means, and count the answers",
    "comparison": "compare in-context learning with fine-tuning on a checkpoint",
    "agreement": "compare contexts and training runs of one model, each with each",
    "blocking": "ask for a cue whose label another cue had already told, in the context or by training",
    "causal-tests": "put in patches, task vectors and gradient steps in place of the context, and count the answers",
    "new-rule": "learn a rule that nobody could know, in the context or by training, and ask for other words",
    "label-lines": "read what lines hold for the heads that look at their labels, and exchange their states",
    "minimal-pairs": "compare contexts and training runs of two lessons that differ in nothing but their answers",
    "reversal": "learn pairs in one direction, in the context or by fine-tuning, and ask in the other",
    "rule-orders": "learn such a rule by keys and values and in contexts, each in many orders, and compare the means",
    "rival": "put in and switch off what a context may do instead of descent: vectors, and the outputs of some heads",
    "shared-part": "swap the lesson of the context and that of the training, put in or take out what both share",
    "vote": "change where heads look in a context with a rule that nobody could know, and count the answers",
}
"""Those that can be put to another model."""

_EXPERIMENTS = _ON_CHECKPOINT | {
    "recall": "train small models to recall what was written last, with memories that learn by different rules",
    "regression": "train small GPTs to do linear regression in context, with and without momentum attention",
    "trained-control": "compare in-context learning with fine-tuning on small models that only learn in context",
    "language-models": "train language models from scratch, with and without momentum attention",
}
"""What each experiment does. The word names the module, the class and the folder, too."""

_MEASUREMENTS = {
    "few-shots": "count the right answers after 0 to 32 demonstrations",
    "head-circuits": "cut what a prompt's tokens read, or switch heads off, and count the answers",
    "contradictions": "ask for a made-up word whose four answers contradict each other, in all orders",
}
"""What is measured once, on the starter checkpoint, by `measure` of the module of this name; a JSON file for each."""

_FIELDS = {
    "model": ("checkpoint",),
    "tasks": ("task", "tasks", "pair"),
    "seeds": ("seed",),
    "k": ("k",),
    "queries": ("n_queries",),
    "lr": ("lr",),
    "epochs": ("epochs",),
    "splits": ("split",),
    "lessons": ("lessons",),
    "controls": ("control",),
    "positions": ("position",),
}
"""Options with several values, and the fields of a setting that they give, of which it has one or none."""

_NAMING_HEADS = {"effect", "vote_heads"}
"""Fields of a setting that name heads of its checkpoint."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one experiment and return the exit code: see `commands.main`."""
    given = sys.argv[1:] if arguments is None else arguments
    return commands.main(given, partial(_parser, given))


# Options.


def _parser(given: Iterable[str] = _EXPERIMENTS) -> argparse.ArgumentParser:
    """All commands; what takes torch to say is said of those that are given alone."""
    parser = argparse.ArgumentParser(prog="explainer-lab", description="The experiments behind the book.")
    parser.add_argument("--version", action="version", version=f"explainer-lab {__version__}")
    added = parser.add_subparsers(required=True, metavar="EXPERIMENT")
    for name, what in _EXPERIMENTS.items():
        command = added.add_parser(
            name,
            help=what,
            description=(
                "Compute every setting of a file of grids that is not stored yet. Values that are given here take the\n"
                "place of those in the file. Each setting is stored when it is finished; with --workers or on Ray,\n"
                "when all that share its training runs are. Interrupt, and run the same command again to go on."
            ),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        _add_laboratory(command)
        if name in _ON_CHECKPOINT:
            add_checkpoint_options(command)
            command.add_argument("--lr", nargs="+", type=float, metavar="LR", help="learning rates of FT")
            command.add_argument("--epochs", nargs="+", type=int, metavar="N", help="of FT")
            drawn = "queries to draw from: all, selection, report"
            command.add_argument("--splits", nargs="+", metavar="NAME", help=drawn)
            others = "which others stand beside the own: all; agreement: bounds, few"
            command.add_argument("--lessons", nargs="+", metavar="NAME", help=others)
        if name == "comparison":
            command.add_argument("--controls", nargs="+", metavar="NAME", help="see below (default: none)")
            command.add_argument("--positions", nargs="+", metavar="NAME", help="see below (default: prompt)")
            if name in given:
                _name_what_a_comparison_knows(command)
        if name == "language-models" and name in given:
            _add_fields_of_a_training(command)
        if name == "agreement":
            command.add_argument(
                "--choose", action="store_true", help="compare rates on the split 'selection', and say which is best"
            )
        if name in ("comparison", "new-rule"):
            prompts = "only write the prompts into DIR, as tasks of lm-evaluation-harness"
            command.add_argument("--harness", metavar="DIR", help=prompts)
        command.set_defaults(run=partial(_run, name))
    for name, what in _MEASUREMENTS.items():
        command = added.add_parser(name, help=what, description=f"On the starter checkpoint, in minutes: {what}.")
        where = "write it into DIR (default: that of the package)"
        command.add_argument("--publish", required=True, nargs="?", const="", metavar="DIR", help=where)
        command.set_defaults(run=partial(_measure, name.replace("-", "_")))
    return parser


def _add_laboratory(command: argparse.ArgumentParser) -> None:
    number = {"type": int, "metavar": "N"}
    where = "fold finished settings into the tables in DIR/<experiment> (default: those of the package)"
    command.add_argument("--results", metavar="DIR", help="where unfinished studies are stored (default: in the cache)")
    command.add_argument("--grid", metavar="FILE", help="TOML file that describes grids (default: that of the book)")
    command.add_argument("--only", nargs="+", metavar="NAME", help="grids of the file (default: all)")
    command.add_argument("--list", action="store_true", help="only show what is stored and what is not")
    command.add_argument("--publish", nargs="?", const="", metavar="DIR", help=where)
    command.add_argument("--threads", help="of the processor; the last digits of a result depend on it", **number)
    command.add_argument("--workers", help="processes of this machine (default: this one)", **number)
    command.add_argument("--engine", choices=["local", "ray"], default="local", help="what computes (default: local)")
    command.add_argument("--ray-address", metavar="HOST:PORT", help="of a Ray cluster (default: one on this machine)")
    command.add_argument("--gpus", type=float, metavar="N", help="for each task on Ray (default: 1 with --device cuda)")
    command.add_argument("--cpus", help="for each task on Ray, as threads (default: 1)", **number)


def _name_what_a_comparison_knows(command: argparse.ArgumentParser) -> None:
    from explainer.compare import comparison, controls  # noqa: PLC0415
    from explainer.data import tasks  # noqa: PLC0415

    tables = {
        "tasks": {task.name: task.source for task in tasks.TASKS.values()},
        "controls": {name: control.note for name, control in controls.CONTROLS.items()},
        "positions": comparison.POSITIONS,
        "splits": comparison.SPLITS,
    }
    lines = []
    for title, table in tables.items():
        lines += [f"{title}:", *(f"  {name:<22}{meaning}" for name, meaning in table.items()), ""]
    command.epilog = "\n".join(lines)


def _add_fields_of_a_training(command: argparse.ArgumentParser) -> None:
    from explainer_lab.language_models import TrainingSetting  # noqa: PLC0415

    for its in fields(TrainingSetting):
        command.add_argument(
            "--seeds" if its.name == "seed" else f"--{its.name}",
            dest=its.name,
            nargs="+",
            type=its.type,
            metavar={int: "N", float: "X", str: "NAME"}[its.type],
            help=f"{its.metadata.get('help', '')} (default: {its.default})".lstrip(),
        )


# What is asked for.


def _grids(name: str, kind: "type[Experiment]", options: argparse.Namespace) -> dict[str, list]:
    """The settings by the name of their grid: those of a file, or the combinations of what is given."""
    from explainer.data.files import PUBLISHED, published_directory  # noqa: PLC0415

    given = _given(name, kind, options)
    here, of_book = (place / kind.name / "grids.toml" for place in (published_directory(), PUBLISHED))
    file = Path(options.grid or (here if here.is_file() else of_book))  # beside tables of one's own there is none
    if options.publish == "" and (given or file.expanduser().resolve() != here.resolve()):
        raise ExplainerError(
            f"{', '.join(given) or 'settings'} of your own would be published under the names of the book's grids; "
            "give --publish a directory of your own."
        )
    if getattr(options, "choose", False):  # on queries and with seeds that are never reported
        if "task" not in given or options.grid or options.only or options.splits or options.publish is not None:
            raise ExplainerError(
                "--choose compares rates on tasks, of --tasks or --task-file, and on its own split; leave out --grid, "
                "--only, --splits and --publish."
            )
        usual = {"lr": [1e-4, 3e-4, 1e-3, 3e-3], "seed": list(SELECTION_SEEDS)}
        given = {**usual, **given, "split": ["selection"], "lessons": ["own"]}
    from_file = options.grid or options.only
    if not from_file and ((name == "language-models" and given) or given.keys() & {"task", "tasks", "pair"}):
        return {kind.name: kind.grid(**{"seed": [0]} | given)}
    if name == "comparison" and not from_file and options.publish != "":
        raise ExplainerError("say what to compute: --tasks or --task-file, or --grid with a file and perhaps --only.")
    grids = kind.read_grids(file)
    for one in options.only or ():
        if one not in grids:
            raise ExplainerError(f"{file} has no grid {one!r}; it has {', '.join(grids)}.")
    for one in () if options.grid or "checkpoint" not in given else options.only or grids:
        others = {its.checkpoint for its in grids[one] if any(getattr(its, name, "") for name in _NAMING_HEADS)}
        if others - {*given["checkpoint"]}:
            raise ExplainerError(
                f"grid {one!r} names heads of {others.pop()}, which say nothing of another model; rank its own "
                "(`explainer-lab vote --only rank`), and name them in a file of your own (--grid)."
            )
    combinations = [dict(zip(given, values, strict=True)) for values in product(*given.values())]
    return {
        one: list(dict.fromkeys(replace(setting, **values) for setting in grids[one] for values in combinations))
        for one in options.only or grids
    }


def _given(name: str, kind: "type[Experiment]", options: argparse.Namespace) -> dict[str, list]:
    """Fields of a setting that the options give, each with its values; one it does not have is named, left out."""
    if name == "language-models":
        return {its.name: values for its in fields(kind.setting) if (values := getattr(options, its.name))}
    if name not in _ON_CHECKPOINT:
        return {}
    if not options.grid and not options.model and os.environ.get("EXPLAINER_MODEL"):
        options.model = [os.environ["EXPLAINER_MODEL"]]
    if options.task_file and not (options.tasks or options.grid or options.only):
        options.tasks = list(own_data(options))
    known, found = {field.name for field in fields(kind.setting)}, {}
    for option, its_fields in _FIELDS.items():
        if values := getattr(options, option, None):
            its = [field for field in its_fields if field in known]
            if its:
                found[its[0]] = ["/".join(values)] if its[0] in ("tasks", "pair") else values
            else:
                print(f"explainer: `explainer-lab {name}` has no --{option}; it is left out.", file=sys.stderr)
    return found


# Running.


def _run(name: str, options: argparse.Namespace) -> int:
    """List or compute the settings, show what came out, and publish it if that is asked for."""
    import torch  # noqa: PLC0415

    from explainer.data import assets  # noqa: PLC0415
    from explainer.data.files import published_directory  # noqa: PLC0415
    from explainer_lab.lab_store import Published, Store  # noqa: PLC0415
    from explainer_lab.on_checkpoint import OnCheckpoint  # noqa: PLC0415

    engine = _engine(options)
    module = import_module(f"explainer_lab.{name.replace('-', '_')}")
    kind = getattr(module, "".join(word.capitalize() for word in name.split("-")))
    grids = _grids(name, kind, options)
    settings = [one for its in grids.values() for one in its]
    if issubclass(kind, OnCheckpoint):
        models = list(dict.fromkeys(one.checkpoint for one in settings))
        settings.sort(key=lambda one: (models.index(one.checkpoint), one.seed))  # interrupted, it leaves whole draws
        experiment = _on_checkpoint(kind, settings, options)
    else:
        experiment = kind()
    if getattr(options, "harness", None):
        return _write_prompts(experiment, settings, Path(options.harness).expanduser())
    store = Store(options.results or assets.cache_dir() / "results" / experiment.name)
    published = None
    if options.publish is not None:
        published = Published(Path(options.publish or published_directory()) / experiment.name)
    planned = experiment.plan(settings, store, published)
    if options.list:
        _print_planned(planned)
        return 0
    if options.threads:
        torch.set_num_threads(options.threads)
    if isinstance(experiment, OnCheckpoint):
        waiting = [setting for setting, _, state in planned if state == "waiting"]
        for line in experiment.estimates(waiting, 1 if engine is None else options.workers or 0):
            print(line, file=sys.stderr)
    failure = None
    try:
        tables = experiment.run(settings, store, published, engine=engine)
    except (ExperimentError, KeyboardInterrupt) as error:
        failure, tables = error, experiment.tables(settings, store, published)  # shown and published all the same
    if tables:
        show = _print_choice if getattr(options, "choose", False) else partial(_print_summary, experiment)
        show(tables)
    if published is not None:
        experiment.publish(grids, store, published)
    if failure:
        raise failure
    return 0


def _write_prompts(experiment: Any, settings: Sequence[Any], folder: Path) -> int:
    from explainer_lab import harness  # noqa: PLC0415

    asked: dict[tuple[str, int], Any] = {}
    for setting in settings:
        name, *its = experiment.asked(setting)
        if asked.setdefault((name, setting.seed), its) != its or setting.checkpoint != settings[0].checkpoint:
            raise ExplainerError(f"seed {setting.seed} of {name} has two --model, --k or --queries; give one of each.")
    print("\n".join(harness.write(folder, experiment._load(settings[0].checkpoint), asked)))
    return 0


def _engine(options: argparse.Namespace) -> "Engine | None":
    """What computes the settings, None for this process."""
    from explainer_lab import pool  # noqa: PLC0415

    if options.engine == "ray":
        gpus = options.gpus if options.gpus is not None else float(getattr(options, "device", None) == "cuda")
        return partial(pool.on_ray, address=options.ray_address, cpus=options.cpus or 1, gpus=gpus)
    if options.workers:
        return partial(pool.in_processes, workers=options.workers, threads=options.threads or 1)
    return None


def _on_checkpoint(kind: type, settings: Sequence[Any], options: argparse.Namespace) -> Any:
    """An experiment on a checkpoint, with data, number format and device of the options."""
    from explainer.models import memory  # noqa: PLC0415

    elsewhere = options.engine == "ray" and not options.gpus
    device = options.device or ("cpu" if elsewhere else None)
    made = partial(kind, data=own_data(options), data_dir=options.data_dir, device=device)
    needs = made().needs
    dtype = memory.dtype_of(options.dtype, options.device, lambda dtype: max(needs(one, dtype) for one in settings))
    return made(dtype=dtype)


def _print_planned(planned: "Sequence[tuple[Any, Identity, str]]") -> None:
    """The state of every planned setting."""
    print_table([("state", "file"), *((state, identity.filename) for _, identity, state in planned)])
    states = [state for *_, state in planned]
    print(", ".join(f"{states.count(state)} {state}" for state in ("published", "stored", "waiting")))
    unseen = [one.task for one, its, state in planned if state != "waiting" and its.parts.get("data", "") is None]
    if unseen:
        print(f"not compared with the data, which are not here: {', '.join(dict.fromkeys(unseen))} (--data-dir)")


def _print_summary(experiment: "Experiment", tables: "Frames") -> None:
    names = [name for name in experiment.shown if name in tables["settings"].column_names]
    columns = [tables["runs"]["slug"].to_pylist(), *(tables["settings"][name].to_pylist() for name in names)]
    shown = [
        ["-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value) for value in column]
        for column in columns
    ]
    print_table([("setting", *names), *zip(*shown, strict=True)])


def _print_choice(tables: "Frames") -> None:
    """What each rate gives, and which is the best, by checkpoint: means over tasks, Student's interval over seeds."""
    from explainer.results import table_intervals  # noqa: PLC0415

    for checkpoint, settings in tables["settings"].to_pandas().groupby("checkpoint", sort=False):
        tried = {  # by number of epochs and rate, in their order
            one: table_intervals.over_seeds(its, "ft_accuracy").of_share if its["ft_accuracy"].notna().all() else None
            for one, its in settings.groupby(["epochs", "lr"])
        }
        rows = [(f"{lr:g}", str(n), f"{right:.2f}" if right else "diverged") for (n, lr), right in tried.items()]
        print_table([("rate", "epochs", "right after fine-tuning"), *rows])
        untrained = {
            state: table_intervals.over_seeds(settings, f"{state}_accuracy").of_share
            for state in ("zsl", "icl", "one_label")
            if f"{state}_accuracy" in settings
        }
        print(f"{checkpoint}: zero-shot {untrained['zsl']:.2f}, in context {untrained.pop('icl'):.2f}")
        known = {one: right.estimate for one, right in tried.items() if right}
        print(_advice(known, max(right.estimate for right in untrained.values()), [lr for _, lr in tried]))


def _advice(known: Mapping[tuple[int, float], float], without: float, rates: Sequence[float]) -> str:
    """Which rate to take, or why none and what to try next; of equals the first, with fewest epochs.

    `known` are right answers by epochs and rate, in this order, of trainings that did not diverge; `without` are those
    without training: zero-shot, or with the most frequent label for all where that is more.
    """
    if not known:
        return "every rate diverged; try smaller ones."
    epochs, lr = max(known, key=known.__getitem__)
    if known[epochs, lr] <= without:
        return "no rate that was tried teaches the task; try larger ones, or more --epochs."
    beyond = {max(rates): "larger", min(rates): "smaller"}.get(lr)
    more = f"; it stands at the end of those that were tried, so try {beyond} ones, too" if beyond else ""
    return f"chosen: --lr {lr:g} --epochs {epochs}{more}. Report on the other queries: --splits report"


def _measure(name: str, options: argparse.Namespace) -> int:
    from explainer.data.files import published_directory, replace_file  # noqa: PLC0415
    from explainer.models import loading  # noqa: PLC0415

    folder = Path(os.path.expanduser(options.publish or published_directory()))
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint = loading.load(loading.STARTER, device="cpu")
    text = json.dumps(import_module(f"explainer_lab.{name}").measure(checkpoint), separators=(",", ":"))
    end = "}," if "}," in text else "]],"  # of a line: a record, else a matrix
    replace_file(folder / f"{name}.json", text.replace(end, f"{end}\n") + "\n")
    return 0
