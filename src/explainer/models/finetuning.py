"""Fine-tuning on the demonstrations: the explicit gradient descent that in-context learning is compared with.

The protocol is that of Dai et al. (2023), section 3.2, and of their released code: plain SGD on the weights and biases
of the key and value projections alone, one epoch, one example per step, in the order of the demonstrations, with the
causal language-modelling loss on all tokens of the formatted example.

While an update is trained or applied, the modules that compute keys and values hold copies of their parameters; on
exit they get back the very same objects, so that removal is exact to the bit. Another thread must not use the model
meanwhile.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from tqdm import tqdm

from explainer.data.tasks import Example, Task
from explainer.errors import CheckpointError, DivergenceError, TaskError
from explainer.models import architectures, hooks, onednn, scoring
from explainer.models.architectures import Architecture, Layer
from explainer.models.loading import Checkpoint

OUTGROWN = 10.0
"""Training has diverged when the norm of an update is more than so many times that of the weights."""

_DIVERGED = 1.5  # or when the loss of a sequence is more than so many times what it was before any training
_READOUT_TOKENS = 256  # enough for fast matrix products, few enough to keep a vocabulary of logits small

_OnQueries = Callable[[int, Tensor], None]
_Objective = Callable[[Architecture, Tensor], tuple[float, Tensor]]
"""From token ids, shape (1, tokens), to a loss and a scalar that has the loss's gradient in keys and values."""


class KeysValues(NamedTuple):
    """What belongs to the keys and values of one layer: weights (key heads, head size, d) and biases, or None."""

    key_weight: Tensor
    key_bias: Tensor | None
    value_weight: Tensor
    value_bias: Tensor | None

    def map(self, function: Callable[[Tensor], Tensor]) -> "KeysValues":
        """The function of every tensor."""
        return KeysValues(*(None if tensor is None else function(tensor) for tensor in self))


@dataclass(frozen=True, eq=False)
class FineTuned:
    """A checkpoint and the update dW of its keys and values, one entry per layer, in float32 or wider.

    `losses[t]` is the loss of sequence t and `gradient_norms[t]` the norm of its gradient in all keys and values, both
    before step t; `loss_after` is the loss of the first sequence after the last step.

    `diverged_at` is None, or the first step t before which training had diverged, with t = n for after the last one: a
    loss or gradient is not finite; or the loss of a sequence is the largest so far and more than 1.5 times its loss (at
    least 1 nat) with the checkpoint's own weights; or the dW of a weight is more than 10 times as large as the weight.
    Training stops there, and `update` is that of the steps before t.
    """

    checkpoint: Checkpoint = field(repr=False)
    update: tuple[KeysValues, ...] = field(repr=False)
    lr: float
    losses: tuple[float, ...]
    gradient_norms: tuple[float, ...]
    loss_after: float
    diverged_at: int | None

    @property
    def norm(self) -> float:
        """Length of dW: the root of the sum of the squares of all its entries."""
        return _norm(self.update)

    @contextmanager
    def applied(self) -> Iterator[Checkpoint]:
        """The checkpoint with weights W + dW inside a `with` block; on exit, also by an exception, with its own.

        Raises DivergenceError after training that diverged: the update up to then is not a fine-tuned model.
        """
        if self.diverged_at is not None:
            raise DivergenceError(
                f"{self.checkpoint.name}: fine-tuning with learning rate {self.lr:g} diverged at step "
                f"{self.diverged_at}; use a smaller one."
            )
        layers = architectures.architecture(self.checkpoint.model).layers
        own = _parameters(layers)
        with _held(_copies(own)):
            _write(layers, own, self.update)
            yield self.checkpoint


def training_ids(checkpoint: Checkpoint, task: Task, examples: Sequence[Example]) -> list[list[int]]:
    """Token ids to fine-tune on: for each example the first token, then the demonstration without its separator.

    Source: the code released with Dai et al. (2023), fewshot_task.py, which drops the separator `</s>` here.
    """
    demonstrations = checkpoint.tokenize_all([task.demonstration(example) for example in examples])
    return [[checkpoint.first_token_id, *ids] for ids in demonstrations]


def answer_lengths(checkpoint: Checkpoint, task: Task, examples: Sequence[Example]) -> dict[tuple[int, ...], int]:
    """How many of the last tokens of each of the `training_ids` are the answer's.

    Raises TaskError when a token straddles prompt and answer.
    """
    answers = [task.demonstration(example).removeprefix(task.prompt(example)) for example in examples]
    tokens = scoring.continuation_ids(checkpoint, [task.prompt(example) for example in examples], answers)
    whole = map(tuple, training_ids(checkpoint, task, examples))
    return {ids: len(answer) for ids, answer in zip(whole, tokens, strict=True)}


