"""Training: pairs that start alike, runs that survive a kill, evaluations against loops, grids and stored runs."""

import json
import math
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy
from transformers import AutoTokenizer

from explainer.data import corpora
from explainer.data.corpora import CorpusError
from explainer.errors import CheckpointError, DivergenceError
from explainer.experiments import language_models
from explainer.experiments.language_models import LanguageModels
from explainer.lab.store import Store
from explainer.models import momentum_attention, training
from explainer.models.training import Setting, StudyError
from explainer.theory import momentum

TINY = Setting(vocabulary=300, layers=1, width=8, heads=2, length=16, batch=2, steps=12, warmup=3, dtype="float32")
MOMENTUM = replace(TINY, average="momentum", eta=0.5)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A corpus of 30 documents in a text file."""
    words = ("the", "model", "reads", "a", "field", "and", "writes", "query", "never", "again")
    texts = [f"{i} " + " ".join(words[(i * j) % 10] for j in range(1, 60)) for i in range(30)]
    path = tmp_path_factory.mktemp("corpus") / "own.txt"
    path.write_text("\n\n\n".join(texts))
    return str(path)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EXPLAINER_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def tokens(file, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EXPLAINER_CACHE", str(tmp_path_factory.mktemp("cache")))
        return corpora.tokens(file, 300)


def trained(setting, tokens, **options):
    return training.train(setting, tokens, progress=False, **options)


# --- pairs -----------------------------------------------------------------------------------------------------


def test_variants_start_from_the_same_bits_and_other_seeds_do_not():
    variants = [replace(TINY, average=name, eta=0.9) for name in (*momentum.AVERAGES, "recency_bias")]
    digests = {training.weights_digest(training.initial_model(one)) for one in (TINY, *variants)}
    assert len(digests) == 1
    assert training.weights_digest(training.initial_model(replace(TINY, seed=1))) not in digests


def test_variants_have_the_attention_that_they_name():
    ids = torch.arange(32).reshape(2, 16)
    logits = {}
    for one in (TINY, MOMENTUM, replace(MOMENTUM, average="previous"), replace(MOMENTUM, average="recency_bias")):
        logits[one.variant] = training.initial_model(one)(ids).logits
    plain = training.initial_model(TINY)
    assert torch.equal(momentum_attention.with_momentum(plain, 0.5, "previous")(ids).logits, logits["previous-eta0.5"])
    assert len({tuple(x.flatten().tolist()) for x in logits.values()}) == 4


def test_initial_weights_leave_the_global_generator_alone():
    state = torch.get_rng_state()
    training.initial_model(TINY)
    assert torch.equal(torch.get_rng_state(), state)


@given(st.integers(0, 2**31), st.integers(0, 10**6))
def test_a_batch_depends_on_seed_and_step_alone(seed, step):
    stream = torch.arange(500)
    one, other = replace(TINY, seed=seed), replace(MOMENTUM, seed=seed, lr=1.0)
    windows = training.batch(stream, one, step)
    assert torch.equal(windows, training.batch(stream, other, step))
    assert torch.equal(windows - windows[:, :1], torch.arange(17).expand(2, 17))


def test_every_window_can_be_drawn():
    stream = torch.arange(20)
    starts = {int(w[0]) for step in range(200) for w in training.batch(stream, TINY, step)}
    assert starts == {0, 1, 2, 3}


def test_rate_rises_then_falls_to_zero():
    one = replace(TINY, steps=100, warmup=10, lr=2.0)
    rates = [training.learning_rate(one, step) for step in range(100)]
    np.testing.assert_allclose(rates[:10], np.arange(1, 11) / 5)
    assert rates[10] == 2.0 and rates[55] == pytest.approx(1.0) and 0 < rates[99] < 1e-3
    assert rates[10:] == sorted(rates[10:], reverse=True)


def test_training_is_adamw_on_clipped_gradients_with_decay_of_matrices(tokens):
    """Two steps, against the equations written out (Loshchilov & Hutter 2019, algorithm 2)."""
    one = replace(TINY, steps=2, warmup=0, lr=1e-2, layers=1)
    model = training.initial_model(one).double()
    moments = {}
    for step in range(2):
        windows = training.batch(tokens.train, one, step)
        cross_entropy(model(windows[:, :-1]).logits.flatten(0, 1), windows[:, 1:].flatten()).backward()
        norm = math.sqrt(sum(float((p.grad**2).sum()) for p in model.parameters()))
        for name, p in model.named_parameters():
            g = p.grad * min(1.0, 1.0 / (norm + 1e-6))
            m, v = moments.get(name, (0.0, 0.0))
            m, v = 0.9 * m + 0.1 * g, 0.98 * v + 0.02 * g**2
            moments[name] = m, v
            rate = training.learning_rate(one, step)
            decay = one.weight_decay if p.ndim == 2 else 0.0
            corrected = (m / (1 - 0.9 ** (step + 1))) / ((v / (1 - 0.98 ** (step + 1))).sqrt() + 1e-8)
            p.data = p.data - rate * decay * p.data - rate * corrected
            p.grad = None
    ours = dict(trained(one, tokens).model.named_parameters())
    for name, p in model.named_parameters():
        torch.testing.assert_close(ours[name].double(), p, atol=1e-4, rtol=1e-3, msg=name)


def test_a_model_learns(tokens):
    result = trained(replace(TINY, width=32, steps=60, lr=1e-2), tokens).result
    assert result["curve"]["train"][-1] < 0.6 * result["curve"]["train"][0]
    assert result["perplexity"][16] < 60  # chance is 300


# --- killed and resumed ----------------------------------------------------------------------------------------


def end(done):
    return done.result, {name: p.tolist() for name, p in done.model.named_parameters()}


@pytest.mark.parametrize("one", [MOMENTUM, replace(TINY, dtype="bfloat16")], ids=lambda one: one.variant)
@pytest.mark.parametrize("stop", [1, 4, 11])
def test_an_interrupted_run_ends_with_the_same_bits(tokens, tmp_path, monkeypatch, one, stop):
    path, update = tmp_path / "state", training._update

    def interrupted(*arguments):
        if arguments[-1] == stop:
            raise KeyboardInterrupt
        return update(*arguments)

    whole = end(trained(one, tokens))
    monkeypatch.setattr(training, "_update", interrupted)
    with pytest.raises(KeyboardInterrupt):
        trained(one, tokens, checkpoint=path, every=2)
    monkeypatch.setattr(training, "_update", update)
    assert path.exists() == (stop > 1)
    assert end(trained(one, tokens, checkpoint=path, every=2)) == whole
    assert json.loads(read_header(path)["progress"])["step"] == 12


def read_header(path):
    with training.safe_open(path, "pt") as file:
        return file.metadata()


KILLED = """
import os, signal
from explainer.experiments.language_models import LanguageModels
from explainer.models import training
from explainer.lab.store import Store
replace, n = os.replace, 0

