"""Tiny random checkpoints of every supported family, with a tiny byte-level tokenizer, saved to disk."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from torch.nn.functional import cross_entropy
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPTNeoXConfig,
    LlamaConfig,
    OPTConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
    XGLMConfig,
)
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from explainer.models import recording
from explainer.models.loading import Checkpoint

VOCAB = 400
LENGTH = 256
SEQUENCES = [torch.randint(3, VOCAB, (n,), generator=torch.Generator().manual_seed(n)).tolist() for n in (7, 12, 2, 9)]
_COMMON = {"vocab_size": VOCAB, "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}
_SIZES = {"vocab_size": VOCAB, "max_position_embeddings": LENGTH, "num_hidden_layers": 3}
_WIDER = _SIZES | {"hidden_size": 48, "num_attention_heads": 6, "num_key_value_heads": 2, "intermediate_size": 64}
_NARROW = _SIZES | {"hidden_size": 32, "num_attention_heads": 4}

CONFIGS = {
    "gpt2": GPT2Config(n_positions=LENGTH, n_embd=32, n_layer=3, n_head=4, **_COMMON),
    "gpt_neox": GPTNeoXConfig(**_NARROW | _COMMON, intermediate_size=64),
    "llama": LlamaConfig(**_WIDER | _COMMON, tie_word_embeddings=True),
    "opt": OPTConfig(**_NARROW | _COMMON, ffn_dim=64, word_embed_proj_dim=16),
    "xglm": XGLMConfig(
        max_position_embeddings=LENGTH, d_model=32, num_layers=3, attention_heads=4, ffn_dim=64, **_COMMON
    ),
}

_TWO_ROTATIONS = {"head_dim": 8, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
_GEMMA = _NARROW | _TWO_ROTATIONS | {"num_key_value_heads": 2, "intermediate_size": 48, "query_pre_attn_scalar": 8}

MORE = {
    "gemma3_text": Gemma3TextConfig(**_GEMMA | _COMMON, sliding_window=LENGTH),
    "qwen2": Qwen2Config(**_WIDER),
    "qwen3": Qwen3Config(**_WIDER, head_dim=16),
    "opt, norm after": OPTConfig(**_NARROW, ffn_dim=64, word_embed_proj_dim=16, do_layer_norm_before=False),
    "gpt2, scaled by layer": GPT2Config(
        n_positions=LENGTH, n_embd=32, n_layer=3, n_head=4, scale_attn_by_inverse_layer_idx=True, **_COMMON
    ),
    "gpt_neox, one after the other": GPTNeoXConfig(**_NARROW, intermediate_size=64, use_parallel_residual=False),
}
"""Variants of the families, in memory only."""

_FEW = {
    "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48,
    "max_position_embeddings": LENGTH, **_COMMON,
}  # fmt: skip
_GROUPED = _FEW | {"num_key_value_heads": 2}
_WINDOWED = _GROUPED | _TWO_ROTATIONS | {"sliding_window": 16}

FURTHER = {
    "gemma3_text": _WINDOWED,
    "mistral": _GROUPED | {"sliding_window": 16},
    "olmo2": _GROUPED,
    "phi": _FEW,
    "phi3": _GROUPED,
    "stablelm": _GROUPED,
    "gemma3_text, all seen": _WINDOWED | {"sliding_window": 64},
    "gemma3_text, one key": _WINDOWED | {"num_key_value_heads": 1, "tie_word_embeddings": False},
    "gpt_neox, whole rotary": _FEW | {"rotary_pct": 1.0, "attention_bias": False},
    "llama, one key": _FEW | {"num_key_value_heads": 1, "attention_bias": True, "mlp_bias": True, "head_dim": 16},
    "phi, norms of queries": _GROUPED | {"qk_layernorm": True, "partial_rotary_factor": 0.25},
    "phi3, partial rotary": _GROUPED | {"partial_rotary_factor": 0.5, "sliding_window": 16},
    "qwen3, one key": _FEW | {"num_key_value_heads": 1, "head_dim": 16, "attention_bias": True},
    "stablelm, parallel": _GROUPED | {"use_parallel_residual": True, "qk_layernorm": True, "use_qkv_bias": True},
}
"""Settings of families that the book's own studies do not use; behind a comma stands a variant."""

_CORPUS = [
    "Review: a wonderful film\nSentiment: Positive\nReview: a dreadful bore\nSentiment: Negative\n",
    "France -> Paris\nItaly -> Rome\nJapan -> Tokyo\ncat -> cats\nchild -> children\nwalk -> walked\n",
    "Article: shares rose in London on Monday\nTopic: Business\nArticle: the coach left the team\nTopic: Sport\n",
]


_SPECIAL = ["<s>", "<pad>", "</s>"]
_WORDS_OF_LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def tokenizer(words: str | None = None) -> PreTrainedTokenizerFast:
    """Byte-level BPE with `<s>`, `<pad>`, `</s>` at ids 0, 1, 2; leaves some of the models' ids free for more.

    `words` is the expression that cuts a text into words, that of GPT-2 by default.
    """
    bpe = Tokenizer(models.BPE())
    bytes_only = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=words is None)
    split = [pre_tokenizers.Split(Regex(words), "isolated")] if words else []
    bpe.pre_tokenizer = pre_tokenizers.Sequence([*split, bytes_only])
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB - 16,
        special_tokens=_SPECIAL,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    bpe.train_from_iterator(_CORPUS if words is None else [*_CORPUS, *["film\n\nReview. A\n"] * 9], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=bpe, bos_token="<s>", eos_token="</s>", pad_token="<pad>")


