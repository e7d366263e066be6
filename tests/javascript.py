"""What tests of explorables share: their modules run by Node.js, and a page with nothing but explorables."""

import json
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import torch
from conftest import FRAME_MS

from bookbuilder.explorables import node_executable, run_module
from explainer.explorables import Explorable

LIGHT, DARK = ("#ffffff", "#222832"), ("#14181e", "#ced6dd")
"""The theme's backgrounds and text."""


def run_tests(file: Path, fixtures: Path) -> int:
    """The number of tests in a file for Node.js, which all pass."""
    places = os.environ | {"EXPLORABLES_FIXTURES": str(fixtures)}
    command = [node_executable(), "--test", str(file)]
    done = subprocess.run(command, env=places, capture_output=True, encoding="utf-8", check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return int(re.search(r"pass (\d+)", done.stdout)[1])


_COMPUTE = """
import {{ readFileSync }} from "node:fs";
import explorable, * as m from "#explorables/{name}.js";
import {{ quickest }} from "./tests/explorables/js/support.mjs";
const {{ states, extra }} = JSON.parse(readFileSync(0, "utf8"));
const {{ describe, still }} = explorable, full = states.map((state) => ({{ ...state, ...extra }}));
const results = full.map((s) => ({{ ...({of_state}), words: describe(s), still: still(s) }}));
const milliseconds = quickest((i) => still(full[i % full.length]));
process.stdout.write(JSON.stringify({{ results, milliseconds, ...({more}) }}));
"""


def computed(name: str, states: Sequence[dict], of_state: str, more: str = "{}", **extra) -> SimpleNamespace:
    """What an explorable's module m computes: `results`, for each state s of the object `of_state`; and `more`.

    In every state there is a picture that says its result in words, and an update takes less than a frame. `extra`
    belongs to every state.
    """
    script = _COMPUTE.format(name=name, of_state=of_state, more=more)
    found = json.loads(run_module(script, {"states": list(states), "extra": extra}))
    for state, each in zip(states, found["results"], strict=True):
        require_picture(each["still"], each["words"], state)
    assert found.pop("milliseconds") < FRAME_MS
    return SimpleNamespace(**found)


def tensor(rows: Sequence) -> torch.Tensor:
    """Numbers of a module or a state in float64."""
    return torch.tensor(rows, dtype=torch.float64)


def close(found: Sequence, expected: Sequence, tolerance: float = 1e-9) -> None:
    """Numbers of a module are those of Python, relative to the largest of them, and to one where all are small."""
    expected = np.asarray(expected, float)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(1, np.abs(expected).max(initial=0)))


_TELL = """
import {{ readFileSync }} from "node:fs";
import view, {{ isCurrent, storedFor }} from "#page/{name}.js";
const {{ state, patches }} = JSON.parse(readFileSync(0, "utf8"));
const told = patches.map((patch) => {{
  const now = {{ ...state, ...patch }}, kept = storedFor(now);
  return [isCurrent(now), kept ? kept.{key} : null, view.describe(now)];
}});
process.stdout.write(JSON.stringify(told));
"""


def told(name: str, key: str, state: dict, patches: Sequence[dict]) -> tuple[list, list[str]]:
    """Whether the answers are the present choice's, and the `key` of what is stored for it; and what the view says."""
    found = json.loads(run_module(_TELL.format(name=name, key=key), {"state": state, "patches": list(patches)}))
    return [one[:2] for one in found], [words for *_, words in found]


def require_picture(still: str, words: str, state: dict) -> None:
    """The picture is whole, says its result, and has nothing that two instances on a page would share."""
    for text in (still, words):
        assert not re.search(r"NaN|undefined|Infinity|null|\bfalse\b|\[object", text), state
    assert not re.search(r" id=|href|url\(", still)
    assert ElementTree.fromstring(still).get("aria-label") == words


def uniforms(seed: int, n: int) -> np.ndarray:
    """The first n numbers of the modules' generator, mulberry32."""

    def product(a, b):
        return (a.astype(np.uint64) * b.astype(np.uint64) & 0xFFFFFFFF).astype(np.uint32)

    state = ((seed + np.arange(1, n + 1, dtype=np.uint64) * 0x6D2B79F5) & 0xFFFFFFFF).astype(np.uint32)
    bits = product(state ^ state >> 15, state | np.uint32(1))
    bits ^= bits + product(bits ^ bits >> 7, bits | np.uint32(61))
    return (bits ^ bits >> 14) / 2**32


