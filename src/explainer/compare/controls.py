"""Controls: what is changed in a comparison of ICL with FT to see whether its numbers depend on it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from transformers import AutoModelForCausalLM

from explainer.data import tasks
from explainer.data.tasks import Example, Task, TaskData
from explainer.errors import TaskError
from explainer.models import architectures, finetuning
from explainer.models.finetuning import FineTuned
from explainer.models.loading import Checkpoint

Model = Callable[[Checkpoint, int], Checkpoint]
"""(checkpoint, seed) -> the checkpoint that is studied."""

Demonstrations = Callable[[TaskData, int, int], tuple[Task, list[Example]]]
"""(data, k, seed) -> k demonstrations and the task whose template they are written in."""

_Descend = Callable[..., FineTuned]  # (checkpoint, sequences, lr, on_queries=...) -> FT
_Change = Callable[[FineTuned, int], FineTuned]  # (FT, seed) -> FT with another update


# Demonstrations.


def own(data: TaskData, k: int, seed: int) -> tuple[Task, list[Example]]:
    """The task and the k demonstrations that the seed draws."""
    return data.task, tasks.demonstrations(data, k, seed)


def _shuffled(data: TaskData, k: int, seed: int) -> tuple[Task, list[Example]]:
    """The same inputs with the same answers in another order."""
    examples = tasks.demonstrations(data, k, seed)
    answers = [examples[i] for i in _order(k, seed)]
    return data.task, [replace(d, answer=a.answer, label=a.label) for d, a in zip(examples, answers, strict=True)]


def _flipped(data: TaskData, k: int, seed: int) -> tuple[Task, list[Example]]:
    """The same inputs, each with the label after its own, the first after the last: not one answer is right.

    Raises TaskError for a task without labels.
    """
    labels = data.task.labels
    if labels is None:
        raise TaskError(f"task {data.task.name!r} has no labels to flip; shuffle its answers instead.")
    examples = tasks.demonstrations(data, k, seed)
    following = [(y + 1) % len(labels) for y in data.task.labels_of(examples) or ()]
    return data.task, [replace(d, answer=labels[y], label=y) for d, y in zip(examples, following, strict=True)]


def _reordered(data: TaskData, k: int, seed: int) -> tuple[Task, list[Example]]:
    """The same demonstrations in another order."""
    examples = tasks.demonstrations(data, k, seed)
    return data.task, [examples[i] for i in _order(k, seed)]


def _other(data: TaskData, k: int, seed: int) -> tuple[Task, list[Example]]:
    """The k examples of the same task that the seed draws after the first k; TaskError if there are fewer than 2 k."""
    return data.task, tasks.demonstrations(data, 2 * k, seed)[k:]


def _nonsense(data: TaskData, k: int, seed: int) -> tuple[Task, list[Example]]:
    """The format and nothing else: in the task's template, every word of every field and answer is made up."""
    generator = np.random.default_rng([seed, 2])

    def made_up(text: str) -> str:
        return " ".join(made_up_word(generator) for _ in text.split())

    examples = tasks.demonstrations(data, k, seed)
    texts = [{name: made_up(text) for name, text in example.fields.items()} for example in examples]
    return data.task, [Example(fields, made_up(e.answer)) for fields, e in zip(texts, examples, strict=True)]


def made_up_word(generator: np.random.Generator) -> str:
    """Two or three syllables of a consonant and a vowel, and a consonant."""
    letters = [("bdfgklmnprstvz", "aeiou")[i % 2] for i in range(2 * generator.integers(2, 4) + 1)]
    return "".join(generator.choice(list(those)) for those in letters)


def _foreign(data: TaskData, k: int, seed: int) -> tuple[Task, list[Example]]:
    """Demonstrations of another task, `explainer.data.tasks.unrelated_task`."""
    return own(tasks.load(tasks.unrelated_task(data.task)), k, seed)


LESSONS: Mapping[str, Demonstrations] = {
    "own": own, "shuffled": _shuffled, "flipped": _flipped, "reordered": _reordered, "other": _other,
    "nonsense": _nonsense, "foreign": _foreign,
}  # fmt: skip
"""What may be taught instead of the task's own examples, by name; those of FT and of a context are made alike."""


def _order(k: int, seed: int) -> np.ndarray:
    return np.random.default_rng([seed, 1]).permutation(k)


# Models.


def _as_loaded(checkpoint: Checkpoint, _seed: int) -> Checkpoint:
    """The checkpoint itself."""
    return checkpoint


