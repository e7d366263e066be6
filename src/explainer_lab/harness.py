"""The prompts of an experiment as tasks of lm-evaluation-harness, so that another program can ask what this book asks.

An answer out of labels is the most probable one, as there (`multiple_choice`); a free answer is right if every token of
it, and the end of its line, is the most probable one (`loglikelihood`, whose accuracy is of greedy decoding).
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from explainer.data.files import replace_file, to_json
from explainer.data.tasks import DOCUMENT_SEPARATOR, Example, Task
from explainer.errors import require
from explainer.models.checkpoint import Checkpoint

Shown = Mapping[str, tuple[Task, Sequence[Example]]]
"""By the name of a lesson, demonstrations and the task in whose template they are written."""

Asked = tuple[Task, list[Example], Shown]
"""A task, its queries, and what is shown before each of them."""


def write(folder: Path, checkpoint: Checkpoint, asked: Mapping[tuple[str, int], Asked]) -> list[str]:
    """Files of a task for each name and lesson, `explainer_<name>_<lesson>`, whose names are returned.

    `asked` has a task, its queries and what is shown before them, by name and seed. YAML names JSON lines by their
    whole path. The first token, which the tokenizer of some families does not put there, stands in the text. Raises
    ExperimentError where demonstrations are not separated by text.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines: dict[str, list[dict[str, Any]]] = {}
    tasks: dict[str, Task] = {}
    for (name, seed), (task, queries, lessons) in asked.items():
        for lesson, (shown_as, examples) in lessons.items():
            texts = task.separator != DOCUMENT_SEPARATOR != shown_as.separator
            require(texts, f"the demonstrations of {name} are not separated by text, which these files cannot say.")
            shown = "".join(shown_as.demonstration(one) + shown_as.separator for one in examples)
            file = re.sub(r"\W+", "_", f"explainer_{name}_{lesson}")
            tasks[file] = task
            for query in queries:
                text = _first(checkpoint) + shown + task.prompt(query)
                answer = {"label": query.label, "answer": f" {query.answer}{task.separator}"}
                lines.setdefault(file, []).append({"seed": seed, "text": text} | answer)
    for name, its in lines.items():
        data = (folder / f"{name}.jsonl").resolve()
        replace_file(data, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in its))
        replace_file(folder / f"{name}.yaml", to_json(_description(name, tasks[name], data)))  # JSON is YAML
    return list(lines)


def _first(checkpoint: Checkpoint) -> str:
    first = checkpoint.first_token_id
    return "" if checkpoint.tokenizer("a")["input_ids"][0] == first else checkpoint.text([first])


def _description(name: str, task: Task, data: Path) -> dict[str, Any]:
    of_labels = {"output_type": "multiple_choice", "doc_to_choice": task.labels, "doc_to_target": "label"}
    free = {"output_type": "loglikelihood", "doc_to_target": "answer"}
    return {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}},
        "test_split": "test",
        "doc_to_text": "text",
        "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
        "metadata": {"version": 1},
    } | (free if task.labels is None else of_labels)
