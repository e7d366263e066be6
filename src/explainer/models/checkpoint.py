"""A checkpoint: a causal language model, its tokenizer, and which token every text begins with."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Int
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from explainer.errors import CheckpointError
from explainer.models import byte_tokens

_END_OF_TEXT = "<|endoftext|>"


@dataclass(frozen=True)
class Checkpoint:
    """A model in evaluation mode without gradients, its tokenizer, and where both came from.

    `revision` is the hub's commit, None for local files.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    name: str
    revision: str | None

    @property
    def dtype(self) -> torch.dtype:
        """Number format of the weights."""
        return self.model.dtype

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.model.device

    @property
    def context_length(self) -> int:
        """Largest number of tokens that the model has positions for.

        Angles that change with the length of a text (LongRoPE, dynamic NTK) would turn a prefix, computed once, by
        others than the whole prompt: such a model has the length up to which they stay.
        """
        config = self.model.config
        rope = getattr(config, "rope_parameters", None) or {}
        if rope.get("rope_type") in ("longrope", "dynamic"):
            return rope.get("original_max_position_embeddings") or getattr(
                config, "original_max_position_embeddings", config.max_position_embeddings
            )
        return config.max_position_embeddings

    @cached_property
    def first_token_id(self) -> int:
        """Id of the token at position 0 of every sequence, which must look like the one in pretraining.

        It is what the tokenizer itself puts there (`</s>` for OPT and XGLM, `<s>` for Llama); else `<|endoftext|>`
        (GPT-2, Pythia, SmolLM2, whose own bos token belongs to the chat format); else the bos token of the
        tokenizer or the configuration (fairseq).
        """
        own = self.tokenizer("a")["input_ids"]
        if len(own) > 1 and own[0] in self.tokenizer.all_special_ids:
            return own[0]
        return self._special_id("bos_token_id")

    @cached_property
    def document_separator_id(self) -> int:
        """Id of the token between two documents: `<|endoftext|>` where there is one, else the eos token."""
        return self._special_id("eos_token_id")

    def _special_id(self, kind: str) -> int:
        ids = [getattr(self.tokenizer, kind), getattr(self.model.config, kind, None)]
        if self.model.config.model_type in ("opt", "xglm"):
            ids.reverse()  # fairseq's dictionary is fixed; the tokenizers of its ports were not written for it
        else:
            added = self.tokenizer.added_tokens_decoder.items()
            ids = [i for i, token in added if str(token) == _END_OF_TEXT] + ids
        found = next((i for i in ids if isinstance(i, int) and i < self.model.config.vocab_size), None)
        if found is None:
            raise CheckpointError(f"{self.name}: the tokenizer has no {_END_OF_TEXT} and no {kind}.")
        return found

    def tokenize(self, text: str) -> list[int]:
        """Token ids of a text, none of them special: `</s>` in a text is four characters, not its end."""
        return self.tokenize_all([text])[0]

    def tokenize_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text as in `tokenize`, in one call of the tokenizer."""
        as_text = {"add_special_tokens": False, "split_special_tokens": True}
        return self.tokenizer(list(texts), **as_text)["input_ids"] if texts else []

    def text(self, ids: Sequence[int]) -> str:
        """The text of tokens whose bytes are joined; what is no whole character is as `byte_tokens.readable` has it."""
        text = self.tokenizer.decode(ids, clean_up_tokenization_spaces=False)
        if "\ufffd" not in text:
            return text
        tokens = self.tokenizer.convert_ids_to_tokens(ids)
        return byte_tokens.readable(tokens)

    def row(self, ids: Sequence[int]) -> Int[Tensor, "1 T"]:
        """Token ids as a batch of one; CheckpointError for too many."""
        self.require_room(len(ids))
        return torch.tensor([list(ids)], device=self.device)

    def require_room(self, length: int) -> None:
        """CheckpointError if so many tokens, of a context and a query together, are more than there are positions."""
        if length > self.context_length:
            needed = f"the demonstrations and the longest query need {length}"
            raise CheckpointError(f"{self.name} has {self.context_length} positions, and {needed}.")

    def hidden(self, **inputs) -> Tensor:
        """Last hidden states, shape (batch, length, d), before the output embedding."""
        return self.model.base_model(**inputs).last_hidden_state

    def logits(self, hidden: Tensor) -> Tensor:
        """float32 logits, shape (..., vocab), of last hidden states, shape (..., d)."""
        return self.model.get_output_embeddings()(hidden).float()
