"""Fine-tuning on the demonstrations: the explicit gradient descent that in-context learning is compared with.

The protocol is that of Dai et al. (2023), section 3.2, and of their released code: plain SGD on the weights and biases
of the key and value projections alone, one epoch, one example per step, in the order of the demonstrations, with the
causal language-modelling loss on all tokens of the formatted example.

Several runs of one checkpoint are trained side by side, and one is a batch of one. Run b has an update dW_b of its own:
every projection gives W_0 x + dW_b x for the tokens x of run b. The gradient of a linear layer is a sum of outer
products, dL/dW = sum_t e_t x_t^T with e_t = dL/d(W x_t), so only the errors e_t are asked of the backward pass. Shorter
sequences end in tokens that no earlier one sees and that have no loss.

While weights are changed, another thread must not use the model.
"""

import math
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from tqdm import tqdm, trange

from explainer.data.tasks import Example, Task
from explainer.errors import DivergenceError
from explainer.models import architectures, hooks, scoring
from explainer.models.architectures import Architecture, Layer, Projection
from explainer.models.loading import Checkpoint

_OUTGROWN = 10.0  # training has diverged when the norm of an update is more than so many times that of the weights,
_DIVERGED = 1.5  # or when the loss of a sequence is more than so many times what it was before any training
_READOUT_TOKENS = 256  # enough for fast matrix products, few enough to keep a vocabulary of logits small


class KeysValues(NamedTuple):
    """What belongs to the keys and values of one layer: weights (key heads, head size, d) and biases, or None."""

    key_weight: Tensor
    key_bias: Tensor | None
    value_weight: Tensor
    value_bias: Tensor | None

    @classmethod
    def of(cls, layer: Layer) -> "KeysValues":
        """Views of the parameters that the layer has now, without gradients."""
        views = (view for its in (layer.key, layer.value) for view in (its.weight(), its.bias()))
        return cls(*(None if view is None else view.data for view in views))

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
        norms = [dW.norm() for layer in self.update for dW in layer if dW is not None]
        return torch.stack(norms).norm().item()

    @contextmanager
    def applied(self) -> Iterator[Checkpoint]:
        """The checkpoint with weights W + dW, rounded once, inside a `with` block; however it ends, with its own.

        Raises DivergenceError after training that diverged: the update up to then is not a fine-tuned model.
        """
        if self.diverged_at is not None:
            how = f"fine-tuning with learning rate {self.lr:g} diverged at step {self.diverged_at}"
            raise DivergenceError(f"{self.checkpoint.name}: {how}.")
        layers = architectures.architecture(self.checkpoint.model).layers
        modules = dict.fromkeys(part.module for layer in layers for part in (layer.key, layer.value))
        with restored([parameter for module in modules for parameter in module.parameters(recurse=False)]):
            for layer, update in zip(layers, self.update, strict=True):
                for W, dW in zip(KeysValues.of(layer), update, strict=True):
                    if dW is not None:
                        W.add_(dW)
            yield self.checkpoint

    def scaled(self, factor: float) -> "FineTuned":
        """The checkpoint with the update factor * dW."""
        return self._with(lambda dW: factor * dW)

    def truncated(self, rank: int) -> "FineTuned":
        """With the nearest update of at most this rank in each weight matrix: sum_(i <= rank) s_i u_i v_i^T.

        The matrices are (key heads * head size, d); biases stay as they are.
        """

        def cut(dW: Tensor) -> Tensor:
            if dW.ndim < 3:
                return dW
            U, s, Vh = torch.linalg.svd(dW.flatten(0, 1), full_matrices=False)
            return (U[:, :rank] * s[:rank] @ Vh[:rank]).view_as(dW)

        return self._with(cut)

    def randomised(self, seed: int) -> "FineTuned":
        """With a random update, a control: isotropic, with the norm of each weight and bias of dW."""
        generator = torch.Generator().manual_seed(seed)

        def draw(dW: Tensor) -> Tensor:
            direction = torch.randn(dW.shape, generator=generator, dtype=dW.dtype).to(dW.device)
            return direction * (dW.norm() / direction.norm())

        return self._with(draw)

    def _with(self, change: Callable[[Tensor], Tensor]) -> "FineTuned":
        """The same with another update, to which no training losses belong."""
        update = tuple(layer.map(change) for layer in self.update)
        return replace(self, update=update, losses=(), gradient_norms=(), loss_after=math.nan)


