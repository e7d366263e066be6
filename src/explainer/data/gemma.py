"""Gemma 3 in numpy, from its GGUF file alone: what a converted checkpoint is checked against.

The file holds weights, sizes, one base of rotation and one window; the rest is in the programs that read it, and here
as llama.cpp has it: embeddings times sqrt(d), scores over sqrt(head size), GELU by tanh; every sixth layer attends to
all tokens and turns by the base of the file, the others attend to the window and turn by the base 10,000.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import gguf
import numpy as np
from jaxtyping import Float

from explainer.errors import DownloadError

_TOKENS = "0621ce9f8bc30d80fcdb0a587f1a54302ec6eaa9a8f41ad163a260b2deb70cef"  # SHA-256 of the ids by llama.cpp
_SHORT = (
    *("The capital of France is", "The opposite of hot is", "Monday, Tuesday, Wednesday,", "2 + 2 =", "日本の首都は"),
    *("Once upon a time, there was a", "In 1969 the first human walked on the", "Q: Who wrote Hamlet?\nA:"),
    *("Die Hauptstadt von Österreich ist", "cat -> cats\nchild -> children\nwoman ->", "Two  spaces\n\n\nand <b>🙂"),
    *(f"France -> Paris\nItaly -> Rome\n{country} ->" for country in ("Japan", "Spain", "Peru", "Kenya", "Norway")),
    *(f"banana -> kel\ncarpet -> bip\nwindow -> dod\n{word} ->" for word in ("marble", "silver", "carpet")),
)
PROMPTS = (*_SHORT, "\n".join(_SHORT * 4))  # twenty; the last is longer than the window


def check(path: str, converted: str) -> None:
    """Raises DownloadError unless what a GGUF file was converted to has other programs' tokens, and these logits."""
    import torch  # noqa: PLC0415
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

    tokenizer = AutoTokenizer.from_pretrained(converted)
    ids = [tokenizer(prompt)["input_ids"] for prompt in PROMPTS]
    if hashlib.sha256(repr(ids).encode()).hexdigest() != _TOKENS:
        raise DownloadError("its tokenizer gives other tokens than llama.cpp")
    own = list(logits(Path(path), ids))  # before there are two models in memory
    model = AutoModelForCausalLM.from_pretrained(converted)
    for prompt, tokens, expected in zip(PROMPTS, ids, own, strict=True):
        with torch.no_grad():
            last = model(torch.tensor([tokens]), logits_to_keep=1).logits[0, -1].float().numpy()
        if (error := abs(last - expected).max()) > 1e-3:  # of 35; float32 leaves 2e-4
            raise DownloadError(f"after {prompt[:40]!r} a logit is off by {error:.2g}")


def logits(path: Path, prompts: Sequence[Sequence[int]]) -> Iterator[Float[np.ndarray, " vocab"]]:
    """Logits of the token after each of some sequences of tokens, in float32."""
    reader = gguf.GGUFReader(path)
    weights = {t.name.removesuffix(".weight"): gguf.dequantize(t.data, t.tensor_type) for t in reader.tensors}

    def of(name: str) -> float:
        return reader.fields[f"gemma3.{name}"].contents()

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + of("attention.layer_norm_rms_epsilon")) * weights[name]

    size = of("attention.key_length")
    for ids in prompts:
        back = np.arange(T := len(ids))[:, None] - np.arange(T)
        x = weights["token_embd"][list(ids)] * math.sqrt(weights["token_embd"].shape[1])
        for i in range(of("block_count")):
            layer = f"blk.{i}"
            window, base = (of("attention.sliding_window"), 10_000) if (i + 1) % 6 else (T, of("rope.freq_base"))
            h = norm(x, f"{layer}.attn_norm")
            Q, K, V = ((h @ weights[f"{layer}.attn_{one}"].T).reshape(T, -1, size).swapaxes(0, 1) for one in "qkv")
            Q, K = (_rotated(norm(heads, f"{layer}.attn_{one}_norm"), base) for heads, one in ((Q, "q"), (K, "k")))
            K, V = (heads.repeat(len(Q) // len(heads), axis=0) for heads in (K, V))
            scores = np.where((back >= 0) & (back < window), Q @ K.swapaxes(1, 2) / math.sqrt(size), -np.inf)
            A = np.exp(scores - scores.max(-1, keepdims=True))
            read = (A / A.sum(-1, keepdims=True) @ V).swapaxes(0, 1).reshape(T, -1)
            x = x + norm(read @ weights[f"{layer}.attn_output"].T, f"{layer}.post_attention_norm")
            h = norm(x, f"{layer}.ffn_norm")
            g = h @ weights[f"{layer}.ffn_gate"].T
            gelu = g / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (g + 0.044715 * g**3)))
            h = gelu * (h @ weights[f"{layer}.ffn_up"].T)
            x = x + norm(h @ weights[f"{layer}.ffn_down"].T, f"{layer}.post_ffw_norm")
        yield norm(x[-1], "output_norm") @ weights["token_embd"].T


def _rotated(x: Float[np.ndarray, "heads T d"], base: float) -> Float[np.ndarray, "heads T d"]:
    """Queries or keys turned by their positions, the first half of the entries with the second."""
    half = x.shape[-1] // 2
    angles = np.arange(x.shape[1])[:, None] / base ** (np.arange(half) / half)
    turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)
    return np.concatenate([turned.real, turned.imag], -1).astype(x.dtype)
