"""A made-up word whose four answers contradict each other, in all orders, of one kind and mixed."""

from explainer.compare.contradiction_comparison import GROUPINGS, N_SETS, log_probs
from explainer.models.loading import Checkpoint


def measure(checkpoint: Checkpoint) -> dict[str, list]:
    """The `log_probs` of all sets, as `explainer.compare.contradiction_comparison.stored` reads them."""
    return {name: [log_probs(checkpoint, name, i).round(4).tolist() for i in range(N_SETS)] for name in GROUPINGS}