def _untrained(checkpoint: Checkpoint, seed: int) -> Checkpoint:
    """The same architecture with the random weights it would be trained from, and the same tokenizer."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(checkpoint.model.config, dtype=checkpoint.dtype)
    return replace(checkpoint, model=model.eval().requires_grad_(False).to(checkpoint.device))


@torch.no_grad()
def _untrained_layers(checkpoint: Checkpoint, seed: int) -> Checkpoint:
    """Random attention and MLP matrices between the trained embeddings, norms and readout.

    The half-trained baseline of Deutch et al. (2024), table 1.
    """
    random = _untrained(checkpoint, seed)
    kept = checkpoint.model.state_dict()
    matrices = _matrices_in_layers(random)
    for name, tensor in random.model.state_dict().items():
        if name not in matrices:
            tensor.copy_(kept[name])
    return random


@torch.no_grad()
def _permuted_weights(checkpoint: Checkpoint, seed: int) -> Checkpoint:
    """The entries of every attention and MLP matrix in a random order: the same numbers, no structure."""
    other = _untrained(checkpoint, seed)
    generator = torch.Generator().manual_seed(seed)
    kept = checkpoint.model.state_dict()
    matrices = _matrices_in_layers(checkpoint)
    for name, tensor in other.model.state_dict().items():
        source = kept[name].flatten()
        if name in matrices:
            source = source[torch.randperm(source.numel(), generator=generator).to(source.device)]
        tensor.copy_(source.view_as(tensor))
    return other


def _matrices_in_layers(checkpoint: Checkpoint) -> set[str]:
    """Names of all weight matrices of the transformer blocks, which are not norms, biases or embeddings."""
    names = {module: name for name, module in checkpoint.model.named_modules()}
    blocks = [names[layer.block] for layer in architectures.architecture(checkpoint.model).layers]
    return {
        name
        for name, tensor in checkpoint.model.state_dict().items()
        if tensor.ndim == 2 and any(name.startswith(f"{block}.") for block in blocks)
    }


# Fine-tuning.


def _ascend(checkpoint: Checkpoint, sequences: list[list[int]], lr: float, **options) -> FineTuned:
    """FT by gradient ascent."""
    return finetuning.fine_tune(checkpoint, sequences, -lr, **options)


def _layer_causal(checkpoint: Checkpoint, sequences: list[list[int]], lr: float, **options) -> FineTuned:
    descent = finetuning.fine_tune(checkpoint, sequences, lr)
    return as_long(finetuning.fine_tune(checkpoint, sequences, lr, layer_causal=True, **options), descent)


def as_long(found: FineTuned, descent: FineTuned) -> FineTuned:
    """Another training, with an update as long as that of descent, unless one diverged: a rate means other lengths."""
    if descent.diverged_at is not None or found.diverged_at is not None:
        return found
    return replace(found, update=found.scaled(descent.norm / found.norm).update)


def _random_direction(finetuned: FineTuned, seed: int) -> FineTuned:
    """A random update of the same norm, weight by weight, with the losses of the training that gave the norms."""
    random = finetuned.randomised(seed)
    return replace(random, losses=finetuned.losses, gradient_norms=finetuned.gradient_norms)


@dataclass(frozen=True)
class Control:
    """A comparison in which one thing is changed: the model, the context of ICL, or the training of FT.

    `note` says what is changed.
    """

    note: str
    model: Model = _as_loaded
    context: Demonstrations = own
    training: Demonstrations = own
    descend: _Descend = finetuning.fine_tune
    update: _Change | None = None


CONTROLS: Mapping[str, Control] = {
    "none": Control("the comparison itself"),
    "shuffled-context": Control("the answers in the context are shuffled; FT sees the right ones", context=_shuffled),
    "flipped-context": Control("every label in the context is wrong; FT sees the right ones", context=_flipped),
    "foreign-context": Control("the context is of another task; FT sees the task's own examples", context=_foreign),
    "nonsense-context": Control("the context has the format of the task and made-up words", context=_nonsense),
    "reordered-context": Control("the context has the examples of FT in another order", context=_reordered),
    "shuffled-training": Control(
        "FT is trained on shuffled answers; the context has the right ones", training=_shuffled
    ),
    "flipped-training": Control(
        "FT is trained on wrong labels only; the context has the right ones", training=_flipped
    ),
    "nonsense-training": Control("FT is trained on the format of the task with made-up words", training=_nonsense),
    "reordered-training": Control("FT sees the examples of the context in another order", training=_reordered),
    "other-training": Control("FT is trained on other examples of the task than the context has", training=_other),
    "foreign-training": Control("FT is trained on another task than that of the context", training=_foreign),
    "ascent": Control("FT ascends the gradient", descend=_ascend),
    "layer-causal": Control(
        "each layer of FT learns from its own readout only (Deutch et al. 2024)",
        descend=partial(finetuning.fine_tune, layer_causal=True),
    ),
    "layer-causal-as-long": Control(
        "each layer of FT learns from its own readout only; the update is as long as that of FT", descend=_layer_causal
    ),
    "random-direction": Control(
        "the update of FT has a random direction, weight by weight of the same norm", update=_random_direction
    ),
    "untrained": Control("a model of the same architecture with new random weights", model=_untrained),
    "untrained-layers": Control(
        "random attention and MLP weights between trained embeddings, norms and readout", model=_untrained_layers
    ),
    "permuted-weights": Control(
        "the entries of every attention and MLP matrix are in a random order", model=_permuted_weights
    ),
}
"""What may be changed, by name."""
