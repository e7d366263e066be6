"""models.attention_edits: what is left alone is transformers' own, and an edit is what it says."""

from dataclasses import replace

import pytest
import tiny_models
import torch

from explainer.models import attention_edits, interventions, scoring
from explainer.models.attention_edits import AttentionEdit

FAMILIES = tiny_models.CONFIGS | tiny_models.MORE
CONTEXT = "France -> Paris\nItaly -> Rome\nJapan -> Tokyo\ncat -> cats\n"
PROMPTS = ("Spain ->", "the little old town ->", "x")
LINES = (3, 7, 11)  # tokens that stand for three lines


@pytest.fixture(scope="module", params=["llama", "gemma3_text", "qwen2"])
def passed(request):
    checkpoint = tiny_models.random_checkpoint(FAMILIES[request.param], tiny_models.widest(request.param))
    return interventions.after_context(checkpoint, scoring.encode(checkpoint, CONTEXT), PROMPTS)


def edit_of(passed, mix, more=0):
    layers, n_heads = len(passed.layers), passed.checkpoint.model.config.num_attention_heads
    lines = torch.zeros(len(LINES), passed.mask.shape[1], dtype=torch.float64)
    for line, at in zip(lines, LINES, strict=True):
        line[at : at + 1 + more] = 1
    mix = torch.as_tensor(mix, dtype=torch.float64).expand(len(passed), -1, -1)
    return AttentionEdit(torch.ones(1, 1, layers, n_heads, dtype=torch.bool), lines, mix[:, None])


def test_attention_that_is_left_alone_is_transformers_own(passed):
    whole, own = passed.run(), passed.checkpoint.model.config._attn_implementation
    for change in (lambda _layer, A: A, edit_of(passed, torch.eye(3)), edit_of(passed, torch.eye(3), more=1)):
        with attention_edits.changed_attention(passed.checkpoint, change):
            torch.testing.assert_close(passed.run().logits, whole.logits, rtol=0, atol=1e-9)
    assert passed.checkpoint.model.config._attn_implementation == own


def test_lines_that_change_places_are_values_that_change_places(passed):
    order = [1, 2, 0]
    values = []
    for V in passed.values:
        values.append(V.clone())
        values[-1][:, :, LINES] = V[:, :, [LINES[i] for i in order]]
    expected = replace(passed, values=tuple(values)).run().logits
    with attention_edits.changed_attention(passed.checkpoint, edit_of(passed, torch.eye(3)[order].T)):
        edited = passed.run().logits
    torch.testing.assert_close(edited, expected, rtol=0, atol=1e-9)
    assert (edited - passed.run().logits).abs().max() > 1e-6


def test_only_some_heads_move_attention_among_lines_and_none_is_lost(passed):
    layers, n_heads = len(passed.layers), passed.checkpoint.model.config.num_attention_heads
    edit = edit_of(passed, torch.full((3, 3), 1 / 3))
    heads = torch.zeros_like(edit.heads)
    heads[..., 1, 0] = True
    edit = replace(edit, heads=heads)
    A = torch.rand(len(passed), n_heads, 4, edit.lines.shape[1] + 4, dtype=torch.float64).softmax(-1)
    assert torch.equal(edit(0, A), A) and layers > 1
    edited = edit(1, A)
    torch.testing.assert_close(edited.sum(-1), torch.ones(A.shape[:-1], dtype=torch.float64))
    torch.testing.assert_close(edited[:, 0, :, LINES].std(-1), torch.zeros(len(passed), 4, dtype=torch.float64))
    two = replace(edit_of(passed, torch.full((3, 3), 1 / 3), more=1), heads=heads)(1, A)[:, 0]
    torch.testing.assert_close(two[..., 8] / two[..., 7], A[:, 0, :, 8] / A[:, 0, :, 7])
    others = [i for i in range(A.shape[-1]) if i not in LINES]
    assert torch.equal(edited[..., others], A[..., others]) and torch.equal(edited[:, 1:], A[:, 1:])


def test_edits_side_by_side_are_each_that_of_a_pass_of_its_own(passed):
    last = passed.at_last()
    edits = [
        edit_of(passed, torch.eye(3)),
        edit_of(passed, torch.full((3, 3), 1 / 3)),
        edit_of(passed, torch.eye(3)[[1, 2, 0]]),
    ]
    lines = torch.nn.functional.pad(edits[0].lines, (0, last.mask.shape[1] - edits[0].lines.shape[1]))
    together = AttentionEdit(torch.cat([e.heads for e in edits], 1), lines, torch.cat([e.mix for e in edits], 1))
    logits = attention_edits.edited_logits(last, together)
    torch.testing.assert_close(logits[:, 0], passed.run().logits, rtol=0, atol=1e-9)
    for i, edit in enumerate(edits):
        with attention_edits.changed_attention(passed.checkpoint, edit):
            torch.testing.assert_close(logits[:, i], last.run().logits, rtol=0, atol=1e-9)
    assert (logits[:, 1] - logits[:, 0]).abs().max() > 1e-6