def normals(seed: int, *shape: int) -> np.ndarray:
    """Normal numbers of the modules, two uniform ones for each."""
    u = uniforms(seed, 2 * int(np.prod(shape))).reshape(-1, 2)
    return (np.sqrt(-2 * np.log(1 - u[:, 0])) * np.cos(2 * np.pi * u[:, 1])).reshape(shape)


# In a browser


_PAGE = """<!doctype html><html lang="en" data-theme="{theme}"><head><title>Explorables</title>
<meta name="viewport" content="width=device-width"><style>
html {{ --pst-color-text-base: {ink}; --pst-color-background: {paper}; font-family: sans-serif; }}
body {{ margin: 16px; background: {paper}; color: {ink}; }} {css}</style></head>
<body><main><h1>Explorables</h1></main><script type="module">
class Model {{
  constructor(state) {{ this.state = state; this.listeners = new Map(); this.saved = 0; }}
  get(name) {{ return this.state[name]; }}
  set(name, value) {{ this.state[name] = value; for (const f of this.listeners.get("change:" + name) ?? []) f(); }}
  on(event, f) {{ this.listeners.set(event, (this.listeners.get(event) ?? new Set()).add(f)); }}
  off(event, f) {{ this.listeners.get(event).delete(f); }}
  save_changes() {{ this.saved += 1; }}
}}
window.stages = {{}};
window.keys = [];
window.leaked = [];
const globals = new Set(Reflect.ownKeys(window));
document.addEventListener("keydown", (event) => keys.push(event.key));
for (const [name, {{ source, state }}] of Object.entries({modules})) {{
  const module = await import(URL.createObjectURL(new Blob([source], {{ type: "text/javascript" }})));
  for (const copy of ["", "_2"]) {{
    const el = document.querySelector("main").appendChild(document.createElement("div"));
    el.id = name + copy;
    const model = new Model(structuredClone(state));
    stages[el.id] = {{ model, el, stop: module.default.render({{ model, el }}) }};
  }}
}}
leaked.push(...Reflect.ownKeys(window).filter((name) => !globals.has(name)).map(String));
window.ready = true;
</script></body></html>"""

OVERFLOWS = """() => [...document.querySelectorAll("svg[viewBox]")].flatMap((svg) => {
  if (svg.parentElement.closest("svg")) return [];
  const page = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].filter((text) => {
    const box = text.getBoundingClientRect();
    const beside = box.left < page.left - 1 || box.right > page.right + 1;
    return beside || box.top < page.top - 1 || box.bottom > page.bottom + 1;
  }).map((text) => text.textContent + " in " + (svg.getAttribute("aria-label") ?? ""));
})"""


def page_of(widgets: dict[str, Explorable], theme: str = "light") -> str:
    """A page with two instances of each widget, whose elements have its key and its key with `_2` as ids."""
    modules = {name: {"source": widget._esm, "state": widget.state()} for name, widget in widgets.items()}
    written, css = json.dumps(modules).replace("<", "\\u003c"), next(iter(widgets.values()))._css
    paper, ink = LIGHT if theme == "light" else DARK
    return _PAGE.format(theme=theme, paper=paper, ink=ink, css=css, modules=written)


def show(page, widgets: dict[str, Explorable], theme: str = "light") -> list[str]:
    """Show `page_of` in a browser's page; what it complains of comes into the list that is returned."""
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.set_content(page_of(widgets, theme))
    page.wait_for_function("window.ready")
    return complaints


@contextmanager
def opened(browser, widgets: dict[str, Explorable], theme: str = "light", width: int = 390) -> Iterator:
    """Such a page, which complains of nothing; each instance, stopped, takes away its elements and its listeners."""
    context = browser.new_context(viewport={"width": width, "height": 700}, has_touch=width < 360)
    page = context.new_page()
    complaints = show(page, widgets, theme)
    yield page
    assert page.evaluate("leaked") == []
    page.evaluate("Object.values(stages).forEach((stage) => stage.stop())")
    assert page.locator(".explorable").count() == 0
    listeners = "Object.values(stages).flatMap(({ model }) => [...model.listeners.values()])"
    assert page.evaluate(f"{listeners}.every((each) => each.size === 0)")
    assert complaints == []
    context.close()
