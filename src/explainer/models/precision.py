"""What a number format does to the scores of labels, measured on a few queries."""

import numpy as np
from jaxtyping import Float

from explainer.data import tasks
from explainer.data.tasks import TaskData
from explainer.models import scoring
from explainer.models.checkpoint import Checkpoint

N_QUERIES = 4
N_SHOWN = 4


def label_scores(checkpoint: Checkpoint, data: TaskData) -> Float[np.ndarray, "n c"]:
    """log p of every label for the first queries of seed 0 after its first demonstrations.

    Where answers are free, those of these queries stand for labels. Raises TaskError and CheckpointError.
    """
    asked = tasks.queries(data, N_QUERIES, 0)
    ids, _ = scoring.context_ids(checkpoint, data.task, tasks.demonstrations(data, N_SHOWN, 0))
    answers = data.task.labels or tuple(dict.fromkeys(query.answer for query in asked))
    prompts = [data.task.prompt(query) for query in asked]
    return scoring.candidate_log_probs(checkpoint, scoring.encode(checkpoint, ids), prompts, answers)
