"""models.finetuning against updates written out by hand; `test_families.py` compares it with torch.optim.SGD."""

import copy
import math
import re
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial

import pytest
import tiny_models
import torch
from tiny_models import SEQUENCES, loss_of

from explainer.data import tasks
from explainer.errors import DivergenceError
from explainer.models import architectures, finetuning, hooks
from explainer.models.finetuning import (
    Run,
    fine_tune,
    fine_tune_every_weight,
    fine_tune_runs,
    repeat_epochs,
)

FAMILIES = tuple(tiny_models.CONFIGS)
LR = 1e-3
layer_causal = partial(fine_tune, layer_causal=True)


@pytest.fixture(params=FAMILIES)
def checkpoint(request, wide):
    """The tiny checkpoint of one family; whatever a test does with it, it must stay as it was."""
    with tiny_models.unchanged(wide[request.param].model):
        yield wide[request.param]


@pytest.fixture
def llama(wide):
    with tiny_models.unchanged(wide["llama"].model):
        yield wide["llama"]


def close(a, b, checkpoint):
    tolerance = 1e-10 if checkpoint.dtype == torch.float64 else 2e-6
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def tensors(update):
    return [tensor for layer in update for tensor in layer if tensor is not None]


def equal(a, b):
    return all(torch.equal(x, y) for x, y in zip(tensors(a.update), tensors(b.update), strict=True))


def test_half_precision_sums_the_update_in_float32(llama):
    """One step would be lost in rounding: W + dW = W for most entries in bfloat16."""
    checkpoint = replace(llama, model=copy.deepcopy(llama.model).bfloat16())
    finetuned = fine_tune(checkpoint, SEQUENCES * 8, 1e-5)
    exact = fine_tune(replace(llama, model=copy.deepcopy(checkpoint.model).float()), SEQUENCES * 8, 1e-5)
    weight = checkpoint.model.model.layers[1].self_attn.v_proj.weight.clone()
    step = finetuned.update[1].value_weight.flatten(0, 1)
    assert (step.dtype, weight.dtype) == (torch.float32, torch.bfloat16)
    torch.testing.assert_close(step, exact.update[1].value_weight.flatten(0, 1), rtol=0, atol=0.1 * step.abs().max())
    with finetuned.applied():
        assert torch.equal(checkpoint.model.model.layers[1].self_attn.v_proj.weight, (weight + step).bfloat16())


def test_an_update_is_applied_and_removed_to_the_bit(checkpoint):
    before = loss_of(checkpoint.model, SEQUENCES[0])
    finetuned = fine_tune(checkpoint, SEQUENCES, LR)
    with finetuned.applied():
        inside = loss_of(checkpoint.model, SEQUENCES[0])
    close(inside.item(), finetuned.loss_after, checkpoint)
    assert inside < before == loss_of(checkpoint.model, SEQUENCES[0])


def test_scaled_updates(llama):
    finetuned = fine_tune(llama, SEQUENCES, LR)
    doubled = finetuned.scaled(2.0)
    assert all(torch.equal(a, 2 * b) for a, b in zip(tensors(doubled.update), tensors(finetuned.update), strict=True))
    before = loss_of(llama.model, SEQUENCES[0])
    with finetuned.scaled(0.0).applied():
        assert loss_of(llama.model, SEQUENCES[0]) == before


@pytest.mark.parametrize(("family", "rank"), [("opt", 1), ("opt", 3), ("llama", 3)])
def test_truncated_updates_are_the_nearest_of_their_rank(wide, family, rank):
    """Of square matrices with biases, and of matrices with fewer rows than columns."""
    finetuned = fine_tune(wide[family], SEQUENCES, LR)
    for ours, whole in zip(finetuned.truncated(rank).update, finetuned.update, strict=True):
        for near, dW in ((ours.key_weight, whole.key_weight), (ours.value_weight, whole.value_weight)):
            sigma = torch.linalg.svdvals(dW.flatten(0, 1))
            assert torch.linalg.matrix_rank(near.flatten(0, 1)) == rank < len(sigma)
            torch.testing.assert_close((dW - near).norm(), sigma[rank:].norm())
        assert all(a is b is None or torch.equal(a, b) for a, b in zip(ours[1::2], whole[1::2], strict=True))
    for ours, dW in zip(tensors(finetuned.truncated(1000).update), tensors(finetuned.update), strict=True):
        torch.testing.assert_close(ours, dW)


