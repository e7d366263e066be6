"""models.interventions: passes of every family, edits at the last token, and the context as a change of weights."""

import copy

import pytest
import tiny_models
import torch
from transformers.pytorch_utils import Conv1D

from explainer.models import architectures, interventions, scoring
from explainer.models.interventions import States
from explainer.theory import projections

FAMILIES = tiny_models.CONFIGS | {
    name: config for name, config in tiny_models.MORE.items() if name not in ("gpt2, scaled by layer", "gemma3_text")
}
CONTEXT = "France -> Paris\nItaly -> Rome\nJapan -> Tokyo\ncat -> cats\n"
PROMPTS = ("Spain ->", "the little old town ->", "x", "Peru ->")


class Tiny:
    """A tiny checkpoint, its passes and their states; `close` compares as well as its number format allows."""

    def __init__(self, family):
        self.tolerance = 1e-4 if family == "xglm" else 1e-10
        self.checkpoint = tiny_models.random_checkpoint(FAMILIES[family], tiny_models.widest(family))
        self.model = self.checkpoint.model
        self.layers = architectures.architecture(self.model).layers
        self.prefix = scoring.encode(self.checkpoint, CONTEXT)
        self.ids = scoring.prompt_token_ids(self.checkpoint, self.prefix, PROMPTS)
        asked = self.checkpoint, self.prefix, PROMPTS
        self.after, self.without = interventions.after_context(*asked), interventions.without_context(*asked)
        self.icl, self.zsl = self.after.run(), self.without.run()

    def close(self, ours, expected):
        for a, b in zip(ours, expected, strict=True) if isinstance(ours, States) else [(ours, expected)]:
            torch.testing.assert_close(a, b, rtol=0, atol=self.tolerance * max(1, b.abs().max().item()))

    def alone(self, model, i):
        """Logits of transformers itself for query i after the first token, at the positions it has after the prefix."""
        ids = torch.tensor([[self.prefix.ids[0], *self.ids[i]]])
        positions = torch.tensor([[0, *range(len(self.prefix), len(self.prefix) + len(self.ids[i]))]])
        mask = torch.ones_like(ids)
        return model(input_ids=ids, position_ids=positions, attention_mask=mask, use_cache=False).logits[0, -1]


@pytest.fixture(scope="module", params=FAMILIES)
def made(request):
    return Tiny(request.param)


@pytest.fixture
def tiny(made):
    """Whatever a test does with it, the model must stay as it was."""
    with tiny_models.unchanged(made.model):
        yield made


@pytest.fixture(scope="module")
def llama():
    return Tiny("llama")


def test_a_pass_with_context_is_that_of_the_whole_text(tiny):
    model = copy.deepcopy(tiny.model)  # transformers leaves hooks of its own behind
    for i, ids in enumerate(tiny.ids):
        whole = torch.tensor([[*tiny.prefix.ids, *ids]])
        output = model(input_ids=whole, use_cache=False, output_hidden_states=True)
        tiny.close(tiny.icl.logits[i], output.logits[0, -1])
        tiny.close(tiny.icl.stream[i, 0], output.hidden_states[1][0, -1])


def test_a_pass_without_context_keeps_the_first_token_and_the_positions(tiny):
    for i in range(len(PROMPTS)):
        tiny.close(tiny.zsl.logits[i], tiny.alone(tiny.model, i))
    blind = scoring.row_logits(tiny.checkpoint, tiny.prefix.masked(1), [(ids, []) for ids in tiny.ids])
    for i, logits in blind:
        torch.testing.assert_close(logits[0], tiny.zsl.logits[i].float(), rtol=1e-3, atol=1e-3)


def test_the_last_tokens_alone_compute_what_the_whole_pass_computes(tiny):
    for whole, states in ((tiny.after, tiny.icl), (tiny.without, tiny.zsl)):
        last = whole.at_last().run()
        tiny.close(last.logits, states.logits)
        tiny.close(last.attention, states.attention)
        tiny.close(last.stream, states.stream)


def holding(layers, values):
    """Edits that hold the attention outputs at the last token at these values, (n, layers, d)."""
    pairs = zip(layers, values.unbind(1), strict=True)
    return [interventions.at_last(layer.output, lambda _, v=v: v) for layer, v in pairs]


def test_what_the_context_does_at_the_last_token_it_does_through_attention(tiny):
    """With the attention outputs of the other pass, either pass has the logits of the other."""
    for whole, other in ((tiny.without, tiny.icl), (tiny.after, tiny.zsl)):
        held = whole.at_last().run(holding(tiny.layers, other.attention))
        tiny.close(held.stream, other.stream)
        tiny.close(held.logits, other.logits)
    assert (tiny.icl.logits - tiny.zsl.logits).abs().max() > 0.1