def fine_tune(
    checkpoint: Checkpoint,
    sequences: Sequence[Sequence[int]],
    lr: float,
    *,
    on_queries: _OnQueries | None = None,
    progress: bool = False,
) -> FineTuned:
    """W_(t+1) = W_t - lr dL_t/dW_t for the keys' and values' W, one step for each sequence in the given order.

    L_t is the mean of -log p(token | tokens before it) over the tokens of sequence t after its first. A negative `lr`
    is gradient ascent. dW is summed in float32 or wider, and the weights of each step are W_0 + dW, rounded once.
    `on_queries(t, queries)` is called before step t with the scaled attention queries of sequence t, (layers, tokens,
    heads * head size), before any rotation by the position.

    Raises CheckpointError (unknown family, sequence too long) and TaskError (sequence without a token to predict).
    Source: Dai et al. (2023), section 3.2; code: fairseq/trainer.py (`attn_kv`), criterions/fs_ft.py.
    """
    return _descend(checkpoint, sequences, lr, _language_modelling, on_queries=on_queries, progress=progress)


def fine_tune_layer_causal(
    checkpoint: Checkpoint,
    sequences: Sequence[Sequence[int]],
    lr: float,
    *,
    on_queries: _OnQueries | None = None,
    progress: bool = False,
) -> FineTuned:
    """Layer-causal gradient descent: each layer's keys and values learn from what its own output predicts.

    L_t = sum over layers l of CE(softmax(readout(h_l)), next tokens), the mean over tokens, where h_l is the residual
    stream after block l, and the gradient stops at the input of every block. The rest is as in `fine_tune`.

    Source: Deutch et al. (2024), "layer-causal gradient descent"; their code (GiilDe/ft-vs-icl) in models/gpt.py
    (detached inputs, readout of every layer), criterions/fs_ft.py (sum of losses) and run.sh (one sequence per step).
    """
    return _descend(checkpoint, sequences, lr, _layer_causal, on_queries=on_queries, progress=progress)


def scale_update(finetuned: FineTuned, factor: float) -> FineTuned:
    """The checkpoint with the update factor * dW."""
    return _with_update(finetuned, lambda dW: factor * dW)


def truncate_rank(finetuned: FineTuned, rank: int) -> FineTuned:
    """The checkpoint with the nearest update of at most this rank in each weight matrix: sum_(i <= rank) s_i u_i v_i^T.

    The matrices are (key heads * head size, d); biases stay as they are. Raises ValueError for a rank below 1.
    """
    if rank < 1:
        raise ValueError(f"rank is {rank}; an update keeps at least one direction.")

    def cut(dW: Tensor) -> Tensor:
        if dW.ndim < 3:
            return dW
        U, s, Vh = torch.linalg.svd(dW.flatten(0, 1), full_matrices=False)
        return (U[:, :rank] * s[:rank] @ Vh[:rank]).view_as(dW)

    return _with_update(finetuned, cut)


def random_update(finetuned: FineTuned, seed: int) -> FineTuned:
    """The checkpoint with a random update, a control: isotropic, with the norm of each weight and bias of dW."""
    generator = torch.Generator().manual_seed(seed)

    def draw(dW: Tensor) -> Tensor:
        direction = torch.randn(dW.shape, generator=generator, dtype=dW.dtype).to(dW.device)
        return direction * (dW.norm() / direction.norm())

    return _with_update(finetuned, draw)


def _with_update(finetuned: FineTuned, change: Callable[[Tensor], Tensor]) -> FineTuned:
    """The same with another update, to which no training losses belong."""
    update = tuple(layer.map(change) for layer in finetuned.update)
    return replace(finetuned, update=update, losses=(), gradient_norms=(), loss_after=math.nan)


# Gradient descent.


