"""The starter checkpoint for a page: its GGUF file as an ONNX graph in shards, with the very weights of the chapters.

The graph reads T new tokens after P tokens whose keys and values it is given; `_onnx_bytes` says what else it is given.
"""

import hashlib
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from explainer.data import assets
from explainer.data.files import fresh_folder
from explainer.errors import CheckpointError

FORMAT = 4  # of the folder; raised when the same GGUF file gives other files
_SHARD_BYTES = 25_000_000
"""A shard that did not arrive is fetched again, and no host of pages refuses files of this size."""
_MANIFEST = "manifest.json"
_BLOCK = 32  # weights that share a scale, in the formats Q4_1 and Q8_0 of GGUF
_GRAPH = "gpt"
_OPSETS = {"": 18, "com.microsoft": 1}


@dataclass(frozen=True)
class _Shape:
    """The sizes of a Llama: L layers, heads of queries and of keys, d, vocabulary, and its two constants."""

    layers: int
    heads: int
    key_heads: int
    width: int
    vocabulary: int
    epsilon: float
    theta: float
    head_size: int


def build() -> Path:
    """The folder of the starter checkpoint's model for a page, converted in some seconds where it is missing.

    It holds the shards, the tokenizer's file and `manifest.json`, which names them with their SHA-256.

    Raises: DownloadError, CheckpointError (the package onnx is missing).
    """
    home = assets.cache_dir() / f"web-model-{assets.QUANTISED.sha256[:12]}-{FORMAT}"
    if not (home / _MANIFEST).exists():
        print("Converting the checkpoint for the page, once; about 10 s ...", file=sys.stderr, flush=True)
        quantised = assets.fetch([assets.QUANTISED.name])[assets.QUANTISED.name] / assets.GGUF
        _convert(quantised, assets.checkpoint_path(), home)
    return home


def _convert(quantised: Path, tokenizer: Path, home: Path) -> None:
    """Write the folder `home` from a GGUF file and the folder of its tokenizer, whole or not at all."""

    def entry(path: Path) -> dict[str, Any]:
        content = path.read_bytes()
        return {"name": path.name, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}

    with fresh_folder(home) as fresh:
        graph, shape = _onnx_bytes(quantised)
        for i, start in enumerate(range(0, len(graph), _SHARD_BYTES)):
            (fresh / f"{_GRAPH}.{i}.bin").write_bytes(graph[start : start + _SHARD_BYTES])
        words = json.loads((tokenizer / "tokenizer.json").read_text("utf-8"))
        # Without its special tokens: what a reader writes is text, also where it looks like one of them.
        plain = json.dumps(
            words | {"added_tokens": [], "post_processor": None}, ensure_ascii=False, separators=(",", ":")
        )
        (fresh / "tokenizer.json").write_text(plain, "utf-8")
        manifest = {
            "format": FORMAT,
            "shape": asdict(shape),
            # Of what stands before every text: see `loading.Checkpoint`.
            "first_token_id": next(each["id"] for each in words["added_tokens"] if each["content"] == "<|endoftext|>"),
            "sha256": hashlib.sha256(graph).hexdigest(),
            "shards": [entry(path) for path in sorted(fresh.glob(f"{_GRAPH}.*.bin"))],
            "tokenizer": [entry(fresh / "tokenizer.json")],
        }
        (fresh / _MANIFEST).write_text(json.dumps(manifest, indent=1), "utf-8")


