"""`make alone`: does each chapter run as a lone notebook, as on Colab or Binder?

The package is installed from its source distribution into two fresh environments: with the newest packages, and with
the book's torch for processors, as on Binder. There each chapter is executed in an empty folder of its own, without the
repository around it. The report has the time and the most memory that the kernel held.
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
from string import ascii_uppercase

from tqdm.auto import tqdm

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

    def cells(self) -> tuple[str, str]:
        """Its two cells of the report's table: seconds and MiB, or what failed."""
        if self.failure:
            return f"failed: {self.failure}".replace("|", "\\|"), ""
        return f"{self.seconds:.0f}", f"{self.peak_mib:.0f}"


def environment() -> dict[str, str]:
    """That of this process, without what leads to this checkout."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "EXPLAINER_REPOSITORY")}


def run_alone(python: str, chapter: Path) -> Outcome:
    """Execute a copy of a chapter in an empty folder with another Python."""
    with tempfile.TemporaryDirectory() as folder:
        copy(chapter, folder)
        command = [os.path.abspath(python), "-c", EXECUTE, chapter.name]
        done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        return Outcome(chapter.stem, failure=said[-1] if said else f"exit {done.returncode}")
    return Outcome(chapter.stem, **json.loads(done.stdout.splitlines()[-1]))


def versions(python: str) -> dict[str, str]:
    """The versions of the other environment."""
    command = [os.path.abspath(python), "-c", VERSIONS, *PACKAGES]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def report(environments: Sequence[tuple[dict[str, str], Sequence[Outcome]]]) -> str:
    """The report as Markdown: the versions of each environment, and a row for each chapter."""
    lines = [
        "# Each chapter alone",
        "",
        "Each chapter was executed in an empty folder, with the package installed from its source distribution. "
        f"A public Binder has {BINDER_MIB} MiB of memory. A chapter fits if the kernel needs no more than that in one "
        "of these environments:",
        "",
    ]
    for letter, (used, _) in zip(ascii_uppercase, environments, strict=False):
        lines.append(f"- {letter}: " + ", ".join(f"{name} {version}" for name, version in used.items()) + ".")
    letters = ascii_uppercase[: len(environments)]
    heads = ["chapter", *(f"{letter}: {unit}" for letter in letters for unit in ("seconds", "MiB")), "fits Binder"]
    lines += ["", _row(heads), _row(["---"] * len(heads))]
    for of_chapter in zip(*(outcomes for _, outcomes in environments), strict=True):
        fits = "yes" if any(one.fits for one in of_chapter) else "no"
        lines.append(_row([of_chapter[0].chapter, *(cell for one in of_chapter for cell in one.cells()), fits]))
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def main() -> int:
    """Execute the chapters with each Python and write the report; 1 if one failed, or needs more than Binder has."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pythons", nargs="+", help="of environments with the installed package")
    parser.add_argument("--chapters", nargs="+", type=Path, help="default: all")
    parser.add_argument("--report", type=Path, default=REPORT, help="default: %(default)s")
    options = parser.parse_args()
    chapters = options.chapters or execute.chapters()
    environments = []
    for python in options.pythons:
        outcomes = []
        for chapter in tqdm(chapters, desc=python):
            outcomes.append(run_alone(python, chapter))
            tqdm.write(" ".join((chapter.stem, *outcomes[-1].cells())))
        environments.append((versions(python), outcomes))
    options.report.parent.mkdir(parents=True, exist_ok=True)
    options.report.write_text(report(environments), "utf-8")
    of_chapters = zip(*(outcomes for _, outcomes in environments), strict=True)
    return int(any(any(one.failure for one in of) or not any(one.fits for one in of) for of in of_chapters))


if __name__ == "__main__":
    sys.exit(main())
