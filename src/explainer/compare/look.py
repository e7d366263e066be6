"""Is there anything to learn? What a model answers without and with demonstrations, before anything is trained."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explainer.compare import comparison
from explainer.compare.comparison import ComparisonSetting, query_id
from explainer.data import tasks
from explainer.data.tasks import TaskData
from explainer.models import scoring
from explainer.models.loading import Checkpoint
from explainer.theory import statistics
from explainer.theory.statistics import Interval, Sample


@dataclass(frozen=True)
class Look:
    """Shares of right answers without and with demonstrations, and their difference, query by query.

    `constant` is what the most frequent label alone would get; None for free answers.
    """

    zero_shot: Interval
    in_context: Interval
    difference: Interval
    constant: float | None

    @property
    def learns(self) -> bool:
        """Whether demonstrations are settled to add to what is right without them, and with one label for all."""
        return self.difference.low > 0 and (self.constant is None or self.in_context.low > self.constant)


def look(checkpoint: Checkpoint, data: TaskData, k: int, seeds: Sequence[int], n_queries: int) -> Look:
    """Ask each seed's queries, of the split "selection", after none and after k of its demonstrations.

    Bootstrap over seeds and queries, the difference with Student's interval over seeds, within [-1, 1]; where seeds are
    all alike, widened as `statistics.widen_degenerate` and `widen_degenerate_difference` do. Raises TaskError,
    CheckpointError or ExperimentError.
    """
    right: dict[int, list[np.ndarray]] = {0: [], k: []}
    ids, labels = [], []
    for seed in seeds:
        setting = ComparisonSetting(
            checkpoint.name, data.task.name, seed, k, lr=1.0, n_queries=n_queries, split="selection"
        )
        queries = comparison.draw_queries(data, setting)
        context, ends = scoring.context_ids(checkpoint, data.task, tasks.demonstrations(data, k, seed))
        prefix = scoring.encode(checkpoint, context)
        for n, answers in right.items():
            answers.append(scoring.answer(checkpoint, data.task, prefix.first(ends[n]), queries).correct)
        ids.append(np.array([query_id(query) for query in queries]))
        labels += [query.label for query in queries]
    samples = zero_shot, in_context = [Sample([(each,) for each in of], ids) for of in right.values()]
    without, after = (statistics.widen_degenerate(statistics.bootstrap_interval(of), of.n_queries) for of in samples)
    paired = statistics.paired_difference(in_context, zero_shot)
    difference = statistics.widen_degenerate_difference(paired, after, without)
    return Look(
        without,
        after,
        difference.map(lambda share: min(max(share, -1.0), 1.0)),
        None if data.task.labels is None else np.bincount(labels).max() / len(labels),
    )