def test_a_random_direction_has_the_norm_of_every_matrix_and_nothing_else(wide):
    finetuned = fine_tune(wide["opt"], SEQUENCES, LR)
    control = finetuned.randomised(1)
    ours, trained = tensors(control.update), tensors(finetuned.update)
    for a, b in zip(ours, trained, strict=True):
        torch.testing.assert_close(a.norm(), b.norm())
    flat, flat_trained = (torch.cat([x.flatten() / x.norm() for x in side]) for side in (ours, trained))
    assert abs(flat @ flat_trained) / len(ours) < 5 / math.sqrt(len(flat))
    assert abs(flat.mean()) < 5 * flat.std() / math.sqrt(len(flat))
    assert equal(control, finetuned.randomised(1))
    assert not equal(control, finetuned.randomised(2))
    assert (control.losses, control.gradient_norms) == ((), ())
    assert math.isnan(control.loss_after)


@pytest.mark.parametrize("train", [fine_tune, layer_causal])
@pytest.mark.parametrize("lr", [100.0, 1e30, math.inf, math.nan])
def test_divergence_is_reported_and_cannot_be_used(llama, train, lr):
    """With such steps the loss may stay low, because the model normalises what its layers read."""
    finetuned = train(llama, SEQUENCES, lr)
    assert finetuned.diverged_at == 1
    assert len(finetuned.losses) == len(finetuned.gradient_norms) == 2
    assert math.isnan(finetuned.loss_after)
    expected = re.escape(f"learning rate {lr:g} diverged at step 1.")
    for unusable in (finetuned, finetuned.scaled(0.5), finetuned.randomised(0)):
        with pytest.raises(DivergenceError, match=expected), unusable.applied():
            pass


@pytest.mark.parametrize(("train", "lr"), [(fine_tune, -0.1), (layer_causal, 1.0)])
def test_a_loss_that_rises_over_its_own_start_is_divergence(llama, train, lr):
    sequences = SEQUENCES * 4
    finetuned, untrained = train(llama, sequences, lr), train(llama, sequences, 0.0)
    t = finetuned.diverged_at
    assert 1 < t < len(sequences)
    rise = [loss / start for loss, start in zip(finetuned.losses, untrained.losses, strict=False)]
    assert rise[t] > finetuning._DIVERGED
    assert finetuned.losses[t] == max(finetuned.losses) < math.inf
    assert equal(finetuned, train(llama, sequences[:t], lr))  # the update of the steps before t
    assert train(llama, sequences, lr / 100).diverged_at is None


@pytest.mark.parametrize("train", [fine_tune, layer_causal])
def test_divergence_by_the_last_step_is_seen(llama, train):
    assert train(llama, SEQUENCES[:1], 100.0).diverged_at == 1
    risen = train(llama, SEQUENCES[:1] * 8, -0.1)
    t = risen.diverged_at
    last = train(llama, SEQUENCES[:1] * t, -0.1)
    assert (last.diverged_at, last.loss_after) == (t, risen.losses[t])
    assert last.loss_after > finetuning._DIVERGED * last.losses[0]


def test_a_hard_sequence_is_no_divergence(llama):
    """Its loss is large before training already; only the rise over that counts."""
    losses = [loss_of(llama.model, sequence).item() for sequence in SEQUENCES]
    hard = [[a, b] for a in range(3, 60) for b in (5, 80)]
    hardest = max(hard, key=lambda sequence: loss_of(llama.model, sequence).item())
    assert loss_of(llama.model, hardest).item() > finetuning._DIVERGED * max(losses)
    finetuned = fine_tune(llama, [*SEQUENCES, hardest], 1e-6)
    assert finetuned.diverged_at is None
    assert finetuned.losses[-1] > finetuning._DIVERGED * max(finetuned.losses[:-1])


