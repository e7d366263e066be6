"""explainer.compare.softmax_comparison: floors that are floors, and one rule for all verdicts."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from explainer.compare import softmax_comparison
from explainer.models.recording import Head, PromptHeads
from explainer.theory import duality


def random_head(T: int = 9, d: int = 6, seed: int = 0, size: float = 1.0) -> Head:
    draw = torch.Generator().manual_seed(seed)
    q, keys, values = (torch.randn(*shape, generator=draw).double() for shape in ((d,), (T, d), (T, d)))
    return Head(size * q, keys, values)


def generator():
    return torch.Generator().manual_seed(1)


def test_the_forms_are_what_their_names_say():
    head = random_head()
    update, _, mean, repaired, _ = softmax_comparison._forms(head.query, head.keys, head.values, generator())
    assert torch.allclose(update, head.values.T @ head.keys @ head.query)
    assert torch.allclose(mean, head.values.mean(0))
    assert torch.allclose(repaired, duality.centred_linear_attention(head.query, head.keys, head.values))


def test_shuffled_values_are_the_same_values():
    """Where all keys are equal it does not matter which value a key has, so both shuffled forms equal their own."""
    head = random_head()
    found = softmax_comparison._forms(head.query, head.keys[:1].expand(9, -1), head.values, generator())
    assert torch.allclose(found[0], found[1]) and torch.allclose(found[3], found[4])
    moved = softmax_comparison._forms(head.query, head.keys, head.values, generator())
    assert not torch.allclose(moved[0], moved[1]) and not torch.allclose(moved[3], moved[4])


def test_softmax_and_the_repaired_update_ignore_a_shift_of_all_keys_and_the_update_does_not():
    head = random_head()
    shift = 3 * torch.randn(6, generator=generator()).double()
    before, after = (
        softmax_comparison._forms(head.query, keys, head.values, generator()) for keys in (head.keys, head.keys + shift)
    )
    assert torch.allclose(after[3], before[3])
    assert torch.allclose(after[0] - before[0], (shift @ head.query) * head.values.sum(0))
    assert torch.allclose(
        duality.softmax_attention(head.query, head.keys + shift, head.values),
        duality.softmax_attention(head.query, head.keys, head.values),
    )


def test_for_small_logits_the_repaired_update_points_where_softmax_does():
    cosines = softmax_comparison._cosines(random_head(size=1e-3), 6, generator())
    assert cosines[:, 3].min() > 1 - 1e-6
    assert cosines[:, 0].max() < 0.99  # the update has no mean value


def test_missed_is_the_error_at_the_best_scale():
    head = random_head()
    exact = duality.softmax_attention(head.query, head.keys, head.values)
    found = softmax_comparison._forms(head.query, head.keys, head.values, generator())
    cosine = softmax_comparison._cosines(head, 6, generator())[0].numpy()
    for form, missed in zip(found, softmax_comparison.error_at_best_scale(cosine), strict=True):
        scales = torch.linspace(-3, 3, 100_001).double() * exact.norm() / form.norm()
        errors = (scales[:, None] * form - exact).norm(dim=1) / exact.norm()
        assert missed == pytest.approx(errors.min().item(), abs=1e-4)


def test_medians_are_over_the_heads_of_all_prompts():
    prompts = [PromptHeads([random_head(seed=10 * p + h) for h in range(4)], [], 6) for p in range(3)]
    found = softmax_comparison.cosines_of_prompts(prompts)
    assert found.shape == (3, 4, 2, 5)
    medians = softmax_comparison.median_by_form(found[:, :, 0])
    assert [each.estimate for each in medians] == pytest.approx(np.median(found[:, :, 0], axis=1).mean(0))
    assert all(each.low <= each.estimate <= each.high for each in medians)


@given(st.floats(0, 3), st.floats(0, 3))
def test_a_larger_error_never_has_a_better_word(one, other):
    """The second edition called 90 % poor and 94 to 126 % an approximation."""
    words = ["exact", "approximation", "poor approximation"]
    smaller, larger = sorted((one, other))
    assert words.index(softmax_comparison.error_in_words(smaller)) <= words.index(
        softmax_comparison.error_in_words(larger)
    )
    assert softmax_comparison.error_in_words(0.9) == softmax_comparison.error_in_words(1.26) == "poor approximation"
