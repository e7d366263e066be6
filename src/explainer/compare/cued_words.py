"""Words with a cue: an end, a first word or a category, for which a label can stand that nobody could know."""

from collections.abc import Mapping, Sequence
from itertools import islice

import numpy as np
from jaxtyping import Int

from explainer.compare.controls import made_up_word
from explainer.data import tasks
from explainer.data.tasks import Example, Task, TaskData
from explainer.errors import ExperimentError

CUES: Mapping[str, str] = {
    "suffix": "the end of a made-up word",
    "first word": "the first of two made-up words",
    "category": "the category of a known word",
    "prefix": "the beginning of a made-up word",
}
"""What a label stands for, and where it stands."""

SUFFIXES, FIRST_WORDS = ("ix", "ova", "unt", "ell"), ("telk", "bruva", "snom", "grifa")
_PREFIXES = ("kra", "ulo", "vesh", "pim")  # of the kind by which heads are chosen, and which is never reported

LABELS = ("kel", "bip", "dod", "vor")
TASK = Task("new_rule", "{word} ->", LABELS, source="made up by explainer_lab.new_rule", licence="MIT")

Word = tuple[str, int]
"""A word, or two, and the number of its cue."""


def data(cue: str, seed: int, rule: str, k: int, n: int) -> TaskData:
    """k words to show and n to ask, with their labels under rule A or B, as a task; raises as `draw_words`."""
    (words,), labels = draw_words(cue, seed, k + n), draw_labels(cue, seed)["AB".index(rule)]
    examples = label_words(words, [labels[number] for _, number in words])
    return TaskData(TASK, tuple(examples[:k]), tuple(examples[k:]))


def draw_words(cue: str, seed: int, *sizes: int) -> list[list[Word]]:
    """A set of words of each size, all different, each cue in each four in a row once.

    Raises ExperimentError where there are not so many known words.
    """
    generator, n = np.random.default_rng([seed, 11, *cue.encode()]), sum(sizes)
    of_cue = _known_words(generator, n // 4) if cue == "category" else _made_up(generator, cue, n // 4)
    words = ((of_cue[number][i], int(number)) for i in range(n // 4) for number in generator.permutation(4))
    return [list(islice(words, size)) for size in sizes]


def draw_labels(cue: str, seed: int) -> Int[np.ndarray, "2 4"]:
    """The number of the label of each cue, under rule A and under rule B."""
    drawn = np.random.default_rng([seed, 12, *cue.encode()]).permutation(len(LABELS))
    return np.stack([drawn, np.roll(drawn, -1)])


def label_words(words: Sequence[Word], labels: Sequence[int]) -> list[Example]:
    """Words as examples, with the labels of these numbers."""
    return [Example({"word": word}, LABELS[i], int(i)) for (word, _), i in zip(words, labels, strict=True)]


def _made_up(generator: np.random.Generator, cue: str, n: int) -> list[list[str]]:
    stems: dict[str, None] = {}
    while len(stems) < 4 * n:
        stems[made_up_word(generator)] = None
    each = [list(stems)[i::4] for i in range(4)]
    if cue == "suffix":
        return [[stem + end for stem in its] for its, end in zip(each, SUFFIXES, strict=True)]
    begins = [f"{first} " for first in FIRST_WORDS] if cue == "first word" else _PREFIXES
    return [[begin + stem for stem in its] for its, begin in zip(each, begins, strict=True)]


def _known_words(generator: np.random.Generator, n: int) -> list[list[str]]:
    """The words of four of the categories that have so many."""
    of_category: dict[str, list[str]] = {}
    for example in tasks.load("categories").train:
        of_category.setdefault(example.answer, []).append(example.fields["word"])
    large = [name for name, words in sorted(of_category.items()) if len(words) >= n]
    if len(large) < 4:
        most = sorted(map(len, of_category.values()))[-4]
        raise ExperimentError(f"{n} words of each of four categories are needed, which have {most}; ask for fewer.")
    chosen = generator.choice(large, 4, replace=False)
    return [generator.permutation(of_category[name]).tolist() for name in chosen]