@pytest.mark.parametrize("kind", ["key", "value"])
def test_every_weight_is_watched(llama, kind):
    """The dW of one key or value weight of one run that is eleven times the weight is enough."""
    projection = getattr(architectures.architecture(llama.model).layers[1], kind)
    trained = finetuning._Trained(projection, 2)
    for times, outgrown in ((0, False), (9, False), (11, True), (math.nan, True)):
        trained.weight[1] = times * projection.weight().flatten(0, 1)
        assert trained.outgrown().tolist() == [False, outgrown]


def test_a_rise_of_a_small_loss_is_no_divergence():
    """From .01 to .02 nats nothing is lost, though it doubles; the bound itself is not exceeded."""
    risen = [finetuning._has_risen(loss, start) for loss, start in ((0.9, 0.01), (1.5, 0.01), (6.0, 4.0))]
    assert risen == [False] * 3
    assert finetuning._has_risen(1.6, 0.01) and finetuning._has_risen(math.nan, 1.0)


@pytest.mark.parametrize("train", [fine_tune, layer_causal])
def test_recorded_queries_are_those_before_each_step(checkpoint, train):
    recorded = {}
    train(checkpoint, SEQUENCES, LR, on_queries=recorded.__setitem__)
    assert list(recorded) == list(range(len(SEQUENCES)))
    for t, sequence in enumerate(SEQUENCES):
        model = copy.deepcopy(checkpoint.model)
        trained = train(replace(checkpoint, model=model), SEQUENCES[:t], LR).applied() if t else nullcontext()
        with trained:
            expected = plain_queries(model, sequence)
        assert recorded[t].shape == (len(expected), len(sequence), expected.shape[-1])
        assert not recorded[t].requires_grad
        close(recorded[t], expected, checkpoint)


def plain_queries(model, sequence):
    """Scaled queries before any rotation, (layers, tokens, heads * head size); those of transformers, see recording."""
    layers, outputs = architectures.architecture(model).layers, []
    with hooks.outputs((layer.query_module, lambda _, output: outputs.append(output)) for layer in layers):
        model(input_ids=torch.tensor([sequence]), use_cache=False)
    return torch.cat([layer.queries(output) for layer, output in zip(layers, outputs, strict=True)])


def test_reading_off_few_layers_at_a_time_changes_nothing(llama, monkeypatch):
    together = layer_causal(llama, SEQUENCES, LR)
    monkeypatch.setattr(finetuning, "_READOUT_TOKENS", 1)
    one_by_one = layer_causal(llama, SEQUENCES, LR)
    close(one_by_one.losses, together.losses, llama)
    for a, b in zip(tensors(one_by_one.update), tensors(together.update), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-6 * LR)


def test_training_ids_are_the_first_token_and_the_demonstration_without_separator(llama):
    data = tasks.load("capitals")
    examples = tasks.demonstrations(data, 3, seed=0)
    for task in (data.task, replace(data.task, separator=tasks.DOCUMENT_SEPARATOR)):
        rows = finetuning.training_ids(llama, task, examples)
        texts = [f"{example.fields['word']} -> {example.answer}" for example in examples]
        assert rows == [[llama.first_token_id, *llama.tokenize(text)] for text in texts]
        assert not any(llama.document_separator_id in row for row in rows)
    assert finetuning.training_ids(llama, data.task, []) == []


def drawn(lengths, seed):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(3, tiny_models.VOCAB, (n,), generator=generator).tolist() for n in lengths]


SEVERAL = drawn((7, 12, 2, 9), 0), drawn((3, 5, 11, 4), 1), drawn((6, 6, 6, 6), 2)


def assert_same(one, other, checkpoint):
    tolerance = 5e-6 if checkpoint.dtype == torch.float32 else 1e-10
    near = {"rtol": tolerance, "atol": tolerance, "equal_nan": True}
    assert (one.lr, one.diverged_at, len(one.losses)) == (other.lr, other.diverged_at, len(other.losses))
    for name in ("losses", "gradient_norms", "loss_after"):
        numbers = (torch.tensor(getattr(its, name)) for its in (one, other))
        torch.testing.assert_close(*numbers, **near | {"rtol": 2 * tolerance})  # on the oldest instructions 6e-6
    for x, y in zip(tensors(one.update), tensors(other.update), strict=True):
        torch.testing.assert_close(x, y, **near)


