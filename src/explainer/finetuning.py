"""Fine-tuning on the demonstrations: the explicit gradient descent that in-context learning is compared with.

The protocol is that of Dai et al. (2023), section 3.2, and of their released code: plain SGD on the weights and biases
of the key and value projections alone, one epoch, one example per step, in the order of the demonstrations, with the
causal language-modelling loss on all tokens of the formatted example. Nothing is random. The result is an update dW
that can be applied to the checkpoint, taken off again, scaled and compared.

While an update is trained or applied, the modules with the key and value projections hold copies of their parameters;
on exit they get back the very same parameter objects. So the caller's tensors are never written to, and removal is
exact to the bit, where W + dW - dW would not be. (`torch.func.functional_call` does the same swap at every single
call.) Another thread must not use the model meanwhile.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from explainer import families
from explainer.checkpoints import Checkpoint
from explainer.errors import CheckpointError, ExplainerError, TaskError
from explainer.families import Architecture, Layer
from explainer.tasks import Example, Task

OnQueries = Callable[[int, Tensor], None]


class DivergenceError(ExplainerError):
    """Fine-tuning diverged, so there is no fine-tuned model to apply."""


class KeysValues(NamedTuple):
    """What belongs to the key and value projections of one layer.

    Weights have shape (key heads, head size, d), biases (key heads, head size); a bias is None where the model has
    none.
    """

    key_weight: Tensor
    key_bias: Tensor | None
    value_weight: Tensor
    value_bias: Tensor | None


@dataclass(frozen=True)
class FineTuned:
    """A checkpoint and the update dW that training its keys and values made, in float32 or wider.

    `losses[t]` and `gradient_norms[t]` are the loss of example t and the norm of its gradient in all trained
    parameters, both before step t; `loss_after` is the loss of the first example after the last step. `diverged_at`
    is the step whose loss or gradient showed that training had diverged (the number of examples if `loss_after` did),
    else None; `update` then ends before that step.
    """

    checkpoint: Checkpoint
    update: tuple[KeysValues, ...]
    lr: float
    losses: tuple[float, ...] = ()
    gradient_norms: tuple[float, ...] = ()
    loss_after: float = math.nan
    diverged_at: int | None = None

    @contextmanager
    def applied(self) -> Iterator[Checkpoint]:
        """The checkpoint with W + dW, inside a `with` block; on exit, also by an exception, its own W again.

        Raises DivergenceError after training that diverged: the last finite update is not a fine-tuned model.
        """
        if self.diverged_at is not None:
            raise DivergenceError(
                f"{self.checkpoint.name}: fine-tuning with learning rate {self.lr:g} diverged at step "
                f"{self.diverged_at}; use a smaller one."
            )
        layers = families.architecture(self.checkpoint.model).layers
        start = [_keys_values(layer) for layer in layers]
        with _copied(layers):
            _write(layers, start, self.update)
            yield self.checkpoint


def training_ids(checkpoint: Checkpoint, task: Task, examples: Sequence[Example]) -> list[list[int]]:
    """Token ids to fine-tune on: for each example the first token, then the demonstration without its separator.

    Source: the code released with Dai et al. (2023), fewshot_task.py, which drops the `</s>` of the context here.
    """
    demonstrations = checkpoint.tokenize_all([task.demonstration(example) for example in examples])
    return [[checkpoint.first_token_id, *ids] for ids in demonstrations]


def fine_tune(
    checkpoint: Checkpoint,
    sequences: Sequence[Sequence[int]],
    lr: float,
    *,
    on_queries: OnQueries | None = None,
    progress: bool = False,
) -> FineTuned:
    """W_t+1 = W_t - lr dL_t/dW_t for the key and value projections, one step for each sequence in the given order.

    L_t is the mean of -log p(token | tokens before it) over the tokens of sequence t after its first. A negative `lr`
    is gradient ascent, a control. Sums are kept in float32 or wider, whatever the number format of the checkpoint, as
    the released half-precision training does; the weights of each step are W_0 + dW, the ones that `applied` restores.

    `on_queries(t, queries)` is called before step t with the scaled attention queries of sequence t, shape (layers,
    tokens, heads * head size), first token included, before any rotation by the position.

    Raises CheckpointError (unknown family, sequence too long) and TaskError (sequence without a token to predict).
    """
    return _descend(checkpoint, sequences, lr, _backward, on_queries, progress)


def fine_tune_layer_causal(
    checkpoint: Checkpoint,
    sequences: Sequence[Sequence[int]],
    lr: float,
    *,
    on_queries: OnQueries | None = None,
    progress: bool = False,
) -> FineTuned:
    """Layer-causal gradient descent: the keys and values of a layer learn from what this layer alone predicts.

    L_t = sum over layers l of the cross-entropy (mean over tokens) of softmax(readout(h_l)), where h_l is the residual
    stream after block l, the gradient stops at the input of every block, and the readout is the model's final norm and
    output embedding. So the update of layer l depends on the layers below it only, as in-context learning does.
    `losses` are these sums; everything else is as in `fine_tune`.

    Source: Deutch et al. (2024), section 5, and their code (GiilDe/ft-vs-icl: models/gpt.py, criterions/fs_ft.py,
    run.sh), which takes one step for each demonstration too.
    """
    return _descend(checkpoint, sequences, lr, _backward_layer_causal, on_queries, progress)


def scaled(finetuned: FineTuned, factor: float) -> FineTuned:
    """The same training result with the update factor * dW; losses of the training do not belong to it."""
    return _with_update(finetuned, lambda dW: factor * dW)


def random_direction(finetuned: FineTuned, seed: int) -> FineTuned:
    """A control: isotropic Gaussian directions with the norm of each matrix (and bias vector) of the update."""
    generator = torch.Generator().manual_seed(seed)

    def draw(dW: Tensor) -> Tensor:
        direction = torch.randn(dW.shape, generator=generator, dtype=dW.dtype).to(dW.device)
        return direction * (dW.norm() / direction.norm())

    return _with_update(finetuned, draw)


def _with_update(finetuned: FineTuned, change: Callable[[Tensor], Tensor]) -> FineTuned:
    update = tuple(KeysValues(*(None if dW is None else change(dW) for dW in layer)) for layer in finetuned.update)
    return replace(finetuned, update=update, losses=(), gradient_norms=(), loss_after=math.nan)


def _descend(checkpoint, sequences, lr, backward, on_queries, progress) -> FineTuned:
    _check(checkpoint, sequences)
    architecture = families.architecture(checkpoint.model)
    layers = architecture.layers
    start = [_keys_values(layer) for layer in layers]
    update = tuple(KeysValues(*(None if W is None else torch.zeros_like(W, dtype=_wide(W)) for W in kv)) for kv in start)
    losses, norms = [], []
    with torch.inference_mode(False), torch.enable_grad(), _copied(layers) as parameters:
        for t, sequence in enumerate(tqdm(sequences, desc="fine-tuning", unit="step", disable=not progress)):
            ids = torch.tensor([sequence], device=checkpoint.device)
            with _recorded(layers, on_queries) as queries:
                losses.append(backward(architecture, ids, parameters))
            if on_queries:
                on_queries(t, torch.cat(queries))
            gradients = [_keys_values(layer, lambda parameter: parameter.grad) for layer in layers]
            norms.append(torch.stack([g.norm() for kv in gradients for g in kv if g is not None]).norm().item())
            for dW, g in _pairs(update, gradients):
                dW.sub_(g, alpha=lr)
            _write(layers, start, update)
            for parameter in parameters:
                parameter.grad = None
    return FineTuned(checkpoint, update, lr, tuple(losses), tuple(norms))


def _backward(architecture: Architecture, ids: Tensor, parameters: list[nn.Parameter]) -> float:
    hidden = architecture.model.base_model(input_ids=ids, use_cache=False).last_hidden_state
    logits = architecture.model.get_output_embeddings()(hidden[0, :-1])
    loss = F.cross_entropy(logits.to(_wide(logits)), ids[0, 1:])
    loss.backward(inputs=parameters)
    return loss.item()


READOUT_TOKENS = 256


def _backward_layer_causal(architecture: Architecture, ids: Tensor, parameters: list[nn.Parameter]) -> float:
    outputs = []

    def cut(_module, _args, output):
        hidden = output[0] if isinstance(output, tuple) else output
        outputs.append(hidden[0, :-1])
        return (hidden.detach(), *output[1:]) if isinstance(output, tuple) else hidden.detach()

    with ExitStack() as hooks:
        for layer in architecture.layers:
            hooks.callback(layer.block.register_forward_hook(cut).remove)
        architecture.model.base_model(input_ids=ids, use_cache=False)
    total, gradients = 0.0, []
    targets = ids[0, 1:]
    for chunk in torch.stack([h.detach() for h in outputs]).split(max(1, READOUT_TOKENS // len(targets))):
        chunk.requires_grad_()
        logits = architecture.readout(chunk)
        loss = F.cross_entropy(logits.to(_wide(logits)).flatten(0, 1), targets.repeat(len(chunk)), reduction="sum") / len(targets)
        gradients += torch.autograd.grad(loss, chunk)[0]
        total += loss.item()
    torch.autograd.backward(outputs, gradients, inputs=parameters)
    return total


def _wide(tensor: Tensor) -> torch.dtype:
    return torch.promote_types(tensor.dtype, torch.float32)


def _keys_values(layer: Layer, of=lambda parameter: parameter) -> KeysValues:
    def bias(projection):
        return None if projection.module.bias is None else projection.bias(of(projection.module.bias))
    k, v = layer.key, layer.value
    return KeysValues(k.weight(of(k.module.weight)), bias(k), v.weight(of(v.module.weight)), bias(v))


def _pairs(*sides):
    for layers in zip(*sides, strict=True):
        for tensors in zip(*layers, strict=True):
            if tensors[0] is not None:
                yield tensors


@torch.no_grad()
def _write(layers, start, update) -> None:
    for W, W_0, dW in _pairs([_keys_values(layer) for layer in layers], start, update):
        W.copy_(W_0 + dW)


@contextmanager
def _copied(layers):
    modules = list(dict.fromkeys(p.module for layer in layers for p in (layer.key, layer.value)))
    originals = [(module, name, parameter) for module in modules for name, parameter in module.named_parameters(recurse=False)]
    try:
        for module, name, parameter in originals:
            setattr(module, name, nn.Parameter(parameter.detach().clone()))
        yield [p for module in modules for p in module.parameters(recurse=False)]
    finally:
        for module, name, parameter in originals:
            setattr(module, name, parameter)


@contextmanager
def _recorded(layers, on_queries):
    queries = []
    with ExitStack() as hooks:
        for layer in layers if on_queries else ():
            def record(_m, _a, output, layer=layer):
                queries.append(layer.queries(output.detach()))
            hooks.callback(layer.query_module.register_forward_hook(record).remove)
        yield queries


def _check(checkpoint, sequences):
    pass
