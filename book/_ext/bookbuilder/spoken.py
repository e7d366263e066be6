"""What the explorables of a page write while a reader uses them, for the catalogues of other languages.

`python -m bookbuilder.spoken` goes through the built pages of the main line with a browser and adds what it reads to
every language's catalogue `explorables` what its phrases cannot say.
"""

import shutil
import sys
from pathlib import Path
from typing import Any

from bookbuilder.locale import editions, main_line, write_catalogue
from bookbuilder.translation import EXPLORABLES, without_numbers

_SITE = Path("_build", "html")
_QUIET = 400
"""Milliseconds until an explorable has written its result for a screen reader."""
_USED = """async (widget, [most, quiet, last]) => {
  const found = new Set(), wait = (time) => new Promise((later) => setTimeout(later, time));
  const controls = () => widget.querySelectorAll("select, input, button:not(.explorable-download), [role=slider]");
  const read = () => {
    const texts = [], walker = document.createTreeWalker(widget, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
    for (let node = walker.currentNode; node; node = walker.nextNode()) {
      if (node.nodeType === Node.TEXT_NODE) texts.push(node.data);
      else for (const name of ["aria-label", "aria-valuetext", "title", "placeholder"])
        texts.push(node.getAttribute(name));
    }
    for (const text of texts) if (/[A-Za-z]{2}/.test(text ?? "")) found.add(text);
  };
  const uses = (control) => {
    if (control.disabled) return 0;
    if (control.nodeName === "SELECT") return control.options.length;
    if (control.type === "range") return 3;
    return /load|start|download|reset|加载|重置/i.test(control.textContent) ? 0 : 1;
  };
  const use = (control, i) => {
    const say = (name) => control.dispatchEvent(new Event(name, { bubbles: true }));
    if (control.nodeName === "SELECT") { control.selectedIndex = i; say("change"); }
    else if (control.type === "range") {
      control.value = [control.min, control.max, (+control.min + +control.max) / 2][i];
      say("input");
      say("change");
    } else if (control.getAttribute("role") === "slider")
      control.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
    else if (control.type !== "text") control.click();
  };
  read();
  for (let place = 0, all = controls().length; place < all; place += 1) {
    const times = controls()[place] ? uses(controls()[place]) : 0;
    for (let i = 0; i < Math.min(times, most ?? times); i += 1) {
      const control = controls()[place]; // by its place: a use may have drawn all of them anew
      if (!control) break;
      use(control, i);
      await wait(quiet);
      read();
    }
  }
  await wait(last);
  read();
  return [...found];
}"""


def of_page(page: Any, most: int | None = None, quiet: int = _QUIET) -> set[str]:
    """The texts of all explorables of an open page: at first, and after each use of each control.

    Of the uses of a control `most` are tried, and `quiet` milliseconds are waited after each.
    """
    found: set[str] = set()
    for widget in page.query_selector_all(".xp-widget[data-model]"):
        widget.scroll_into_view_if_needed()
        page.wait_for_function("(widget) => widget.dataset.ready", arg=widget)
        found |= set(widget.evaluate(_USED, [most, quiet, _QUIET]))
    return found


def main() -> int:
    """Add what the explorables write to the catalogues."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only here

    found: set[str] = set()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("google-chrome"), args=["--no-sandbox"]
        )
        page = browser.new_page()
        for name in main_line():
            page.goto((_SITE / f"{name}.html").resolve().as_uri())
            found |= of_page(page)
        browser.close()
    for edition in editions():
        known = {message.id: "" for message in edition.catalogue(EXPLORABLES) if message.id}
        left = [text for text in sorted(found) if edition.english(edition.spoken(text) or text)]
        write_catalogue(edition, EXPLORABLES, known | {without_numbers(text)[0]: text for text in left})
        print(f"{edition.folder.name}: {len(left)} of {len(found)} texts are left to translate.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
