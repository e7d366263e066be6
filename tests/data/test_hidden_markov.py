"""The mixture of hidden Markov models: Bayes' rule against enumeration, and what examples are worth."""

import itertools

import numpy as np
import pytest
import torch

from explainer.data import hidden_markov
from explainer.data.hidden_markov import DELIMITER, Mixture


@pytest.fixture(scope="module")
def small():
    """Two concepts, two states, two tokens: few enough paths to list."""
    rows = torch.rand(2, 2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    emission = torch.tensor([[0.9, 0.1], [0.3, 0.7]], dtype=torch.float64)
    return Mixture(torch.tensor([0.6, 0.4], dtype=torch.float64), rows / rows.sum(-1, keepdim=True), emission, 0.2)


def joint(m, row):
    """p(x_1 ... x_T), summed over concepts and paths of states."""
    total, places = 0.0, [t for t, x in enumerate(row) if x != DELIMITER]
    for concept in m.transition:
        for path in itertools.product(range(2), repeat=len(places)):
            states, p = dict(zip(places, path, strict=True)), 1 / len(m.transition)
            for t, x in enumerate(row):
                fresh = t == 0 or row[t - 1] == DELIMITER
                if x == DELIMITER:
                    p *= 0.0 if fresh else m.end
                    continue
                p *= float(m.start[states[t]] if fresh else (1 - m.end) * concept[states[t - 1], states[t]])
                p *= float(m.emission[states[t], x - 1])
            total += p
    return total


@pytest.mark.parametrize("row", [(), (1,), (1, 2, 2), (2, 0, 1), (1, 1, 0, 2, 1, 0, 2)])
def test_predictions_are_ratios_of_sums_over_all_paths(small, row):
    predicted = hidden_markov.predictive(small, torch.tensor([row], dtype=torch.int64))[0]
    for t in range(len(row) + 1):
        direct = [joint(small, (*row[:t], x)) / joint(small, row[:t]) for x in range(3)]
        np.testing.assert_allclose(predicted[t], direct, atol=1e-13)


def test_documents_have_the_probabilities_of_the_model(small):
    rows = hidden_markov.documents(small, 40_000, 4, seed=0)
    for row in ((1, 2, 1, 1), (1, 0, 2, 1), (2, 2, 0, 1)):
        share = float((rows == torch.tensor(row)).all(1).double().mean())
        p = joint(small, row)
        assert abs(share - p) < 5 * (p / 40_000) ** 0.5
    assert not (rows[:, 0] == DELIMITER).any()
    assert not ((rows[:, 1:] == DELIMITER) & (rows[:, :-1] == DELIMITER)).any()


def test_bayes_learns_in_context_and_knows_nothing_better():
    m = hidden_markov.draw()
    right = [
        hidden_markov.accuracy(m, hidden_markov.prompts(m, 300, n, 3, seed=0), hidden_markov.bayes(m))
        for n in (0, 2, 8, 32)
    ]
    assert right == sorted(right) and right[0] < 0.6 and right[-1] > 0.95
    asked = hidden_markov.prompts(m, 300, 2, 3, seed=0)
    assert asked.rows.shape == (300, 2 * 4 + 2)
    assert (asked.rows[:, [3, 7]] == DELIMITER).all() and (asked.answers != DELIMITER).all()
    uniform = hidden_markov.accuracy(m, asked, lambda rows: torch.rand(len(rows), m.vocabulary))
    assert uniform < 0.2 < right[1]


def test_the_corpus_has_whole_documents_in_two_parts():
    made = hidden_markov.tokens(train=20, held_out=3, length=50)
    assert (len(made.train), len(made.held_out)) == (1000, 150)
    assert made.starts.tolist() == [0, 50, 100] and len(made.documents) == 3
    assert int(made.train.max()) < hidden_markov.draw().vocabulary
    assert made.digest == hidden_markov.tokens(train=20, held_out=3, length=50).digest


class Knowing(torch.nn.Module):
    """Bayes' rule in the place of a language model."""

    def __init__(self):
        super().__init__()
        self.unused = torch.nn.Parameter(torch.zeros(1))

    def forward(self, rows):
        return type("Output", (), {"logits": hidden_markov.predictive(hidden_markov.draw(), rows)[:, 1:].log()})


def test_accuracy_in_context_of_a_model_that_knows_bayes_is_that_of_bayes():
    found = hidden_markov.in_context(Knowing(), 40, n=50)
    assert set(found["n_prompts"]) == {50}
    longest = {k: count for k, count in zip(found["example_length"], found["examples"], strict=True)}
    assert longest == {3: 8, 5: 4, 8: 2}
    np.testing.assert_allclose(found["model"], found["bayes"], atol=0.021)  # float32 may break one tie
