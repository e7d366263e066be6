"""The stored similarities, layer by layer, for a reader to choose from: `SimilarityExplorer` and its data."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import traitlets

from explainer.data.files import published_directory
from explainer.explorables.explorable_base import Explorable, Stored

if TYPE_CHECKING:
    import pandas as pd

_SOURCES = (
    "classification",
    "agnews",
    "cb",
    "word-pairs",
    "word-pairs-controls",
    "half-trained",
    "controls",
    "layer-causal",
)
"""Grids of the published results; where two have the same condition of a task, the first one counts."""

_MEASURES: Mapping[str, str | None] = {
    "sim_aou": "sim_aou_permuted",
    "sim_aou_raw": "sim_aou_raw_permuted",
    "sim_aou_tangent": "sim_aou_tangent_permuted",
    "sim_aou_residual": "sim_aou_residual_permuted",
    "sim_am": "sim_am_zsl",
    "update_cosine": "update_cosine_permuted",
    "sim_am_delta": None,
    "kendall_tau_b": None,
}
"""What is kept for each condition, and the floor that is kept per layer for the conditions in _FLOORED."""

_FLOORED = ("none", "untrained")
_SINGLE = "none"  # the condition of which single seeds are kept, five at most


@cache
def _data(_place: Path) -> dict[str, Any]:
    from explainer.results import published, reporting  # noqa: PLC0415 - slow to import, and not every explorable needs it

    tasks, used = {}, []
    for grid in _SOURCES:
        for (task, control), layers in published.results(grid, "layers").groupby(["task", "control"], sort=False):
            if control not in tasks.setdefault(task, {}):
                published.require_only_seeds_differ(layers)
                tasks[task][control] = _record(layers, control)
                used.append(layers)
    return {"layers": used[0]["layer"].nunique(), "made": str(reporting.provenance(*used)), "tasks": tasks}


def _record(layers: "pd.DataFrame", control: str) -> dict[str, Any] | str:
    """One condition of one task, from the table "layers" of its seeds; words where FT diverged for all.

    A curve has Student's intervals over seeds, in each layer and of the mean over the layers that have a value.
    """
    from explainer.theory import statistics  # noqa: PLC0415 - torch is slow to import

    layers = layers[layers["sim_aou"].notna().groupby(layers["setting"]).transform("any")]
    settings = layers.drop_duplicates("setting")
    if len(settings) < 2:
        return "fine-tuning diverged"
    rows, first = {name: _layer_rows(layers, name) for name in _MEASURES}, settings.iloc[0]
    with np.errstate(invalid="ignore"):  # of layers that have a value, there may be none
        means = {name: np.nansum(values, 1) / np.isfinite(values).sum(1) for name, values in rows.items()}
    curves = [statistics.student(np.column_stack([values, means[name]])) for name, values in rows.items()]
    found = {
        "of": [int(first["n_queries"]), int(first["k"]), float(first["lr"]), settings["seed"].tolist()],
        "curves": [[_thousandths(its.estimate), _thousandths(its.high - its.estimate)] for its in curves],
        "noise": _thousandths(_layer_rows(layers, "sim_aou_noise").mean(0)),
    }
    if control in _FLOORED:
        found["floors"] = [_thousandths(_layer_rows(layers, floor).mean(0)) for floor in _MEASURES.values() if floor]
        isotropic = [_layer_rows(layers, f"{name}_isotropic").mean(0) for name in _MEASURES]
        largest = [np.nanmax(np.abs(values)) if np.isfinite(values).any() else np.nan for values in isotropic]
        found["isotropic"] = _thousandths(np.array(largest))
    if control == _SINGLE:
        per_seed = list(zip(*rows.values(), strict=True))[:5]
        found["singles"] = [[_thousandths(values) for values in each] for each in per_seed]
    return found


def _layer_rows(layers: "pd.DataFrame", measure: str) -> np.ndarray:
    """A similarity in each layer, (seeds, layers), NaN where it does not exist or was not measured."""
    return layers.reindex(columns=[measure]).to_numpy(float).reshape(-1, layers["layer"].nunique())


def _thousandths(values: np.ndarray) -> list[int | None]:
    """Numbers from -1 on in thousandths, which are shorter in a page; None for NaN."""
    return [None if np.isnan(value) else int(value) for value in np.round((values + 1) * 1000) - 1000]


class SimilarityExplorer(Explorable):
    """Stored similarities of ICL and FT in each layer, beside their floors.

    Traits: `task`; `measure`, and whether SimAOU is `normalised`; the condition `control` and the one it is compared
    with, `against` ("" for none), names in `explainer.compare.controls.CONTROLS`; `seed`, -1 for all; `data`, what
    is stored, the published results of the book unless given.
    """

    name = "similarity_explorer"
    question = "Where in the network are the two changes similar, and where does that exceed a floor?"
    height = 740
    provenance = "Stored: with its seeds below the figure; {checkpoint}, float32; computed by explainer-lab comparison."

    data = Stored()
    task = traitlets.Unicode("sst2")
    measure = traitlets.Enum([name for name in _MEASURES if name != "sim_aou_raw"], default_value="sim_aou")
    normalised = traitlets.Bool(True)
    control = traitlets.Unicode("none")
    against = traitlets.Unicode("untrained")
    seed = traitlets.Int(-1, min=-1)

    def caption(self) -> str:
        """What stands under it, with the origin of the numbers."""
        return f"{super().caption()} {self.data['made']}"

    @classmethod
    def stored(cls) -> dict[str, Any]:
        """The stored results of the book for `SimilarityExplorer`: every task and condition that is there.

        "layers", "made" and "tasks"; `tasks[task][control]` is why there is nothing, in words, or what there is, in
        thousandths: "of", the number of queries, k, the learning rate and the seeds; "curves", for each of _MEASURES
        its mean over seeds in every layer and over the layers, and the half-widths of Student's 95 % intervals over
        seeds; "noise", the noise value of SimAOU; for _FLOORED conditions "floors" as in _MEASURES and "isotropic", the
        largest |mean| of a layer with random directions in place of FT; for _SINGLE "singles", the measures seed by
        seed. Raises ResultsError where there are no published results.
        """
        return dict(_data(published_directory()))