def test_a_query_with_its_own_patch_has_its_context(tiny):
    patches = interventions.context_weight_patches(tiny.after, tiny.without)
    itself = torch.eye(len(PROMPTS), dtype=tiny.icl.logits.dtype)
    own = tiny.without.run(interventions.with_weight_patches(tiny.layers, patches, itself))
    tiny.close(own.stream, tiny.icl.stream)
    tiny.close(own.logits, tiny.icl.logits)
    other = tiny.without.run(interventions.with_weight_patches(tiny.layers, patches, itself.roll(1, 1)))
    assert (other.logits - tiny.icl.logits).abs().max() > 0.1


def test_queries_end_where_candidates_part(llama):
    """As if what they have in common stood in the prompts."""
    for make in (interventions.after_context, interventions.without_context):
        ours = make(llama.checkpoint, llama.prefix, PROMPTS, ("unhappy", "unsure")).run()
        expected = make(llama.checkpoint, llama.prefix, [f"{prompt} un" for prompt in PROMPTS]).run()
        torch.testing.assert_close(ours.attention, expected.attention)
        torch.testing.assert_close(ours.logits, expected.logits)


def test_a_patch_is_a_change_of_weights(tiny):
    """Added to the matrices of a copy, the mean of the patches gives what the edits give."""
    patches = interventions.context_weight_patches(tiny.after, tiny.without)
    weights = torch.full((len(PROMPTS), len(PROMPTS)), 1 / len(PROMPTS), dtype=tiny.icl.logits.dtype)
    edited = tiny.without.run(interventions.with_weight_patches(tiny.layers, patches, weights)).logits
    model = copy.deepcopy(tiny.model)
    for layer, patch in zip(architectures.architecture(model).layers, patches, strict=True):
        for module, update in zip((*layer.mlp.inputs, layer.mlp.output), (*patch.inputs, patch.output), strict=True):
            dW = update.left.T @ update.right / len(PROMPTS)
            module.weight += dW.T if isinstance(module, Conv1D) else dW
    for i in range(len(PROMPTS)):
        tiny.close(edited[i], tiny.alone(model, i))


def test_a_parallel_mlp_never_sees_the_attention_of_its_block():
    """So its input matrices need no change where the blocks below are patched, and its output matrix adds it."""
    neox = Tiny("gpt_neox")
    for patch in interventions.context_weight_patches(neox.after, neox.without):
        assert patch.inputs[0].left.abs().max() < 1e-10 < patch.output.left.norm(dim=-1).min()


def test_attention_loses_the_component_in_every_layer_and_nothing_else(tiny):
    direction = torch.randn(tiny.icl.attention.shape, generator=torch.Generator().manual_seed(0)).to(tiny.icl.attention)

    def without(z, u):
        return lambda output: output - projections.component(output - z, u)

    parts = zip(tiny.layers, tiny.zsl.attention.unbind(1), direction.unbind(1), strict=True)
    lost = tiny.after.run([interventions.at_last(layer.output, without(z, u)) for layer, z, u in parts])
    left = ((lost.attention - tiny.zsl.attention) * direction).sum(-1)
    assert left.abs().max() < 100 * tiny.tolerance * tiny.icl.attention.abs().max()
    removed = tiny.icl.attention[:, 0] - lost.attention[:, 0]  # the first layer, which no edit reaches otherwise
    parallel = torch.nn.functional.cosine_similarity(removed, direction[:, 0], dim=-1).abs()
    torch.testing.assert_close(parallel, torch.ones_like(parallel), rtol=1e-3, atol=0)
    assert (lost.logits - tiny.icl.logits).abs().max() > 1e-3


def test_a_vector_is_added_after_one_block(tiny):
    vectors = torch.arange(len(PROMPTS))[:, None] * tiny.icl.stream[:, 0]
    moved = tiny.without.run([interventions.at_last(tiny.layers[1].block, vectors.add)])
    tiny.close(moved.stream[:, 0], tiny.zsl.stream[:, 0])
    tiny.close(moved.stream[:, 1], tiny.zsl.stream[:, 1] + vectors)
    tiny.close(moved.logits[0], tiny.zsl.logits[0])
    assert (moved.logits[1] - tiny.zsl.logits[1]).abs().max() > 1e-3


def test_queries_that_are_repeated_take_edits_of_their_own(tiny):
    n, last = len(PROMPTS), tiny.without.at_last().repeated(2)
    both = torch.cat([tiny.icl.attention, tiny.zsl.attention])
    held = last.run(holding(tiny.layers, both))
    assert len(last) == 2 * n
    tiny.close(held.logits[:n], tiny.icl.logits)
    tiny.close(held.logits[n:], tiny.zsl.logits)