def metaspace_tokenizer(*, by_normalizer: bool) -> PreTrainedTokenizerFast:
    """SentencePiece's BPE, as Llama's: "▁" for a space, one before the text, no words, bytes for unknown characters.

    The space before the text comes from the normalizer (as saved by older versions) or from the pre-tokenizer.
    """
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    trainer = trainers.BpeTrainer(vocab_size=130, special_tokens=[*_SPECIAL, "<unk>"], show_progress=False)
    trained.train_from_iterator([*_CORPUS, *["a film. \n\nA"] * 9], trainer)
    found = json.loads(trained.to_str())["model"]
    vocabulary = found["vocab"] | {f"<0x{i:02X}>": len(found["vocab"]) + i for i in range(256)}
    assert len(vocabulary) <= VOCAB
    bpe = Tokenizer(models.BPE(vocabulary, list(map(tuple, found["merges"])), byte_fallback=True, unk_token="<unk>"))
    if by_normalizer:
        bpe.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    else:
        bpe.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    bpe.decoder = decoders.Sequence(steps)
    special = dict(zip(("bos_token", "pad_token", "eos_token", "unk_token"), (*_SPECIAL, "<unk>"), strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=bpe, **special)


TOKENIZERS = {
    "bytes": tokenizer,
    "bytes, words of Llama 3": partial(tokenizer, _WORDS_OF_LLAMA_3),
    "metaspace": partial(metaspace_tokenizer, by_normalizer=False),
    "metaspace by normalizer": partial(metaspace_tokenizer, by_normalizer=True),
}
"""Kinds of tokenizers that keep what a text holds."""


def random_model(config: PreTrainedConfig, dtype: torch.dtype = torch.float32, seed: int = 0) -> PreTrainedModel:
    """A model with weights so large that attention is far from uniform, and all biases and norms changed."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        # a copy, because the dtype is written into it
        model = AutoModelForCausalLM.from_config(deepcopy(config), dtype=dtype)
        for parameter in model.parameters():
            if parameter.ndim == 2:
                torch.nn.init.normal_(parameter, std=0.3)
            else:
                parameter.data += 0.1 * torch.randn_like(parameter)
    return model


def with_large_weights(model: torch.nn.Module) -> torch.nn.Module:
    """The model with weights so large that every part and token matters, which GPT-2's initial 0.02 would hide."""
    generator = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        parameter.data = 0.5 * torch.randn(parameter.shape, generator=generator).to(parameter)
    return model.eval()


def random_checkpoint(config: PreTrainedConfig, dtype: torch.dtype = torch.float32) -> Checkpoint:
    """A random model in memory."""
    model = random_model(config, dtype).eval().requires_grad_(False)
    return Checkpoint(model, tokenizer(), config.model_type, None)


def widest(family: str) -> torch.dtype:
    """Float64, where a family computes in it: the mask of XGLM overflows beyond float32."""
    return torch.float32 if family == "xglm" else torch.float64


def save(family: str, directory: Path, seed: int = 0) -> Path:
    """Write a random checkpoint of a family and return its directory."""
    random_model(CONFIGS[family], seed=seed).save_pretrained(directory)
    tokenizer().save_pretrained(directory)
    return directory


@contextmanager
def unchanged(model: PreTrainedModel) -> Iterator[None]:
    """After the block the model has the parameters, flags, hooks and attention that it had before."""
    (parameters, rest), values = _state(model), [parameter.detach().clone() for parameter in model.parameters()]
    yield
    now, rest_now = _state(model)
    assert (now, rest_now) == (parameters, rest)
    assert all(map(torch.equal, model.parameters(), values))


def _state(model: PreTrainedModel) -> tuple[list, tuple]:
    parameters = [(name, id(p), p.requires_grad, id(p.grad), p._version) for name, p in model.named_parameters()]
    modules = [(m.training, len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()]
    known = [sorted(registry.valid_keys()) for registry in (ALL_ATTENTION_FUNCTIONS, ALL_MASK_ATTENTION_FUNCTIONS)]
    return parameters, (modules, model.config._attn_implementation, known)


def record(checkpoint: Checkpoint, *given, suffix: str = "") -> SimpleNamespace:
    """What `recording.iter_records` gives of all prompts, stacked; `given` are prefix, prompts, candidates."""
    kept = list(recording.iter_records(checkpoint, *given, suffix=suffix))
    found = {name: [getattr(one, name) for one in kept] for name in recording._QueryRecord.__dataclass_fields__}
    stacked = {name: torch.stack(found[name]) for name in ("outputs", "context_scores", "queries")}
    return SimpleNamespace(**found | stacked | {"log_probs": np.array(found["log_probs"])})


def loss_of(model: PreTrainedModel, sequence: list[int]) -> torch.Tensor:
    """The mean loss of every next token, by transformers' own pass."""
    ids = torch.tensor([sequence])
    return cross_entropy(model(input_ids=ids, use_cache=False).logits[0, :-1], ids[0, 1:])