def killed(source, target):
    global n
    if str(target).endswith("state.safetensors"):
        n += 1
        if n == 3:
            os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)

os.replace = killed
LanguageModels(every=3).run([training.Setting(**{setting!r})], Store({store!r}), progress=False)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill so")
def test_a_run_killed_while_it_writes_a_checkpoint_ends_with_the_same_bytes(file, tmp_path, monkeypatch):
    one = replace(MOMENTUM, corpus=file)
    code = KILLED.format(setting=vars(one), store=str(tmp_path / "killed"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    (state,) = (tmp_path / "cache" / "training").glob("*/state.safetensors")
    assert json.loads(read_header(state)["progress"])["step"] == 6
    assert list(state.parent.glob(".state*"))
    started = []
    update = training._update
    monkeypatch.setattr(training, "_update", lambda *a: (started.append(a[-1]), update(*a))[1])
    LanguageModels(every=3).run([one], Store(tmp_path / "killed"), progress=False)
    assert started == [6, 7, 8, 9, 10, 11]
    assert [path.name for path in state.parent.iterdir()] == ["model"]
    monkeypatch.setenv("EXPLAINER_CACHE", str(tmp_path / "another"))
    LanguageModels(every=5).run([one], Store(tmp_path / "whole"), progress=False)
    (resumed,), (whole,) = (Store(tmp_path / name).all() for name in ("killed", "whole"))
    assert resumed.path.read_bytes() == whole.path.read_bytes()


def test_checkpoints_that_cannot_be_used(tokens, tmp_path):
    path = tmp_path / "state"
    trained(TINY, tokens, checkpoint=path, every=6)
    with pytest.raises(CheckpointError, match=r"state is of the setting .*give each run its own file"):
        trained(replace(TINY, seed=1), tokens, checkpoint=path)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(CheckpointError, match=r"state is damaged .*delete it"):
        trained(TINY, tokens, checkpoint=path)
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"state cannot be written .*another directory"):
        trained(TINY, tokens, checkpoint=tmp_path / "file" / "state", every=6)


def test_divergence_is_named(tokens, monkeypatch):
    real = training.initial_model

    def ruined(setting):
        model = real(setting)
        model.transformer.wte.weight.data[0] = math.nan
        return model

    monkeypatch.setattr(training, "initial_model", ruined)
    with pytest.raises(DivergenceError, match=r"the loss at step 0 is nan; lower the learning rate"):
        trained(TINY, tokens)


@pytest.mark.parametrize(("part", "message"), [("train", "the training part"), ("held_out", "the held-out part")])
def test_a_corpus_that_is_too_short(tokens, part, message):
    with pytest.raises(CorpusError, match=rf"{message} of 'own.txt' has 16 tokens, a window takes 17"):
        trained(TINY, replace(tokens, **{part: getattr(tokens, part)[:16]}))


# --- evaluations -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    """A model with large weights, so that its predictions are far from uniform."""
    made = training.initial_model(replace(MOMENTUM, length=32))
    generator = torch.Generator().manual_seed(0)
    for p in made.parameters():
        p.data += 0.3 * torch.randn(p.shape, generator=generator)
    return made


@settings(max_examples=20)
@given(st.integers(1, 4), st.sampled_from([1, 2, 8, 16, 32]), st.integers(0, 99))
def test_nll_of_a_block_is_the_mean_over_its_windows_and_tokens(model, n, context, seed):
    blocks = torch.randint(300, (n, 33), generator=torch.Generator().manual_seed(seed))
    direct = []
    with torch.no_grad():
        for block in blocks:
            nll = []
            for start in range(0, 32, context):
                log_p = model(block[None, start : start + context]).logits[0].double().log_softmax(-1)
                nll += [-float(log_p[t, block[start + t + 1]]) for t in range(context)]
            direct.append(sum(nll) / len(nll))
    np.testing.assert_allclose(training.block_nll(model, blocks, context), direct, rtol=1e-5)


def test_perplexities_are_those_of_the_blocks_at_every_context_that_divides_the_length(tokens, monkeypatch):
    monkeypatch.setattr(training, "CONTEXTS", (4, 8, 12, 16, 32))
    done = trained(TINY, tokens)
    nll = done.result["held_out"]["nll"]
    assert list(nll) == [4, 8, 16]
    blocks, documents = training.held_out_blocks(tokens, 16, training.FINAL_BLOCKS)
    assert done.result["held_out"]["documents"] == documents
    for context in nll:
        direct = training.block_nll(done.model, blocks, context).mean()
        assert done.result["perplexity"][context] == pytest.approx(math.exp(direct))
    assert done.result["curve"]["held_out"][-1] == pytest.approx(
        float(np.mean(nll[16][: training.CURVE_BLOCKS])), rel=0.2
    )


def test_a_length_that_no_context_divides_is_its_own_context():
    assert replace(TINY, length=100).contexts == (100,)
    assert replace(TINY, length=512).contexts == (256, 512)
    assert replace(TINY, length=1024).contexts == (256, 512, 1024)


@given(st.integers(1, 40), st.integers(1, 30))
def test_blocks_follow_one_another_and_know_their_document(tokens, length, n):
    blocks, documents = training.held_out_blocks(tokens, length, n)
    available = (len(tokens.held_out) - 1) // length
    assert blocks.shape == (min(n, available), length + 1) and len(documents) == len(blocks)
    text = tokens.held_out.unfold(0, length + 1, length)
    rows = [int(i) for block in blocks for i in (text == block).all(1).nonzero()[:1]]
    assert len(rows) == len(blocks)
    every, _ = training.held_out_blocks(tokens, length, available)
    assert torch.equal(every, text)
    bounds = [*tokens.starts.tolist(), len(tokens.held_out)]
    for i, name in enumerate(training.held_out_blocks(tokens, length, available)[1]):
        k = tokens.documents.index(name)
        assert bounds[k] <= i * length < bounds[k + 1]


class Copier(torch.nn.Module):
    """Predicts what followed the last earlier occurrence of the token, else token 0."""

    def __init__(self):
        super().__init__()
        self.unused = torch.nn.Parameter(torch.zeros(1))

    def forward(self, ids):
        logits = torch.zeros(*ids.shape, 300)
        for row, t in np.ndindex(*ids.shape):
            before = [i for i in range(t) if ids[row, i] == ids[row, t]]
            logits[row, t, ids[row, before[-1] + 1] if before else 0] = 1
        return type("Output", (), {"logits": logits})


def test_induction_accuracy_of_a_copier_is_one_and_of_a_random_model_chance(model):
    copier = training.induction_accuracy(Copier(), 300, half=8, sequences=6)
    assert copier.n == 42 and copier.accuracy > 0.9 and copier.first_half < 0.1
    chance = training.induction_accuracy(model, 300, half=16)
    assert chance.accuracy < 0.05 and chance.n == 32 * 15


def test_flops_count_every_product():
    """Forward products of one sequence counted by hand: 2 m k n for an (m, k) by (k, n) product."""
    one = Setting(vocabulary=300, layers=2, width=8, heads=2, length=16)
    model, T, d, V = training.initial_model(one), 16, 8, 300
    layer = 2 * T * (d * 3 * d + d * d + 2 * d * 4 * d)
    forward = 2 * layer + 2 * T * d * V + 2 * (2 * T * T * d)  # half of the scores and half of the sums are used
    vectors = 2 * (3 * d + d + 4 * d + d + 4 * d) + 2 * d
    n = training.parameters(model) - vectors
    assert training.model_flops(one, n, T) == 3 * forward


def test_rate_of_products_is_a_plausible_speed():
    assert 1e8 < training.matmul_rate("cpu", torch.float32) < 1e14


# --- settings and grids ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": 0}, "layers = 0 must be at least 1"),
        ({"vocabulary": 10}, "vocabulary = 10 is too small; the least is 257"),
        ({"length": 1}, "length = 1 must be at least 2"),
        ({"width": 9}, "width = 9 must be a multiple of heads = 2"),
        ({"seed": -1}, "seed = -1 must not be negative"),
        ({"warmup": 13}, r"warmup = 13 must lie in 0 ... steps = 12"),
        ({"lr": 0.0}, "lr = 0.0 must be positive"),
        ({"weight_decay": -0.1}, "weight_decay = -0.1 must not be negative"),
        ({"dtype": "bf16"}, "dtype = 'bf16' must be one of bfloat16, float32"),
        ({"average": "mean"}, "average = 'mean' must be one of none, momentum, .*recency_bias"),
        ({"eta": 1.0, "average": "momentum"}, r"eta = 1.0 must lie in \[0, 1\)"),
        ({"eta": 0.5}, "eta = 0.5 does not go with average = 'none'"),
        ({"average": "momentum"}, "eta = 0.0 does not go with average = 'momentum'"),
    ],
)
def test_settings_that_cannot_be_used(changes, message):
    with pytest.raises(StudyError, match=message):
        replace(TINY, **changes)