def _onnx_bytes(quantised: Path) -> tuple[bytes, _Shape]:
    """The ONNX graph of a Llama in a GGUF file, weights bit for bit, and its shape.

    Q4_1 keeps a block of 32 weights as w = d q + m with q in 0 ... 15. `MatMulNBits` of ONNX Runtime computes w = s (q
    - z), the same for s = d and z = -m/d. Q8_0 keeps w = d q with q in -128 ... 127, here q + 128 with z = 128.

    Inputs are `ids` and `positions` (T), `bias` (T, P + T), which is added to the scores, `past_keys` and `past_values`
    (L, key heads, P, head size), `rows` (R), the new tokens that are asked, and an update of rank r for keys and values
    by turns, `update_in` (2 L, d, r) and `update_out` (2 L, r, key heads * head size): x W^T + x `update_in`
    `update_out`. Each of m patches has the last token of a query in its context, in `with_context` (m), and the same
    token where it does not see it, in `without_context` (m); token t has the sum of all patches times its row of
    `patch_weights` (T, m). For the patch to be exact, the tokens that do not see the context must have it, and the
    others none. After block l, token t has row l of `added` (L, d) added to its residual stream, times entry l of its
    row of `added_to` (T, L). Outputs are `logits` (R, vocabulary), `attention` and, before bias and softmax, `scores`
    (L, heads, R, P + T), `outputs` (L, R, d) of the attention blocks, and `stream` (L, R, d), the residual stream after
    every block, all of the tokens that are asked; `keys` and `values` (L, key heads, T, head size) of all new ones.
    Raises: CheckpointError (the package onnx is missing).
    Source: the layers of `LlamaForCausalLM` in transformers; the formats are those of ggml's `ggml-common.h`.
    """
    try:
        import gguf  # noqa: PLC0415 - loading the package must not wait for it
        import onnx  # noqa: PLC0415 - only who converts needs it
        import onnx.helper  # noqa: PLC0415
        import onnx.numpy_helper  # noqa: PLC0415
    except ImportError as error:
        raise CheckpointError("the model for a page needs the package onnx: pip install onnx") from error
    reader = gguf.GGUFReader(quantised)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    value = lambda key: reader.fields[f"llama.{key}"].contents()  # noqa: E731
    heads, width = value("attention.head_count"), value("embedding_length")
    shape = _Shape(
        layers=value("block_count"),
        heads=heads,
        key_heads=value("attention.head_count_kv"),
        width=width,
        vocabulary=int(tensors["token_embd.weight"].shape[1]),
        epsilon=value("attention.layer_norm_rms_epsilon"),
        theta=value("rope.freq_base"),
        head_size=width // heads,
    )
    graph = _Graph(tensors, shape)
    graph.forward()
    return graph.model(onnx).SerializeToString(), shape


