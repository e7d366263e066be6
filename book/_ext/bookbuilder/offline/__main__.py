"""`make offline`: write EPUB and PDF of every edition of the built site into `_build/offline`."""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bookbuilder import browser, repository
from bookbuilder.build import SITE
from bookbuilder.offline import epub, pdf
from bookbuilder.offline.gather import gathered
from explainer.errors import ExplainerError

OUT = Path("_build", "offline")
NEEDS = "Debian: apt install chromium fonts-texgyre fonts-noto-cjk epubcheck"
"""Only the browser is necessary; without the fonts others are taken, without epubcheck the EPUB is not checked."""


def main(arguments: list[str] | None = None) -> int:
    """Write the files and return an exit code: 1 if something is missing or an EPUB has errors."""
    parser = argparse.ArgumentParser(description=__doc__, epilog=NEEDS)
    parser.parse_args(arguments)
    if not (SITE / "llms.txt").exists():
        print(f"There is no site in {SITE}: run make book first.", file=sys.stderr)
        return 1
    if (path := browser.find_browser()) is None:
        print(f"{browser.HOW} {NEEDS}.", file=sys.stderr)
        return 1
    OUT.mkdir(parents=True, exist_ok=True)
    editions = [SITE, *sorted(file.parent for file in SITE.glob("*/llms.txt"))]
    with browser.running(path) as running:
        files = [file for edition in editions for file in write(edition, Path(), running, OUT)]
    for file in files:
        print(f"{file} ({file.stat().st_size / 1e6:.1f} MB)")
    return max(check(file) for file in files if file.suffix == ".epub")


def write(edition: Path, contents: Path, running: Any, out: Path) -> list[Path]:
    """Write EPUB and PDF of an edition, whole or not at all, and return their paths.

    Raises: ExplainerError if something does not fit a page of the PDF.
    """
    below = edition.relative_to(SITE).as_posix().strip(".") if edition.is_relative_to(SITE) else ""
    address = repository.site_address(contents)
    base = f"{address}{below}{'/' * bool(below)}" if address else None
    book = gathered(running, edition, contents, base)
    lines = [book.author, book.words["edition"].format(repository.edition(contents)), *([base] if base else [])]
    name = "-".join(filter(None, ["why-can-gpt-learn-in-context", below]))
    with tempfile.TemporaryDirectory(dir=out) as folder:
        work = Path(folder)
        (work / "images").mkdir()
        for picture, content in book.pictures.items():
            (work / picture).write_bytes(content)
        made = [work / f"{name}.epub", work / f"{name}.pdf"]
        epub.write(book, made[0], (edition / "llms.txt").stat().st_mtime)
        pdf.write(book, made[1], running, edition, lines)
        return [Path(shutil.move(file, out / file.name)) for file in made]


def check(file: Path) -> int:
    """What epubcheck says of an EPUB as an exit code; 0, and a line that says so, where it is not installed."""
    program = shutil.which("epubcheck")
    if program is None:
        print(f"{file.name} was not checked, because epubcheck is not installed. {NEEDS}.")
        return 0
    packed = Path(program).read_bytes()[:2] == b"PK"  # Debian's is a Java archive, which not every kernel starts
    done = subprocess.run(
        [*(["java", "-jar"] if packed else []), program, str(file)], capture_output=True, text=True, check=False
    )
    print(re.search(r"Messages: .*|$", done.stdout)[0] or done.stderr)
    if done.returncode:
        print(done.stdout, done.stderr, file=sys.stderr)
    return int(done.returncode != 0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ExplainerError as error:
        sys.exit(str(error))
