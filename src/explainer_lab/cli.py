"""The command `explainer`."""

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

from explainer import __version__
from explainer.errors import ExperimentError, ExplainerError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 an error of the user's to mend, 130 interrupted."""
    if getattr(sys.stdout, "errors", None) == "strict" and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # else a sign that the terminal lacks ends what was computed
    try:
        with _silent_where_nobody_reads():
            return _run_command(arguments)
    except ExplainerError as error:
        print(f"explainer: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("explainer: interrupted; run again to resume", file=sys.stderr)
        return 130


def _run_command(arguments: Sequence[str] | None) -> int:
    options = _parser().parse_args(arguments)
    with _warnings_of_one_line():
        return options.run(options)


@contextmanager
def _silent_where_nobody_reads() -> Iterator[None]:
    """End as other programs do whose output is a pipe that was closed, as by `head`."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        try:
            print(flush=True)  # it may have been the pipe of a worker
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end
            sys.exit(141)  # 128 + SIGPIPE, which Windows does not have
        raise


@contextmanager
def _warnings_of_one_line() -> Iterator[None]:
    """What a warning says, without the line of code that gave it."""
    shown, warnings.formatwarning = warnings.formatwarning, lambda message, *_, **__: f"explainer: {message}\n"
    try:
        yield
    finally:
        warnings.formatwarning = shown


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="explainer", description="Why can GPT learn in-context?")
    parser.add_argument("--version", action="version", version=f"explainer {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_fetch(commands)
    _add_web_model(commands)
    _add_models(commands)
    _add_look(commands)
    _add_of_grids(commands)
    _add_train(commands)
    _add_verdict(commands)
    return parser


def _add_fetch(commands: argparse._SubParsersAction) -> None:
    fetch = commands.add_parser(
        "fetch",
        help="download the starter checkpoint and texts into the cache",
        description="Download the starter assets that are missing and show the state of each.",
    )
    fetch.add_argument("names", nargs="*", metavar="NAME", help="assets to fetch (default: all that the book needs)")
    fetch.add_argument("--offline", action="store_true", help="do not use the network; say what is missing")
    fetch.add_argument("--cache", metavar="DIR", help="keep the assets in DIR (default: $EXPLAINER_CACHE)")
    fetch.add_argument("--verify", action="store_true", help="also read every unpacked file and check its digest")
    fetch.set_defaults(run=_fetch)


def _fetch(options: argparse.Namespace) -> int:
    # Imported here so that `explainer --help` answers at once.
    from explainer.data import assets  # noqa: PLC0415

    if options.cache:
        os.environ["EXPLAINER_CACHE"] = options.cache
    names = options.names or None
    shown = [*assets.ASSETS, *(asset for asset in assets.ON_REQUEST if asset.name in options.names)]
    states = dict.fromkeys((asset.name for asset in shown), "ready")
    try:
        assets.fetch(names, offline=options.offline)
        if options.verify:
            assets.require_intact(names)
    finally:
        states |= dict.fromkeys((asset.name for asset in assets.missing(states)), "missing")
        _print_assets(shown, states)
    return 0


def _print_assets(table: Sequence, states: dict[str, str]) -> None:
    rows = [("name", "what", "download", "licence", "state")]
    rows += [(a.name, a.note, f"{a.size / 1e6:.1f} MB", a.licence, states[a.name]) for a in table]
    _print_table(rows)


def _add_web_model(commands: argparse._SubParsersAction) -> None:
    command = commands.add_parser(
        "web-model",
        help="convert the starter checkpoint for a page and say where it is",
        description="Write the starter checkpoint into the cache as shards of an ONNX graph, and show its files.",
    )
    command.set_defaults(run=_web_model)


def _web_model(options: argparse.Namespace) -> int:
    from explainer.page import web_model  # noqa: PLC0415

    home = web_model.build()
    files = [(path.name, f"{path.stat().st_size / 1e6:.1f} MB") for path in sorted(home.iterdir())]
    _print_table([("file", "size"), *files])
    print(home)
    return 0


def _add_models(commands: argparse._SubParsersAction) -> None:
    command = commands.add_parser(
        "models",
        help="list the families of models that can be studied, and what cannot be measured for each",
        description="List the families of models, what cannot be measured for each, and how large a model fits here.",
    )
    command.set_defaults(run=_models)


def _models(options: argparse.Namespace) -> int:
    from explainer.models.architectures import FAMILIES  # noqa: PLC0415
    from explainer_lab import estimate  # noqa: PLC0415

    rows = [(name, "; ".join(f"{what}: {why}" for what, why in of.refused.items())) for name, of in FAMILIES.items()]
    _print_table([("family", "what cannot be measured"), *rows])
    memory = estimate.machine_gigabytes()
    wide, narrow = (memory / estimate.PER_WEIGHT[name] for name in ("float32", "bfloat16"))
    print(f"{memory:.0f} GB of memory hold models of up to {wide:.1f} billion parameters in float32,")
    print(f"{narrow:.1f} billion with --dtype bfloat16. Other causal models of transformers can be scored only.")
    return 0


def _add_look(commands: argparse._SubParsersAction) -> None:
    command = commands.add_parser(
        "look",
        help="count right answers without and with demonstrations: is there anything to learn?",
        description=(
            "Ask a model without and with demonstrations, on queries of the split 'selection', on which nothing is "
            "reported. Nothing is trained and nothing is stored."
        ),
    )
    _add_checkpoint(command)
    command.set_defaults(run=_look, k=[16], seeds=_TO_CHOOSE["seed"], queries=[24])


def _look(options: argparse.Namespace) -> int:
    from explainer.compare.look import look  # noqa: PLC0415
    from explainer.data import tasks  # noqa: PLC0415
    from explainer.models import (
        loading,  # noqa: PLC0415
        memory,  # noqa: PLC0415
    )
    from explainer_lab.experiment import unforeseen  # noqa: PLC0415

    names = _asked_tasks(options)
    if not names:
        raise ExplainerError("say what to ask: --tasks with names, or --task-file.")
    data = _own_data(options, names)
    data = {name: data.get(name) or tasks.load(name, data_dir=options.data_dir) for name in names}
    rows, failed = [], []
    for model in _models_asked(options) or [loading.STARTER]:
        checkpoint = None  # frees the memory of the last one before the next one needs it
        try:
            dtype = loading.dtype_of(options.dtype, options.device)
            memory.require_memory_to_score(model, loading.device_of(options.device), dtype, max(options.k))
            checkpoint = loading.load(model, dtype=dtype, device=options.device)
            for name, k, n in product(names, options.k, options.queries):
                found = look(checkpoint, data[name], k, options.seeds, n)
                shown = (f"{each:.2f}" for each in (found.zero_shot, found.in_context, found.difference))
                constant = "-" if found.constant is None else f"{found.constant:.2f}"
                learns = "yes" if found.difference.low > 0 else "not settled"
                rows.append((model, name, str(k), f"{len(options.seeds)} x {n}", constant, *shown, learns))
        except ExplainerError as error:
            failed.append(f"{model}: {str(error).removeprefix(f'{model}: ')}")
        except Exception as error:  # as in a study, it ends its own model only
            failed.append(f"{model}: {unforeseen(error)}")
    head = ("model", "task", "k", "queries", "one label", "zero-shot", "in context", "difference", "learns in context")
    _print_table([head, *rows])
    if failed:
        raise ExplainerError("\n".join([f"{len(failed)} could not be asked:", *failed]))
    return 0


class _StudyHelp(argparse.Action):
    """Shows the help with every name that a study knows; takes them from where they are defined, which loads torch."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from explainer.compare import comparison, controls  # noqa: PLC0415
        from explainer.data import tasks  # noqa: PLC0415

        tables = {
            "tasks": {task.name: task.source for task in tasks.TASKS.values()},
            "controls": {name: control.note for name, control in controls.CONTROLS.items()},
            "positions": comparison.POSITIONS,
            "splits": comparison.SPLITS,
        }
        parser.epilog = "\n\n".join(_names(title, table) for title, table in tables.items())
        parser.print_help()
        parser.exit()


def _names(title: str, table: Mapping[str, str]) -> str:
    return "\n".join([f"{title}:", *(f"  {name:<22}{meaning}" for name, meaning in table.items())])


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number.")
    return int(text)


# What the commands of all experiments have in common.


def _add_checkpoint(command: argparse.ArgumentParser) -> None:
    """Model, task, and how large a sample is drawn."""
    command.add_argument(
        "--model", nargs="+", metavar="NAME", help="hub ids, directories or .gguf files (default: $EXPLAINER_MODEL)"
    )
    command.add_argument("--tasks", nargs="+", metavar="TASK", help="such as reviews, capitals, sst2")
    command.add_argument("--task-file", metavar="FILE", help="TOML file of tasks of your own (without --tasks: all)")
    command.add_argument(
        "--data-dir",
        metavar="DIR",
        help="holds <task>/<split>.jsonl (default: $EXPLAINER_DATA; else the folder of --task-file, or the hub)",
    )
    command.add_argument("--dtype", choices=["float32", "bfloat16", "float16", "auto"], default="float32")
    command.add_argument("--device", help="such as cpu or cuda (default: a GPU if there is one)")
    command.add_argument("--seeds", nargs="+", type=int, metavar="N", help="draws of demonstrations and queries")
    command.add_argument("--k", nargs="+", type=int, metavar="N", help="demonstrations")
    command.add_argument("--queries", nargs="+", type=int, metavar="N", help="of each draw")


def _add_training(command: argparse.ArgumentParser) -> None:
    command.add_argument("--lr", nargs="+", type=float, metavar="LR", help="learning rates of FT")
    command.add_argument("--epochs", nargs="+", type=_positive, metavar="N", help="of FT")
    command.add_argument("--splits", nargs="+", metavar="NAME", help="queries to draw from: all, selection, report")


def _on_checkpoint(kind: type, grids: Mapping[str, Sequence], options: argparse.Namespace) -> Any:
    """An experiment on a checkpoint, with data, number format and device of the options."""
    from explainer.models import loading  # noqa: PLC0415

    settings = [one for its in grids.values() for one in its]
    return kind(
        data=_own_data(options, dict.fromkeys(name for one in settings for name in _task_names(one))),
        data_dir=options.data_dir,
        dtype=loading.dtype_of(options.dtype, options.device),
        device=options.device or (None if options.engine == "local" or options.gpus else "cpu"),
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
        "--threads", type=_positive, metavar="N", help="of the processor; the last digits of a result depend on it"
    )
    command.add_argument("--workers", type=_positive, metavar="N", help="processes of this machine (default: this one)")
    command.add_argument("--engine", choices=["local", "ray"], default="local", help="what computes (default: local)")
    command.add_argument("--ray-address", metavar="HOST:PORT", help="of a Ray cluster (default: one on this machine)")
    command.add_argument("--gpus", type=float, metavar="N", help="for each task on Ray (default: 1 with --device cuda)")
    command.add_argument("--cpus", type=_positive, metavar="N", help="for each task on Ray, as threads (default: 1)")


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
    store = Store(options.results or assets.cache_dir() / "results" / experiment.name)
    published = None
    if options.publish is not None:
        published = Published(Path(options.publish or published_directory()) / experiment.name)
    of_book = published_directory() / experiment.name / "grids.toml"
    if options.publish == "" and Path(options.grid or "").expanduser().resolve() != of_book.resolve():
        raise ExplainerError(_OWN_TABLES.format("settings"))
    if options.list:
        _print_planned(experiment.plan(settings, store, published), store)
        return 0
    if options.threads:
        torch.set_num_threads(options.threads)
    if hasattr(options, "model"):
        from explainer_lab import estimate  # noqa: PLC0415

        for line in estimate.lines(experiment, experiment.plan(settings, store, published), store):
            print(line, file=sys.stderr)
    try:
        tables = experiment.run(settings, store, published, engine=engine)
    except ExperimentError:
        _print_finished(experiment, settings, store)
        raise
    show = show or partial(_print_summary, experiment)
    show(tables)
    if published is not None:
        experiment.publish(grids, store, published)
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
    _print_table([("setting", *names), *(tuple(map(_text, row)) for row in zip(*columns, strict=True))])


def _text(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _print_planned(planned: Sequence[tuple], store: Any) -> None:
    """The state of every planned setting, and what killed runs have left."""
    _print_table([("state", "file"), *((state, identity.filename) for _, identity, state in planned)])
    states = [state for *_, state in planned]
    print(", ".join(f"{states.count(state)} {state}" for state in ("published", "stored", "waiting")))
    seen = [identity for _, identity, state in planned if state != "waiting"]
    if unseen := dict.fromkeys(i.parts["setting"]["task"] for i in seen if i.parts.get("data", "") is None):
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
    """What computes the cells; an option that the engine would ignore is an error."""
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
    if options.engine == "ray":
        return partial(engines.on_ray, **({"gpus": 1} if device == "cuda" else {}) | given)
    if options.workers:
        shared = {"threads": options.threads or 1, "gpus": engines.gpus_of(device)}
        return partial(engines.in_processes, workers=options.workers, **shared)
    return engines.local


def _own_data(options: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Data of the tasks of these names that the user's file describes, from beside it if nothing else is said."""
    from explainer.data import tasks  # noqa: PLC0415

    own = {task.name: task for task in (tasks.read_file(options.task_file) if options.task_file else ())}
    asked = [tasks.find(name, {**tasks.TASKS, **own}) for name in names]
    given = options.data_dir or os.environ.get("EXPLAINER_DATA")
    beside = Path(options.task_file or "").expanduser().parent
    return {
        task.name: tasks.load(task, data_dir=given or (None if task.hub else beside))
        for task in asked
        if task.name in own
    }


def _asked_tasks(options: argparse.Namespace) -> list[str] | None:
    """The tasks that are named, else all of the user's file; None where a file of grids names them."""
    if options.tasks or not options.task_file or getattr(options, "grid", None) or getattr(options, "only", None):
        return options.tasks
    from explainer.data import tasks  # noqa: PLC0415

    return [task.name for task in tasks.read_file(options.task_file)]


_OF_ONE_SETTING = {
    "vocabulary": "tokens (default: 512)",
    "layers": "default: 2",
    "width": "default: 96",
    "heads": "default: 4",
    "length": "tokens in a window (default: 512)",
    "batch": "windows in a step (default: 4)",
    "steps": "of the largest budget (default: 1280)",
    "branches": "budgets, each four times the one before (default: 1)",
    "warmup": "steps (default: 50)",
}


def _add_train(commands: argparse._SubParsersAction) -> None:
    train = commands.add_parser(
        "train",
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
        "--corpus",
        help="manuals, a text file, a saved or a hub data set, as name:configuration (default: documentation)",
    )
    train.add_argument("--seeds", dest="seed", nargs="+", type=int, metavar="N", help="default: 0")
    train.add_argument("--lr", nargs="+", type=float, metavar="LR", help="default: 0.003")
    train.add_argument("--eta", nargs="+", type=float, metavar="ETA", help="decay of the averages, in (0, 1)")
    train.add_argument("--average", nargs="+", metavar="NAME", help="none, momentum, normalised ... (default: none)")
    for name, meaning in _OF_ONE_SETTING.items():
        train.add_argument(f"--{name}", type=_positive, metavar="N", help=meaning)
    train.add_argument("--device", help="such as cpu or cuda (default: cpu)")
    train.add_argument(
        "--every", type=_positive, default=100, metavar="N", help="steps between checkpoints (default: 100)"
    )
    train.set_defaults(run=_train)


def _train(options: argparse.Namespace) -> int:
    # Imported here so that `explainer --help` answers at once.
    from explainer_lab.language_models import LanguageModels  # noqa: PLC0415

    return _run(LanguageModels(every=options.every), _settings(options), options, _engine(options))


def _settings(options: argparse.Namespace) -> dict[str, list]:
    from explainer_lab.language_models import LanguageModels  # noqa: PLC0415

    names = (field.name for field in fields(LanguageModels.setting))
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    if not options.grid:
        if options.only:
            raise ExplainerError("--only chooses grids of a file; give it with --grid.")
        return {LanguageModels.name: LanguageModels.grid(**given)}
    if given:
        raise ExplainerError(f"--grid and --{min(given)} both say what to train; give one of them.")
    return _chosen(LanguageModels.read_grids(options.grid), options)


_EXPERIMENTS = {
    "study": ("comparison_runs", "Study", "compare in-context learning with fine-tuning on a checkpoint"),
    "agreement": ("agreement_runs", "Agreement", "compare contexts and trainings of one model, each with each"),
    "blocking": (
        "blocking",
        "Blocking",
        "ask for a cue whose label another cue had already told, in the context or by training",
    ),
    "causal": (
        "causal_runs",
        "CausalTests",
        "put in patches, task vectors and gradient steps in place of the context, and count the answers",
    ),
    "new-rule": (
        "new_rule_runs",
        "NewRule",
        "learn a rule that nobody could know, in the context or by training, and ask for words that were not shown",
    ),
    "pairs": (
        "minimal_pair_runs",
        "MinimalPairs",
        "compare contexts and trainings of two lessons that differ in nothing but their answers",
    ),
    "positive": (
        "trained_control_runs",
        "PositivePipeline",
        "compare in-context learning with fine-tuning on small models that only learn in context",
    ),
    "recall": (
        "recall_runs",
        "RecallRuns",
        "train small models to recall what was written last, with memories that learn by different rules",
    ),
    "reversal": (
        "reversal_runs",
        "Reversal",
        "learn pairs in one direction, in the context or by fine-tuning, and ask in the other",
    ),
    "rival": (
        "rival",
        "Rival",
        "put in and switch off what a context may do instead of descent: task vectors, and the outputs of some heads",
    ),
    "shared": (
        "shared_part_runs",
        "SharedPart",
        "swap the lesson of the context and that of the training, and put in or take out what both changes share",
    ),
    "regression": (
        "regression_runs",
        "RegressionRuns",
        "train small GPTs to do linear regression in context, with and without momentum attention",
    ),
}
"""Experiments whose settings come from a file of grids: module, class, and what they do."""

_ON_CHECKPOINT = ("study", "agreement", "blocking", "causal", "new-rule", "pairs", "reversal", "rival", "shared")
"""Those that can be put to another model; what is given on the command line takes the place of a grid's values."""

_VALUES: Mapping[str, tuple[str, ...]] = {
    "model": ("checkpoint",),
    "tasks": ("task", "tasks", "pair"),
    "seeds": ("seed",),
    "k": ("k",),
    "queries": ("n_queries",),
    "lr": ("lr",),
    "epochs": ("epochs",),
    "splits": ("split",),
    "controls": ("control",),
    "positions": ("position",),
}
"""Options, and the fields of a setting that they give, of which a setting has one or none."""

_TO_CHOOSE = {"lr": [1e-4, 3e-4, 1e-3, 3e-3], "seed": [100, 101, 102, 103, 104]}
"""Rates that are tried if none are given, and seeds that are not among those reported."""


def _add_of_grids(commands: argparse._SubParsersAction) -> None:
    for name, (_, _, what) in _EXPERIMENTS.items():
        takes = " Values that are given here take the place of those in the file." * (name in _ON_CHECKPOINT)
        command = commands.add_parser(
            name,
            help=what,
            description=(
                f"Compute every setting of a file of grids that is not stored yet.{takes} Each is stored as soon as it "
                "is finished: interrupt at any time and run the same command again to go on."
            ),
            formatter_class=argparse.RawDescriptionHelpFormatter if name == "study" else argparse.HelpFormatter,
            add_help=name != "study",
        )
        if name == "study":
            command.add_argument(
                "-h", "--help", action=_StudyHelp, nargs=0, help="show this message, with all names, and exit"
            )
            command.add_argument("--controls", nargs="+", metavar="NAME", help="see below (default: none)")
            command.add_argument("--positions", nargs="+", metavar="NAME", help="see below (default: prompt)")
        _add_laboratory(command)
        if name in _ON_CHECKPOINT:
            _add_checkpoint(command)
            _add_training(command)
        if name == "agreement":
            command.add_argument(
                "--choose", action="store_true", help="compare rates on the split 'selection', and say which is best"
            )
        command.set_defaults(run=partial(_run_grids, name))


def _run_grids(name: str, options: argparse.Namespace) -> int:
    """Run the settings of a file of grids, which is that of the published results if none is given."""
    from explainer.data.files import published_directory  # noqa: PLC0415

    engine = _engine(options)
    module, experiment_class, _ = _EXPERIMENTS[name]
    kind = getattr(import_module(f"explainer.study.{module}"), experiment_class)
    given = _values(kind, name, options) if name in _ON_CHECKPOINT else {}
    if given and options.publish == "":
        raise ExplainerError(_OWN_TABLES.format(", ".join(given)))
    chooses = getattr(options, "choose", False)
    if chooses:
        given = _to_choose(given, options)
    if given.keys() & set(_VALUES["tasks"]) and not (options.grid or options.only):
        grids = {kind.name: kind.grid(**{"seed": [0]} | given)}
    elif name == "study" and not (options.grid or options.only or options.publish == ""):
        raise ExplainerError("say what to compute: --tasks or --task-file, or --grid with a file and perhaps --only.")
    else:
        options.grid = options.grid or published_directory() / kind.name / "grids.toml"
        grids = {n: _with_values(its, given) for n, its in _chosen(kind.read_grids(options.grid), options).items()}
    experiment = _on_checkpoint(kind, grids, options) if name in _ON_CHECKPOINT else kind()
    return _run(experiment, grids, options, engine, _print_choice if chooses else None)


def _values(kind: type, name: str, options: argparse.Namespace) -> dict[str, list]:
    """Fields of a setting that the options give, each with its values; ExplainerError for one that it does not have."""
    if not options.grid:
        options.model = _models_asked(options)
    options.tasks = _asked_tasks(options)
    known, found = {field.name for field in fields(kind.setting)}, {}
    for option, names in _VALUES.items():
        if values := getattr(options, option, None):
            its = [field for field in names if field in known]
            if not its:
                settings = ", ".join(sorted(known))
                raise ExplainerError(f"`explainer {name}` has no --{option}: its settings are {settings}.")
            found[its[0]] = ["/".join(values)] if its[0] in ("tasks", "pair") else values
    return found


def _models_asked(options: argparse.Namespace) -> list[str] | None:
    """The models that are named, else that of the environment; None for the checkpoint of the book."""
    if "" in (options.model or ()):
        raise ExplainerError("--model was given an empty name; name a model, or leave the option out.")
    return options.model or ([os.environ["EXPLAINER_MODEL"]] if os.environ.get("EXPLAINER_MODEL") else None)


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
        tried = learning_rates.tried(settings)
        best = learning_rates.best(tried)
        rows = [(f"{lr:g}", str(n), f"{right:.2f}" if right else "diverged") for lr, n, right in tried]
        _print_table([("rate", "epochs", "right after fine-tuning"), *rows])
        zero_shot, in_context = (learning_rates.right(settings, state) for state in ("zsl", "icl"))
        print(f"{checkpoint}: zero-shot {zero_shot:.2f}, in context {in_context:.2f}")
        print(learning_rates.advice(tried, best, zero_shot))


def _with_values(settings: Iterable[Any], given: Mapping[str, Sequence]) -> list:
    """The settings with every combination of the given values in place of their own, each once."""
    combinations = [dict(zip(given, values, strict=True)) for values in product(*given.values())]
    return list(dict.fromkeys(replace(one, **values) for one in settings for values in combinations))


def _add_verdict(commands: argparse._SubParsersAction) -> None:
    command = commands.add_parser(
        "verdict",
        help="redraw the picture of the verdict with the points of your own published tables",
        description="Print and draw how far from floor to ceiling your models are, beside the checkpoint of the book.",
    )
    command.add_argument("--results", metavar="DIR", help="what --publish wrote (default: $EXPLAINER_RESULTS)")
    command.add_argument("--output", metavar="FILE", default="verdict.html", help="(default: verdict.html)")
    command.set_defaults(run=_verdict)


def _verdict(options: argparse.Namespace) -> int:
    from explainer.data.files import PUBLISHED, disk_errors, published_directory, replace_file  # noqa: PLC0415
    from explainer.figures import verdict  # noqa: PLC0415
    from explainer.results import verdict_scale  # noqa: PLC0415

    directory, output = (Path(p).expanduser() for p in (options.results or published_directory(), options.output))
    shown = ({} if directory == PUBLISHED else verdict_scale.verdict(directory)) | verdict_scale.of_book()
    for checkpoint, rows in shown.items():
        print(checkpoint)
        head = ("", *next(iter(rows.values()), ()))
        _print_table([head, *((name, *(f"{one:.2f}" for one in its.values())) for name, its in rows.items())])
    for line in (
        *verdict_scale.missing(directory),
        *([] if directory == PUBLISHED else verdict_scale.unlearned(directory)),
    ):
        print(line)
    with disk_errors(output.parent):
        replace_file(output, verdict.page(shown))
    print(output)
    return 0


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(setting.ljust(width) for setting, width in zip(row, widths, strict=True)).rstrip())