@contextmanager
def restored(parameters: Sequence[nn.Parameter]) -> Iterator[None]:
    """Whatever happens in a `with` block, afterwards the parameters hold what they held before it."""
    own = [(parameter, parameter.detach().clone(), parameter.requires_grad) for parameter in parameters]

    def restore() -> None:
        for parameter, values, requires_grad in own:
            parameter.requires_grad_(requires_grad)
            parameter.data.copy_(values)

    with hooks.restoring(restore):
        yield


@dataclass(frozen=True)
class Run:
    """A fine-tuning: one step for each sequence of token ids, in this order, and the learning rate.

    `answers` says how many of a sequence's last tokens are asked for; without it, all after its first, as in the paper.
    """

    sequences: Sequence[Sequence[int]] = field(repr=False)
    lr: float
    answers: Mapping[tuple[int, ...], int] | None = field(default=None, repr=False)

    def asked(self) -> "list[_Asked]":
        """The sequence of every step, with what of it is asked for."""
        every = map(tuple, self.sequences)
        return [(ids, 1 if self.answers is None else len(ids) - self.answers[ids]) for ids in every]


_Asked = tuple[tuple[int, ...], int]
"""Token ids, and the first place of which the token is asked for."""


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


def repeat_epochs(sequences: Sequence[Sequence[int]], n: int, seed: int) -> list[Sequence[int]]:
    """The sequences n times: first in their own order, as the paper trains, then each time in an order drawn anew."""
    generator = torch.Generator().manual_seed(seed)
    orders = [torch.randperm(len(sequences), generator=generator).tolist() for _ in range(n - 1)]
    return [*sequences, *(sequences[i] for order in orders for i in order)]


@torch.inference_mode(False)  # which switches gradients on, too, whatever the caller has switched off
def fine_tune(
    checkpoint: Checkpoint,
    sequences: Sequence[Sequence[int]],
    lr: float,
    *,
    layer_causal: bool = False,
    on_queries: Callable[[int, Tensor], None] | None = None,
    progress: bool = False,
) -> FineTuned:
    """W_(t+1) = W_t - lr dL_t/dW_t for the keys' and values' W, one step for each sequence in the given order.

    L_t is the mean of -log p(token | tokens before it) over the tokens of sequence t after its first. A negative `lr`
    is gradient ascent. dW is summed in float32 or wider. `on_queries(t, queries)` is called before step t with the
    scaled attention queries of sequence t, (layers, tokens, heads * head size), before any rotation by the position.

    `layer_causal`: each layer's keys and values learn from what its own output predicts, L_t = sum over layers l of
    CE(softmax(readout(h_l)), next tokens), where h_l is the residual stream after block l, and the gradient stops at
    the input of every block.

    Raises CheckpointError for an unknown family.
    Source: Dai et al. (2023), section 3.2; code: fairseq/trainer.py (`attn_kv`), criterions/fs_ft.py. Deutch et al.
    (2024), "layer-causal gradient descent"; code (GiilDe/ft-vs-icl): models/gpt.py, criterions/fs_ft.py, run.sh.
    """
    objective = _layer_causal if layer_causal else _language_modelling
    descent = _Descent(checkpoint, [Run(sequences, lr)], objective, on_queries)
    ((state,),) = (states.values() for states in descent.run([len(sequences)], progress))
    return state


@torch.inference_mode(False)
def fine_tune_runs(
    checkpoint: Checkpoint, runs: Sequence[Run], after: Collection[int], *, progress: bool = False
) -> list[dict[int, FineTuned]]:
    """For each run what `fine_tune` gives after each of the numbers of steps in `after`, all runs side by side.

    dW_(b,t+1) = dW_(b,t) - lr_b dL_(b,t)/dW for all runs b. A run that diverges stands still from there on and has its
    last state for every later number, `diverged_at` as in `FineTuned`.
    """
    return _Descent(checkpoint, runs, _language_modelling).run(after, progress)


