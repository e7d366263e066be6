"""A sample of every data set that is not part of this project: enough to compute stored settings of seed 0 again.

`data_samples/<task>.json` holds the demonstrations of seed 0 and, for each split, its first queries, as rows of the
data set, in the order in which the seed draws them. `python tests/lab/samples.py DATA_DIR` writes them.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from published_grids import grids

from explainer.compare import comparison
from explainer.compare.comparison import ComparisonSetting
from explainer.data import tasks
from explainer.data.tasks import Example, TaskData
from explainer_lab.comparison import Comparison

SEED = 0
N_QUERIES = 6


def directory() -> Path:
    return Path(__file__).parent / "data_samples"


def folder(setting: ComparisonSetting) -> str:
    """Name of the setting's data set."""
    return tasks.TASKS[setting.task].folder or setting.task


def data_of(setting: ComparisonSetting, place: Path) -> TaskData:
    """Task data from which the setting's seed draws the sample's demonstrations and queries, in their order."""
    task = tasks.TASKS[setting.task]
    sample = json.loads((directory() / f"{folder(setting)}.json").read_text("utf-8"))
    generator = np.random.default_rng(SEED)  # as explainer.data.tasks draws
    for split, rows in zip(task.splits, (sample["demonstrations"], sample["queries"][setting.split]), strict=True):
        path = place / folder(setting) / f"{split}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        drawn = dict(zip(generator.permutation(len(rows)).tolist(), rows, strict=True))
        path.write_text("".join(json.dumps(drawn[i]) + "\n" for i in range(len(rows))), "utf-8")
    return tasks.load(task, data_dir=place)


def _row(task: tasks.Task, example: Example) -> dict:
    return {**example.fields, task.answer_column: example.label}


def make(data_dir: str) -> None:
    """Write a sample for each data set of the stored studies."""
    settings = [c for of in grids(Comparison).values() for c in of]
    for name in dict.fromkeys(folder(c) for c in settings if tasks.TASKS[c.task].hub is not None):
        of_folder = [c for c in settings if c.task == name]
        data = tasks.load(name, data_dir=data_dir)
        k = max(c.k for c in of_folder) * (1 + any(c.control == "other-training" for c in of_folder))
        splits = dict.fromkeys(c.split for c in of_folder)
        asked = {s: replace(of_folder[0], seed=SEED, split=s, n_queries=N_QUERIES) for s in splits}
        sample = {
            "source": data.task.source,
            "licence": data.task.licence,
            "demonstrations": [_row(data.task, e) for e in tasks.demonstrations(data, k, SEED)],
            "queries": {s: [_row(data.task, e) for e in comparison.draw_queries(data, c)] for s, c in asked.items()},
        }
        directory().mkdir(exist_ok=True)
        (directory() / f"{name}.json").write_text(json.dumps(sample, indent=0, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    make(sys.argv[1])
