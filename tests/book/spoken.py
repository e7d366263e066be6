"""What the explorables of a page write while a reader uses them, and what that is in another language.

How a text becomes its translation is in `static/words.js`, which the pages load.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import bookbuilder
from bookbuilder.explorables import run_module

_SCRIPT = Path(bookbuilder.__file__).parent / "static" / "words.js"
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

_SAY = """
import { readFileSync } from "node:fs";
const { script, table, texts } = JSON.parse(readFileSync(0, "utf8"));
const [document, MutationObserver] = [{ querySelectorAll: () => [] }, class {}];
const run = new Function("document", "MutationObserver", "TABLE", `${script}; return sayFrom(TABLE);`);
process.stdout.write(JSON.stringify(texts.map(run(document, MutationObserver, table))));
"""


def said(table: Mapping[str, str], texts: Sequence[str]) -> list[str | None]:
    """What each text is by a catalogue, or None; parts of it that nobody has translated stay as they are."""
    question = {"script": _SCRIPT.read_text("utf-8"), "table": table, "texts": texts}
    return json.loads(run_module(_SAY, question))


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
