"""The stored similarities, layer by layer, for a reader to choose from: `SimilarityExplorer` and its data."""

import html
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import traitlets

from explainer.explorables.base import Explorable
from explainer.lab.store import GRIDS, published_directory

if TYPE_CHECKING:
    from explainer.lab.store import Stored

Rows = np.ndarray
"""Values of the seeds in the layers, (seeds, layers), NaN where there is none."""

SOURCES = ("classification", "agnews", "cb", "pairs", "half-trained", "controls", "layer-causal")
"""Grids of the stored studies; where two have the same condition of a task, the first one counts."""

MEASURES: Mapping[str, str | None] = {
    "sim_aou": "sim_aou_permuted",
    "sim_aou_raw": "sim_aou_raw_permuted",
    "sim_aou_tangent": "sim_aou_tangent_permuted",
    "sim_aou_residual": "sim_aou_residual_permuted",
    "sim_am": "sim_am_zsl",
    "update_cosine": "update_cosine_permuted",
    "sim_am_delta": None,
    "kendall_tau_b": None,
}
"""What is kept for each condition, and the floor that is kept per layer for the conditions in FLOORED."""

FLOORED = ("none", "untrained")
SINGLE = "none"  # the condition of which single seeds are kept
MOST_SINGLES = 5
ALPHABET = "".join(chr(code) for code in range(33, 127) if chr(code) not in '"\\<')
"""Digits of the packed numbers: what stands in JSON and in HTML as it is."""

_BASE = len(ALPHABET)
_LEVELS = 2001  # -1, -0.999, ..., 1
_FINE, _COARSE_STEP = 300, 0.025  # half-widths up to 0.3 in steps of 0.001, larger ones rounded up to this step


def data() -> dict[str, Any]:
    """The stored results of the book for `SimilarityExplorer`: every task and condition that is there.

    "layers", "made" and "tasks"; `tasks[task][control]` is why there is nothing, in words, or the seeds, the number of
    queries and packed numbers of three digits (see `pack` and `pack_with_width`): "curves", for each of MEASURES its
    mean over seeds in every layer and over the layers, each with the half-width of Student's 95 % interval over
    seeds; "noise", the noise value of SimAOU; for FLOORED conditions "floors" as in MEASURES and "isotropic", the
    largest |mean| of a layer with random directions in place of FT; for SINGLE "singles", the measures seed by seed.
    Raises ResultsError where there are no stored studies.
    """
    return dict(_data(published_directory()))


@cache
def _data(place: Path) -> dict[str, Any]:
    from explainer.analysis import reporting  # noqa: PLC0415 - torch is slow to import and not every explorable needs it
    from explainer.experiments import study  # noqa: PLC0415

    grids, tasks, used = study.read_grids(place / GRIDS), {}, []
    for grid in SOURCES:
        for task, control in dict.fromkeys((cell.task, cell.control) for cell in grids.get(grid, ())):
            conditions = tasks.setdefault(task, {})
            if isinstance(conditions.get(control), dict):
                continue
            try:
                finished = reporting.stored(grid, task=task, control=control)
            except study.StudyError:
                conditions[control] = "not computed yet"
            else:
                conditions[control] = record(finished, control)
                used += finished
    made = reporting.made(used) if used else "Stored: nothing yet."
    return {"layers": used[0].result["setting"]["layers"] if used else 1, "made": made, "tasks": tasks}


def record(finished: "Sequence[Stored]", control: str) -> dict[str, Any] | str:
    """One condition of one task, from the results of its seeds: see `data`; words where no seed has a similarity."""
    finished = [one for one in finished if one.result["similarity"]]
    if len(finished) < 2:
        return "fine-tuning diverged"
    cells = [one.identity["cell"] for one in finished]
    rows = {name: layer_rows(finished, name) for name in MEASURES}
    found = {
        "of": [cells[0]["n_queries"], cells[0]["k"], cells[0]["lr"], [cell["seed"] for cell in cells]],
        "curves": "".join(pack_with_width(*_student(_with_mean(values))) for values in rows.values()),
        "noise": pack(layer_rows(finished, "sim_aou_noise").mean(0)),
    }
    if control in FLOORED:
        found["floors"] = "".join(pack(layer_rows(finished, floor).mean(0)) for floor in MEASURES.values() if floor)
        isotropic = [layer_rows(finished, f"{name}_isotropic").mean(0) for name in MEASURES]
        found["isotropic"] = pack(np.array([np.abs(values).max() for values in isotropic]))
    if control == SINGLE:
        per_seed = zip(*rows.values(), strict=True)
        found["singles"] = ["".join(map(pack, values)) for values in list(per_seed)[:MOST_SINGLES]]
    return found


