"""What several test modules share: the built site, a server for it, a browser that cannot leave the machine."""

import contextlib
import functools
import gzip
import http.server
import os
import shutil
import signal
import threading
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("book", deadline=None)  # a busy machine is slow, not wrong
hypothesis.settings.load_profile("book")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what runs in the background with interrupts ignored; tests interrupt what they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
ROOT = Path(__file__).parents[1]
FRAME_MS = 4 * 16
"""Milliseconds: one frame of the screen is 16, and a machine may be four times slower than where it was written."""
SITE = ROOT / "_build" / "html"
NO_FRAME = "the browser drew no frame"
drawn_again = pytest.mark.flaky(reruns=2, only_rerun=[NO_FRAME])
"""For tests that need a browser to draw: one without a screen sometimes stops doing so for a page, of which it still
runs the scripts (seen three times, on busy machines). Such a test, and no other, is run again."""


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the built site."""
    if not (SITE / "index.html").exists():
        pytest.fail("There is no built site: run `make book` first (`make test` does).")
    return SITE


BROWSERS = (
    *(
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
        "microsoft-edge",
        "brave-browser",
        "chrome",
    ),
    *(f"/Applications/{name}.app/Contents/MacOS/{name}" for name in ("Google Chrome", "Chromium", "Microsoft Edge")),
)
PATIENCE = 300_000
"""Milliseconds for what takes seconds on an idle machine: a busy one is slow, not wrong."""
HOW = "No Chromium-family browser: install one (Debian: apt install chromium) or set EXPLAINER_BROWSER."


def find_browser() -> str | None:
    """Path of an installed Chromium-family browser."""
    setting = os.environ.get("EXPLAINER_BROWSER")
    return setting or next((path for name in BROWSERS if (path := shutil.which(name))), None)


@functools.cache
def _compressed(file: Path, _changed: int) -> bytes:
    return gzip.compress(file.read_bytes())


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files as a good host does, text compressed, but for modules: it does not know `.mjs`."""

    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {".mjs": "application/octet-stream"}

    def log_message(self, *_: object) -> None:
        """Stay silent."""

    def do_GET(self) -> None:
        """Send a file, text files with gzip."""
        file = Path(self.translate_path(self.path))
        if not file.is_file() or file.suffix not in {".html", ".js", ".css", ".svg", ".json"}:
            super().do_GET()
            return
        body = _compressed(file, file.stat().st_mtime_ns)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(file)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def served(directory):
    """Address of a local server with what a directory holds."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, directory=str(directory)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture(scope="session")
def address(site):
    with served(site) as address:
        yield address


def require_frames(page) -> None:
    """Fail unless the browser draws two frames of a page within ten seconds in which the page computes nothing.

    The clock goes in steps, each set when the last has rung, so that a long script delays it as it delays the frames.
    """
    drawn = page.evaluate(
        """() => new Promise((answer) => {
            let steps = 0;
            const ring = () => (steps++ < 100 ? setTimeout(ring, 100) : answer(false));
            ring();
            requestAnimationFrame(() => requestAnimationFrame(() => answer(true))); })"""
    )
    if not drawn:
        url = page.url
        page.context.close()  # its next test gets another
        pytest.fail(f"{NO_FRAME} within ten seconds of {url}")


@pytest.fixture(scope="session")
def browser():
    """A running Chromium-family browser."""
    path = find_browser()
    if path is None:
        if os.environ.get("EXPLAINER_REQUIRE_BROWSER"):
            pytest.fail(HOW)
        pytest.skip(HOW)
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - its start costs a second

    arguments = ["--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        arguments.append("--no-sandbox")  # Chromium refuses its sandbox to root, as in containers
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """Directory of a tiny checkpoint of each family."""
    import tiny_models  # noqa: PLC0415 - it imports torch

    root = tmp_path_factory.mktemp("tiny")
    return {family: tiny_models.save(family, root / family) for family in tiny_models.CONFIGS}


@pytest.fixture(scope="session")
def directory(saved):
    """Directory of the tiny Llama, as the checkpoint of a setting."""
    return str(saved["llama"])


@pytest.fixture(scope="session")
def checkpoint(directory):
    """The tiny Llama in float32."""
    from explainer.models import loading  # noqa: PLC0415

    return loading.load(directory)


@pytest.fixture(scope="session")
def tiny(saved):
    """The tiny checkpoint of each family, and of variants of them, in float32."""
    import tiny_models  # noqa: PLC0415

    from explainer.models import loading  # noqa: PLC0415

    of_disk = {family: loading.load(directory) for family, directory in saved.items()}
    return of_disk | {name: tiny_models.random_checkpoint(config) for name, config in tiny_models.MORE.items()}


@pytest.fixture(scope="session")
def wide(saved):
    """The tiny checkpoint of each family, in float64 where the family computes in it."""
    import tiny_models  # noqa: PLC0415

    from explainer.models import loading  # noqa: PLC0415

    return {family: loading.load(path, dtype=tiny_models.widest(family)) for family, path in saved.items()}
