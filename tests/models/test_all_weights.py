"""Fine-tuning of every weight: the steps are plain gradient descent, and the model is given back as it was."""

import pytest
import torch

from explainer.errors import DivergenceError
from explainer.models import all_weights, batched_finetuning

SEQUENCES = [[0, 5, 9, 7], [0, 11, 3], [0, 8, 2, 6, 4], [0, 5, 1]]


def weights(checkpoint):
    return {name: tensor.clone() for name, tensor in checkpoint.model.state_dict().items()}


@pytest.fixture
def own(checkpoint):
    """The weights, which every test must leave as they were."""
    before = weights(checkpoint)
    yield before
    assert all(torch.equal(tensor, before[name]) for name, tensor in checkpoint.model.state_dict().items())
    assert not any(parameter.requires_grad for parameter in checkpoint.model.parameters())


def by_autograd(checkpoint, asked, lr):
    """One step on some sequences of (ids, how many are asked for), computed by the model's own loss."""
    copy = type(checkpoint.model)(checkpoint.model.config)
    copy.load_state_dict(checkpoint.model.state_dict())
    losses = []
    for ids, n in asked:
        labels = [-100] * (len(ids) - n) + ids[len(ids) - n :]
        losses.append(copy(input_ids=torch.tensor([ids]), labels=torch.tensor([labels])).loss)
    torch.stack(losses).mean().backward()
    with torch.no_grad():
        for parameter in copy.parameters():
            parameter.sub_(lr * parameter.grad)
    return copy.state_dict()


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("n", [None, 1])
def test_the_first_step_is_gradient_descent_on_every_weight(checkpoint, own, batch, n):
    answers = None if n is None else {tuple(ids): n for ids in SEQUENCES}
    asked = [(ids, len(ids) - 1 if n is None else n) for ids in SEQUENCES[:batch]]
    expected = by_autograd(checkpoint, asked, 0.1)
    states = all_weights.fine_tune(checkpoint, batched_finetuning.Run(SEQUENCES, 0.1, answers), batch)
    steps, tuned = next(states)
    assert steps == 1
    for name, tensor in tuned.model.state_dict().items():
        torch.testing.assert_close(tensor, expected[name], atol=1e-6, rtol=1e-4)
    assert not all(torch.equal(expected[name], tensor) for name, tensor in own.items())
    states.close()


def test_all_steps_are_taken_and_the_loss_falls(checkpoint, own):
    states = all_weights.fine_tune(checkpoint, batched_finetuning.Run(5 * SEQUENCES, 0.3), 2)
    counted = [(n, weights(tuned)) for n, tuned in states]
    assert [n for n, _ in counted] == list(range(1, 11))
    changed = [name for name in own if not torch.equal(counted[-1][1][name], own[name])]
    assert any("mlp" in name for name in changed) and any("embed" in name for name in changed)


def test_whoever_stops_gives_the_weights_back(checkpoint, own):
    with pytest.raises(KeyboardInterrupt):
        for _ in all_weights.fine_tune(checkpoint, batched_finetuning.Run(SEQUENCES, 0.1), 1):
            raise KeyboardInterrupt


def test_a_loss_that_is_not_finite_is_named(checkpoint, own):
    with pytest.raises(DivergenceError, match=r"the loss before step \d is (nan|inf)"):
        list(all_weights.fine_tune(checkpoint, batched_finetuning.Run(5 * SEQUENCES, 1e30), 1))
