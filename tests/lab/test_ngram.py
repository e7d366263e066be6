"""explainer_lab.ngram against the same formula with dictionaries, one token at a time."""

import math
from collections import Counter, defaultdict

import numpy as np
import pytest
import torch

from explainer_lab import training_probes


@pytest.mark.parametrize("last", [0, 1, 2])
def test_counting_equals_counting_in_words(last):
    generator = np.random.default_rng(last)
    stream, rows = generator.integers(4, size=40), generator.integers(5, size=(3, 7))  # 4 never occurs in the stream
    after = [defaultdict(Counter) for _ in range(last + 1)]
    for n in range(last + 1):
        for i in range(n, len(stream)):
            after[n][tuple(stream[i - n : i])][stream[i]] += 1

    def probability(word, history):
        shorter = probability(word, history[1:]) if history else 1 / 5
        counts = after[len(history)][history]
        if not counts:
            return shorter
        return (counts[word] + len(counts) * shorter) / (counts.total() + len(counts))

    expected = [-math.log(probability(row[i], tuple(row[i - last : i]))) for row in rows for i in range(last, 7)]
    nll = training_probes.counting_nll(torch.from_numpy(stream), torch.from_numpy(rows), last, 5)
    assert nll == pytest.approx(np.mean(expected), rel=1e-12)


def test_counted_probabilities_sum_to_one():
    stream = torch.randint(3, (50,), generator=torch.Generator().manual_seed(0))
    rows = torch.tensor([[0, 1, word] for word in range(3)])
    nll = [training_probes.counting_nll(stream, row[None], 2, 3) for row in rows]
    assert sum(math.exp(-value) for value in nll) == pytest.approx(1)
