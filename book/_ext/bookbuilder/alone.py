"""`make alone`: does each chapter run as a lone notebook, as on Colab or Binder, and in the memory of a public Binder?

The package is installed from its source distribution into fresh environments. With the Python of each, each chapter is
executed in an empty folder of its own, without the repository around it.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from shutil import copy

from bookbuilder.execute import chapters
from bookbuilder.repository import edition

_BINDER_MIB = 1800
"""What a chapter may hold of the 2,048 MiB of a public Binder, in MiB: the server of the notebooks needs some, too."""
_EXECUTE = """\
import json, resource, sys, nbclient, nbformat
from importlib.metadata import version
notebook = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(notebook, timeout=1800, resources={"metadata": {"path": "."}}).execute()
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
print(json.dumps({"peak_mib": peak, "torch": version("torch")}))
"""
"""What the other Python runs. Only the kernel is a child, so the peak of the children is the kernel's."""


def peak_mib(python: str, chapter: Path) -> tuple[float, str]:
    """The most memory that a chapter's kernel held, and the version of torch; infinite, and why, if it failed."""
    known = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "EXPLAINER_REPOSITORY")}
    with tempfile.TemporaryDirectory() as folder:
        copy(chapter, folder)
        command = [os.path.abspath(python), "-c", _EXECUTE, chapter.name]
        done = subprocess.run(command, cwd=folder, env=known, capture_output=True, text=True, check=False)
    if done.returncode:
        said = re.sub(r"\x1b\[[0-9;]*m", "", done.stderr).strip()
        return float("inf"), (said or f"exit {done.returncode}").splitlines()[-1]
    found = json.loads(done.stdout.splitlines()[-1])
    return found["peak_mib"], f"torch {found['torch']}"


def main(pythons: list[str], report: Path = Path("reports", "alone.md")) -> int:
    """Execute every chapter with each Python and write the report; 1 if one failed, or fits in none."""
    sound, lines = True, [f"# Each chapter alone\n\nEdition {edition()}. A chapter may hold {_BINDER_MIB} MiB.\n"]
    for chapter in chapters():
        its = [peak_mib(python, chapter) for python in pythons]
        sound &= min(its)[0] <= _BINDER_MIB and max(its)[0] < float("inf")
        lines.append(f"- {chapter.stem}: " + "; ".join(f"{peak:.0f} MiB ({with_what})" for peak, with_what in its))
        print(lines[-1], flush=True)
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text("\n".join(lines) + "\n", "utf-8")
    return int(not sound)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
