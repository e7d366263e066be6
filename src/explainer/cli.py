"""The command `explainer`."""

import argparse
import os
import sys
from collections.abc import Sequence

from explainer import __version__
from explainer.errors import ExplainerError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 an error of the user's to mend, 130 interrupted."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except ExplainerError as error:
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
    _add_study(commands)
    return parser


def _add_fetch(commands: argparse._SubParsersAction) -> None:
    fetch = commands.add_parser(
        "fetch",
        help="download the starter checkpoint and texts into the cache",
        description="Download the starter assets that are missing and show the state of each.",
    )
    fetch.add_argument("names", nargs="*", metavar="NAME", help="assets to fetch (default: all)")
    fetch.add_argument("--offline", action="store_true", help="do not use the network; say what is missing")
    fetch.add_argument("--cache", metavar="DIR", help="keep the assets in DIR (default: $EXPLAINER_CACHE)")
    fetch.add_argument("--verify", action="store_true", help="also read every unpacked file and check its digest")
    fetch.set_defaults(run=_fetch)


def _fetch(options: argparse.Namespace) -> int:
    # Imported here so that `explainer --help` answers at once.
    from explainer import assets  # noqa: PLC0415

    if options.cache:
        os.environ["EXPLAINER_CACHE"] = options.cache
    names = options.names or None
    states = dict.fromkeys((asset.name for asset in assets.ASSETS), "ready")
    try:
        assets.fetch(names, offline=options.offline)
        if options.verify:
            assets.require_intact(names)
    finally:
        states |= dict.fromkeys((asset.name for asset in assets.missing()), "missing")
        _print_assets(assets.ASSETS, states)
    return 0


def _print_assets(table: Sequence, states: dict[str, str]) -> None:
    rows = [("name", "what", "download", "licence", "state")]
    rows += [(a.name, a.note, f"{a.size / 1e6:.1f} MB", a.licence, states[a.name]) for a in table]
    _print_table(rows)


def _add_study(commands: argparse._SubParsersAction) -> None:
    study = commands.add_parser(
        "study",
        help="compare in-context learning with fine-tuning on a checkpoint",
        description="Compute every combination of the given values that is not stored yet: zero-shot, in-context and "
        "fine-tuned predictions, and how similar attention is in them. Each is stored as soon as it is finished; "
        "interrupt at any time and run the same command again to go on.",
    )
    study.add_argument("--results", metavar="DIR", required=True, help="where the results are stored")
    study.add_argument("--model", nargs="+", metavar="NAME", help="hub ids, directories or .gguf files")
    study.add_argument("--tasks", nargs="+", metavar="TASK", required=True, help="such as reviews, capitals, sst2")
    study.add_argument("--seeds", nargs="+", type=int, default=[0], metavar="N", help="default: 0")
    study.add_argument("--k", nargs="+", type=int, default=[32], metavar="N", help="demonstrations (default: 32)")
    study.add_argument("--lr", nargs="+", type=float, default=[1e-3], metavar="LR", help="default: 0.001")
    study.add_argument("--queries", type=int, default=150, metavar="N", help="for each combination (default: 150)")
    study.add_argument(
        "--controls",
        nargs="+",
        default=["none"],
        metavar="NAME",
        help="none, shuffled-context, ascent, random-direction, layer-causal or untrained (default: none)",
    )
    study.add_argument("--positions", nargs="+", default=["prompt"], metavar="NAME", help="prompt or first-label")
    study.add_argument("--splits", nargs="+", default=["all"], metavar="NAME", help="all, selection or report")
    study.add_argument(
        "--data-dir", metavar="DIR", help="holds <task>/<split>.jsonl (default: $EXPLAINER_DATA, the hub)"
    )
    study.add_argument("--dtype", choices=["float32", "bfloat16", "float16"], default="float32")
    study.add_argument("--device", help="such as cpu or cuda (default: a GPU if there is one)")
    study.add_argument("--list", "--dry-run", action="store_true", help="only show what is stored and what is not")
    study.set_defaults(run=_study)


def _study(options: argparse.Namespace) -> int:
    # Imported here so that `explainer --help` answers at once.
    import torch  # noqa: PLC0415

    from explainer import checkpoints, results, study  # noqa: PLC0415

    cells = study.grid(
        options.model or [os.environ.get("EXPLAINER_MODEL") or checkpoints.STARTER],
        options.tasks,
        seeds=options.seeds,
        ks=options.k,
        lrs=options.lr,
        n_queries=options.queries,
        controls=options.controls,
        positions=options.positions,
        splits=options.splits,
    )
    store = results.Store(options.results)
    how = {"data_dir": options.data_dir, "dtype": getattr(torch, options.dtype), "device": options.device}
    if options.list:
        planned = study.plan(cells, store, **how)
        _print_table([("state", "file"), *(("stored" if s else "waiting", i.filename) for _, i, s in planned)])
        for path in store.stale(identity for _, identity, _ in planned):
            print(f"stale, may be deleted: {path}")
        return 0
    _print_table(study.table(study.run(cells, store, **how)))
    return 0


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
