"""One made-up word with four answers that contradict each other, in all 24 orders: which answer counts?

The same 128 answers are grouped twice: four of one kind, or four of different kinds. Over all orders each answer stands
equally often at each position. The predictions, from before the run, are in published/PLANS.md. Measured once on the
starter checkpoint (`explainer-lab contradictions`), read by the pages with `stored`.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from explainer.compare.controls import made_up_word
from explainer.data.files import published_json
from explainer.models import scoring
from explainer.models.loading import Checkpoint
from explainer.theory import order

_LISTS: tuple[str, ...] = (
    "red blue green black", "cat dog horse sheep", "bread milk rice meat", "one two three four",
    "north south east west", "gold iron silver copper", "Paris London Rome Berlin", "run walk sit sleep",
    "apple pear lemon cherry", "Monday Friday Sunday Tuesday", "March June August October", "Mars Venus Saturn Jupiter",
    "piano violin flute drum", "France Spain Egypt China", "tennis football golf hockey", "arm leg head foot",
    "shirt hat coat shoe", "chair table bed desk", "car bus train ship", "oak pine palm maple",
    "rose lily tulip daisy", "winter summer spring autumn", "mother father sister brother", "rain snow wind storm",
    "hammer knife saw drill", "tea coffee beer wine", "kitchen bedroom garage bathroom", "English German Latin Greek",
    "circle square line triangle", "ant bee fly spider", "eagle owl duck hawk", "doctor farmer teacher lawyer",
)  # fmt: skip
"""Four answers of one kind for each set."""
_LINES, N_SETS = 4, len(_LISTS)
GROUPINGS = ("of one kind", "mixed")


def answers(grouping: str, number: int) -> list[str]:
    """The four answers of a set: those of one list, or one of each of four lists; all answers are in both groupings."""
    if grouping == "of one kind":
        return _LISTS[number].split()
    return [_LISTS[(number + j * N_SETS // _LINES) % N_SETS].split()[j] for j in range(_LINES)]


def prompt(number: int, answers: Sequence[str]) -> str:
    """A line for each answer, in this order, and the made-up word of the set again; the same in both groupings."""
    word = made_up_word(np.random.default_rng([number, 5]))
    return "".join(f"{word} -> {answer}\n" for answer in answers) + f"{word} ->"


def log_probs(checkpoint: Checkpoint, grouping: str, number: int) -> np.ndarray:
    """log p of the answer at each position in each order of `explainer.theory.order.orders`: (24, 4)."""
    told, orders = answers(grouping, number), order.orders(_LINES).numpy()
    prompts = [prompt(number, [told[i] for i in row]) for row in orders]
    found = scoring.candidate_log_probs(checkpoint, scoring.encode(checkpoint, ""), prompts, told)
    return np.take_along_axis(found.astype(float), orders, axis=1)


def share_by_position(log_probs: np.ndarray) -> np.ndarray:
    """Share of the probability of the four answers at each position, mean over orders: (..., 24, 4) -> (..., 4)."""
    p = np.exp(log_probs)
    return (p / p.sum(-1, keepdims=True)).mean(-2)


def stored() -> Mapping[str, np.ndarray]:
    """The stored log-probabilities of the answer at each position, by grouping: (32 sets, 24 orders, 4 positions)."""
    return {name: np.array(each) for name, each in published_json("contradictions").items()}
