"""`make book`: execute the chapters that need it, build the site from them, and say what failed or did not hold."""

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bookbuilder import edition, execute, found, record, repository
from bookbuilder.execute import Failure
from bookbuilder.translation import editions
from bookbuilder.vendored import MODEL
from explainer.findings import Finding

_BUILD = Path("_build")
SITE = _BUILD / "html"
_BUILT = _BUILD / ".built"


def main(arguments: list[str] | None = None) -> int:
    """Build the site and return an exit code: 1 if a chapter or the build failed, or if strict and a finding failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="chapters side by side (default: 2)")
    parser.add_argument("--strict", action="store_true", help="a finding that does not hold is an error")
    parser.add_argument("--model", action="store_true", help="put the model into the site, for its explorable")
    options = parser.parse_args(arguments)
    started = time.perf_counter()
    try:
        failed = _execute_chapters(options.workers)
        if code := _build_pages(Path()) or _build_editions():
            return code
        found.write_site(SITE, Path(), repository.site_address())
        if options.model:
            from bookbuilder import model_in_page  # noqa: PLC0415 - it imports torch, which takes seconds

            print(model_in_page.put(SITE))
        else:
            shutil.rmtree(SITE / MODEL, ignore_errors=True)
    except KeyboardInterrupt:
        print("Interrupted; finished chapters are kept: run again to go on.", file=sys.stderr)
        return 130
    except OSError as error:
        print(f"The book was not built: {error}. Free some space, or make {_BUILD} writable.", file=sys.stderr)
        return 1
    seconds = time.perf_counter() - started
    print(f"The book is in {SITE.resolve() / 'index.html'} ({seconds:.0f} s). Open it there, or run: make serve")
    results = record.executed_findings()
    fails = {name: [one for one in each if not one.holds] for name, each in results.items()}
    return summary(failed, fails, strict=options.strict)


def _execute_chapters(workers: int) -> dict[str, Failure]:
    """Execute what has to be, and return the failures by the chapter's name."""
    shared = execute.surroundings()
    made_of = {chapter: execute.made_of(chapter, shared) for chapter in execute.chapters()}
    reasons = {chapter: execute.reason_to_execute(chapter, its) for chapter, its in made_of.items()}
    for reason in dict.fromkeys(filter(None, reasons.values())):
        names = [chapter.stem for chapter, its in reasons.items() if its == reason]
        print(f"To execute, because {reason}: {', '.join(names)}", flush=True)
    waiting = {chapter: made_of[chapter] for chapter, reason in reasons.items() if reason}
    done = execute.run(waiting, workers=workers, expected=record.expected_seconds()) if waiting else {}
    return {name: execution.failure for name, execution in done.items() if execution.failure}


def _build_editions() -> int:
    """Build what the book has in other languages, after the English pages, whose files these share."""
    for language in editions():
        if code := _build_pages(edition.folder_of(language), edition.options(language)):
            return code
        edition.install(language, SITE)
    return 0


def _build_pages(folder: Path, options: Sequence[str] = ()) -> int:
    """Run the site generator; a failed run leaves no doctree that could make the next one look green."""
    built = folder / _BUILT
    if not built.exists():
        _forget(folder)
    built.unlink(missing_ok=True)
    program = str(Path(sys.executable).with_name("jupyter-book"))
    command = [program, "build", ".", *options, "-W", "-n", "--keep-going"]
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
    for doctrees in (folder / _BUILD / ".doctrees", folder / SITE / ".doctrees"):
        shutil.rmtree(doctrees, ignore_errors=True)
    for page in (folder / SITE).rglob("*.html"):
        page.unlink()


def summary(failed: Mapping[str, Failure], fails: Mapping[str, list[Finding]], *, strict: bool) -> int:
    """Name failed chapters and findings that do not hold, and return the exit code."""
    for name, failure in failed.items():
        print(f"FAILED {name}: {failure}", file=sys.stderr)
    rows = [f"{name}: {one.statement}: {one.comparison}" for name, each in fails.items() for one in each]
    if rows:
        print(f"{len(rows)} findings did not hold on this machine:", *rows, sep="\n  ", file=sys.stderr)
    return int(bool(failed) or (strict and bool(rows)))


if __name__ == "__main__":
    sys.exit(main())
