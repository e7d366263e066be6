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
    "sim_am": "sim_am_zsl",
    "kendall_tau_b": None,
}
"""The paper's measures, kept for each condition, and the floor that is kept per layer for those in _FLOORED."""

_FLOORED = ("none", "untrained")


@cache
def _data(_place: Path) -> dict[str, Any]:
    from explainer.results import published, reporting  # noqa: PLC0415 - slow to import, and not every explorable needs it

    tasks, used = {}, []
    for grid in _SOURCES:
        for (task, control), layers in published.results(grid, "layers").groupby(["task", "control"], sort=False):
            if control not in tasks.setdefault(task, {}):
                published.require_only_seeds_differ(layers)
                tasks[task][control] = _record(layers)
                used.append(layers)
    return {"layers": used[0]["layer"].nunique(), "made": str(reporting.provenance(*used)), "tasks": tasks}


def _record(layers: "pd.DataFrame") -> dict[str, Any] | str:
    """One condition of one task, from the table "layers" of its seeds; words where FT diverged for all."""
    from scipy.stats import spearmanr  # noqa: PLC0415 - slow to import, and torch, too

    from explainer.theory import statistics  # noqa: PLC0415

    layers = layers[layers["sim_aou"].notna().groupby(layers["setting"]).transform("any")]
    settings = layers.drop_duplicates("setting")
    if len(settings) < 2:
        return "fine-tuning diverged"
    found: dict[str, Any] = {"n": int(layers["n_queries"].iloc[0]), "seeds": settings["seed"].tolist()}
    found |= {"curves": {}, "means": {}}
    for name in _MEASURES:
        rows = _layer_rows(layers, name)
        its, mean = statistics.student(rows), statistics.student(rows.mean(1))
        trend = spearmanr(np.arange(rows.shape[1]), its.estimate).statistic  # pyright: ignore[reportAttributeAccessIssue]
        found["curves"][name] = [_hundredths(its.estimate), _hundredths(its.high - its.estimate)]
        kept = mean.estimate, mean.high - mean.estimate, trend
        found["means"][name] = [None if np.isnan(number) else round(float(number), 3) for number in kept]
    found["noise"] = _hundredths(_layer_rows(layers, "sim_aou_noise").mean(0))
    if layers["control"].iloc[0] in _FLOORED:
        floors = {name: _layer_rows(layers, floor).mean(0) for name, floor in _MEASURES.items() if floor}
        found["floors"] = {name: _hundredths(values) for name, values in floors.items()}
        isotropic = _layer_rows(layers, "sim_aou_raw_isotropic").mean(0)
        found["isotropic"] = round(float(np.abs(isotropic).max()), 3)
    return found


def _layer_rows(layers: "pd.DataFrame", measure: str) -> np.ndarray:
    """A similarity in each layer, (seeds, layers), NaN where it does not exist or was not measured."""
    return layers.reindex(columns=[measure]).to_numpy(float).reshape(-1, layers["layer"].nunique())


def _hundredths(values: np.ndarray) -> str:
    """Numbers from -1 on in hundredths, a character each: -1.00 is U+0001, and so on without an end; NaN is U+0000."""
    return "".join("\0" if np.isnan(value) else chr(101 + round(100 * value)) for value in values)


class SimilarityExplorer(Explorable):
    """Stored similarities of ICL and FT in each layer, beside their floors.

    Traits: `task`; `measure`, and whether SimAOU is `normalised`; the condition `control` and the one it is compared
    with, `against` ("" for none), names in `explainer.compare.controls.CONTROLS`; `data`, what is stored, the published
    results of the book unless given.
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

    @classmethod
    def stored(cls) -> dict[str, Any]:
        """The stored results of the book for `SimilarityExplorer`: every task and condition that is there.

        "layers", "made" and "tasks"; `tasks[task][control]` is why there is nothing, in words, or what there is: "n",
        the number of queries; "seeds"; and, as _hundredths and so within 0.005, "curves", for each of _MEASURES its
        mean over seeds in every layer and the half-widths of Student's 95 % intervals over seeds; "noise", the noise
        value of SimAOU; for _FLOORED conditions "floors" as in _MEASURES. To 0.001 there are "means", the mean over the
        layers, its half-width, and the rank correlation of layer and mean; and for _FLOORED conditions "isotropic", the
        largest |mean| of a layer for "sim_aou_raw" with random directions in place of FT. Raises ResultsError where
        there are no published results.
        """
        return dict(_data(published_directory()))
