"""Fine-tuning of every weight, for what keys and values alone cannot learn; the paper's is in `finetuning`."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor
from tqdm import trange

from explainer.errors import DivergenceError
from explainer.models import architectures, batched_finetuning, finetuning
from explainer.models.batched_finetuning import Run
from explainer.models.loading import Checkpoint


@torch.inference_mode(False)
def fine_tune(
    checkpoint: Checkpoint, run: Run, batch: int, *, progress: bool = False
) -> Iterator[tuple[int, Checkpoint]]:
    """W_(t+1) = W_t - lr dL_t/dW_t for every weight: yields the number of steps and the checkpoint after each step.

    L_t is the mean loss of the next `batch` sequences, each as in `batched_finetuning`. It is the one checkpoint, which
    changes when the next step is asked for; whoever stops asking gives it its own weights back, to the bit.

    Raises CheckpointError and TaskError as `finetuning.fine_tune`, and DivergenceError before a step whose loss is not
    finite.
    """
    finetuning.require_trainable(checkpoint, run.sequences)
    model, asked = checkpoint.model, run.asked()
    own = [parameter.detach().clone() for parameter in model.parameters()]

    def descend(parameter: Tensor) -> None:
        parameter.data.sub_(parameter.grad, alpha=run.lr)
        parameter.grad = None

    model.requires_grad_(True)
    handles = [parameter.register_post_accumulate_grad_hook(descend) for parameter in model.parameters()]
    try:
        for t in trange(0, len(asked), batch, desc="training", unit="step", leave=False, disable=not progress):
            model.requires_grad_(True)
            with torch.enable_grad():
                loss = batched_finetuning.losses(architectures.architecture(model), asked[t : t + batch]).mean()
            if not math.isfinite(loss.item()):
                raise DivergenceError(f"{checkpoint.name}: the loss before step {t // batch} is {loss.item()}.")
            loss.backward()
            model.requires_grad_(False)
            yield t // batch + 1, checkpoint
    finally:
        for handle in handles:
            handle.remove()
        for parameter, before in zip(model.parameters(), own, strict=True):
            parameter.data.copy_(before)
            parameter.grad = None
        model.requires_grad_(False)
