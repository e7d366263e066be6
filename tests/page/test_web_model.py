"""The model for a page: the same numbers as transformers in float32, whole files, errors that say what to do."""

import hashlib
import json

import gguf
import numpy as np
import pytest
import tiny_models
import torch
import transformers
from gguf import GGMLQuantizationType as Kind
from transformers import AutoModelForCausalLM

from explainer.data import assets
from explainer.errors import CheckpointError
from explainer.models import scoring
from explainer.models.interventions import after_context, context_weight_patches, with_weight_patches, without_context
from explainer.models.loading import Checkpoint
from explainer.page import web_model

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
HIDDEN = -1e9
TINY = {
    "block_count": 3, "context_length": 128, "embedding_length": 64, "feed_forward_length": 96, "head_count": 4,
    "head_count_kv": 2, "layer_norm_rms_eps": 1e-5, "rope_freq_base": 10_000.0, "vocab_size": 96,
}  # fmt: skip

NAMES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}


def write_tiny(path, kind=Kind.Q4_1):
    """A random Llama of 4 query and 2 key heads as llama.cpp would write it; some blocks have equal weights."""
    random = np.random.default_rng(0)

    def add(name, *shape, kind=kind):
        weights = random.normal(0, 0.3, shape).astype(np.float32)
        weights[0, :32] = 0.25 if "attn" in name else 0
        writer.add_tensor(f"{name}.weight", gguf.quants.quantize(weights, kind), raw_dtype=kind)

    def add_norm(name):
        writer.add_tensor(f"{name}.weight", random.normal(1, 0.1, 64).astype(np.float32))

    with tiny_models.gguf_file(path, **TINY) as writer:
        add("token_embd", 96, 64, kind=Kind.Q8_0)
        add_norm("output_norm")
        for layer in range(3):
            rows = {"attn_q": 64, "attn_k": 32, "attn_v": 32, "attn_output": 64, "ffn_gate": 96, "ffn_up": 96}
            for name, n in rows.items():
                add(f"blk.{layer}.{name}", n, 64)
            add(f"blk.{layer}.ffn_down", 64, 96)
            for name in ("attn_norm", "ffn_norm"):
                add_norm(f"blk.{layer}.{name}")
    return path


def session(graph: bytes):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(graph, options)


def causal(new, past=0, hidden=()):
    """The bias of `new` tokens after `past`, with the positions `hidden` shut off from the new ones."""
    sees = np.arange(past + new)[None] <= np.arange(past, past + new)[:, None]
    sees[:, list(hidden)] = False
    return np.where(sees, 0, HIDDEN).astype(np.float32)


def unchanged(shape, tokens):
    """No update, one patch that no token has, and a vector after each block that is added to none."""
    width = shape.key_heads * shape.head_size
    shapes = {"update_in": (shape.width, 1), "update_out": (1, width)}
    none = {name: np.zeros((2 * shape.layers, *size), np.float32) for name, size in shapes.items()}
    none |= {name: np.zeros(1, np.int64) for name in ("with_context", "without_context")}
    none |= {
        "patch_weights": np.zeros((tokens, 1), np.float32),
        "added_to": np.zeros((tokens, shape.layers), np.float32),
    }
    return none | {"added": np.ones((shape.layers, shape.width), np.float32)}


def run(model, shape, ids, past=None, hidden=(), update=None):  # noqa: PLR0917
    """All outputs for the last token."""
    empty = np.zeros((shape.layers, shape.key_heads, 0, shape.head_size), np.float32)
    keys, values = past or (empty, empty)
    n = keys.shape[2]
    inputs = dict(ids=np.array(ids), positions=np.arange(n, n + len(ids)), bias=causal(len(ids), n, hidden))
    inputs |= dict(rows=np.array([len(ids) - 1]), past_keys=keys, past_values=values)
    inputs |= unchanged(shape, len(ids)) | (update or {})
    names = ("logits", "keys", "values", "attention", "scores", "outputs", "stream")
    found = dict(zip(names, model.run(names, inputs), strict=True))
    found |= {name: found[name][:, :, 0] for name in ("attention", "scores")}
    return found | {name: found[name][:, 0] for name in ("outputs", "stream")}