def test_a_grid_pairs_the_variants_of_each_seed_and_has_plain_attention_once():
    made = LanguageModels.grid(average=["none", "momentum"], eta=[0.5, 0.9], seed=[0, 1], steps=100)
    assert [(one.seed, one.variant) for one in made] == [
        *((0, "plain"), (0, "momentum-eta0.5"), (0, "momentum-eta0.9")),
        *((1, "plain"), (1, "momentum-eta0.5"), (1, "momentum-eta0.9")),
    ]
    assert {one.steps for one in made} == {100}
    assert LanguageModels.grid() == [Setting()]


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"etas": [0.5]}, "there is no key 'etas'; known keys: corpus, vocabulary"),
        ({"seed": ["0"]}, r"seed = \['0'\] must be of type int, or a list of such"),
        ({"steps": True}, "steps = True must be of type int"),
        ({"lr": []}, r"lr = \[\] must be of type float"),
        ({"eta": 0.5}, "eta = 0.5 needs an average; known: momentum"),
    ],
)
def test_grids_that_cannot_be_used(tmp_path, axes, message):
    with pytest.raises(StudyError, match=message):
        LanguageModels.grid(**axes)
    path = tmp_path / "grids.toml"
    path.write_text("[mine]\n" + "\n".join(f"{key} = {json.dumps(value)}" for key, value in axes.items()))
    with pytest.raises(StudyError, match=rf"grids.toml, \[mine\]: {message}"):
        LanguageModels.read_grids(path)


