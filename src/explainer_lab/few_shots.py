"""How many answers are right after k demonstrations, task by task, for the first chapter and its study on label bias.

One prefix of the largest k serves every smaller k of a seed, and all k are asked the same queries.
"""

from explainer.compare.few_shots import SWEEPS
from explainer.data import tasks
from explainer.models import scoring
from explainer.models.loading import Checkpoint
from explainer.models.scoring import Record


def measure(checkpoint: Checkpoint) -> dict[str, list]:
    """The records of each of SWEEPS, as `explainer.compare.few_shots.stored` reads them."""
    return {
        task: [
            _plain(record)
            for record in scoring.sweep(checkpoint, tasks.load(task), its.ks, its.seeds, its.queries, progress=False)
        ]
        for task, its in SWEEPS.items()
    }


def _plain(record: Record) -> dict[str, list | int]:
    """The log-probabilities of the labels, or what is right where answers are free."""
    what = {"seed": record.seed, "k": record.k}
    if record.log_probs is None:
        return what | {"correct": record.correct.astype(int).tolist()}
    return what | {"log_probs": [[round(p, 4) for p in row] for row in record.log_probs.tolist()]}
