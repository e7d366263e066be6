"""`make alone`: does each chapter run as a lone notebook, as on Colab or Binder?

The package is installed from its source distribution into a fresh environment, with other versions of torch and numpy
than the book's. There each chapter is executed in an empty folder of its own, without the repository around it. The
report has the time and the most memory that the kernel held.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import copy

from bookbuilder import execute

REPORT = Path("reports", "alone.md")

BINDER_MIB = 2048
"""The memory that a public Binder gives a notebook, in MiB."""

PACKAGES = ("torch", "numpy", "transformers", "plotly", "pandas")
"""Whose versions the report names."""

EXECUTE = """\
import json, resource, sys, time, nbclient, nbformat
notebook = nbformat.read(sys.argv[1], as_version=4)
started = time.perf_counter()
nbclient.NotebookClient(notebook, timeout=1800, resources={"metadata": {"path": "."}}).execute()
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
print(json.dumps({"seconds": time.perf_counter() - started, "peak_mib": peak}))
"""
"""What the other environment runs. Only the kernel is a child, so the peak of the children is the kernel's."""

VERSIONS = """\
import json, platform, sys
from importlib.metadata import version
print(json.dumps({"Python": platform.python_version()} | {name: version(name) for name in sys.argv[1:]}))
"""


@dataclass(frozen=True)
class Outcome:
    """What became of a chapter: seconds and MiB if it ran to its end, else the last line of what it said."""

    chapter: str
    seconds: float | None = None
    peak_mib: float | None = None
    failure: str = ""

    @property
    def fits(self) -> bool:
        """Whether it runs in the memory of a public Binder."""
        return self.peak_mib is not None and self.peak_mib <= BINDER_MIB


def environment() -> dict[str, str]:
    """That of this process, without what leads to this checkout."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "EXPLAINER_REPOSITORY")}


def run_alone(python: str, chapter: Path) -> Outcome:
    """Execute a copy of a chapter in an empty folder with another Python."""
    with tempfile.TemporaryDirectory() as folder:
        copy(chapter, folder)
        command = [python, "-c", EXECUTE, chapter.name]
        done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        return Outcome(chapter.stem, failure=said[-1] if said else f"exit {done.returncode}")
    return Outcome(chapter.stem, **json.loads(done.stdout.splitlines()[-1]))


def versions(python: str) -> dict[str, str]:
    """The versions of the other environment."""
    command = [python, "-c", VERSIONS, *PACKAGES]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def report(outcomes: Sequence[Outcome], used: dict[str, str]) -> str:
    """The report as Markdown."""
    lines = [
        "# Each chapter alone",
        "",
        "Each chapter was executed in an empty folder, with the package installed from its source distribution: "
        + ", ".join(f"{name} {version}" for name, version in used.items())
        + f". A public Binder has {BINDER_MIB} MiB of memory.",
        "",
        "| chapter | ran to its end | seconds | peak memory, MiB | fits Binder |",
        "|---|---|---|---|---|",
    ]
    for one in outcomes:
        ran = f"no: {one.failure}".replace("|", "\\|") if one.failure else "yes"
        numbers = ("", "") if one.failure else (f"{one.seconds:.0f}", f"{one.peak_mib:.0f}")
        lines.append(f"| {one.chapter} | {ran} | {numbers[0]} | {numbers[1]} | {'yes' if one.fits else 'no'} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Execute the chapters one after the other and write the report; 1 if one failed or needs more than Binder has."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", help="of the environment with the installed package")
    parser.add_argument("--chapters", nargs="+", type=Path, help="default: all")
    parser.add_argument("--report", type=Path, default=REPORT, help="default: %(default)s")
    options = parser.parse_args()
    outcomes = []
    for chapter in options.chapters or execute.chapters():
        outcomes.append(run_alone(options.python, chapter))
        one = outcomes[-1]
        print(one.chapter, one.failure or f"{one.seconds:.0f} s, {one.peak_mib:.0f} MiB", flush=True)
    options.report.parent.mkdir(parents=True, exist_ok=True)
    options.report.write_text(report(outcomes, versions(options.python)), "utf-8")
    return int(not all(one.fits for one in outcomes))


if __name__ == "__main__":
    sys.exit(main())
