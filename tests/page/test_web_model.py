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
from explainer.page import page_model

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

    writer = gguf.GGUFWriter(path, "llama")
    for name, value in TINY.items():
        getattr(writer, f"add_{name}")(value)
    add("token_embd", 96, 64, kind=Kind.Q8_0)
    add_norm("output_norm")
    for layer in range(3):
        rows = {"attn_q": 64, "attn_k": 32, "attn_v": 32, "attn_output": 64, "ffn_gate": 96, "ffn_up": 96}
        for name, n in rows.items():
            add(f"blk.{layer}.{name}", n, 64)
        add(f"blk.{layer}.ffn_down", 64, 96)
        for name in ("attn_norm", "ffn_norm"):
            add_norm(f"blk.{layer}.{name}")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
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
    graph, shape = page_model._onnx_bytes(tiny)
    ids = np.random.default_rng(1).integers(0, 96, 24).tolist()
    model = transformers_llama(tiny, shape)
    require_parity(session(graph), shape, model, ids, 19, range(6, 11), logits_within=5e-5, attention_within=1e-5)


def test_updates_and_vectors_are_those_of_changed_weights_and_hooks(tiny):
    """Scores are what the softmax turns into weights, outputs those of the attention blocks, the stream the blocks'."""
    graph, shape = page_model._onnx_bytes(tiny)
    model, random = transformers_llama(tiny, shape), np.random.default_rng(3)
    ids = random.integers(0, 96, 12).tolist()
    plain, _ = expected(model, ids)
    update = {name: random.normal(0, 0.2, (6, *size)).astype(np.float32) for name, size in
              (("update_in", (64, 2)), ("update_out", (2, 32)))}  # fmt: skip
    added = random.normal(0, 1, (shape.layers, shape.width)).astype(np.float32)
    shares = random.choice([0, 0.5, 1], (len(ids), shape.layers)).astype(np.float32)
    changed = [torch.tensor(a @ b).T for a, b in zip(*update.values(), strict=True)]
    outputs, stream = [], []

    def plus(number):
        def change(_module, _args, out):
            moved = out + torch.tensor(shares[None, :, number, None] * added[number])
            stream.append(moved[0, -1].numpy())
            return moved

        return change

    with torch.no_grad():
        for number, (layer, K, V) in enumerate(zip(model.model.layers, changed[::2], changed[1::2], strict=True)):
            layer.self_attn.k_proj.weight += K
            layer.self_attn.v_proj.weight += V
            layer.self_attn.register_forward_hook(lambda _module, _args, out: outputs.append(out[0][0, -1].numpy()))
            layer.register_forward_hook(plus(number))
    logits, attention = expected(model, ids)
    for given in (update, {"added": added, "added_to": shares}):
        assert np.abs(run(session(graph), shape, ids, update=given)["logits"][0] - logits).max() > 0.1
    found = run(session(graph), shape, ids, update=update | {"added": added, "added_to": shares})
    np.testing.assert_allclose(found["logits"][0], logits, atol=5e-5)
    np.testing.assert_allclose(found["outputs"], outputs, atol=1e-4)
    np.testing.assert_allclose(found["stream"], stream, atol=1e-4)
    np.testing.assert_allclose(torch.tensor(found["scores"]).softmax(-1).numpy(), attention, atol=1e-4)
    assert np.abs(logits - plain).max() > 0.1


def test_patches_are_those_of_the_package(tiny):
    """Two queries with their context and without, and a third without that has the mean of their patches."""
    graph, shape = page_model._onnx_bytes(tiny)
    tokenizer = tiny_models.tokenizer()
    checkpoint = Checkpoint(transformers_llama(tiny, shape), tokenizer, "tiny", None)
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


@pytest.mark.slow
def test_checkpoint_agrees_with_transformers():
    home = page_model.build()
    manifest = json.loads((home / "manifest.json").read_text("utf-8"))
    graph = b"".join((home / shard["name"]).read_bytes() for shard in manifest["shards"])
    assert hashlib.sha256(graph).hexdigest() == manifest["sha256"]
    for file in (*manifest["shards"], *manifest["tokenizer"]):
        content = (home / file["name"]).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file["size"], file["sha256"])
    assert json.loads((home / "tokenizer.json").read_text("utf-8"))["added_tokens"] == []
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
    require_parity(session(graph), page_model._Shape(**manifest["shape"]), model, ids, cut, hidden, 1e-3, 1e-4)


def test_without_onnx_the_error_says_what_to_install(tiny, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(CheckpointError, match="pip install onnx"):
        page_model._onnx_bytes(tiny)
