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
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