@pytest.mark.parametrize(
    ("text", "message"), [("[a", "cannot read"), ("seed = 0", "must hold tables only"), ("", "must hold tables only")]
)
def test_grid_files_that_are_none(tmp_path, text, message):
    (tmp_path / "grids.toml").write_text(text)
    with pytest.raises(StudyError, match=message):
        LanguageModels.read_grids(tmp_path / "grids.toml")


# --- stored runs -----------------------------------------------------------------------------------------------


def test_runs_are_stored_once_with_all_that_determines_them(file, tmp_path, monkeypatch):
    store = Store(tmp_path / "results")
    pair = [replace(one, corpus=file, steps=4) for one in (TINY, MOMENTUM)]
    tables = LanguageModels().run(pair, store, progress=False)
    rows, stored = tables["cells"].to_pylist(), store.all()
    assert [row["average"] for row in rows] == ["none", "momentum"]
    assert {one.identity.parts["data"] for one in stored} == {corpora.tokens(file, 300).digest}
    curve = [row["tokens"] for row in tables["curve"].to_pylist() if row["cell"] == rows[0]["cell"]]
    assert rows[0]["tokens"] == 4 * 2 * 16 == curve[-1]
    run = stored[0].run
    assert run["cpu_seconds"] > 0 and run["utilisation"] == pytest.approx(
        run["flops_per_second"] / run["matmul_flops_per_second"], rel=1e-2
    )
    monkeypatch.setattr(language_models, "train", None)
    assert LanguageModels().run(pair, store, progress=False) == tables
    assert {"perplexity_16", "induction_accuracy", "weights"} <= rows[0].keys()
    assert not list(language_models.home(stored[0].identity).glob("*.safetensors")), "the state is cleared away"


