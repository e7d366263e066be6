"""Several fine-tunings of one checkpoint side by side: the arithmetic of `finetuning.fine_tune`, at less cost a step.

Run b has an update dW_b of its own, and every projection gives W_0 x + dW_b x for the tokens x of run b. So one pass
through the frozen weights, which are most of the model and are read from memory once a pass, serves all runs. They do
not meet anywhere: shorter sequences end in tokens that no earlier one sees and that have no loss.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from tqdm import tqdm

from explainer.models import architectures, finetuning
from explainer.models.architectures import Architecture, Projection
from explainer.models.checkpoints import Checkpoint
from explainer.models.finetuning import FineTuned

_NO_LOSS = -100


@dataclass(frozen=True)
class Run:
    """A fine-tuning: one step for each sequence of token ids, in this order, and the learning rate."""

    sequences: Sequence[Sequence[int]] = field(repr=False)
    lr: float


def epochs(sequences: Sequence[Sequence[int]], n: int, seed: int) -> list[Sequence[int]]:
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
    Source: Dai et al. (2023), section 3.2.
    """
    n_steps = _common_length(runs, after)
    for run in runs:
        finetuning.require_trainable(checkpoint, run.sequences)
    batch = _Batch(checkpoint, runs)
    kept: list[dict[int, FineTuned]] = [{} for _ in runs]
    with batch.hooked():
        for t in tqdm(range(n_steps), desc="fine-tuning", unit="step", disable=not progress):
            batch.step(t)
            if t + 1 in after:
                for states, state in zip(kept, batch.states(t + 1), strict=True):
                    states[t + 1] = state
    return kept


def _common_length(runs: Sequence[Run], after: Collection[int]) -> int:
    lengths = {len(run.sequences) for run in runs}
    if len(lengths) != 1:
        raise ValueError(f"the runs have {sorted(lengths)} sequences; train those of one length together.")
    if not after or not all(1 <= n <= max(lengths) for n in after):
        raise ValueError(f"after = {sorted(after)} must name numbers of steps from 1 to {max(lengths)}.")
    return max(after)


