"""Training: pairs that start alike, evaluations against loops, grids and stored runs."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy
from toy_study import write_corpus

from explainer.models import momentum_models
from explainer.theory import momentum
from explainer_lab import language_models, training_corpora
from explainer_lab.lab_store import Store
from explainer_lab.language_models import LanguageModels, TrainingSetting

TINY = TrainingSetting(vocabulary=300, layers=1, width=8, heads=2, length=16, batch=2, steps=20, branches=2, warmup=3)
MOMENTUM = replace(TINY, average="momentum", eta=0.5)
LEARNED = replace(TINY, average="learned_convolution")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus") / "own.txt")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EXPLAINER_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def tokens(file):
    return training_corpora.tokens(file, 300)


def trained(setting, tokens, **options):
    return language_models.train(setting, tokens, tokens.held_out, progress=False, **options)


# --- pairs -----------------------------------------------------------------------------------------------------


def test_variants_start_from_the_same_bits_and_other_seeds_do_not():
    variants = [replace(TINY, average=name, eta=0.9) for name in (*momentum.AVERAGES, "recency_bias")]
    digests = {language_models.weights_digest(language_models._initial_model(one)) for one in (TINY, *variants)}
    assert len(digests) == 1
    plain, learned = (language_models._initial_model(one) for one in (TINY, LEARNED))
    kernels = {name for name, _ in learned.named_parameters()} - {name for name, _ in plain.named_parameters()}
    assert kernels == {"model.layers.0.self_attn.value_kernel"}
    ids = torch.arange(16)[None]
    assert torch.equal(learned(ids).logits, plain(ids).logits), "its kernel starts at 0"
    assert language_models.weights_digest(language_models._initial_model(replace(TINY, seed=1))) not in digests


def test_variants_have_the_attention_that_they_name():
    ids = torch.arange(32).reshape(2, 16)
    logits = {}
    for one in (TINY, MOMENTUM, replace(MOMENTUM, average="previous"), replace(MOMENTUM, average="recency_bias")):
        logits[one.average] = language_models._initial_model(one)(ids).logits
    plain = language_models._initial_model(TINY)
    assert torch.equal(momentum_models.with_momentum(plain, 0.5, "previous")(ids).logits, logits["previous"])
    assert len({tuple(x.flatten().tolist()) for x in logits.values()}) == 4


@given(st.integers(0, 2**31), st.integers(0, 10**6))
def test_a_batch_depends_on_seed_and_step_alone(seed, step):
    stream = torch.arange(500)
    one, other = replace(TINY, seed=seed), replace(MOMENTUM, seed=seed, lr=1.0)
    windows = language_models._batch(stream, one, step)
    assert torch.equal(windows, language_models._batch(stream, other, step))
    assert torch.equal(windows - windows[:, :1], torch.arange(17).expand(2, 17))


def test_every_window_can_be_drawn():
    stream = torch.arange(20)
    starts = {int(w[0]) for step in range(200) for w in language_models._batch(stream, TINY, step)}
    assert starts == {0, 1, 2, 3}
    published = language_models._batch(torch.arange(10**6), replace(TrainingSetting(), seed=3), 5)[:, 0]
    assert published.tolist() == [23941, 136603, 56625, 883297], "others would be other results: raise the protocol"


def test_rate_rises_stays_and_falls_to_zero_in_the_last_fifth_of_each_budget():
    one = replace(TINY, steps=400, branches=2, warmup=10, lr=2.0)
    assert one.budgets == (100, 400) and one.work == 320 + 20 + 80
    rates = [language_models._learning_rate(one, step, 100) for step in range(100)]
    np.testing.assert_allclose(rates[:10], np.arange(1, 11) / 5)
    assert set(rates[10:81]) == {2.0}
    np.testing.assert_allclose(rates[80:], np.arange(20, 0, -1) / 10)
    assert {language_models._learning_rate(one, step, 400) for step in range(10, 321)} == {2.0}


def test_a_branch_leaves_the_trunk_as_it_was(tokens):
    """A smaller budget beside it changes nothing of the largest, and is what a run of that size alone would give."""
    both = trained(replace(TINY, steps=40, branches=2), tokens)
    large, small = (trained(replace(TINY, steps=n, branches=1), tokens) for n in (40, 10))
    assert both.budgets == [small.budgets[0], large.budgets[0]]
    assert both.curve == large.curve


def test_training_is_adamw_on_clipped_gradients_with_decay_of_matrices(tokens):
    """Five steps, against the equations written out (Loshchilov & Hutter 2019, algorithm 2)."""
    one = replace(TINY, steps=5, branches=1, warmup=0, lr=1e-2)
    model = language_models._initial_model(one).double()
    moments = {}
    for step in range(5):
        windows = language_models._batch(tokens.train, one, step)
        cross_entropy(model(windows[:, :-1]).logits.flatten(0, 1), windows[:, 1:].flatten()).backward()
        norm = math.sqrt(sum(float((p.grad**2).sum()) for p in model.parameters()))
        for name, p in model.named_parameters():
            g = p.grad * min(1.0, 1.0 / (norm + 1e-6))
            m, v = moments.get(name, (0.0, 0.0))
            m, v = 0.9 * m + 0.1 * g, 0.98 * v + 0.02 * g**2
            moments[name] = m, v
            rate = language_models._learning_rate(one, step, 5)
            decay = language_models.WEIGHT_DECAY if p.ndim == 2 else 0.0
            corrected = (m / (1 - 0.9 ** (step + 1))) / ((v / (1 - 0.98 ** (step + 1))).sqrt() + 1e-8)
            p.data = p.data - rate * decay * p.data - rate * corrected
            p.grad = None
    ours = dict(trained(one, tokens).model.named_parameters())
    for name, p in model.named_parameters():
        torch.testing.assert_close(ours[name].double(), p, atol=1e-4, rtol=1e-3, msg=name)


# --- what a run counts -------------------------------------------------------------------------------------------


def test_runs_are_stored_once_with_all_that_determines_them(file, tmp_path, monkeypatch, capsys):
    store = Store(tmp_path / "results")
    pair = [replace(one, corpus=file) for one in (TINY, MOMENTUM)]
    tables = LanguageModels().run(pair, store, progress=False)
    assert not re.search(r" 0/2 |step", capsys.readouterr().err), "a bar that nobody asked for"
    rows, stored = tables["settings"].to_pylist(), [store.load(LanguageModels().identity(one)) for one in pair]
    assert [row["average"] for row in rows] == ["none", "momentum"]
    assert {one.identity.parts["data"] for one in stored} == {training_corpora.tokens(file, 300).digest}
    budgets, curve, blocks = (
        [row for row in tables[name].to_pylist() if row["setting"] == rows[0]["setting"]]
        for name in ("budgets", "curve", "blocks")
    )
    assert [row["tokens"] for row in budgets] == [5 * 2 * 16, 20 * 2 * 16]
    assert (curve[-1]["tokens"], rows[0]["tokens"]) == (16 * 2 * 16, 20 * 2 * 16)
    assert rows[0]["held_out"] == budgets[1]["held_out"]
    for n in (0, 1):
        of_one = [row["nll"] for row in blocks if row["tokens"] == budgets[n]["tokens"]]
        assert np.mean(of_one) == pytest.approx(budgets[n]["held_out"], rel=1e-3)  # stored with four digits
    run = stored[0].run
    assert run["cpu_seconds"] > 0 and run["seconds"] > 0
    monkeypatch.setattr(language_models, "train", None)
    assert LanguageModels().run(pair, store, progress=False) == tables
