"""Several fine-tunings of one checkpoint side by side: the arithmetic of `finetuning.fine_tune`, at less cost a step.

Run b has an update dW_b of its own, and every projection gives W_0 x + dW_b x for the tokens x of run b. The gradient
of a linear layer is a sum of outer products, dL/dW = sum_t e_t x_t^T with e_t = dL/d(W x_t), so only the errors e_t are
asked of the backward pass. Shorter sequences end in tokens that no earlier one sees and that have no loss.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from tqdm import tqdm

from explainer.models import architectures, finetuning, hooks, onednn
from explainer.models.architectures import Architecture, Projection
from explainer.models.finetuning import FineTuned, KeysValues
from explainer.models.loading import Checkpoint


@dataclass(frozen=True)
class Run:
    """A fine-tuning: one step for each sequence of token ids, in this order, and the learning rate.

    `answers` says how many of a sequence's last tokens are asked for; without it, all after its first, as in the paper.
    """

    sequences: Sequence[Sequence[int]] = field(repr=False)
    lr: float
    answers: Mapping[tuple[int, ...], int] | None = field(default=None, repr=False)

    def asked(self) -> list["Asked"]:
        """The sequence of every step, and where the tokens begin that have a loss."""
        every = map(tuple, self.sequences)
        return [Asked(ids, 1 if self.answers is None else len(ids) - self.answers[ids]) for ids in every]


class Asked(NamedTuple):
    """Token ids, and the first place of which the token is asked for."""

    ids: tuple[int, ...]
    first: int


def repeat_epochs(sequences: Sequence[Sequence[int]], n: int, seed: int) -> list[Sequence[int]]:
    """The sequences n times: first in their own order, as the paper trains, then each time in an order drawn anew."""
    generator = torch.Generator().manual_seed(seed)
    orders = [torch.randperm(len(sequences), generator=generator).tolist() for _ in range(n - 1)]
    return [*sequences, *(sequences[i] for order in orders for i in order)]


@torch.inference_mode(False)  # which switches gradients on, too, whatever the caller has switched off
def fine_tune(
    checkpoint: Checkpoint, runs: Sequence[Run], after: Collection[int], *, progress: bool = False
) -> list[dict[int, FineTuned]]:
    """For each run what `finetuning.fine_tune` gives after each of the numbers of steps in `after`.

    dW_(b,t+1) = dW_(b,t) - lr_b dL_(b,t)/dW for all runs b at once, which must be of one length. A run that diverges
    stands still from there on and has its last state for every later number, `diverged_at` as in `FineTuned`.

    Raises CheckpointError and TaskError as `finetuning.fine_tune`, and ValueError for runs of different lengths or a
    number of steps that they do not have.
    """
    n_steps = _common_length(runs, after)
    for run in runs:
        finetuning.require_trainable(checkpoint, run.sequences)
    batch = _Batch(checkpoint, runs)
    kept: list[dict[int, FineTuned]] = [{} for _ in runs]
    with onednn.use_onednn(), hooks.outputs(batch.hooks):
        for t in tqdm(range(n_steps), desc="fine-tuning", unit="step", disable=not progress):
            batch.step(t)
            if t + 1 in after:
                for states, state in zip(kept, batch.states(t + 1, last=t + 1 == n_steps), strict=True):
                    states[t + 1] = state
    return kept


def _common_length(runs: Sequence[Run], after: Collection[int]) -> int:
    lengths = {len(run.sequences) for run in runs}
    if len(lengths) != 1:
        raise ValueError(f"the runs have {sorted(lengths)} sequences; train those of one length together.")
    if not after or not all(1 <= n <= max(lengths) for n in after):
        raise ValueError(f"after = {sorted(after)} must name numbers of steps from 1 to {max(lengths)}.")
    return max(after)


class _Trained:
    """The update of one projection in all runs: weights (runs, features, d), biases (runs, features) if there are."""

    def __init__(self, projection: Projection, n_runs: int):
        weight, bias = projection.weight(), projection.bias()
        wide = {"dtype": torch.promote_types(weight.dtype, torch.float32), "device": weight.device}
        self._projection, self._sizes = projection, weight.shape[:2]
        self._largest = finetuning.OUTGROWN * weight.detach().norm().double()
        self.weight = torch.zeros(n_runs, weight.shape[:2].numel(), weight.shape[2], **wide)
        self.bias = None if bias is None else torch.zeros(n_runs, weight.shape[:2].numel(), **wide)
        self._x = self._probe = None

    @property
    def hook(self) -> tuple[nn.Module, hooks.Output]:
        """The projection adds dW_b x, and db_b, to its part of the output of its module."""
        return self._projection.module, self._added

    def _added(self, x: Tensor, output: Tensor) -> Tensor:
        x = x.to(self.weight.dtype)
        change = torch.bmm(x, self.weight.mT)
        if self.bias is not None:
            change = change + self.bias[:, None]
        self._x, self._probe = x.detach(), torch.zeros_like(change, requires_grad=torch.is_grad_enabled())
        whole = torch.zeros_like(output, dtype=self.weight.dtype)
        self._projection.part(whole, -1).copy_((change + self._probe).unflatten(-1, self._sizes))
        return output + whole.to(output.dtype)

    @property
    def probe(self) -> Tensor:
        """Zeros that were added to the output of the last pass: the gradient in them are the errors e."""
        return self._probe

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
        """As `finetuning.fine_tune`, for each run."""
        return ~(self.weight.flatten(1).norm(dim=1).double() <= self._largest)

    def of(self, b: int) -> tuple[Tensor, Tensor | None]:
        """Views of the weight and bias of one run, as in `KeysValues`."""
        return tuple(None if t is None else t[b].unflatten(0, self._sizes) for t in (self.weight, self.bias))


class _Batch:
    """The updates of all runs, and what has become of every run."""

    def __init__(self, checkpoint: Checkpoint, runs: Sequence[Run]):
        self._checkpoint, self._runs, self._asked = checkpoint, runs, [run.asked() for run in runs]
        self._architecture = architectures.architecture(checkpoint.model)
        self._keys = [_Trained(layer.key, len(runs)) for layer in self._architecture.layers]
        self._values = [_Trained(layer.value, len(runs)) for layer in self._architecture.layers]
        self._rates = torch.tensor([run.lr for run in runs], dtype=torch.float64, device=checkpoint.device)
        self._untrained = self._untrained_losses()
        self._losses: list[list[float]] = [[] for _ in runs]
        self._norms: list[list[float]] = [[] for _ in runs]
        self._diverged: list[int | None] = [None] * len(runs)

    @property
    def hooks(self) -> list[tuple[nn.Module, hooks.Output]]:
        """With these, the projections of keys and values have their updates."""
        return [trained.hook for trained in (*self._keys, *self._values)]

    def step(self, t: int) -> None:
        """One step of every run that has not diverged."""
        of_runs = losses(self._architecture, [asked[t] for asked in self._asked])
        trained = (*self._keys, *self._values)
        errors = torch.autograd.grad(of_runs.sum(), [one.probe for one in trained])
        squares = [one.squared_norms(e) for one, e in zip(trained, errors, strict=True)]
        self._note(t, of_runs.tolist(), torch.stack(squares).sum(0).sqrt().tolist())
        moving = torch.tensor([diverged is None for diverged in self._diverged], device=self._rates.device)
        for one, e in zip(trained, errors, strict=True):
            one.add(torch.where(moving[:, None, None], -self._rates.to(e)[:, None, None] * e, 0))

    @torch.no_grad()
    def states(self, n: int, *, last: bool) -> list[FineTuned]:
        """Every run after n steps; if no step follows, with the updates themselves: copies would double the memory."""
        after = losses(self._architecture, [asked[0] for asked in self._asked]).tolist()
        outgrown = self._outgrown()
        states = [self._state(b, n, after[b], outgrown[b]) for b in range(len(self._runs))]
        return states if last else [replace(one, update=_copied(one.update)) for one in states]

    def _state(self, b: int, n: int, loss_after: float, outgrown: bool) -> FineTuned:
        losses, diverged_at = self._losses[b], self._diverged[b]
        if diverged_at is None and (outgrown or finetuning.loss_diverged(loss_after, losses[0])):
            diverged_at = n
        elif diverged_at is not None:
            loss_after = math.nan
        layers = zip(self._keys, self._values, strict=True)
        update = tuple(KeysValues(*key.of(b), *value.of(b)) for key, value in layers)
        lr, norms = self._runs[b].lr, tuple(self._norms[b])
        return FineTuned(self._checkpoint, update, lr, tuple(losses), norms, loss_after, diverged_at)

    def _note(self, t: int, losses: list[float], norms: list[float]) -> None:
        """Keep losses and norms, and find which runs have diverged before this step."""
        outgrown = self._outgrown()
        for b, (loss, norm) in enumerate(zip(losses, norms, strict=True)):
            if self._diverged[b] is not None:
                continue
            rising = t > 0 and loss > max(self._losses[b])
            exceeds = rising and finetuning.loss_diverged(loss, self._untrained[self._asked[b][t]])
            self._losses[b].append(loss)
            self._norms[b].append(norm)
            if exceeds or outgrown[b] or not math.isfinite(loss + norm):
                self._diverged[b] = t

    @torch.no_grad()
    def _untrained_losses(self) -> dict[Asked, float]:
        """The loss of every sequence with the checkpoint's own weights."""
        sequences = list(dict.fromkeys(chain.from_iterable(self._asked)))
        parts = [sequences[i : i + len(self._runs)] for i in range(0, len(sequences), len(self._runs))]
        found = [loss for part in parts for loss in losses(self._architecture, part).tolist()]
        return dict(zip(sequences, found, strict=True))

    def _outgrown(self) -> list[bool]:
        return torch.stack([one.outgrown() for one in (*self._keys, *self._values)]).any(0).tolist()


def _copied(update: Sequence[KeysValues]) -> tuple[KeysValues, ...]:
    return tuple(layer.map(Tensor.clone) for layer in update)


def losses(architecture: Architecture, sequences: Sequence[Asked]) -> Float[Tensor, " runs"]:
    """The mean of -log p(token | tokens before it) over the tokens of each sequence that are asked for."""
    device = architecture.model.device
    ids = nn.utils.rnn.pad_sequence([torch.tensor(s.ids) for s in sequences], batch_first=True).to(device)
    first, length = torch.tensor([(s.first, len(s.ids)) for s in sequences], device=device).T[..., None]
    places = torch.arange(ids.shape[1], device=device)
    asked = (places >= first) & (places < length)
    hidden = architecture.model.base_model(input_ids=ids, use_cache=False).last_hidden_state
    run, place = asked[:, 1:].nonzero(as_tuple=True)
    logits = architectures.logits(architecture.model, hidden[run, place])  # in one product, without the rest
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    losses = cross_entropy(wide, ids[run, place + 1], reduction="none")
    return torch.zeros(len(ids), dtype=losses.dtype, device=device).index_add(0, run, losses) / asked.sum(1)
