"""One probe of a checkpoint when it is loaded: everything that later code relies on, tried on a few tokens."""

import warnings

import torch
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from explainer.errors import CheckpointError, ExplainerError
from explainer.models import scoring
from explainer.models.checkpoint import Checkpoint

_TEXTS = ("a b\n1", "Review: a film\n\nSentiment:", "it -> its\tx")
"""Spaces, line breaks and what stands between demonstrations."""

_TOLERANCE = {torch.float64: 1e-3, torch.float32: 1e-3}
"""Of logits, in these number formats."""

_HALF_PRECISION = 0.3
"""Standard deviations of the logits by which they may differ on average in half precision; bfloat16 makes 0.11."""


@torch.inference_mode()
def require_usable(checkpoint: Checkpoint) -> None:
    """Raise CheckpointError, which names the fault and what to do, unless a checkpoint does what the package relies on.

    Its tokenizer gives a text back as it was; it does not see the future; its logits are finite, and are those of
    `checkpoint.logits`; rows that are packed behind one shared prefix have the logits of whole prompts.
    """
    try:
        _require_texts(checkpoint)
        _warn_of_other_tokens(checkpoint)
        _require_logits(checkpoint)
        _require_prefix(checkpoint)
    except ExplainerError:
        raise
    except Exception as error:  # whatever a family that is not known here makes of our calls
        raise CheckpointError(
            f"{checkpoint.name}: models of the family {checkpoint.model.config.model_type!r} do not work here "
            f"({type(error).__name__}: {error}); use one of those that `explainer models` lists."
        ) from error


def _warn_of_other_tokens(checkpoint: Checkpoint) -> None:
    """Say where the class of a tokenizer leaves out what its tokenizer.json has, as transformers 5 does in silence."""
    weights, kind, texts = checkpoint.files[0], type(checkpoint.tokenizer), [*_TEXTS, "In 2024, 10:30"]
    path = weights.parent / "tokenizer.json"
    if kind is PreTrainedTokenizerFast or weights.suffix.lower() == ".gguf" or not path.is_file():
        return
    written = PreTrainedTokenizerFast(tokenizer_file=str(path))
    if written(texts, add_special_tokens=False)["input_ids"] != checkpoint.tokenize_all(texts):
        warnings.warn(
            f"{checkpoint.name}: {kind.__name__} gives other tokens than its tokenizer.json; if the model was trained "
            'on those, put "tokenizer_class": "PreTrainedTokenizerFast" into tokenizer_config.json.',
            stacklevel=2,
        )


def _require_texts(checkpoint: Checkpoint) -> None:
    checkpoint.first_token_id, checkpoint.document_separator_id  # noqa: B018 - each raises where there is none
    tokenizer = checkpoint.tokenizer
    if not getattr(tokenizer, "is_fast", False):
        raise CheckpointError(
            f"{checkpoint.name}: its tokenizer ({type(tokenizer).__name__}) does not say where its tokens stand in a "
            "text; save one with a tokenizer.json beside the model, or use another model."
        )
    for text in _TEXTS:
        ids = checkpoint.tokenize(text)
        again = tokenizer.decode(ids, clean_up_tokenization_spaces=False)
        faithful = not _lost(tokenizer, text) if tokenizer.unk_token_id in ids else again.strip() == text
        if not faithful:
            raise CheckpointError(
                f"{checkpoint.name}: its tokenizer reads {text!r} back as {again!r}, so that prompts would lose what "
                "stands between their parts; save the tokenizer with the newest transformers, or use another model."
            )


def _lost(tokenizer: PreTrainedTokenizerBase, text: str) -> str:
    """What no token stands for, of a tokenizer that knows a few words only; single words need no spaces."""
    places = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    kept = {i for start, end in places for i in range(start, end)}
    return "".join(character for i, character in enumerate(text) if i not in kept and character != " ")


def _require_logits(checkpoint: Checkpoint) -> None:
    ids = torch.tensor([[3, 5, 7], [3, 5, 9]], device=checkpoint.device) % checkpoint.model.config.vocab_size
    full = checkpoint.model(input_ids=ids).logits.float()
    if not torch.isfinite(full).all() or not (full.std(-1) > 0).any():
        wide = checkpoint.dtype in _TOLERANCE
        what = "its weights are damaged, so fetch it again" if wide else "load it in float32"
        raise CheckpointError(f"{checkpoint.name}: logits are not finite, or all alike, in {checkpoint.dtype}; {what}.")
    if not _same(checkpoint, full[0, :2], full[1, :2]):
        raise CheckpointError(f"{checkpoint.name} is not causal: later tokens change earlier predictions; use a GPT.")
    if not _same(checkpoint, full, checkpoint.logits(checkpoint.hidden(input_ids=ids))):
        raise CheckpointError(f"{checkpoint.name}: this architecture changes its logits after the output embedding.")


def _require_prefix(checkpoint: Checkpoint) -> None:
    """Two rows behind one prefix, as far as a switch of positions lets a text grow if there is one."""
    tokens = torch.arange(3, 11) % checkpoint.model.config.vocab_size
    prefix, rows = [checkpoint.first_token_id, *tokens[:4].tolist()], (tokens[4:6].tolist(), tokens[6:].tolist())
    encoded = scoring.encode(checkpoint, prefix)
    for i, logits in scoring.row_logits(checkpoint, encoded, [(row, []) for row in rows]):
        ids = torch.tensor([[*prefix, *rows[i]]], device=checkpoint.device)
        if not _same(checkpoint, logits[0], checkpoint.model(input_ids=ids).logits[0, -1].float()):
            raise CheckpointError(
                f"{checkpoint.name}: models of the family {checkpoint.model.config.model_type!r} score a prompt behind "
                "a prefix otherwise than the whole prompt; use one of those that `explainer models` lists."
            )


def _same(checkpoint: Checkpoint, a: torch.Tensor, b: torch.Tensor) -> bool:
    if checkpoint.dtype in _TOLERANCE:
        return torch.allclose(a, b, atol=_TOLERANCE[checkpoint.dtype], rtol=1e-3)
    return bool((a - b).abs().mean() < _HALF_PRECISION * b.std())
