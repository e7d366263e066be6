"""`make book`: build the site strictly, say which chapter runs, and where the site is."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

BUILD = Path("_build")
SITE = BUILD / "html"
BUILT = BUILD / ".built"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_NEWS = re.compile(r"Execut(ing|ed) notebook")
_NOISE = "Kernel is running over TCP"  # printed by each kernel; the port is local


def main() -> int:
    """Build the site; a failed build leaves no doctree that could make the next one look green."""
    started = time.perf_counter()
    if not BUILT.exists():
        forget()
    BUILT.unlink(missing_ok=True)
    jupyter_book = Path(sys.executable).with_name("jupyter-book")
    code, log = run([str(jupyter_book), "build", ".", "-W", "-n", "--keep-going"])
    if code:
        forget()
        print("\n".join(log[-80:]), file=sys.stderr)
        reports = sorted(SITE.glob("reports/*.log"))
        print(
            "The book was not built."
            + (f" Reports of failed chapters: {', '.join(map(str, reports))}" if reports else "")
        )
        return code
    BUILT.touch()
    seconds = time.perf_counter() - started
    print(f"The book is in {SITE.resolve() / 'index.html'} ({seconds:.0f} s). Open it there, or run: make serve")
    return 0


def run(command: list[str]) -> tuple[int, list[str]]:
    """Run a build, print only its news about chapters, and return its exit code and whole log."""
    log = []
    # Threads that spin while they wait make a busy machine ten times slower; sleeping ones cost nothing on an idle one.
    environment = {"OMP_WAIT_POLICY": "PASSIVE"} | os.environ
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        for line in process.stdout:
            text = _COLOUR.sub("", line.rstrip())
            if _NOISE in text:
                continue
            log.append(text)
            if _NEWS.search(text):
                print(text.removeprefix(f"{Path.cwd()}/").removesuffix(" [mystnb]"), flush=True)
    return process.returncode, log


def forget() -> None:
    """Remove doctrees and pages; keep the execution cache and the reports of failed chapters."""
    shutil.rmtree(BUILD / ".doctrees", ignore_errors=True)
    shutil.rmtree(SITE / ".doctrees", ignore_errors=True)
    for page in SITE.rglob("*.html") if SITE.exists() else []:
        page.unlink()
    BUILT.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
