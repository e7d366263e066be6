"""explainer.models.batched_finetuning: every run must be what `finetuning.fine_tune` gives for it alone."""

import re

import pytest
import tiny_models
import torch

from explainer.errors import TaskError
from explainer.models import architectures, batched_finetuning, finetuning
from explainer.models.batched_finetuning import Run

FAMILIES = tuple(tiny_models.CONFIGS)


def sequences(lengths, seed):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(3, tiny_models.VOCAB, (n,), generator=generator).tolist() for n in lengths]


SEQUENCES = sequences((7, 12, 2, 9), 0), sequences((3, 5, 11, 4), 1), sequences((6, 6, 6, 6), 2)


def assert_same(one, other, checkpoint):
    rounds_to_float32 = checkpoint.dtype == torch.float32 or checkpoint.model.config.model_type == "gpt_neo"
    tolerance = 5e-6 if rounds_to_float32 else 1e-10
    near = {"rtol": tolerance, "atol": tolerance, "equal_nan": True}
    assert (one.lr, one.diverged_at, len(one.losses)) == (other.lr, other.diverged_at, len(other.losses))
    for name in ("losses", "gradient_norms", "loss_after"):
        numbers = (torch.tensor(getattr(its, name)) for its in (one, other))
        torch.testing.assert_close(*numbers, **near | {"rtol": 2 * tolerance})  # on the oldest instructions 6e-6
    for a, b in zip(one.update, other.update, strict=True):
        assert [x is None for x in a] == [x is None for x in b]
        for x, y in zip(a, b, strict=True):
            if x is not None:
                torch.testing.assert_close(x, y, **near)


@pytest.mark.parametrize("family", FAMILIES)
def test_runs_side_by_side_are_the_runs_alone(wide, family):
    checkpoint = wide[family]
    runs = [Run(s, lr) for s, lr in zip(SEQUENCES, (1e-2, -3e-3, 1e-3), strict=True)]
    together = batched_finetuning.fine_tune(checkpoint, runs, after=(2, 4))
    for run, states in zip(runs, together, strict=True):
        assert list(states) == [2, 4]
        for n, state in states.items():
            assert_same(state, finetuning.fine_tune(checkpoint, run.sequences[:n], run.lr), checkpoint)
        assert any(tensor.norm() > 0 for layer in states[4].update for tensor in layer if tensor is not None)


def test_a_run_that_diverges_stops_alone(wide):
    checkpoint = wide["llama"]
    alone = finetuning.fine_tune(checkpoint, SEQUENCES[0], 300.0)
    assert alone.diverged_at is not None
    kept, ruined = batched_finetuning.fine_tune(
        checkpoint, [Run(SEQUENCES[1], 1e-2), Run(SEQUENCES[0], 300.0)], after=(4,)
    )
    assert_same(ruined[4], alone, checkpoint)
    assert_same(kept[4], finetuning.fine_tune(checkpoint, SEQUENCES[1], 1e-2), checkpoint)
    risen = SEQUENCES[0][:1] * 40
    at = finetuning.fine_tune(checkpoint, risen, -0.1).diverged_at
    (states,) = batched_finetuning.fine_tune(checkpoint, [Run(risen[:at], -0.1)], after=(at,))
    assert states[at].diverged_at == at, "by the last step"


def test_a_loss_of_answers_is_that_of_the_last_tokens(wide):
    """The first step by autograd on the weights themselves, with a loss of the last two or three tokens."""
    checkpoint, ids = wide["llama"], SEQUENCES[0][:2]
    runs = [Run([s], 1e-2, {tuple(s): n}) for s, n in zip(ids, (2, 3), strict=True)]
    for run, states in zip(runs, batched_finetuning.fine_tune(checkpoint, runs, after=(1,)), strict=True):
        (s,), model = run.sequences, checkpoint.model
        n = run.answers[tuple(s)]
        key = architectures.architecture(model).layers[0].key
        weight = key.module.weight
        with torch.enable_grad():
            weight.requires_grad_()
            log_p = model(torch.tensor([s])).logits[0].log_softmax(-1)
            loss = -log_p[-n - 1 : -1].gather(1, torch.tensor(s[-n:])[:, None]).mean()
            (gradient,) = torch.autograd.grad(loss, weight)
            weight.requires_grad_(False)
        assert states[1].losses == pytest.approx((loss.item(),), rel=1e-5)
        update = states[1].update[0].key_weight
        torch.testing.assert_close(update, -1e-2 * gradient.view_as(update), rtol=1e-4, atol=1e-9)


def test_a_loss_of_all_tokens_after_the_first_is_that_of_the_text(wide):
    ids = SEQUENCES[0]
    asked = Run(ids, 1e-2, {tuple(s): len(s) - 1 for s in ids})
    one, other = batched_finetuning.fine_tune(wide["llama"], [asked, Run(ids, 1e-2)], after=(4,))
    assert_same(one[4], other[4], wide["llama"])


def test_the_model_is_as_before(wide):
    with tiny_models.unchanged(wide["gpt2"].model):
        batched_finetuning.fine_tune(wide["gpt2"], [Run(SEQUENCES[0], 1e-2)], after=(4,))


def test_epochs_begin_in_their_own_order_and_hold_every_sequence_once():
    repeated = batched_finetuning.repeat_epochs(SEQUENCES[0], 3, seed=5)
    assert repeated[:4] == SEQUENCES[0]
    assert all(sorted(repeated[i : i + 4]) == sorted(SEQUENCES[0]) for i in (4, 8))
    assert (
        repeated
        == batched_finetuning.repeat_epochs(SEQUENCES[0], 3, seed=5)
        != batched_finetuning.repeat_epochs(SEQUENCES[0], 3, seed=6)
    )


@pytest.mark.parametrize(
    ("lengths", "after", "message"),
    [
        ((4, 3), (3,), "the runs have [3, 4] sequences"),
        ((4, 4), (0, 2), "after = [0, 2] must name numbers of steps from 1 to 4"),
        ((4, 4), (5,), "after = [5]"),
        ((4, 4), (), "after = []"),
    ],
)
def test_what_cannot_be_done_side_by_side_is_refused(wide, lengths, after, message):
    runs = [Run(s[:n], 1e-2) for s, n in zip(SEQUENCES, lengths, strict=False)]
    with pytest.raises(ValueError, match=re.escape(message)):
        batched_finetuning.fine_tune(wide["llama"], runs, after)


def test_a_sequence_without_a_token_to_predict_is_refused(wide):
    with pytest.raises(TaskError, match="sequence 1 has 1 tokens"):
        batched_finetuning.fine_tune(wide["llama"], [Run([[3, 4], [3]], 1e-2)], after=(2,))