class _Batch:
    """The updates of all runs, each tensor with the runs as its first axis, and what has become of every run."""

    def __init__(self, checkpoint: Checkpoint, runs: Sequence[Run]):
        self._checkpoint, self._runs = checkpoint, runs
        self._architecture = architectures.architecture(checkpoint.model)
        own = [finetuning.keys_values(layer) for layer in self._architecture.layers]
        self._update = [W.map(lambda w: _zeros(w, len(runs))) for W in own]
        self._largest = [finetuning.OUTGROWN * W[i].norm(dtype=torch.float64) for W in own for i in (0, 2)]
        self._untrained = self._untrained_losses()
        self._losses: list[list[float]] = [[] for _ in runs]
        self._norms: list[list[float]] = [[] for _ in runs]
        self._diverged: list[int | None] = [None] * len(runs)

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """Let every projection of keys and values add dW_b x inside a `with` block."""
        with ExitStack() as hooks:
            for layer, dW in zip(self._architecture.layers, self._update, strict=True):
                for projection, weight, bias in ((layer.key, dW[0], dW[1]), (layer.value, dW[2], dW[3])):
                    hooks.callback(projection.module.register_forward_hook(_adds(projection, weight, bias)).remove)
            yield

    def step(self, t: int) -> None:
        """One step of every run that has not diverged."""
        trained = [tensor for layer in self._update for tensor in layer if tensor is not None]
        losses = _losses(self._architecture, [run.sequences[t] for run in self._runs])
        gradients = torch.autograd.grad(losses.sum(), trained)
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients]).norm(dim=0)
        self._note(t, losses.tolist(), norms.tolist())
        with torch.no_grad():
            for dW, g in zip(trained, gradients, strict=True):
                for b, run in enumerate(self._runs):
                    if self._diverged[b] is None:
                        dW[b].sub_(g[b], alpha=run.lr)

    @torch.no_grad()
    def states(self, n: int) -> list[FineTuned]:
        """Every run after n steps."""
        after = _losses(self._architecture, [run.sequences[0] for run in self._runs]).tolist()
        outgrown = self._outgrown()
        return [self._state(b, n, after[b], outgrown[b]) for b in range(len(self._runs))]

    def _state(self, b: int, n: int, loss_after: float, outgrown: bool) -> FineTuned:
        losses, diverged_at = self._losses[b], self._diverged[b]
        if diverged_at is None and (outgrown or finetuning.exceeds(loss_after, losses[0])):
            diverged_at = n
        elif diverged_at is not None:
            loss_after = math.nan
        update = tuple(layer.map(lambda tensor: tensor[b].detach().clone()) for layer in self._update)
        lr, norms = self._runs[b].lr, tuple(self._norms[b])
        return FineTuned(self._checkpoint, update, lr, tuple(losses), norms, loss_after, diverged_at)

    def _note(self, t: int, losses: list[float], norms: list[float]) -> None:
        """Keep losses and norms, and find which runs have diverged before this step."""
        outgrown = self._outgrown()
        for b, (loss, norm) in enumerate(zip(losses, norms, strict=True)):
            if self._diverged[b] is not None:
                continue
            rising = t > 0 and loss > max(self._losses[b])
            exceeds = rising and finetuning.exceeds(loss, self._untrained[tuple(self._runs[b].sequences[t])])
            self._losses[b].append(loss)
            self._norms[b].append(norm)
            if exceeds or outgrown[b] or not math.isfinite(loss + norm):
                self._diverged[b] = t

    @torch.no_grad()
    def _untrained_losses(self) -> dict[tuple[int, ...], float]:
        """The loss of every sequence with the checkpoint's own weights."""
        sequences = list(dict.fromkeys(tuple(sequence) for run in self._runs for sequence in run.sequences))
        parts = [sequences[i : i + len(self._runs)] for i in range(0, len(sequences), len(self._runs))]
        losses = [loss for part in parts for loss in _losses(self._architecture, part).tolist()]
        return dict(zip(sequences, losses, strict=True))

    def _outgrown(self) -> list[bool]:
        weights = [layer[i].detach() for layer in self._update for i in (0, 2)]
        norms = [dW.flatten(1).norm(dim=1, dtype=torch.float64) for dW in weights]
        within = [norm <= largest for norm, largest in zip(norms, self._largest, strict=True)]
        return (~torch.stack(within).all(0)).tolist()


def _zeros(weight: Tensor, n: int) -> Tensor:
    wide = torch.promote_types(weight.dtype, torch.float32)
    return torch.zeros((n, *weight.shape), dtype=wide, device=weight.device).requires_grad_()


def _adds(projection: Projection, weight: Float[Tensor, "runs heads size d"], bias: Tensor | None):
    """A hook that adds dW_b x, and db_b where there are biases, to the part of the output that is the projection's."""

    def add(_module: nn.Module, args: tuple[Tensor], output: Tensor) -> Tensor:
        change = torch.einsum("btd,bhsd->bths", args[0].to(weight.dtype), weight)
        if bias is not None:
            change = change + bias[:, None]
        whole = torch.zeros_like(output, dtype=weight.dtype)
        projection.part(whole, -1).copy_(change)
        return output + whole.to(output.dtype)

    return add


def _losses(architecture: Architecture, sequences: Sequence[Sequence[int]]) -> Float[Tensor, " runs"]:
    """The mean of -log p(token | tokens before it) over the tokens of each sequence after its first."""
    device = architecture.model.device
    ids = nn.utils.rnn.pad_sequence([torch.tensor(s) for s in sequences], batch_first=True).to(device)
    seen = torch.arange(ids.shape[1], device=device) < torch.tensor([[len(s)] for s in sequences], device=device)
    hidden = architecture.model.base_model(input_ids=ids, use_cache=False).last_hidden_state
    return _mean_losses(architecture.model.get_output_embeddings()(hidden[:, :-1]), ids[:, 1:], seen[:, 1:])


def _mean_losses(
    logits: Float[Tensor, "runs T vocabulary"], targets: Int[Tensor, "runs T"], seen: Bool[Tensor, "runs T"]
) -> Float[Tensor, " runs"]:
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32)).transpose(1, 2)
    losses = cross_entropy(wide, targets.masked_fill(~seen, _NO_LOSS), ignore_index=_NO_LOSS, reduction="none")
    return losses.sum(1) / seen.sum(1)
