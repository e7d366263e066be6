"""Linear classification in words: a word stands for a point, a task is a direction, an answer says on which side.

Letters: x a point of length 1 in d dimensions, w the direction of a task, y = sign <w, x> the answer. A demonstration
is a line, `x17 plus`. The points of the words are the same for all tasks, and no word stands in two demonstrations.
"""

from functools import lru_cache

import torch
from jaxtyping import Float, Int
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from torch import Generator, Tensor
from torch.nn.functional import normalize

from explainer.data.tasks import Example, Task, TaskData

WORDS = 128
DIMENSION = 2

_LABELS = "minus", "plus"
TASK = Task(
    name="half-spaces",
    template="{word}",
    labels=_LABELS,
    source="points and directions drawn from explainer_lab.regression_words",  # as published: the keys digest it
    licence="MIT",
)
"""The template and the labels of every direction."""

SEPARATOR = "<|endoftext|>"
UNKNOWN = "N/A"
"""What a field of a query that says nothing holds; no model is trained on it."""

_FIXED = (SEPARATOR, UNKNOWN, "\n", *_LABELS)
_NEWLINE, _MINUS, _PLUS = range(2, len(_FIXED))
WORD_IDS = slice(len(_FIXED), len(_FIXED) + WORDS)
"""Where the words stand in the vocabulary: at its end."""


@lru_cache(maxsize=1)
def points_of_words() -> Float[Tensor, "n d"]:
    """The points of all words, uniform on the sphere, float32: word i is `x<i>`."""
    return normalize(torch.randn(WORDS, DIMENSION, generator=Generator().manual_seed(0)), dim=-1)


def directions(seed: int) -> Float[Tensor, "2 d"]:
    """The direction w of a seed and another one at a right angle to it, each of length 1.

    Where points are uniform on the sphere, the answers of the two are independent.
    """
    generator = Generator().manual_seed(WORDS + seed)
    w, v = normalize(torch.randn(2, DIMENSION, generator=generator), dim=-1)
    return torch.stack([w, normalize(v - (v @ w) * w, dim=0)])


def data(w: Float[Tensor, " d"]) -> TaskData:
    """All words with their answers for a direction, one pool for demonstrations and queries."""
    labels = (points_of_words() @ w > 0).long().tolist()
    pool = tuple(Example({"word": f"x{i}"}, _LABELS[label], label) for i, label in enumerate(labels))
    return TaskData(TASK, pool, pool)


# Texts


def tokenizer() -> Tokenizer:
    """One token for each word, each label and the newline; a space is none."""
    words = (*_FIXED, *(f"x{i}" for i in range(WORDS)))
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token=UNKNOWN))
    made.pre_tokenizer = pre_tokenizers.Split(Regex(r"\n|[^ \n]+"), "removed", invert=True)
    made.add_special_tokens([SEPARATOR])
    return made


def sequences(n: int, n_examples: int, generator: Generator) -> Int[Tensor, "n T"]:
    """Token ids of n texts, T = 1 + 3 n_examples: a separator, then examples of one new direction w ~ N(0, I).

    The words of a text are drawn without replacement.
    """
    chosen = torch.rand(n, WORDS, generator=generator).argsort(-1)[:, :n_examples]
    w = torch.randn(n, DIMENSION, 1, generator=generator)
    plus = (points_of_words()[chosen] @ w)[..., 0] > 0
    columns = WORD_IDS.start + chosen, torch.where(plus, _PLUS, _MINUS), torch.full_like(chosen, _NEWLINE)
    return torch.cat([torch.zeros(n, 1, dtype=torch.long), torch.stack(columns, -1).flatten(1)], 1)
