"""Prompts for lm-evaluation-harness: their tokens are those that the experiments pass, and nothing is lost."""

import json
from pathlib import Path

import pytest
import yaml

from explainer.models import scoring
from explainer_lab import cli
from explainer_lab.comparison import Comparison
from explainer_lab.new_rule import NewRule


@pytest.mark.parametrize(
    ("asked", "its"),
    [
        ("new-rule --only rule-contexts", (NewRule, {"cue": "suffix"})),
        ("comparison --tasks capitals", (Comparison, {"task": "capitals"})),
    ],
)
def test_the_files_ask_what_the_experiment_asks(asked, its, directory, checkpoint, tmp_path):
    experiment, values = its
    options = f"--model {directory} --k 4 --queries 4 --seeds 0 1 --harness {tmp_path}"
    assert cli.main([*asked.split(), *options.split()]) == 0
    setting = experiment.of(checkpoint=directory, k=4, n_queries=4, seed=1, **values)
    named, task, queries, shown = experiment().asked(setting)
    kind = "multiple_choice" if task.labels else "loglikelihood"
    assert list(shown) == ["right", "shuffled", "other"]
    for lesson, (shown_as, examples) in shown.items():
        described = yaml.safe_load((tmp_path / f"explainer_{named}_{lesson}.yaml").read_text("utf-8"))
        assert described["output_type"] == kind and described.get("doc_to_choice") == (task.labels and [*task.labels])
        data = Path(described["dataset_kwargs"]["data_files"]["test"])
        rows = [row for row in map(json.loads, data.read_text("utf-8").splitlines()) if row["seed"] == 1]
        prefix = scoring.encode(checkpoint, scoring.context_ids(checkpoint, shown_as, examples)[0])
        prompts = scoring.prompt_token_ids(checkpoint, prefix, [task.prompt(query) for query in queries])
        for row, query, prompt in zip(rows, queries, prompts, strict=True):
            assert checkpoint.tokenizer(row["text"])["input_ids"] == [*prefix.ids, *prompt]
            assert (row["label"], row["answer"]) == (query.label, f" {query.answer}\n")
    answers = {name: [one.answer for one in examples] for name, (_, examples) in shown.items()}
    assert answers["right"] != answers["shuffled"] and not set(answers["right"]) & set(answers["other"])