@torch.inference_mode()
def expected(model, ids, mask=None):
    """Logits and attention of the last token by transformers."""
    ids = torch.tensor([ids])
    mask = None if mask is None else torch.tensor(mask)[None, None]
    done = model(ids, attention_mask=mask, output_attentions=True)
    return done.logits[0, -1].numpy(), torch.stack(done.attentions)[:, 0, :, -1].numpy()


def require_parity(ours, shape, model, ids, cut, hidden, logits_within, attention_within):  # noqa: PLR0917
    """Whole, in two parts, and with positions before `cut` hidden from what follows."""
    logits, attention = expected(model, ids)
    whole = run(ours, shape, ids)
    np.testing.assert_allclose(whole["logits"][0], logits, atol=logits_within, rtol=0)
    np.testing.assert_allclose(whole["attention"], attention, atol=attention_within, rtol=0)
    context = run(ours, shape, ids[:cut])
    past = context["keys"], context["values"]
    cached = run(ours, shape, ids[cut:], past)
    np.testing.assert_allclose(cached["logits"], whole["logits"], atol=logits_within, rtol=0)
    mask = causal(len(ids))
    mask[cut:, list(hidden)] = np.finfo(np.float32).min
    logits, attention = expected(model, ids, np.maximum(mask, np.finfo(np.float32).min))
    without = run(ours, shape, ids[cut:], past, hidden)
    np.testing.assert_allclose(without["logits"][0], logits, atol=logits_within, rtol=0)
    np.testing.assert_allclose(without["attention"], attention, atol=attention_within, rtol=0)
    assert (without["attention"][:, :, list(hidden)] == 0).all()
    assert np.abs(without["logits"] - cached["logits"]).max() > 20 * logits_within


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return write_tiny(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


def transformers_llama(path, shape):
    """The same weights in transformers, by the names and the order of rows that it has."""
    config = transformers.LlamaConfig(
        vocab_size=shape.vocabulary, hidden_size=shape.width, intermediate_size=TINY["feed_forward_length"],
        num_hidden_layers=shape.layers, num_attention_heads=shape.heads, num_key_value_heads=shape.key_heads,
        rms_norm_eps=shape.epsilon, tie_word_embeddings=True, attn_implementation="eager",
        rope_parameters={"rope_type": "default", "rope_theta": shape.theta},
    )  # fmt: skip
    tensors = {t.name: gguf.quants.dequantize(t.data, t.tensor_type) for t in gguf.GGUFReader(path).tensors}
    state = {"model.embed_tokens.weight": tensors["token_embd.weight"]}
    state |= {"model.norm.weight": tensors["output_norm.weight"], "lm_head.weight": tensors["token_embd.weight"]}
    for layer in range(shape.layers):
        for ours, theirs in NAMES.items():
            W = tensors[f"blk.{layer}.{ours}.weight"]
            if ours in ("attn_q", "attn_k"):
                heads = shape.heads if ours == "attn_q" else shape.key_heads
                W = W.reshape(heads, shape.head_size // 2, 2, -1).swapaxes(1, 2).reshape(W.shape)
            state[f"model.layers.{layer}.{theirs}.weight"] = W
    model = AutoModelForCausalLM.from_config(config).eval()
    model.load_state_dict({name: torch.tensor(W) for name, W in state.items()})
    return model


def test_tiny_model_agrees_with_transformers(tiny):
    graph, shape = web_model._onnx_bytes(tiny)
    ids = np.random.default_rng(1).integers(0, 96, 24).tolist()
    model = transformers_llama(tiny, shape)
    require_parity(session(graph), shape, model, ids, 19, range(6, 11), logits_within=5e-5, attention_within=1e-5)


def test_several_questions_in_one_run_are_those_of_several_runs(tiny):
    """Two copies of a query side by side, each blind to the other, one of them blind to a part of the context."""
    graph, shape = web_model._onnx_bytes(tiny)
    model, ids = session(graph), np.random.default_rng(2).integers(0, 96, 20).tolist()
    context, query, hidden = run(model, shape, ids[:16]), ids[16:], range(3, 9)
    past = context["keys"], context["values"]
    single = [run(model, shape, query, past, out) for out in ((), hidden)]
    bias = np.full((8, 24), HIDDEN, np.float32)
    for i, out in enumerate(((), hidden)):
        own, its = slice(4 * i, 4 * i + 4), causal(4, 16, out)
        bias[own, :16], bias[own, 16 + 4 * i : 20 + 4 * i] = its[:, :16], its[:, 16:]
    inputs = dict(ids=np.array(query * 2), positions=np.array([16, 17, 18, 19] * 2), bias=bias, rows=np.array([3, 7]))
    inputs |= dict(past_keys=past[0], past_values=past[1]) | unchanged(shape, 8)
    logits, attention = model.run(["logits", "attention"], inputs)
    np.testing.assert_allclose(logits, np.concatenate([one["logits"] for one in single]), atol=1e-5)
    for i, one in enumerate(single):
        np.testing.assert_allclose(attention[:, :, i, :16], one["attention"][:, :, :16], atol=1e-6)


def test_update_of_keys_and_values_is_that_of_the_weights(tiny):
    """And the scores are those that the softmax turns into weights; the outputs those of the attention blocks."""
    graph, shape = web_model._onnx_bytes(tiny)
    model, random = transformers_llama(tiny, shape), np.random.default_rng(3)
    ids = random.integers(0, 96, 12).tolist()
    update = {name: random.normal(0, 0.2, (6, *size)).astype(np.float32) for name, size in
              (("update_in", (64, 2)), ("update_out", (2, 32)))}  # fmt: skip
    changed = [torch.tensor(a @ b).T for a, b in zip(*update.values(), strict=True)]
    with torch.no_grad():
        for layer, K, V in zip(model.model.layers, changed[::2], changed[1::2], strict=True):
            layer.self_attn.k_proj.weight += K
            layer.self_attn.v_proj.weight += V
    heard = []
    for layer in model.model.layers:
        layer.self_attn.register_forward_hook(lambda _module, _args, out: heard.append(out[0][0, -1].numpy()))
    logits, attention = expected(model, ids)
    found = run(session(graph), shape, ids, update=update)
    np.testing.assert_allclose(found["logits"][0], logits, atol=5e-5)
    np.testing.assert_allclose(found["outputs"], heard, atol=1e-4)
    softmax = torch.tensor(found["scores"]).softmax(-1).numpy()
    np.testing.assert_allclose(softmax, attention, atol=1e-4)
    assert np.abs(run(session(graph), shape, ids)["logits"][0] - logits).max() > 0.1


def test_patches_are_those_of_the_package(tiny):
    """Two queries with their context and without, and a third without that has the mean of their patches."""
    graph, shape = web_model._onnx_bytes(tiny)
    tokenizer = tiny_models.tokenizer()
    checkpoint = Checkpoint(transformers_llama(tiny, shape), tokenizer, "tiny", None, ())
    random, prompts = np.random.default_rng(4), ["ab", "a", "dec"]
    first, queries = checkpoint.first_token_id, [checkpoint.tokenize(prompt) for prompt in prompts]
    assert max(map(max, queries)) < 96
    context = [first, *random.integers(3, 96, 11).tolist()]
    prefix = scoring.encode(checkpoint, context)
    after, without = (of(checkpoint, prefix, prompts) for of in (after_context, without_context))
    patches = context_weight_patches(*(of(checkpoint, prefix, prompts[:2]) for of in (after_context, without_context)))
    weights = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    expected = torch.cat(
        [after.run().logits[:2], without.run(with_weight_patches(without.layers, patches, weights)).logits]
    )
    assert (expected[:2] - expected[2:4]).abs().max() < 1e-4 < (expected[:2] - without.run().logits[:2]).abs().max()

    past, P = run(session(graph), shape, context), len(context)
    texts = [(ids, range(P, P + len(ids)), None) for ids in queries[:2]]
    texts += [([first, *ids], [0, *range(P, P + len(ids))], i) for i, ids in enumerate(queries)]
    T, bias, own = sum(len(ids) for ids, *_ in texts), [], P
    ends = np.cumsum([len(ids) for ids, *_ in texts]) - 1
    for ids, _, patch in texts:
        block = np.full((len(ids), P + T), HIDDEN, np.float32)
        block[:, own : own + len(ids)] = causal(len(ids))
        block[:, :P] = 0 if patch is None else HIDDEN
        bias.append(block)
        own += len(ids)
    rows = [np.zeros(2) if patch is None else weights[patch].numpy() for ids, _, patch in texts for _ in ids]
    inputs = dict(ids=np.concatenate([ids for ids, *_ in texts]), bias=np.concatenate(bias), rows=ends)
    inputs |= dict(positions=np.concatenate([its for _, its, _ in texts]), past_keys=past["keys"])
    inputs |= unchanged(shape, T) | dict(past_values=past["values"], with_context=ends[:2], without_context=ends[2:4])
    (logits,) = session(graph).run(["logits"], inputs | {"patch_weights": np.array(rows, np.float32)})
    np.testing.assert_allclose(logits, expected, atol=1e-4)


def test_vectors_are_added_after_their_blocks_at_their_tokens(tiny):
    """As by transformers, where hooks add them; and the stream is what the next block reads."""
    graph, shape = web_model._onnx_bytes(tiny)
    model, random = transformers_llama(tiny, shape), np.random.default_rng(5)
    ids = random.integers(0, 96, 10).tolist()
    added = random.normal(0, 1, (shape.layers, shape.width)).astype(np.float32)
    shares = random.choice([0, 0.5, 1], (len(ids), shape.layers)).astype(np.float32)
    heard = []

    def plus(number):
        def change(_module, _args, out):
            moved = out + torch.tensor(shares[None, :, number, None] * added[number])
            heard.append(moved[0, -1].numpy())
            return moved

        return change

    plain, _ = expected(model, ids)
    for number, layer in enumerate(model.model.layers):
        layer.register_forward_hook(plus(number))
    logits, _ = expected(model, ids)
    found = run(session(graph), shape, ids, update={"added": added, "added_to": shares})
    np.testing.assert_allclose(found["logits"][0], logits, atol=5e-5)
    np.testing.assert_allclose(found["stream"], heard, atol=1e-4)
    assert np.abs(logits - plain).max() > 0.1


@pytest.mark.slow
def test_checkpoint_agrees_with_transformers():
    home = web_model.build()
    manifest = json.loads((home / "manifest.json").read_text("utf-8"))
    graph = b"".join((home / shard["name"]).read_bytes() for shard in manifest["shards"])
    assert hashlib.sha256(graph).hexdigest() == manifest["sha256"]
    sizes = {name: value for name, value in manifest["shape"].items() if name != "head_size"}
    directory = assets.checkpoint_path()
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    lines = [
        f"{x} -> {y}\n" for x, y in (("France", "Paris"), ("Italy", "Rome"), ("Egypt", "Cairo"), ("China", "Beijing"))
    ]
    parts = [tokenizer(text)["input_ids"] for text in (*lines, "Japan ->")]
    ids = [manifest["first_token_id"], *(token for part in parts for token in part)]
    first = 1 + len(parts[0])
    hidden, cut = range(first, first + len(parts[1])), len(ids) - len(parts[-1])
    require_parity(session(graph), web_model._Shape(**sizes), model, ids, cut, hidden, 1e-3, 1e-4)


def tokenizer_folder(folder):
    folder.mkdir()
    added = [{"id": 5, "content": "<|endoftext|>", "special": True}]
    (folder / "tokenizer.json").write_text(json.dumps({"added_tokens": added, "model": {}}), "utf-8")
    return folder


def test_folder_is_whole_and_names_its_files(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(web_model, "_SHARD_BYTES", 50_000)
    home = tmp_path / "model"
    web_model._convert(tiny, tokenizer_folder(tmp_path / "tokenizer"), home)
    manifest = json.loads((home / "manifest.json").read_text("utf-8"))
    assert manifest["first_token_id"] == 5
    assert len(manifest["shards"]) > 1
    for file in (*manifest["shards"], *manifest["tokenizer"]):
        content = (home / file["name"]).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file["size"], file["sha256"])
    assert json.loads((home / "tokenizer.json").read_text("utf-8"))["added_tokens"] == []
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_same_file_gives_the_same_bytes(tiny):
    assert web_model._onnx_bytes(tiny) == web_model._onnx_bytes(tiny)


def test_without_onnx_the_error_says_what_to_install(tiny, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(CheckpointError, match="pip install onnx"):
        web_model._onnx_bytes(tiny)
