"""A small Llama that was trained on nothing but linear classification in context, and is a checkpoint like any other.

Its texts are those of `explainer_lab.training_words`: each has a new direction w, so that what a model knows of w
it has from the demonstrations before the query. The embedding of a word starts as a linear map of its point.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Generator, Tensor
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from explainer.models import loading
from explainer_lab import training_words
from explainer_lab.language_models import BETAS
from explainer_lab.small_model_training import descent

EVERY = 100  # steps from one snapshot of a training to the next


@dataclass(frozen=True)
class LlamaSetting:
    """Everything that determines a trained model; `inner` is the width of the feed-forward layers."""

    n_examples: int = 16
    layers: int = 2
    width: int = 64
    heads: int = 4
    inner: int = 128
    steps: int = 800
    batch: int = 32
    learning_rate: float = 3e-3
    seed: int = 0


def _initial_model(setting: LlamaSetting) -> LlamaForCausalLM:
    """A Llama whose weights have the variance 1 / width and whose words start as linear maps of their points."""
    config = LlamaConfig(
        vocab_size=training_words.WORD_IDS.stop,
        hidden_size=setting.width,
        intermediate_size=setting.inner,
        num_hidden_layers=setting.layers,
        num_attention_heads=setting.heads,
        num_key_value_heads=setting.heads,
        max_position_embeddings=len(training_words.sequences(1, setting.n_examples + 1, Generator())[0]),
        initializer_range=setting.width**-0.5,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(setting.seed)
        model = LlamaForCausalLM(config)
        read_in = torch.randn(training_words.DIMENSION, setting.width) * config.initializer_range
    with torch.no_grad():
        model.model.embed_tokens.weight[training_words.WORD_IDS] = training_words.points_of_words() @ read_in
    return model


def train(setting: LlamaSetting, *, progress: bool = True) -> Iterator[tuple[int, LlamaForCausalLM]]:
    """By `small_model_training.descent`; yields (step, model) before the first step and after every EVERY steps.

    The loss is the mean over all tokens after the first of -log p(token | tokens before it). It is one model, which
    changes when the next is asked for.
    """
    model = _initial_model(setting)

    def loss(_step: int, generator: Generator) -> Tensor:
        ids = training_words.sequences(setting.batch, setting.n_examples + 1, generator)
        logits = model(ids[:, :-1], use_cache=False).logits
        return cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())

    yield 0, model
    for step, _ in enumerate(descent(model, setting, loss, beta_2=BETAS[1], progress=progress), 1):
        if step % EVERY == 0:
            yield step, model


def save(model: LlamaForCausalLM, directory: str | os.PathLike) -> None:
    """Write model and tokenizer for `loading.load`; whole or not at all. Raises CheckpointError."""
    marks: dict[str, str] = dict.fromkeys(("bos_token", "eos_token"), training_words.SEPARATOR)
    marks["unk_token"] = training_words.UNKNOWN
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=training_words.tokenizer(), **marks)
    loading.save(model, tokenizer, Path(directory))
