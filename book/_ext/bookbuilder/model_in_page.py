"""The model in the page: its shards, the runtime and the tokenizer of `node_modules`, served from the site itself."""

import shutil
from pathlib import Path

from bookbuilder.explorables import ROOT
from bookbuilder.vendored import MODEL as PLACE
from bookbuilder.vendored import copy_if_changed
from explainer.errors import ExplainerError
from explainer.page import LiveGPT, live_experiment, page_model

_RUNTIME = (
    "onnxruntime-web/dist/ort.wasm.min.mjs",
    "onnxruntime-web/dist/ort-wasm-simd-threaded.mjs",
    "onnxruntime-web/dist/ort-wasm-simd-threaded.wasm",
    "onnxruntime-web/dist/ort.jspi.min.mjs",
    "onnxruntime-web/dist/ort-wasm-simd-threaded.jspi.mjs",
    "onnxruntime-web/dist/ort-wasm-simd-threaded.jspi.wasm",
    "@huggingface/tokenizers/dist/tokenizers.min.mjs",
)
_OURS = ("live_model.js", "live_model_worker.js")


def _served(source: Path) -> str:
    """Its name in a site: what a server that does not know `.mjs` makes of one is no module to a browser."""
    return source.name.replace(".mjs", ".js")


def place(site: Path) -> int:
    """Put all that the explorables of the laboratory load into a site, and return its size in bytes.

    Raises: ExplainerError if npm has not installed the runtime, or the checkpoint can be neither found nor converted.
    """
    sources = [*(ROOT / "node_modules" / name for name in _RUNTIME), *(LiveGPT.folder / "js" / name for name in _OURS)]
    for source in sources:
        if not source.is_file():
            raise ExplainerError(f"{source.name} is missing: npm could not install what package-lock.json names.")
    sources += sorted([*page_model.build().iterdir(), *live_experiment.UPDATES.iterdir()])
    sources.append(LiveGPT.folder / f"{LiveGPT.name}.json")
    folder = site / PLACE
    for source in sources:
        copy_if_changed(source, folder / _served(source))
    for stale in {path.name for path in folder.iterdir()} - set(map(_served, sources)):
        (folder / stale).unlink()
    return sum(source.stat().st_size for source in sources)


def put(site: Path) -> str:
    """Place the model; returns a line for the reader of the build: how large it is, or why the site has none."""
    try:
        return f"The model in the page takes {place(site) / 1e6:.0f} MB of the site; MODEL_IN_PAGE=0 leaves it out."
    except ExplainerError as error:
        shutil.rmtree(site / PLACE, ignore_errors=True)
        return f"The site has no model in its pages: {error}"
