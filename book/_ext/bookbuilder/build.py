"""`make book`: execute the chapters that need it, build the site from them, and say what failed or did not hold."""

import argparse
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from bookbuilder import edition, execute, executed, translation, vendored

_BUILD = Path("_build")
SITE = _BUILD / "html"
_BUILT = _BUILD / ".built"
_JUPYTER_BOOK = """
import os, sys
from jupyter_book.sphinx import build_sphinx
folder, jobs = os.path.abspath(sys.argv[1]), int(sys.argv[2])
settings = {"nitpicky": True, "latex_individualpages": False, "external_toc_path": f"{folder}/_toc.yml"}
how = {"noconfig": True, "path_config": f"{folder}/_config.yml", "confoverrides": settings, "jobs": jobs}
sys.exit(build_sphinx(os.getcwd(), f"{folder}/_build/html", warningiserror=True, keep_going=True, **how))
"""
"""What `jupyter-book build -W -n --keep-going` does, on several processors."""


def main(arguments: list[str] | None = None) -> int:
    """Build the site and return an exit code: 1 if a chapter or the build failed, or if strict and a finding failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="chapters side by side (default: 2)")
    parser.add_argument("--strict", action="store_true", help="a finding that does not hold is an error")
    parser.add_argument("--model", action="store_true", help="put the model into the site, for its explorable")
    options = parser.parse_args(arguments)
    options.workers = max(1, options.workers)
    started = time.perf_counter()
    try:
        execute.run(executed.chapters(), workers=options.workers)
        if code := _build_pages(Path(), options.workers):
            return code
        for language in translation.editions():  # after the English pages, whose files these share
            if code := _build_pages(edition.configure(language), options.workers):
                return code
            edition.install(language, SITE)
        if options.model:
            from bookbuilder import model_in_page  # noqa: PLC0415 - it imports torch, which takes seconds

            print(model_in_page.put(SITE))
        else:
            shutil.rmtree(SITE / vendored.MODEL, ignore_errors=True)
    except KeyboardInterrupt:
        print("Interrupted; finished chapters are kept: run again to go on.", file=sys.stderr)
        return 130
    except OSError as error:
        print(f"The book was not built: {error}. Free some space, or make {_BUILD} writable.", file=sys.stderr)
        return 1
    seconds = time.perf_counter() - started
    print(f"The book is in {SITE.resolve() / 'index.html'} ({seconds:.0f} s). Open it there, or run: make serve")
    return executed.summary([executed.FOLDER / chapter.name for chapter in executed.chapters()], strict=options.strict)


def _build_pages(folder: Path, jobs: int) -> int:
    """Run the site generator; a failed run leaves no doctree that could make the next one look green."""
    built = folder / _BUILT
    if not built.exists():
        _forget(folder)
    built.unlink(missing_ok=True)
    command = [sys.executable, "-c", _JUPYTER_BOOK, str(folder), str(jobs)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if not done.returncode:
        built.touch()
        return 0
    _forget(folder)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout).splitlines()
    print("\n".join([line for line in lines[:-80] if "WARNING" in line] + lines[-80:]), file=sys.stderr)
    full = "No space left on device" in done.stdout
    print(f"The book was not built{': the disk is full, free some space' * full}.", file=sys.stderr)
    return done.returncode


def _forget(folder: Path) -> None:
    """Remove doctrees and pages; keep the executed chapters."""
    shutil.rmtree(folder / _BUILD / ".doctrees", ignore_errors=True)
    for page in (folder / SITE).rglob("*.html"):
        page.unlink()


if __name__ == "__main__":
    sys.exit(main())