@torch.inference_mode(False)  # which switches gradients on, too, whatever the caller has switched off
def _descend(
    checkpoint: Checkpoint,
    sequences: Sequence[Sequence[int]],
    lr: float,
    objective: _Objective,
    *,
    on_queries: _OnQueries | None,
    progress: bool,
) -> FineTuned:
    require_trainable(checkpoint, sequences)
    architecture = architectures.architecture(checkpoint.model)
    layers = architecture.layers
    own = _parameters(layers)
    trained = _copies(own, requires_grad=True)
    start = [keys_values(layer) for layer in layers]
    update = tuple(W.map(lambda tensor: torch.zeros_like(tensor, dtype=_wide(tensor))) for W in start)
    losses, norms = [], []

    def result(loss_after: float, diverged_at: int | None) -> FineTuned:
        return FineTuned(checkpoint, update, lr, tuple(losses), tuple(norms), loss_after, diverged_at)

    @torch.no_grad()
    def loss_with(parameters: _Held, ids: Tensor) -> float:
        with _held(parameters):
            return objective(architecture, ids)[0]

    rows = [torch.tensor([sequence], device=checkpoint.device) for sequence in sequences]
    with onednn.use_onednn(), _held(trained):
        for t, ids in enumerate(tqdm(rows, desc="fine-tuning", unit="step", disable=not progress)):
            with _queries(layers, on_queries, t):
                loss, root = objective(architecture, ids)
            gradients = _gradients(layers, root, trained)
            losses.append(loss)
            norms.append(_norm(gradients))
            rising = t > 0 and loss > max(losses[:t])
            if (
                not math.isfinite(loss + norms[t])
                or _outgrown(start, update)
                or (rising and loss_diverged(loss, loss_with(own, ids)))
            ):
                return result(math.nan, t)
            for dW, g in _tensors(update, gradients):
                dW.sub_(g, alpha=lr)
            _write(layers, own, update)
    loss_after = loss_with(trained, rows[0]) if rows else math.nan
    diverged = rows and (loss_diverged(loss_after, losses[0]) or _outgrown(start, update))
    return result(loss_after, len(rows) if diverged else None)


def loss_diverged(loss: float, untrained_loss: float) -> bool:
    """Whether a loss is more than 1.5 times what it was before any training; not a number is."""
    return not loss <= _DIVERGED * max(untrained_loss, 1.0)


def _outgrown(start: Sequence[KeysValues], update: Sequence[KeysValues]) -> bool:
    """Whether the update of any weight is more than 10 times as long as the weight."""
    pairs = [(dW[i], W[i]) for W, dW in zip(start, update, strict=True) for i in (0, 2)]  # the weights, not the biases
    return not torch.stack([dW.norm() <= OUTGROWN * W.norm(dtype=dW.dtype) for dW, W in pairs]).all()


def _norm(gradients: Sequence[KeysValues]) -> float:
    return torch.stack([g.norm(dtype=_wide(g)) for (g,) in _tensors(gradients)]).norm().item()


def require_trainable(checkpoint: Checkpoint, sequences: Sequence[Sequence[int]]) -> None:
    """Raise TaskError for a sequence without a token to predict, CheckpointError for one that is too long."""
    for t, sequence in enumerate(sequences):
        if len(sequence) < 2:
            raise TaskError(f"sequence {t} has {len(sequence)} tokens; training needs one to predict from another.")
        if len(sequence) > checkpoint.context_length:
            raise CheckpointError(
                f"{checkpoint.name} has {checkpoint.context_length} positions, sequence {t} has {len(sequence)} "
                "tokens; shorten its text."
            )


def _language_modelling(architecture: Architecture, ids: Tensor) -> tuple[float, Tensor]:
    hidden = architecture.model.base_model(input_ids=ids, use_cache=False).last_hidden_state
    logits = architectures.logits(architecture.model, hidden[0, :-1])
    loss = cross_entropy(logits.to(_wide(logits)), ids[0, 1:])
    return loss.item(), loss


