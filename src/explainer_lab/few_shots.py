"""How many answers are right after k demonstrations, task by task, for the first chapter and its study on label bias.

One prefix of the largest k serves every smaller k of a seed, and all k are asked the same queries.
"""

from collections.abc import Iterator, Sequence

from explainer.compare.few_shot_comparison import SWEEPS
from explainer.data import tasks
from explainer.data.tasks import TaskData
from explainer.models import scoring
from explainer.models.loading import Checkpoint
from explainer.models.scoring import Record


def measure(checkpoint: Checkpoint) -> dict[str, list]:
    """The records of each of SWEEPS, as `explainer.compare.few_shot_comparison.stored` reads them.

    They have the log-probabilities of the labels, or what is right where answers are free.
    """
    found = {name: [] for name in SWEEPS}
    for name, its in SWEEPS.items():
        for seed in its.seeds:
            for record in _answers(checkpoint, tasks.load(name), its.ks, seed, its.queries):
                if record.log_probs is None:
                    what = {"correct": record.correct.astype(int).tolist()}
                else:
                    what = {"log_probs": [[round(p, 4) for p in row] for row in record.log_probs.tolist()]}
                found[name].append({"seed": record.seed, "k": record.k} | what)
    return found


def _answers(checkpoint: Checkpoint, data: TaskData, ks: Sequence[int], seed: int, n_queries: int) -> Iterator[Record]:
    """Answers to the same queries after k demonstrations; a seed draws the demonstrations and the queries."""
    ids, ends = scoring.context_ids(checkpoint, data.task, tasks.demonstrations(data, max(ks), seed))
    prefix, queries = scoring.encode(checkpoint, ids), tasks.queries(data, n_queries, seed)
    for k in ks:
        yield scoring.answer(checkpoint, data.task, prefix.first(ends[k]), queries, seed=seed, k=k)