def test_a_device_that_is_not_there(file, tmp_path):
    with pytest.raises(StudyError, match="device = 'cuda:99' cannot be used"):
        LanguageModels().run([replace(TINY, corpus=file, device="cuda:99")], Store(tmp_path / "results"))


def test_the_trained_model_is_kept_with_its_tokenizer(file, tmp_path):
    one = replace(MOMENTUM, corpus=file, steps=3)
    (row,) = LanguageModels().run([one], Store(tmp_path / "results"), progress=False)["cells"].to_pylist()
    place = language_models.home(LanguageModels().identity(one)) / "model"
    model = momentum_attention.load(place)
    assert training.weights_digest(model) == row["weights"]
    assert model.config.momentum_eta == 0.5
    tokenizer = AutoTokenizer.from_pretrained(place)
    assert tokenizer("the model")["input_ids"] == corpora.tokens(file, 300).tokenizer.encode("the model").ids


def test_a_run_that_diverges_does_not_stop_the_others(file, tmp_path, monkeypatch):
    real = training.train

    def train(setting, *arguments, **options):
        if setting.seed == 0:
            raise DivergenceError("seed0 diverged")
        return real(setting, *arguments, **options)

    monkeypatch.setattr(language_models, "train", train)
    store = Store(tmp_path / "results")
    pair = [replace(TINY, corpus=file, steps=3, seed=seed) for seed in (0, 1)]
    with pytest.raises(StudyError, match=r"1 of 2 could not be computed:\n.*seed0 diverged"):
        LanguageModels().run(pair, store, progress=False)
    assert [one.identity.parts["cell"]["seed"] for one in store.all()] == [1]