def _layer_causal(architecture: Architecture, ids: Tensor) -> tuple[float, Tensor]:
    """The gradients e_l = dL_l/dh_l of all layers come first, in few large products; the scalar is sum_l e_l . h_l.

    It has the gradient of L, because e_l is a constant in it, and never holds the logits of more than a few layers.
    """
    hidden = torch.stack(_cut_outputs(architecture, ids))[:, :-1]
    errors, loss = torch.zeros_like(hidden), 0.0
    n = max(1, _READOUT_TOKENS // hidden.shape[1])
    for h, e in zip(hidden.detach().split(n), errors.split(n), strict=True):
        part = _readout_loss(architecture, h.requires_grad_(hidden.requires_grad), ids[0, 1:])
        loss += part.item()
        if hidden.requires_grad:
            e.copy_(torch.autograd.grad(part, h)[0])
    return loss, (errors * hidden).sum()


def _readout_loss(architecture: Architecture, hidden: Tensor, targets: Tensor) -> Tensor:
    """Sum over layers of the mean cross-entropy over tokens; hidden (layers, tokens, d), targets (tokens,)."""
    logits = architecture.readout(hidden).flatten(0, 1)
    total = cross_entropy(logits.to(_wide(logits)), targets.repeat(len(hidden)), reduction="sum")
    return total / len(targets)


def _cut_outputs(architecture: Architecture, ids: Tensor) -> list[Tensor]:
    """Output of every block, (tokens, d); each block's input carries no gradient to the blocks below it."""
    outputs = []

    def cut(_x: Tensor, hidden: Tensor) -> Tensor:
        outputs.append(hidden[0])
        return hidden.detach()

    with hooks.outputs((layer.block, cut) for layer in architecture.layers):
        architecture.model.base_model(input_ids=ids, use_cache=False)
    return outputs


@contextmanager
def _queries(layers: Sequence[Layer], on_queries: _OnQueries | None, t: int) -> Iterator[None]:
    """Hand the queries of the forward pass inside the `with` block to `on_queries`, if there is one."""
    if on_queries is None:
        yield
        return
    outputs = []
    with hooks.outputs((layer.query_module, lambda _x, output: outputs.append(output)) for layer in layers):
        yield
    with torch.no_grad():
        on_queries(t, torch.cat([layer.queries(output) for layer, output in zip(layers, outputs, strict=True)]))


# Parameters of the key and value projections. A fused module brings its queries along; they are never changed.

_Held = list[tuple[nn.Module, str, nn.Parameter]]


def _parameters(layers: Sequence[Layer]) -> _Held:
    """Module, name and parameter; a fused module, which serves keys and values, once."""
    modules = dict.fromkeys(projection.module for layer in layers for projection in (layer.key, layer.value))
    return [(module, *named) for module in modules for named in module.named_parameters(recurse=False)]


def _copies(parameters: _Held, requires_grad: bool = False) -> _Held:
    return [(module, name, nn.Parameter(p.detach().clone(), requires_grad)) for module, name, p in parameters]


@contextmanager
def _held(parameters: _Held) -> Iterator[None]:
    """Let the modules hold these parameters, and afterwards the ones they held before."""
    before = [(module, name, getattr(module, name)) for module, name, _ in parameters]
    try:
        for module, name, parameter in parameters:
            setattr(module, name, parameter)
        yield
    finally:
        for module, name, parameter in before:
            setattr(module, name, parameter)


def keys_values(layer: Layer, of: Callable[[nn.Parameter], Tensor] = nn.Parameter.detach) -> KeysValues:
    """Views of the keys' and values' part of the parameters that the layer holds, or of a tensor `of` each of them."""
    weights_and_biases = []
    for projection in (layer.key, layer.value):
        weight, bias = projection.module.weight, projection.module.bias
        weights_and_biases.append(projection.weight(of(weight)))
        weights_and_biases.append(None if bias is None else projection.bias(of(bias)))
    return KeysValues(*weights_and_biases)


def _gradients(layers: Sequence[Layer], root: Tensor, trained: _Held) -> list[KeysValues]:
    """Views of the gradients, each written over its parameter once the backward pass has used that.

    A gradient is as large as its parameter, and those of all layers together would be the most that a step needs.
    """

    def give_way(parameter: Tensor) -> None:
        parameter.data.copy_(parameter.grad)
        parameter.grad = None

    parameters = [parameter for _, _, parameter in trained]
    handles = [parameter.register_post_accumulate_grad_hook(give_way) for parameter in parameters]
    root.backward(inputs=parameters)
    for handle in handles:
        handle.remove()
    return [keys_values(layer) for layer in layers]


def _write(layers: Sequence[Layer], own: _Held, update: Sequence[KeysValues]) -> None:
    """W = W_0 + dW, rounded to the number format of W; the parameters that the layers hold must be copies."""
    for (_, _, copy), (_, _, parameter) in zip(_parameters(layers), own, strict=True):
        copy.data.copy_(parameter)
    for W, dW in _tensors([keys_values(layer) for layer in layers], update):
        W.add_(dW)


def _tensors(*sides: Sequence[KeysValues]) -> Iterator[tuple[Tensor, ...]]:
    """The tensors of all layers, of several sides together."""
    for layers in zip(*sides, strict=True):
        for tensors in zip(*layers, strict=True):
            if tensors[0] is not None:
                yield tensors


def _wide(tensor: Tensor) -> torch.dtype:
    return torch.promote_types(tensor.dtype, torch.float32)
