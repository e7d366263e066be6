"""Tiny random checkpoints of every supported family, with a tiny byte-level tokenizer, saved to disk."""

from copy import deepcopy
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    GPTNeoConfig,
    GPTNeoXConfig,
    LlamaConfig,
    OPTConfig,
    PreTrainedTokenizerFast,
    XGLMConfig,
)

VOCAB = 400
LENGTH = 256
_COMMON = {"vocab_size": VOCAB, "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}

CONFIGS = {
    "gpt2": GPT2Config(n_positions=LENGTH, n_embd=32, n_layer=3, n_head=4, **_COMMON),
    "gpt_neo": GPTNeoConfig(
        max_position_embeddings=LENGTH,
        hidden_size=32,
        num_layers=4,
        num_heads=4,
        window_size=16,
        attention_types=[[["global", "local"], 2]],
        **_COMMON,
    ),
    "gpt_neox": GPTNeoXConfig(
        max_position_embeddings=LENGTH,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=64,
        **_COMMON,
    ),
    "llama": LlamaConfig(
        max_position_embeddings=LENGTH,
        hidden_size=48,
        num_hidden_layers=3,
        num_attention_heads=6,
        num_key_value_heads=2,
        intermediate_size=64,
        tie_word_embeddings=True,
        **_COMMON,
    ),
    "opt": OPTConfig(
        max_position_embeddings=LENGTH,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        ffn_dim=64,
        word_embed_proj_dim=16,
        **_COMMON,
    ),
    "xglm": XGLMConfig(
        max_position_embeddings=LENGTH, d_model=32, num_layers=3, attention_heads=4, ffn_dim=64, **_COMMON
    ),
}

ROTARY = ("gpt_neox", "llama")

_CORPUS = [
    "Review: a wonderful film\nSentiment: Positive\nReview: a dreadful bore\nSentiment: Negative\n",
    "France -> Paris\nItaly -> Rome\nJapan -> Tokyo\ncat -> cats\nchild -> children\nwalk -> walked\n",
    "Article: shares rose in London on Monday\nTopic: Business\nArticle: the coach left the team\nTopic: Sport\n",
]


def tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE with `<s>`, `<pad>`, `</s>` at ids 0, 1, 2; leaves some of the models' ids free for more."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB - 16,
        special_tokens=["<s>", "<pad>", "</s>"],
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    bpe.train_from_iterator(_CORPUS, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=bpe, bos_token="<s>", eos_token="</s>", pad_token="<pad>")


def save(family: str, directory: Path, seed: int = 0) -> Path:
    """Write a random checkpoint of a family and return its directory; weights are large, so that logits differ."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(deepcopy(CONFIGS[family]), dtype=torch.float32)
        for parameter in model.parameters():
            if parameter.ndim == 2:
                torch.nn.init.normal_(parameter, std=0.3)
            else:
                parameter.data += 0.1 * torch.randn_like(parameter)
    model.save_pretrained(directory)
    tokenizer().save_pretrained(directory)
    return directory