@torch.inference_mode(False)
def fine_tune_every_weight(
    checkpoint: Checkpoint, run: Run, batch: int, *, progress: bool = False
) -> Generator[int, None, None]:
    """W_(t+1) = W_t - lr dL_t/dW_t for every weight, in place: yields the number of steps after each step.

    L_t is the mean loss of the next `batch` sequences. The checkpoint changes when the next step is asked for, and has
    its own weights again, to the bit, when the iterator is closed, which is at its end or by `contextlib.closing`.

    Raises DivergenceError before a step whose loss is not finite.
    """
    model, asked = checkpoint.model, run.asked()
    parameters = list(model.parameters())
    with restored(parameters):
        model.requires_grad_(True)
        for t in trange(0, len(asked), batch, desc="training", unit="step", leave=False, disable=not progress):
            with torch.enable_grad():
                loss = _language_modelling(architectures.architecture(model), asked[t : t + batch])[0].mean()
            if not math.isfinite(loss.item()):
                raise DivergenceError(f"{checkpoint.name}: the loss before step {t // batch} is {loss.item()}.")
            gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
            for parameter, gradient in zip(parameters, gradients, strict=True):
                if gradient is not None:
                    parameter.data.sub_(gradient, alpha=run.lr)
            del loss, gradients
            yield t // batch + 1


class _Trained:
    """The update of one projection in all runs: weights (runs, features, d), biases (runs, features) if there are."""

    def __init__(self, projection: Projection, n_runs: int):
        weight, self.projection = projection.weight(), projection
        self._sizes, self._norm = weight.shape[:2], weight.detach().norm().double()
        wide = {"dtype": _wide(weight), "device": weight.device}
        self.weight = torch.zeros(n_runs, weight.shape[:2].numel(), weight.shape[2], **wide)
        self.bias = None if projection.bias() is None else torch.zeros(self.weight.shape[:2], **wide)
        self._x = self.probe = None

    def added(self, x: Tensor, output: Tensor) -> Tensor:
        """The output of the module with dW_b x and db_b in the part of the projection, and a `probe` of zeros.

        The gradient in the probe are the errors e.
        """
        x = x.to(self.weight.dtype)
        change = torch.bmm(x, self.weight.mT)
        if self.bias is not None:
            change = change + self.bias[:, None]
        self._x, self.probe = x.detach(), torch.zeros_like(change, requires_grad=torch.is_grad_enabled())
        whole = torch.zeros_like(output, dtype=self.weight.dtype)
        self.projection.part(whole, -1).copy_((change + self.probe).unflatten(-1, self._sizes))
        return output + whole.to(output.dtype)

    def squared_norms(self, e: Float[Tensor, "runs T features"]) -> Float[Tensor, " runs"]:
        """Of the gradient: |sum_t e_t x_t^T|^2 = sum_ts (e_t . e_s) (x_t . x_s), and |sum_t e_t|^2 for biases."""
        of_weight = (torch.bmm(e, e.mT) * torch.bmm(self._x, self._x.mT)).sum((1, 2))
        return of_weight if self.bias is None else of_weight + e.sum(1).square().sum(1)

    def add(self, e: Float[Tensor, "runs T features"]) -> None:
        """dW_b += sum_t e_t x_t^T."""
        self.weight.baddbmm_(e.mT, self._x)
        if self.bias is not None:
            self.bias += e.sum(1)

    def outgrown(self) -> Bool[Tensor, " runs"]:
        """Whether the update of the weight is more than 10 times as long as the weight."""
        return ~(self.weight.flatten(1).norm(dim=1).double() <= _OUTGROWN * self._norm)

    def of(self, b: int) -> tuple[Tensor, Tensor | None]:
        """Views of the weight and bias of one run, as in `KeysValues`."""
        return tuple(None if t is None else t[b].unflatten(0, self._sizes) for t in (self.weight, self.bias))