def layer_rows(finished: "Sequence[Stored]", measure: str) -> Rows:
    """A similarity in each layer, (seeds, layers), NaN where it does not exist or was not measured."""
    layers = finished[0].result["setting"]["layers"]
    rows = [one.result["similarity"].get(measure) or {"layers": [None] * layers} for one in finished]
    return np.array([row["layers"] for row in rows], dtype=float)


def _with_mean(rows: Rows) -> Rows:
    return np.column_stack([rows, rows.mean(1)])


def _student(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    from scipy.stats import t  # noqa: PLC0415

    n = len(rows)
    return rows.mean(0), t.ppf(0.975, n - 1) * rows.std(0, ddof=1) / np.sqrt(n)


def pack(values: np.ndarray) -> str:
    """Numbers from -1 to 1 as two digits of ALPHABET each, rounded to 0.001; NaN is the largest number of two."""
    codes = np.round((np.clip(values, -1, 1) + 1) * 1000)
    return _digits(np.where(np.isnan(codes), _BASE**2 - 1, codes), 2)


def pack_with_width(values: np.ndarray, half: np.ndarray) -> str:
    """Numbers from -1 to 1 with half-widths as three digits each, both to 0.001; NaN is the largest number of three.

    Half-widths above 0.3 are rounded up to multiples of 0.025, up to 2, more than which no interval here can show.
    """
    fine, coarse = np.round(half * 1000), _FINE + np.ceil((np.minimum(half, 2) - _FINE / 1000) / _COARSE_STEP - 1e-9)
    codes = np.where(fine <= _FINE, fine, coarse) * _LEVELS + np.round((np.clip(values, -1, 1) + 1) * 1000)
    return _digits(np.where(np.isnan(codes), _BASE**3 - 1, codes), 3)


def _digits(codes: np.ndarray, width: int) -> str:
    places = [_BASE**place for place in reversed(range(width))]
    return "".join(ALPHABET[int(code) // place % _BASE] for code in codes for place in places)


class SimilarityExplorer(Explorable):
    """Stored similarities of ICL and FT in each layer, beside their floors.

    Traits: `task`; `measure`, and whether SimAOU is `normalised`; the condition `control` and the one it is compared
    with, `against` ("" for none), names in `explainer.experiments.controls.CONTROLS`; `seed`, -1 for all; `data` as the
    function of this name gives it, the stored studies of the book unless given.
    """

    name = "similarity_explorer"
    question = "Where in the network are the two changes alike, and where is that more than a floor?"
    height = 740

    data = traitlets.Dict().tag(sync=True, explorable=True)
    task = traitlets.Unicode("sst2").tag(sync=True, explorable=True)
    measure = traitlets.Enum([name for name in MEASURES if name != "sim_aou_raw"], default_value="sim_aou").tag(
        sync=True, explorable=True
    )
    normalised = traitlets.Bool(True).tag(sync=True, explorable=True)
    control = traitlets.Unicode("none").tag(sync=True, explorable=True)
    against = traitlets.Unicode("untrained").tag(sync=True, explorable=True)
    seed = traitlets.Int(-1, min=-1).tag(sync=True, explorable=True)

    def fallback(self) -> str:
        """Return the still of the default state, with the question and the origin of the numbers as caption."""
        return super().fallback().replace("</figcaption>", f" {html.escape(self.data['made'])}</figcaption>")

    @traitlets.default("data")
    def _stored(self) -> dict[str, Any]:
        return data()