def test_runs_side_by_side_are_the_runs_alone(checkpoint):
    runs = [Run(s, lr) for s, lr in zip(SEVERAL, (1e-2, -3e-3, 1e-3), strict=True)]
    for run, states in zip(runs, fine_tune_runs(checkpoint, runs, after=(2, 4)), strict=True):
        assert list(states) == [2, 4]
        for n, state in states.items():
            assert_same(state, fine_tune(checkpoint, run.sequences[:n], run.lr), checkpoint)
        assert all(tensor.norm() > 0 for tensor in tensors(states[4].update)[::2])


def test_a_run_that_diverges_stops_alone(llama):
    alone = fine_tune(llama, SEVERAL[0], 300.0)
    assert alone.diverged_at is not None
    kept, ruined = fine_tune_runs(llama, [Run(SEVERAL[1], 1e-2), Run(SEVERAL[0], 300.0)], after=(4,))
    assert_same(ruined[4], alone, llama)
    assert_same(kept[4], fine_tune(llama, SEVERAL[1], 1e-2), llama)


def test_a_loss_of_answers_is_that_of_the_last_tokens(llama):
    """The first step by autograd on the weights themselves, with a loss of the last two or three tokens."""
    ids, key = SEVERAL[0][:2], architectures.architecture(llama.model).layers[0].key
    runs = [Run([s], 1e-2, {tuple(s): n}) for s, n in zip(ids, (2, 3), strict=True)]
    for run, states in zip(runs, fine_tune_runs(llama, runs, after=(1,)), strict=True):
        (s,), weight = run.sequences, key.module.weight
        n = run.answers[tuple(s)]
        with torch.enable_grad():
            weight.requires_grad_()
            log_p = llama.model(torch.tensor([s])).logits[0].log_softmax(-1)
            loss = -log_p[-n - 1 : -1].gather(1, torch.tensor(s[-n:])[:, None]).mean()
            (gradient,) = torch.autograd.grad(loss, weight)
            weight.requires_grad_(False)
        assert states[1].losses == pytest.approx((loss.item(),), rel=1e-5)
        update = states[1].update[0].key_weight
        torch.testing.assert_close(update, -1e-2 * gradient.view_as(update), rtol=1e-4, atol=1e-9)


def test_epochs_begin_in_their_own_order_and_hold_every_sequence_once():
    ids = SEVERAL[0]
    repeated = repeat_epochs(ids, 3, seed=5)
    assert repeated[:4] == ids
    assert all(sorted(repeated[i : i + 4]) == sorted(ids) for i in (4, 8))
    assert repeated == repeat_epochs(ids, 3, seed=5) != repeat_epochs(ids, 3, seed=6)


def steps(checkpoint, sequences, lr, batch, answers=None):
    return closing(fine_tune_every_weight(checkpoint, Run(sequences, lr, answers), batch))


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("n", [None, 1])
def test_a_step_of_every_weight_is_that_of_the_models_own_loss(llama, batch, n):
    answers = None if n is None else {tuple(ids): n for ids in SEQUENCES}
    by_hand, losses = copy.deepcopy(llama.model).requires_grad_(), []
    with torch.enable_grad():
        for ids in SEQUENCES[:batch]:
            labels = [-100] * (0 if n is None else len(ids) - n) + (ids if n is None else ids[-n:])
            losses.append(by_hand(input_ids=torch.tensor([ids]), labels=torch.tensor([labels])).loss)
        torch.stack(losses).mean().backward()
    with steps(llama, SEQUENCES, 0.1, batch, answers) as taken:
        assert next(taken) == 1
        for ours, expected in zip(llama.model.parameters(), by_hand.parameters(), strict=True):
            assert not torch.equal(ours, expected.detach() + 0)
            torch.testing.assert_close(ours.detach(), expected.detach() - 0.1 * expected.grad, rtol=1e-4, atol=1e-6)