class _Descent:
    """The updates of all runs, and what has become of every run."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        runs: Sequence[Run],
        objective: "_Objective",
        on_queries: Callable[[int, Tensor], None] | None = None,
    ):
        self._checkpoint, self._runs, self._objective, self._on_queries = checkpoint, runs, objective, on_queries
        self._asked = [run.asked() for run in runs]
        self._architecture = architectures.architecture(checkpoint.model)
        self._keys = [_Trained(layer.key, len(runs)) for layer in self._architecture.layers]
        self._values = [_Trained(layer.value, len(runs)) for layer in self._architecture.layers]
        self._trained = (*self._keys, *self._values)
        self._rates = torch.tensor([run.lr for run in runs], dtype=torch.float64, device=checkpoint.device)
        self._losses: list[list[float]] = [[] for _ in runs]
        self._norms: list[list[float]] = [[] for _ in runs]
        self._diverged: list[int | None] = [None] * len(runs)

    def run(self, after: Collection[int], progress: bool) -> list[dict[int, FineTuned]]:
        """The states of every run after these numbers of steps."""
        kept: list[dict[int, FineTuned]] = [{} for _ in self._runs]
        n_steps = max(after)
        for t in tqdm(range(n_steps), desc="fine-tuning", unit="step", disable=not progress):
            if None in self._diverged:
                self._step(t)
            if t + 1 in after:
                # If no step follows, with the updates themselves: copies would double the memory.
                for states, state in zip(kept, self._states(t + 1, copied=t + 1 < n_steps), strict=True):
                    states[t + 1] = state
        return kept

    def _step(self, t: int) -> None:
        """One step of every run that has not diverged."""
        asked, queries = [of_run[t] for of_run in self._asked], []
        heard = self._architecture.layers if self._on_queries else ()
        with hooks.outputs((layer.query_module, lambda _x, output: queries.append(output)) for layer in heard):
            losses, root = self._with_updates(asked)
        if self._on_queries:
            with torch.no_grad():
                found = [layer.queries(output) for layer, output in zip(heard, queries, strict=True)]
                self._on_queries(t, torch.cat(found))
        errors = torch.autograd.grad(root, [one.probe for one in self._trained])
        squares = [one.squared_norms(e) for one, e in zip(self._trained, errors, strict=True)]
        self._note(asked, losses.tolist(), torch.stack(squares).sum(0).sqrt().tolist())
        moving = torch.tensor([diverged is None for diverged in self._diverged], device=self._rates.device)
        for one, e in zip(self._trained, errors, strict=True):
            one.add(torch.where(moving[:, None, None], -self._rates.to(e)[:, None, None] * e, 0))

    def _with_updates(self, asked: Sequence[_Asked]) -> tuple[Tensor, Tensor]:
        with hooks.outputs((one.projection.module, one.added) for one in self._trained):
            return self._objective(self._architecture, asked)

    def _note(self, asked: Sequence[_Asked], losses: list[float], norms: list[float]) -> None:
        """Keep losses and norms, and find which runs have diverged before this step."""
        outgrown = self._outgrown()
        for b, (loss, norm) in enumerate(zip(losses, norms, strict=True)):
            if self._diverged[b] is not None:
                continue
            t, rising = len(self._losses[b]), loss > max(self._losses[b], default=math.inf)
            if rising:
                with torch.no_grad():  # with the checkpoint's own weights
                    rising = _has_risen(loss, self._objective(self._architecture, asked[b : b + 1])[0].item())
            if rising or outgrown[b] or not math.isfinite(loss + norm):
                self._diverged[b] = t
            self._losses[b].append(loss)
            self._norms[b].append(norm)

    def _outgrown(self) -> list[bool]:
        return torch.stack([one.outgrown() for one in self._trained]).any(0).tolist()

    @torch.no_grad()
    def _states(self, n: int, *, copied: bool) -> list[FineTuned]:
        """Every run after n steps."""
        after = self._with_updates([asked[0] for asked in self._asked])[0].tolist()
        outgrown, states = self._outgrown(), []
        for b, run in enumerate(self._runs):
            update = tuple(KeysValues(*k.of(b), *v.of(b)) for k, v in zip(self._keys, self._values, strict=True))
            if copied:
                update = tuple(layer.map(Tensor.clone) for layer in update)
            losses, loss_after, diverged_at = self._losses[b], after[b], self._diverged[b]
            if diverged_at is not None:
                loss_after = math.nan
            elif outgrown[b] or _has_risen(loss_after, losses[0]):
                diverged_at = n
            told = tuple(losses), tuple(self._norms[b]), loss_after, diverged_at
            states.append(FineTuned(self._checkpoint, update, run.lr, *told))
        return states


def _has_risen(loss: float, untrained_loss: float) -> bool:
    """Whether a loss is more than 1.5 times what it was before any training; not a number is."""
    return not loss <= _DIVERGED * max(untrained_loss, 1.0)


# Objectives: the loss of every sequence, shape (runs,), and a scalar that has the gradient of their sum.

_Objective = Callable[[Architecture, Sequence[_Asked]], tuple[Tensor, Tensor]]


class _Padded(NamedTuple):
    """Sequences of ids (runs, T), and the runs and places, both (n,), before each of the n tokens asked for."""

    ids: Int[Tensor, "runs T"]
    run: Int[Tensor, " n"]
    place: Int[Tensor, " n"]

    @classmethod
    def of(cls, asked: Sequence[_Asked], device: torch.device) -> "_Padded":
        ids = nn.utils.rnn.pad_sequence([torch.tensor(ids) for ids, _ in asked], batch_first=True).to(device)
        first, length = torch.tensor([(first, len(ids)) for ids, first in asked], device=device).T[..., None]
        places = torch.arange(ids.shape[1], device=device)
        run, place = ((places >= first) & (places < length))[:, 1:].nonzero(as_tuple=True)
        return cls(ids, run, place)

    def mean_losses(self, logits: Float[Tensor, "*m n vocab"]) -> Float[Tensor, " runs"]:
        """Of each run the mean of -log p over its tokens asked for; summed over readouts, if there are several."""
        targets = self.ids[self.run, self.place + 1].expand(logits.shape[:-1])
        losses = cross_entropy(logits.to(_wide(logits)).flatten(0, -2), targets.flatten(), reduction="none")
        of_token = losses.view(-1, len(self.run)).sum(0)
        sums = torch.zeros(len(self.ids), dtype=losses.dtype, device=losses.device).index_add(0, self.run, of_token)
        return sums / self.run.bincount(minlength=len(self.ids))


def _language_modelling(architecture: Architecture, asked: Sequence[_Asked]) -> tuple[Tensor, Tensor]:
    texts = _Padded.of(asked, architecture.model.device)
    hidden = architecture.model.base_model(input_ids=texts.ids, use_cache=False).last_hidden_state
    losses = texts.mean_losses(architecture.model.get_output_embeddings()(hidden[texts.run, texts.place]))
    return losses, losses.sum()


def _layer_causal(architecture: Architecture, asked: Sequence[_Asked]) -> tuple[Tensor, Tensor]:
    """The gradients e_l = dL_l/dh_l of all layers come first, in few large products; the scalar is sum_l e_l . h_l.

    It has the gradient of L, because e_l is a constant in it, and never holds the logits of more than a few layers.
    """
    texts, outputs = _Padded.of(asked, architecture.model.device), []

    def cut(_x: Tensor, output: Tensor) -> Tensor:
        outputs.append(output[texts.run, texts.place])
        return output.detach()  # no gradient to the blocks below

    with hooks.outputs((layer.block, cut) for layer in architecture.layers):
        architecture.model.base_model(input_ids=texts.ids, use_cache=False)
    hidden = torch.stack(outputs)
    errors, losses = torch.zeros_like(hidden), 0.0
    n = max(1, _READOUT_TOKENS // hidden.shape[1])
    for h, e in zip(hidden.detach().split(n), errors.split(n), strict=True):
        part = texts.mean_losses(architecture.readout(h.requires_grad_(hidden.requires_grad)))
        losses = losses + part.detach()
        if hidden.requires_grad:
            e.copy_(torch.autograd.grad(part.sum(), h)[0])
    return losses, (errors * hidden).sum()


def _wide(tensor: Tensor) -> torch.dtype:
    return torch.promote_types(tensor.dtype, torch.float32)
