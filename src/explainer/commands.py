"""The command `explainer`: assets, models and what they say; and what it has in common with that of the laboratory."""

import argparse
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from explainer import __version__
from explainer.errors import ExplainerError

SELECTION_SEEDS = (100, 101, 102, 103, 104)
"""Draws that are not among those reported."""


def main(arguments: Sequence[str] | None = None, parser: Callable[[], argparse.ArgumentParser] | None = None) -> int:
    """Run one command, of `explainer` or of another parser, and return its exit code.

    It is 0 where all is done, 1 after an error, which is one line, and 130 if interrupted.
    """
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # else a sign that the terminal lacks ends what was computed
    warnings.formatwarning = lambda message, *_, **__: f"explainer: {message}\n"  # without the line of code
    try:
        options = (parser or _parser)().parse_args(arguments)
        return options.run(options)
    except (ExplainerError, OSError) as error:  # such as a full disk
        print(f"explainer: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("explainer: interrupted; run again to resume", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="explainer", description="Why can GPT learn in-context?")
    parser.add_argument("--version", action="version", version=f"explainer {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_fetch(commands)
    _add_web_model(commands)
    _add_models(commands)
    _add_look(commands)
    _add_verdict(commands)
    _add_scorecard(commands)
    return parser


def _add_fetch(commands: argparse._SubParsersAction) -> None:
    fetch = commands.add_parser(
        "fetch",
        help="download the starter checkpoint and texts into the cache",
        description="Download the starter assets that are missing, and list them.",
    )
    fetch.add_argument("names", nargs="*", metavar="NAME", help="assets to fetch (default: all that the book needs)")
    fetch.add_argument("--offline", action="store_true", help="do not use the network; say what is missing")
    fetch.set_defaults(run=_fetch)


def _fetch(options: argparse.Namespace) -> int:
    # Imported here so that `explainer --help` answers at once.
    from explainer.data import assets  # noqa: PLC0415

    if (gemma := assets.GEMMA).name in options.names:
        terms = assets.cache_dir() / gemma.name / assets.TERMS
        print(f"{gemma.name}: its use is subject to the {gemma.licence}, enclosed as {terms}", flush=True)
    found = assets.fetch(options.names or None, offline=options.offline)
    known = (asset for asset in (*assets.ASSETS, *assets.ON_REQUEST) if asset.name in found)
    shown = [(asset, sum(part.size for part in (asset, *asset.parts))) for asset in known]
    rows = [(asset.name, asset.note, f"{size / 1e6:.1f} MB", asset.licence) for asset, size in shown]
    print_table([("name", "what", "download", "licence"), *rows])
    return 0


def _add_web_model(commands: argparse._SubParsersAction) -> None:
    command = commands.add_parser(
        "web-model",
        help="convert the starter checkpoint for a page and say where it is",
        description="Write the starter checkpoint into the cache as shards of an ONNX graph, and show its files.",
    )
    command.set_defaults(run=_web_model)


def _web_model(options: argparse.Namespace) -> int:
    from explainer.page import page_model  # noqa: PLC0415

    home = page_model.build()
    files = [(path.name, f"{path.stat().st_size / 1e6:.1f} MB") for path in sorted(home.iterdir())]
    print_table([("file", "size"), *files])
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
    import torch  # noqa: PLC0415 (`explainer --help` answers without it)

    from explainer.models import memory  # noqa: PLC0415
    from explainer.models.architectures import FAMILIES  # noqa: PLC0415

    rows = [(name, "; ".join(f"{what}: {why}" for what, why in of.refused.items())) for name, of in FAMILIES.items()]
    print_table([("family", "what cannot be measured"), *rows])
    wide, narrow = (memory.BYTES_PER_WEIGHT[dtype] for dtype in (torch.float32, torch.bfloat16))
    print(f"A billion parameters take {wide} GB of memory in float32, {narrow} GB with --dtype bfloat16.")
    device = memory.device_of(None)
    if math.isfinite(free := memory.free_bytes(device) / 1e9):
        print(f"{free:.0f} GB are free on {device}, for {free / wide:.1f} billion or {free / narrow:.1f} billion.")
    print("Other causal models of transformers can be scored only.")
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
    add_checkpoint_options(command)
    command.set_defaults(run=_look, k=[16], seeds=list(SELECTION_SEEDS), queries=[24])


def _look(options: argparse.Namespace) -> int:
    from explainer.compare.few_shot_comparison import Look  # noqa: PLC0415
    from explainer.data import tasks  # noqa: PLC0415
    from explainer.models import loading, memory  # noqa: PLC0415

    data = own_data(options)
    names = options.tasks or list(data)
    if not names:
        raise ExplainerError("say what to ask: --tasks with names, or --task-file.")
    data = {name: data.get(name) or tasks.load(name, data_dir=options.data_dir) for name in names}
    rows, failed, seeds = [], [], list(dict.fromkeys(options.seeds))
    for model in options.model or [os.environ.get("EXPLAINER_MODEL") or loading.STARTER]:
        checkpoint = None  # frees the memory of the last one before the next one needs it
        try:
            shapes = loading.skeleton(model)
            need = partial(memory.required_bytes, shapes, n_shown=max(options.k), n_models=1, n_updates=0)
            dtype = memory.dtype_of(options.dtype, options.device, need)
            memory.require_memory(model, options.device, need(dtype))
            checkpoint = loading.load(model, dtype=dtype, device=options.device)
            for name, k, n in product(names, options.k, options.queries):
                found = Look.of(checkpoint, data[name], k, seeds, n)
                shown = (f"{each:.2f}" for each in (found.zero_shot, found.in_context, found.difference))
                constant = "-" if found.constant is None else f"{found.constant:.2f}"
                learns = "yes" if found.learns else "not seen"
                rows.append((model, name, str(k), f"{len(seeds)} x {n}", constant, *shown, learns))
        except ExplainerError as error:
            failed.append(f"{model}: {str(error).removeprefix(f'{model}: ')}")
        except Exception as error:  # as in an experiment, it ends its own model only
            failed.append(f"{model}: {type(error).__name__}: {error}")
    head = ("model", "task", "k", "queries", "one label", "zero-shot", "in context", "difference", "learns in context")
    print_table([head, *rows])
    if failed:
        raise ExplainerError("\n".join([f"{len(failed)} could not be asked:", *failed]))
    return 0


def _name(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("a name is empty.")
    return text


def add_checkpoint_options(command: argparse.ArgumentParser) -> None:
    """What is asked of which model, how large a sample is drawn, where data are, and how a model is loaded."""
    number = {"nargs": "+", "type": int, "metavar": "N"}
    of_model = "hub ids or directories (default: $EXPLAINER_MODEL, else the checkpoint of the book)"
    command.add_argument("--model", nargs="+", type=_name, metavar="NAME", help=of_model)
    command.add_argument("--tasks", nargs="+", metavar="TASK", help="such as reviews, capitals, sst2")
    command.add_argument("--seeds", **number, help="draws of demonstrations and queries")
    command.add_argument("--k", **number, help="demonstrations")
    command.add_argument("--queries", **number, help="of each draw")
    command.add_argument("--task-file", metavar="FILE", help="TOML file of tasks of your own (without --tasks: all)")
    command.add_argument(
        "--data-dir",
        metavar="DIR",
        help="holds <task>/<split>.jsonl (default: $EXPLAINER_DATA; else the folder of --task-file, or the hub)",
    )
    command.add_argument("--dtype", choices=["float32", "bfloat16", "float16", "auto"], default="float32")
    command.add_argument("--device", help="such as cpu or cuda (default: a GPU if there is one)")


def own_data(options: argparse.Namespace) -> dict[str, Any]:
    """Data of the tasks of the user's file, or of those of them that are asked for, from beside it or --data-dir.

    Raises TaskError for a name that neither the file nor the book has.
    """
    from explainer.data import tasks  # noqa: PLC0415

    own = {task.name: task for task in (tasks.read_file(options.task_file) if options.task_file else ())}
    asked = [tasks.find(name, {**tasks.TASKS, **own}) for name in options.tasks or own]
    given = options.data_dir or os.environ.get("EXPLAINER_DATA")
    beside = Path(options.task_file or "").expanduser().parent
    return {
        task.name: tasks.load(task, data_dir=given or (None if task.hub else beside))
        for task in asked
        if task.name in own
    }


def _add_verdict(commands: argparse._SubParsersAction) -> None:
    command = commands.add_parser(
        "verdict",
        help="answer the book's questions for your own models, from your published tables",
        description="Print and draw the answer to each question of the verdict, beside the checkpoint of the book.",
    )
    command.add_argument("--results", metavar="DIR", help="what --publish wrote (default: $EXPLAINER_RESULTS)")
    command.add_argument("--output", metavar="FILE", default="verdict.html", help="(default: verdict.html)")
    command.add_argument(
        "--entry", metavar="FILE", help="write this file, an entry of the scoreboard, and nothing else"
    )
    command.add_argument("--model", metavar="NAME", help="of the entry, where the tables have several")
    command.set_defaults(run=_verdict)


def _verdict(options: argparse.Namespace) -> int:
    from explainer import command_answers  # noqa: PLC0415

    if options.entry:
        file = Path(options.entry).expanduser()
        return _print_lines(command_answers.entry(_results(options), options.model, file))
    if options.model:
        raise ExplainerError("--model names whose --entry is written; give both.")
    return _print_lines(command_answers.verdict(_results(options), Path(options.output).expanduser()))


def _add_scorecard(commands: argparse._SubParsersAction) -> None:
    command = commands.add_parser(
        "scorecard",
        help="ask the paper's ten claims of your own models, from your published tables",
        description="Print what the paper claims, and what its protocol gives for your models, beside the book's.",
    )
    command.add_argument("--results", metavar="DIR", help="what --publish wrote (default: $EXPLAINER_RESULTS)")
    command.set_defaults(run=_scorecard)


def _scorecard(options: argparse.Namespace) -> int:
    from explainer import command_answers  # noqa: PLC0415

    return _print_lines(command_answers.scorecard(_results(options)))


def _results(options: argparse.Namespace) -> Path:
    from explainer.data.files import published_directory  # noqa: PLC0415

    return Path(options.results or published_directory()).expanduser().absolute()


def _print_lines(lines: Iterable[str | Sequence[Sequence[str]]]) -> int:
    """Print lines, and tables given as rows."""
    for line in lines:
        if isinstance(line, str):
            print(line)
        else:
            print_table(line)
    return 0


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Rows in columns, each as wide as its longest text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(setting.ljust(width) for setting, width in zip(row, widths, strict=True)).rstrip())
