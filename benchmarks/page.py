"""What a reader waits for who asks the model in the page: the built site, a local server, a browser without a screen.

make book && .venv/bin/python benchmarks/page.py
"""

import argparse
import functools
import http.server
import shutil
import sys
import threading
import time
from pathlib import Path

from playwright.sync_api import Browser, Page, Request, sync_playwright

SITE = Path(__file__).parents[1] / "_build" / "html"
AT_MOST = {"from the click to the first answer": 15.0, "a further query": 0.6}
"""Seconds."""
HERE = "computed in this page"
QUERIES = "Peru", "Kenya", "Norway", "Chile", "Poland"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and prints nothing."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def answered(page: Page, query: str) -> float:
    """Seconds that the page says it took for the answer to a query, which it shows."""
    page.wait_for_function(
        "([query, here]) => [...document.querySelectorAll('.explorable')].some((its) => "
        "its.textContent.includes(`After “${query}`) && its.textContent.includes(here))",
        arg=[query, HERE],
        timeout=120_000,
    )
    told = page.locator(".explorable-answers", has_text=HERE).first.inner_text()
    return float(told.partition(f"{HERE}, ")[2].split()[0])


def waiting(browser: Browser, address: str) -> dict[str, float]:
    """Seconds from the click to the first answer with nothing kept, and of further queries, the longest."""
    page = browser.new_page(viewport={"width": 1280, "height": 1400})
    page.goto(address)
    page.get_by_role("button", name="Load the model").first.click()
    clicked = time.perf_counter()
    answered(page, "Japan")
    first = time.perf_counter() - clicked
    field, seconds = page.get_by_label("query", exact=True), []
    for query in QUERIES:
        field.fill(query)
        seconds.append(answered(page, query))
    page.close()
    return dict(zip(AT_MOST, (first, max(seconds)), strict=True))


def weight(browser: Browser, address: str) -> int:
    """Bytes of a page as they travel, before a reader asks for the model."""
    page, sizes = browser.new_page(viewport={"width": 1280, "height": 1400}), []

    def add(request: Request) -> None:
        sizes.append(request.sizes()["responseBodySize"])

    page.on("requestfinished", add)
    page.goto(address, wait_until="networkidle")
    page.close()
    return sum(sizes)


def main(arguments: list[str] | None = None) -> None:
    """Print the times; exit with an error where one is over its limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--browser", default=shutil.which("chromium") or shutil.which("google-chrome"))
    options = parser.parse_args(arguments)
    if options.browser is None:
        sys.exit("No browser was found: name one with --browser (Debian: apt install chromium).")
    if not (SITE / "_static" / "explainer" / "model" / "manifest.json").exists():
        sys.exit(f"{SITE} has no model: run make book first.")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/book/"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.browser, args=["--no-sandbox", "--disable-gpu"])
        for name in ("chapters/learning_in_context", "reference/laboratory"):
            print(f"{name}, without the model: {weight(browser, f'{address}{name}.html') / 1e3:.0f} kB")
        found = waiting(browser, f"{address}reference/laboratory.html")
        browser.close()
    server.shutdown()
    for name, seconds in found.items():
        print(f"{name}: {seconds:.1f} s (at most {AT_MOST[name]:g} s)")
    slow = [name for name, seconds in found.items() if seconds > AT_MOST[name]]
    if slow:
        sys.exit(f"Slower than is asked: {', '.join(slow)}.")


if __name__ == "__main__":
    main()