class _Graph:
    """Nodes and constants in the order in which they are computed; each method returns the name of what it adds."""

    def __init__(self, tensors: dict[str, Any], shape: _Shape):
        self.tensors, self.shape = tensors, shape
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray] = {}

    # The model, from the inputs to the outputs

    def forward(self) -> None:
        n = self.shape
        hidden = self.embedding()
        rotation = self.rotation()
        outputs = ("keys", "values", "attention", "scores", "outputs", "stream")
        found: dict[str, list[str]] = {name: [] for name in outputs}
        for layer in range(n.layers):
            name = f"blk.{layer}"
            x = self.norm(hidden, f"{name}.attn_norm.weight")
            Q = self.rotate(self.split(self.linear(x, f"{name}.attn_q.weight", n.heads), n.heads), rotation)
            K = self.updated(x, self.linear(x, f"{name}.attn_k.weight", n.key_heads), 2 * layer)
            V = self.updated(x, self.linear(x, f"{name}.attn_v.weight"), 2 * layer + 1)
            K, V = self.rotate(self.split(K, n.key_heads), rotation), self.split(V, n.key_heads)
            past = [self.op("Gather", name, self.index(layer), axis=0) for name in ("past_keys", "past_values")]
            all_K, all_V = (self.op("Concat", old, new, axis=1) for old, new in zip(past, (K, V), strict=True))
            scores, weights, output = self.attention(Q, all_K, all_V)
            output = self.linear(output, f"{name}.attn_output.weight")
            hidden = self.op("Add", hidden, output)
            hidden = self.plus(self.op("Add", hidden, self.feed_forward(hidden, name)), layer)
            # A 0 keeps the size that stands there: R, the number of rows.
            asked = [self.reshape(self.op("Gather", x, "rows", axis=2), (1, n.heads, 0, -1)) for x in (weights, scores)]
            asked += [self.unsqueeze(self.op("Gather", x, "rows", axis=0)) for x in (output, hidden)]
            for output_name, part in zip(found, (self.unsqueeze(K), self.unsqueeze(V), *asked), strict=True):
                found[output_name].append(part)
        for output_name, parts in found.items():
            self.op("Concat", *parts, axis=0, out=output_name)
        h = self.norm(self.op("Gather", hidden, "rows", axis=0), "output_norm.weight")
        self.op("MatMulNBits", h, "embedding", "embedding.scale", "embedding.zero", out="logits",
                K=n.width, N=n.vocabulary, bits=8, block_size=_BLOCK, domain="com.microsoft")  # fmt: skip

    def embedding(self) -> str:
        """The rows of the token embedding, which is the output embedding, too: one constant for both."""
        n, blocks = self.shape, self.shape.width // _BLOCK
        embedded = _blocks(self.tensors["token_embd.weight"], 2 + _BLOCK)  # d in float16, and q of each weight
        scale, q = np.ascontiguousarray(embedded[..., :2]).view(np.float16)[..., 0], embedded[..., 2:].view(np.int8)
        self.constant("embedding", (q.astype(np.int16) + 128).astype(np.uint8))
        self.to_float(self.constant("embedding.half", scale), out="embedding.scale")
        self.constant("embedding.zero", np.full(scale.size, 128, np.uint8))
        rows = self.op("Sub", self.to_float(self.op("Gather", "embedding", "ids", axis=0)), self.number(128))
        by_row = self.reshape("embedding.scale", (n.vocabulary, blocks))
        scales = self.unsqueeze(self.op("Gather", by_row, "ids", axis=0), axis=-1)
        return self.reshape(self.op("Mul", rows, scales), (-1, n.width))

    def linear(self, x: str, name: str, rotary_heads: int = 0) -> str:
        """x W^T with W in Q4_1; the rows of rotary projections are put back into transformers' order."""
        blocks = _blocks(self.tensors[name], 2 + 2 + _BLOCK // 2)
        if rotary_heads:  # llama.cpp interleaves the two halves of each head
            rows = np.arange(len(blocks)).reshape(rotary_heads, self.shape.head_size // 2, 2)
            blocks = blocks[rows.swapaxes(1, 2).reshape(-1)]
        d, m = (np.ascontiguousarray(blocks[..., i : i + 2]).view(np.float16)[..., 0] for i in (0, 2))
        q = np.concatenate([blocks[..., 4:] & 15, blocks[..., 4:] >> 4], axis=-1)  # weights i and i + 16 share a byte
        flat = d == 0  # a block of equal weights m is m * (0 - (-m/m))
        d, q = np.where(flat, np.where(m == 0, np.float16(1), m), d), np.where(flat[..., None], np.uint8(0), q)
        packed = q[..., 0::2] | q[..., 1::2] << 4  # the operator keeps neighbours in one byte
        scale = self.to_float(self.constant(f"{name}.d", d.reshape(-1)))
        zero = self.op("Neg", self.op("Div", self.to_float(self.constant(f"{name}.m", m.reshape(-1))), scale))
        rows, columns = q.shape[0], q.shape[1] * _BLOCK
        return self.op("MatMulNBits", x, self.constant(name, packed), scale, zero,
                       K=columns, N=rows, bits=4, block_size=_BLOCK, domain="com.microsoft")  # fmt: skip

    def updated(self, x: str, projected: str, i: int) -> str:
        """The projection with the i-th matrix of the update."""
        its = [self.op("Gather", name, self.index(i), axis=0) for name in ("update_in", "update_out")]
        return self.op("Add", projected, self.op("MatMul", self.op("MatMul", x, its[0]), its[1]))

    def norm(self, x: str, name: str) -> str:
        """x / sqrt(mean x^2 + epsilon) * g."""
        g = self.constant(name, np.asarray(self.tensors[name].data, np.float32))
        return self.op("SimplifiedLayerNormalization", x, g, axis=-1, epsilon=self.shape.epsilon)

    def feed_forward(self, stream: str, name: str) -> str:
        """W_down (silu(W_gate n) * W_up n) for the stream's norm n, with the patches of the three matrices."""
        n = self.norm(stream, f"{name}.ffn_norm.weight")
        along = self.along(n)
        gate, up = (self.linear(n, f"{name}.ffn_{part}.weight") for part in ("gate", "up"))
        gate, up = (self.plus_patches(z, along, z) for z in (gate, up))
        a = self.op("Mul", self.op("Mul", gate, self.op("Sigmoid", gate)), up)
        return self.plus_patches(self.linear(a, f"{name}.ffn_down.weight"), self.along(a), stream)

    def along(self, x: str) -> str:
        """w_tj (x_t . x_j) / (x_j . x_j) for each token t and patch j, whose right factor is x_j without context."""
        own = self.op("Gather", x, "without_context", axis=0)
        products = self.op("MatMul", x, self.op("Transpose", own, perm=[1, 0]))
        squares = self.op("ReduceSum", self.op("Mul", own, own), self.constant("axis", np.array([1])), keepdims=0)
        return self.op("Mul", self.op("Div", products, squares), "patch_weights")

    def plus_patches(self, output: str, along: str, z: str) -> str:
        """The output with the patches' left factors, which are what the context adds to z."""
        with_context, without = (self.op("Gather", z, f"with{out}_context", axis=0) for out in ("", "out"))
        return self.op("Add", output, self.op("MatMul", along, self.op("Sub", with_context, without)))

    def plus(self, hidden: str, layer: int) -> str:
        """The residual stream after a block with the vector of this block, times each token's share of it."""
        vector, shares = (
            self.op("Gather", name, self.index(layer), axis=i) for i, name in enumerate(("added", "added_to"))
        )
        return self.op("Add", hidden, self.op("Mul", self.unsqueeze(shares, axis=-1), vector))

    def rotation(self) -> tuple[str, str]:
        """Cosine and sine of position times theta^(-2i/size), shape (T, size)."""
        size = self.shape.head_size
        rates = (self.shape.theta ** (-np.arange(0, size, 2) / size)).astype(np.float32)
        position = self.unsqueeze(self.to_float("positions"), axis=-1)
        angles = self.op("MatMul", position, self.constant("rates", rates[None]))
        cos, sin = (self.op(kind, angles) for kind in ("Cos", "Sin"))
        return tuple(self.op("Concat", half, half, axis=-1) for half in (cos, sin))

    def rotate(self, x: str, rotation: tuple[str, str]) -> str:
        """x cos + (-b, a) sin for x = (a, b), shape (heads, T, size)."""
        cos, sin = rotation
        a, b = self.op("Split", x, outputs=2, axis=-1, num_outputs=2)
        turned = self.op("Concat", self.op("Neg", b), a, axis=-1)
        return self.op("Add", self.op("Mul", x, cos), self.op("Mul", turned, sin))

    def split(self, x: str, heads: int) -> str:
        """(T, heads * size) -> (heads, T, size)."""
        return self.op("Transpose", self.reshape(x, (-1, heads, self.shape.head_size)), perm=[1, 0, 2])

    def attention(self, Q: str, K: str, V: str) -> tuple[str, str, str]:
        """Q K^T / sqrt(size), softmax(that + bias) and its product with V; query heads share keys in groups."""
        n, size = self.shape, self.shape.head_size
        Q = self.reshape(Q, (n.key_heads, n.heads // n.key_heads, -1, size))
        K = self.unsqueeze(self.op("Transpose", K, perm=[0, 2, 1]), axis=1)
        scores = self.op("Mul", self.op("MatMul", Q, K), self.number(size**-0.5))
        weights = self.op("Softmax", self.op("Add", scores, "bias"), axis=-1)
        output = self.reshape(self.op("MatMul", weights, self.unsqueeze(V, axis=1)), (n.heads, -1, size))
        return scores, weights, self.reshape(self.op("Transpose", output, perm=[1, 0, 2]), (-1, n.width))

    # What ONNX makes long

    def op(self, kind: str, *inputs: str, outputs: int = 1, out: str = "", domain: str = "", **options: Any) -> Any:
        names = [out or f"{kind}.{len(self.nodes)}.{i}" for i in range(outputs)]
        self.nodes.append((kind, inputs, names, domain, options))
        return names[0] if outputs == 1 else names

    def constant(self, name: str, array: np.ndarray) -> str:
        self.constants.setdefault(name, np.asarray(array, order="C"))
        return name

    def index(self, i: int) -> str:
        return self.constant(f"index {i}", np.array(i, np.int64))

    def number(self, value: float) -> str:
        return self.constant(f"number {value}", np.array(value, np.float32))

    def to_float(self, x: str, out: str = "") -> str:
        return self.op("Cast", x, out=out, to=1)  # 1 is float32

    def reshape(self, x: str, shape: tuple[int, ...]) -> str:
        return self.op("Reshape", x, self.constant(f"shape {shape}", np.array(shape, np.int64)))

    def unsqueeze(self, x: str, axis: int = 0) -> str:
        return self.op("Unsqueeze", x, self.constant(f"axis {axis}", np.array([axis], np.int64)))

    def model(self, onnx: Any) -> Any:
        n, floats, integers = self.shape, onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
        cached = lambda tokens: [n.layers, n.key_heads, tokens, n.head_size]  # noqa: E731
        inputs = {
            "ids": (integers, ["T"]),
            "positions": (integers, ["T"]),
            "bias": (floats, ["T", "S"]),
            "rows": (integers, ["R"]),
            "past_keys": (floats, cached("P")),
            "past_values": (floats, cached("P")),
            "update_in": (floats, [2 * n.layers, n.width, "rank"]),
            "update_out": (floats, [2 * n.layers, "rank", n.key_heads * n.head_size]),
            "with_context": (integers, ["m"]),
            "without_context": (integers, ["m"]),
            "patch_weights": (floats, ["T", "m"]),
            "added": (floats, [n.layers, n.width]),
            "added_to": (floats, ["T", n.layers]),
        }
        outputs = {
            "logits": (floats, ["R", n.vocabulary]),
            "keys": (floats, cached("T")),
            "values": (floats, cached("T")),
            "attention": (floats, [n.layers, n.heads, "R", "S"]),
            "scores": (floats, [n.layers, n.heads, "R", "S"]),
            "outputs": (floats, [n.layers, "R", n.width]),
            "stream": (floats, [n.layers, "R", n.width]),
        }
        nodes = [
            onnx.helper.make_node(kind, inputs, names, domain=domain, **options)
            for kind, inputs, names, domain, options in self.nodes
        ]
        given, found = (
            [onnx.helper.make_tensor_value_info(name, *its) for name, its in each.items()] for each in (inputs, outputs)
        )
        constants = [onnx.numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        graph = onnx.helper.make_graph(nodes, _GRAPH, given, found, constants)
        opsets = [onnx.helper.make_opsetid(*opset) for opset in _OPSETS.items()]
        return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9)


def _blocks(tensor: Any, size: int) -> np.ndarray:
    """The bytes of a GGUF tensor's blocks, (rows, blocks, size)."""
    columns, rows = (int(n) for n in tensor.shape)
    return np.asarray(tensor.data).view(np.uint8).reshape(rows, columns // _BLOCK, size)
