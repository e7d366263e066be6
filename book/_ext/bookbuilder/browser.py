"""A Chromium-family browser that is installed, without a screen."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "microsoft-edge",
    "brave-browser",
    "chrome",
)
MAC_BROWSERS = ("Google Chrome", "Chromium", "Microsoft Edge", "Brave Browser")
PATIENCE = 300_000
"""Milliseconds for what takes seconds on an idle machine: a busy one is slow, not wrong."""
HOW = "No Chromium-family browser: install one (Debian: apt install chromium) or set EXPLAINER_BROWSER."


def find_browser() -> str | None:
    """Path of an installed Chromium-family browser."""
    if setting := os.environ.get("EXPLAINER_BROWSER"):
        return os.path.expanduser(setting)
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    apps = (Path("/Applications") / f"{name}.app" / "Contents" / "MacOS" / name for name in MAC_BROWSERS)
    return found or next((str(path) for path in apps if path.exists()), None)


@contextmanager
def running(path: str) -> Iterator[Any]:
    """The browser at `path`, as playwright drives it, until the block ends."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - its start costs a second

    arguments = ["--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        arguments.append("--no-sandbox")  # Chromium refuses its sandbox to root, as in containers
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        try:
            yield browser
        finally:
            browser.close()
