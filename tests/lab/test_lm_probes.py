"""Losses on held-out text, and what is copied: against loops, and on models that are known."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_study import write_corpus

from explainer_lab import language_models, training_corpora, training_probes
from explainer_lab.language_models import TrainingSetting

V = 300


@pytest.fixture(scope="module")
def model():
    """A model with large weights, so that its predictions are far from uniform."""
    made = language_models._initial_model(TrainingSetting(vocabulary=V, layers=1, width=8, heads=2, length=32))
    generator = torch.Generator().manual_seed(0)
    for p in made.parameters():
        p.data += 0.3 * torch.randn(p.shape, generator=generator)
    return made


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    return training_corpora.tokens(write_corpus(tmp_path_factory.mktemp("corpus") / "own.txt"), V)


@settings(max_examples=20)
@given(st.integers(1, 4), st.integers(1, 31), st.integers(0, 99))
def test_nll_is_that_of_each_token_given_those_before_it(model, n, length, seed):
    blocks = torch.randint(V, (n, length + 1), generator=torch.Generator().manual_seed(seed))
    found = training_probes.token_nll(model, blocks)
    assert found.shape == (n, length) and found.dtype == torch.float64
    with torch.no_grad():
        for block, of_block in zip(blocks, found, strict=True):
            for t in range(length):
                log_p = model(block[None, : t + 1]).logits[0, -1].double().log_softmax(-1)
                assert float(of_block[t]) == pytest.approx(-float(log_p[block[t + 1]]), rel=1e-4)


@given(st.integers(1, 40), st.integers(1, 30))
def test_blocks_follow_one_another_and_know_their_document(tokens, length, n):
    blocks, documents = training_probes.held_out_blocks(tokens, length, n)
    available = (len(tokens.held_out) - 1) // length
    assert blocks.shape == (min(n, available), length + 1) and len(documents) == len(blocks)
    text = tokens.held_out.unfold(0, length + 1, length)
    rows = [int(i) for block in blocks for i in (text == block).all(1).nonzero()[:1]]
    assert len(rows) == len(blocks)
    every, names = training_probes.held_out_blocks(tokens, length, available)
    assert torch.equal(every, text)
    bounds = [*tokens.starts.tolist(), len(tokens.held_out)]
    for i, name in enumerate(names):
        k = [document.name for document in tokens.corpus.held_out].index(name)
        assert bounds[k] <= i * length < bounds[k + 1]


class Reader(torch.nn.Module):
    """Answers each token with what `answer(before, token)` says."""

    def __init__(self, answer):
        super().__init__()
        self.unused, self.answer = torch.nn.Parameter(torch.zeros(1)), answer

    def forward(self, ids):
        logits = torch.zeros(*ids.shape, V)
        for row, t in np.ndindex(*ids.shape):
            logits[row, t, self.answer(ids[row, : t + 1].tolist())] = 1
        return type("Output", (), {"logits": logits})


def copier(ids):
    """What followed the last earlier occurrence of the last token, else token 0."""
    before = [i for i in range(len(ids) - 1) if ids[i] == ids[-1]]
    return ids[before[-1] + 1] if before else 0


def looks_up_two(ids):
    """What followed the last earlier occurrence of the last two tokens, else token 0."""
    before = [i for i in range(1, len(ids) - 1) if ids[i - 1 : i + 1] == ids[-2:]]
    return ids[before[-1] + 1] if before else 0


def test_a_copier_copies_and_a_random_model_is_at_chance(model):
    found = training_probes.repeated_sequences(Reader(copier), V, half=8, sequences=6)
    assert found > 0.9
    assert training_probes.repeated_sequences(model, V, half=16) < 0.05


def test_few_shot_prompts_show_every_input_once_and_both_labels_equally_often():
    for ids, labels, answer in training_probes._few_shot_prompts(V, 8, 50):
        rows = ids[:-2].reshape(8, 4)
        assert len(set(rows[:, 0])) == 8 and set(rows[:, 2]) == set(labels)
        assert (rows[:, 2] == labels[0]).sum() == 4
        assert (rows[:, 1] == ids[-1]).all() and len(set(rows[:, 3])) == 1
        (asked,) = rows[rows[:, 0] == ids[-2]]
        assert asked[2] == answer


def test_labels_who_looks_up_is_right_who_copies_is_right_half_of_the_time():
    right, half = (
        training_probes.labels_in_context(Reader(how), V, shots=8, prompts=200) for how in (looks_up_two, copier)
    )
    assert right == (1, 1)
    assert half[0] == 1 and 0.35 < half[1] < 0.65
