"""What a number format does to the scores of labels."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import toy_study

from explainer.data import tasks
from explainer.models import precision, scoring


@pytest.mark.parametrize("data", [toy_study.DATA, tasks.load("capitals")], ids=["labels", "free answers"])
def test_scores_are_those_of_whole_prompts_and_bfloat16_changes_them_a_little(tiny, data):
    checkpoint = tiny["llama"]
    scores = precision.label_scores(checkpoint, data)
    asked, task = tasks.queries(data, precision.N_QUERIES, 0), data.task
    text = "".join(task.demonstration(one) + task.separator for one in tasks.demonstrations(data, precision.N_SHOWN, 0))
    labels = task.labels or [query.answer for query in asked]
    empty = scoring.encode(checkpoint, "")
    whole = scoring.candidate_log_probs(checkpoint, empty, [text + task.prompt(query) for query in asked], labels)
    np.testing.assert_allclose(scores, whole, atol=1e-4)
    halved = replace(checkpoint, model=type(checkpoint.model)(checkpoint.model.config).to(torch.bfloat16).eval())
    halved.model.load_state_dict(checkpoint.model.state_dict())
    assert 1e-3 < abs(precision.label_scores(halved, data) - scores).max() < 2
