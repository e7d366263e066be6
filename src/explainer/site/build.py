"""`make book`: build the site, strictly when it is built anew, and say where it is."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

BUILD = Path("_build")
SITE = BUILD / "html"
STAMP = BUILD / ".strict"


def main() -> int:
    """Build the site; a failed build leaves no doctree that could make the next one look green."""
    started = time.perf_counter()
    fresh = not STAMP.exists()
    if fresh:
        forget()
    jupyter_book = Path(sys.executable).with_name("jupyter-book")
    # nb_execution reads OMP_NUM_THREADS in each kernel; the book's own processes need no more threads than cores.
    command = [str(jupyter_book), "build", ".", "-W", "-n", "--keep-going", "--quiet"]
    done = subprocess.run(command, check=False, env=os.environ | {"PYTHONWARNINGS": "ignore"})
    if done.returncode:
        reports = sorted(SITE.glob("reports/*.log"))
        forget()
        print("The book was not built. " + (f"Reports of failed chapters: {', '.join(map(str, reports))}" if reports else ""))
        return done.returncode
    STAMP.touch()
    seconds = time.perf_counter() - started
    print(f"The book is in {SITE.resolve() / 'index.html'} ({seconds:.0f} s). Read it there, or run: make serve")
    return 0


def forget() -> None:
    """Remove doctrees and pages, keep the execution cache and the reports of failed chapters."""
    shutil.rmtree(BUILD / ".doctrees", ignore_errors=True)
    for page in SITE.rglob("*.html") if SITE.exists() else []:
        page.unlink()
    STAMP.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
