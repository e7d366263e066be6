"""What a model does with queries after a prefix: its answers, and what attention does where they are decided."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from tqdm import tqdm

from explainer.data.tasks import Example, Task
from explainer.models import recording, scoring
from explainer.models.loading import Checkpoint
from explainer.models.memory import N_MAPS
from explainer.models.recording import LinearMaps
from explainer.models.scoring import Prefix
from explainer.theory import statistics


@dataclass(frozen=True, eq=False)
class Observed:
    """What a model does with the n queries after a prefix, and what attention does at one token of each.

    `log_probs` (n, c) are None for free answers, and so is `label_tokens` (n, c), how many tokens a label has.
    `context_scores` are summed over heads.
    """

    correct: np.ndarray
    log_probs: np.ndarray | None
    outputs: Float[Tensor, "n layers hidden"]
    own_scores: list[Float[Tensor, "layers heads _"]]
    context_scores: Float[Tensor, "n layers P"]
    queries: Float[Tensor, "n layers heads_d"]
    label_tokens: np.ndarray | None = None

    def accuracy_measures(self, labels: list[int] | None) -> dict[str, Any]:
        """Accuracy raw and calibrated, and AUC; the raw one only for free answers.

        Labels are chosen by the sum of their tokens' log-probabilities, for the accuracy per token by the mean: it is
        given where labels have unequal lengths, and would be the same elsewhere.
        """
        accuracy = {"accuracy": self.correct.mean()}
        if labels is None or self.log_probs is None:
            return accuracy
        log_probs, y, m = self.log_probs.astype(np.float64), np.array(labels), self.label_tokens
        if m is not None and (m != m[:, :1]).any():
            accuracy["per_token_accuracy"] = np.mean((log_probs / m).argmax(1) == y)
        return accuracy | {
            "calibrated_accuracy": statistics.calibrated_accuracy(log_probs, y),
            "auc": statistics.macro_auc(log_probs, y),
        }


def observe(
    checkpoint: Checkpoint,
    prefix: Prefix,
    task: Task,
    queries: Sequence[Example],
    *,
    suffix: str = "",
    progress: bool = False,
) -> Observed:
    """Answer the queries after a prefix, and record attention where the answer is decided, or at a suffix's last token.

    That is the last token of the prompt, or of what the tokens of all labels have in common
    (`scoring.answer_prefixes`).
    """
    prompts = [task.prompt(query) for query in queries]
    stream = recording.iter_records(checkpoint, prefix, prompts, task.labels or (), suffix=suffix)
    bar = tqdm(stream, total=len(prompts), desc="queries", unit="query", leave=False, disable=not progress)
    records = [(r.outputs, r.own_scores, r.context_scores.sum(1), r.queries, r.log_probs) for r in bar]
    outputs, own_scores, context_scores, attention_queries, log_probs = zip(*records, strict=True)
    if task.labels is None:
        correct = scoring.exact_match(checkpoint, prefix, prompts, [query.answer for query in queries], task.separator)
        log_probs = label_tokens = None
    else:
        log_probs = np.stack(log_probs)
        correct = log_probs.argmax(1) == np.array([query.label for query in queries])
        label_tokens = scoring.candidate_lengths(checkpoint, prompts, task.labels)
    return Observed(
        correct,
        log_probs,
        torch.stack(outputs),
        list(own_scores),
        torch.stack(context_scores),
        torch.stack(attention_queries),
        label_tokens,
    )


def observe_linear_maps(
    checkpoint: Checkpoint, prefix: Prefix, task: Task, queries: Sequence[Example], *, suffix: str = ""
) -> list[LinearMaps]:
    """The linear maps of attention of the first N_MAPS queries, at the tokens where `observe` records.

    One map of a query is as large as a layer's keys and values.
    """
    prompts = [task.prompt(query) for query in queries[:N_MAPS]]
    return list(recording.linear_maps(checkpoint, prefix, prompts, task.labels or (), suffix=suffix))
