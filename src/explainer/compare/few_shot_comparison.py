"""How many answers are right after k demonstrations: the stored sweeps, and any model before anything is trained.

The sweeps were measured once on the starter checkpoint (`explainer-lab few-shots`); pages read them with `stored`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from explainer.compare import comparison
from explainer.compare.comparison import ComparisonSetting, query_id
from explainer.data import tasks
from explainer.data.files import published_json
from explainer.data.tasks import TaskData
from explainer.models import scoring
from explainer.models.loading import Checkpoint
from explainer.models.scoring import Record
from explainer.theory import statistics
from explainer.theory.statistics import Interval, Sample


@dataclass(frozen=True)
class _Sweep:
    """The numbers of demonstrations, the seeds, and how many queries each seed draws."""

    ks: tuple[int, ...]
    seeds: tuple[int, ...]
    queries: int


SWEEPS: Mapping[str, _Sweep] = {
    **dict.fromkeys(("capitals", "plurals", "past", "antonyms"), _Sweep((0, 1, 2, 4, 8, 16), tuple(range(5)), 20)),
    "reviews": _Sweep((0, 2, 8, 32), tuple(range(3)), 60),
}
"""What is stored, by task."""


def stored(task: str) -> list[Record]:
    """The stored records of one of SWEEPS, by seed and k. Raises KeyError for another task."""
    data, records = tasks.load(task), []
    for row in published_json("few_shots")[task]:
        queries = tasks.queries(data, SWEEPS[task].queries, row["seed"])
        of = task, row["seed"], row["k"], [data.task.prompt(query) for query in queries]
        if "correct" in row:
            records.append(Record(*of, np.array(row["correct"], dtype=bool)))
        else:
            log_probs, labels = np.array(row["log_probs"]), np.array([query.label for query in queries])
            records.append(Record(*of, log_probs.argmax(1) == labels, log_probs, labels))
    return records


@dataclass(frozen=True)
class Look:
    """Shares of right answers without and with demonstrations, and their difference, query by query.

    `constant` is what the most frequent label alone would get; None for free answers.
    """

    zero_shot: Interval
    in_context: Interval
    difference: Interval
    constant: float | None

    @classmethod
    def of(cls, checkpoint: Checkpoint, data: TaskData, k: int, seeds: Sequence[int], n_queries: int) -> "Look":
        """Ask each seed's queries, of the split "selection", after none and after k of its demonstrations.

        Bootstrap over seeds and queries, the difference with Student's interval over seeds, within [-1, 1]; where seeds
        are all alike, widened as `statistics.widen_degenerate` and `widen_degenerate_difference` do. Raises TaskError,
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
        without, after = (
            statistics.widen_degenerate(statistics.bootstrap_interval(of), of.n_queries) for of in samples
        )
        paired = statistics.paired_difference(in_context, zero_shot)
        difference = statistics.widen_degenerate_difference(paired, after, without)
        return cls(
            without,
            after,
            difference.map(lambda share: min(max(share, -1.0), 1.0)),
            None if data.task.labels is None else np.bincount(labels).max() / len(labels),
        )

    @property
    def learns(self) -> bool:
        """Whether demonstrations are seen to add to what is right without them, and with one label for all."""
        return self.difference.low > 0 and (self.constant is None or self.in_context.low > self.constant)
