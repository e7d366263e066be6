"""Gemma 3 in numpy, from its GGUF file alone: what a converted checkpoint is checked against.

The file holds weights, pieces and sizes, one base of rotation and one window. The rest is in the programs that read it,
and is here as llama.cpp has it (src/models/gemma3.cpp): embeddings times sqrt(d), scores over sqrt(head size), GELU by
tanh, logits by the embeddings; every sixth layer attends to all tokens and turns by the base of the file, the others
attend to the window and turn by the base 10,000.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import gguf
import numpy as np
from jaxtyping import Float

from explainer.data import assets
from explainer.errors import DownloadError

_LOCAL_BASE = 10_000
_GLOBAL_EVERY = 6
_TOLERANCE = 1e-3  # of logits that reach 30; float32 leaves 5e-5

_SHORT = (
    *("The capital of France is", "The opposite of hot is", "Monday, Tuesday, Wednesday,", "2 + 2 ="),
    *("Once upon a time, there was a", "In 1969 the first human walked on the", "Q: Who wrote Hamlet?\nA:"),
    *("Die Hauptstadt von Österreich ist", "日本の首都は", "cat -> cats\nchild -> children\nwoman ->"),
    *(f"France -> Paris\nItaly -> Rome\n{one} ->" for one in ("Japan", "Spain", "Peru", "Kenya", "Norway", "Chad")),
    *(f"banana -> kel\ncarpet -> bip\nwindow -> dod\n{one} ->" for one in ("marble", "silver", "carpet")),
)
PROMPTS = (*_SHORT, "\n".join(_SHORT * 4))
"""Twenty; the last has about 800 tokens, more than the window."""


def convert(path: str, into: str) -> None:
    """As `assets.convert`; raises DownloadError where tokens or logits are not those of the model in this module."""
    # Imported here: the rest needs no torch.
    import torch  # noqa: PLC0415
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

    own = Gemma(Path(path))
    ids = [own.tokenize(prompt) for prompt in PROMPTS]
    expected = [own.logits(one) for one in ids]
    del own  # a gigabyte
    assets.convert(path, into)
    tokenizer, model = AutoTokenizer.from_pretrained(into), AutoModelForCausalLM.from_pretrained(into)
    for prompt, tokens, logits in zip(PROMPTS, ids, expected, strict=True):
        if (found := tokenizer(prompt)["input_ids"]) != tokens:
            raise DownloadError(f"the tokens of {prompt[:40]!r} are {found[:20]} instead of {tokens[:20]}")
        with torch.no_grad():
            last = model(torch.tensor([tokens]), logits_to_keep=1).logits[0, -1].float().numpy()
        if (error := abs(last - logits).max()) > _TOLERANCE:
            raise DownloadError(f"after {prompt[:40]!r} a logit is off by {error:.2g}")


class Gemma:
    """The model in a GGUF file, in float32."""

    def __init__(self, path: Path):
        """Reads all of it, which takes a gigabyte."""
        reader = gguf.GGUFReader(path)
        self._of = {name.removeprefix("gemma3."): field.contents for name, field in reader.fields.items()}
        self._weights = {t.name: gguf.dequantize(t.data, t.tensor_type) for t in reader.tensors}
        pieces, scores = (self._of[f"tokenizer.ggml.{kind}"]() for kind in ("tokens", "scores"))
        self._pieces = {piece: (score, i) for i, (piece, score) in enumerate(zip(pieces, scores, strict=True))}

    def tokenize(self, text: str) -> list[int]:
        """The first token and those of a text without runs of spaces or tags, which readers of the file cut out first.

        Of all neighbours that are a piece together, those of the highest score become one, until there are none.
        """
        found = list(text.replace(" ", "▁"))
        while pairs := [
            (self._pieces[a + b][0], -i) for i, (a, b) in enumerate(pairwise(found)) if a + b in self._pieces
        ]:
            i = -max(pairs)[1]
            found[i : i + 2] = ["".join(found[i : i + 2])]
        known = [[p] if p in self._pieces else [f"<0x{byte:02X}>" for byte in p.encode()] for p in found]
        return [self._of["tokenizer.ggml.bos_token_id"](), *(self._pieces[p][1] for its in known for p in its)]

    def logits(self, ids: Sequence[int]) -> Float[np.ndarray, " vocab"]:
        """Logits of the token after these."""
        T, size = len(ids), self._of["attention.key_length"]()
        back = np.arange(T)[:, None] - np.arange(T)
        x = self._weights["token_embd.weight"][list(ids)]
        x = x * math.sqrt(x.shape[-1])
        for i in range(self._of["block_count"]()):
            window, base = self._of["attention.sliding_window"](), _LOCAL_BASE
            if (i + 1) % _GLOBAL_EVERY == 0:
                window, base = T, self._of["rope.freq_base"]()
            h = self._norm(x, f"blk.{i}.attn_norm")
            Q, K, V = (self._linear(h, f"blk.{i}.attn_{one}").reshape(T, -1, size).swapaxes(0, 1) for one in "qkv")
            Q = _rotated(self._norm(Q, f"blk.{i}.attn_q_norm"), base)
            K = _rotated(self._norm(K, f"blk.{i}.attn_k_norm"), base)
            K, V = (heads.repeat(len(Q) // len(heads), axis=0) for heads in (K, V))
            scores = np.where((back >= 0) & (back < window), Q @ K.swapaxes(1, 2) / math.sqrt(size), -np.inf)
            A = np.exp(scores - scores.max(-1, keepdims=True))
            z = (A / A.sum(-1, keepdims=True) @ V).swapaxes(0, 1).reshape(T, -1)
            x = x + self._norm(self._linear(z, f"blk.{i}.attn_output"), f"blk.{i}.post_attention_norm")
            h = self._norm(x, f"blk.{i}.ffn_norm")
            g = self._linear(h, f"blk.{i}.ffn_gate")
            gelu = g / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (g + 0.044715 * g**3)))
            h = self._linear(gelu * self._linear(h, f"blk.{i}.ffn_up"), f"blk.{i}.ffn_down")
            x = x + self._norm(h, f"blk.{i}.post_ffw_norm")
        return self._linear(self._norm(x[-1], "output_norm"), "token_embd")

    def _linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self._weights[f"{name}.weight"].T

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        eps = self._of["attention.layer_norm_rms_epsilon"]()
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * self._weights[f"{name}.weight"]


def _rotated(x: Float[np.ndarray, "heads T d"], base: float) -> Float[np.ndarray, "heads T d"]:
    """Queries or keys turned by their positions, the first half of the entries with the second."""
    _, T, d = x.shape
    angles = np.arange(T)[:, None] / base ** (np.arange(0, d, 2) / d)
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    a, b = x[..., : d // 2], x[..., d // 2 :]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)
