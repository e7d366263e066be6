"""models.recording against transformers itself: eager attention over the whole prompt, one query at a time."""

import contextlib
import copy
import sys
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np
import pytest
import tiny_models
import torch
from tiny_models import record
from transformers import GPT2Config
from transformers.cache_utils import DynamicCache
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from explainer.data import tasks
from explainer.errors import CheckpointError
from explainer.models import architectures, finetuning, recording, scoring
from explainer.models.recording import read_heads
from explainer.theory import duality

FAMILIES = (*tiny_models.CONFIGS, *tiny_models.MORE)
OUTPUT = {
    "gemma3_text": "self_attn.o_proj",
    "gpt2": "attn.c_proj",
    "gpt_neox": "attention.dense",
    "llama": "self_attn.o_proj",
    "opt": "self_attn.out_proj",
    "qwen2": "self_attn.o_proj",
    "qwen3": "self_attn.o_proj",
    "xglm": "self_attn.out_proj",
}
QUERY = {"gpt2": "attn.c_attn", "gpt_neox": "query_key_value", "qwen3": "q_norm", "gemma3_text": "q_norm"}
CONTEXT = "France -> Paris\nItaly -> Rome\nJapan -> Tokyo\n"
PROMPTS = ("Spain ->", "the little old town ->", "x", "Review: a dull film, and too long by an hour\nSentiment:")
CANDIDATES = ("Paris", "Rome", "Positive", "Ouagadougou", "Rome Italy")
SUFFIX = " Positive"


@pytest.fixture(params=FAMILIES)
def checkpoint(request, tiny):
    """One tiny checkpoint; whatever a test records, it must stay as it was."""
    with tiny_models.unchanged(tiny[request.param].model):
        yield tiny[request.param]


@pytest.fixture
def llama(tiny):
    with tiny_models.unchanged(tiny["llama"].model):
        yield tiny["llama"]


class Eager:
    """What eager attention of transformers computes at the last of some tokens, in one pass over all of them.

    `read` (layers, heads * d) by the output projections, `outputs` (layers, hidden), `weights` (layers, heads, T),
    `scores` (layers, heads, T) without a mask, and `queries` (layers, heads * d).
    """

    def __init__(self, checkpoint, ids, monkeypatch):
        model = copy.deepcopy(checkpoint.model)  # transformers leaves hooks of its own behind
        model.set_attn_implementation("eager")
        family, seen = model.config.model_type, {"out": [], "query": [], "key": [], "scores": [], "read": []}
        for name, module in model.named_modules():
            for kind, end in (("out", OUTPUT[family]), ("query", QUERY.get(family, "q_proj")), ("key", "k_proj")):
                if name.endswith(end):
                    module.register_forward_hook(partial(self._keep, seen[kind]))
            if name.endswith(OUTPUT[family]):
                module.register_forward_pre_hook(lambda _, args: seen["read"].append(args[0][0, -1]))
        with monkeypatch.context() as patch:
            code = sys.modules[type(model).__module__]
            if eager := getattr(code, "eager_attention_forward", None):
                patch.setattr(code, "eager_attention_forward", partial(self._attend, eager, seen["scores"]))
            result = model(input_ids=torch.tensor([ids]), output_attentions=True, use_cache=False)
        heads = model.config.num_attention_heads
        self.outputs, self.read = torch.stack([out[-1] for out in seen["out"]]), seen["read"]
        self.weights = torch.stack([weights[0, :, -1] for weights in result.attentions])
        d = getattr(model.config, "head_dim", None) or self.outputs.shape[-1] // heads
        self.queries = torch.stack(self._queries(family, seen["query"], heads, d))
        if not eager:  # XGLM: separate projections, no rotation
            products = zip(self.queries, seen["key"], strict=True)
            seen["scores"] = [torch.einsum("hd,nhd->hn", q.view(heads, d), k.view(-1, heads, d)) for q, k in products]
        self.scores = torch.stack(seen["scores"])

    @staticmethod
    def _keep(kept, _module, _args, output):
        kept.append(output[0])

    @staticmethod
    def _attend(eager, kept, *inputs, scaling=None, **options):
        _module, query, key, *_ = inputs
        keys = key.repeat_interleave(query.shape[1] // key.shape[1], 1)
        kept.append((query[:, :, -1:] @ keys.mT)[0, :, 0] * scaling)
        return eager(*inputs, scaling=scaling, **options)

    @staticmethod
    def _queries(family, seen, heads, d):
        last = [output[:, -1] if family == "gemma3_text" else output[-1] for output in seen]
        if family == "gpt2":
            last = [fused[: heads * d] for fused in last]
        if family == "gpt_neox":
            last = [fused.view(heads, 3, d)[:, 0] for fused in last]
        return [query.flatten() * d**-0.5 for query in last]


def layer_scale(checkpoint):
    """1 / (l + 1) for GPT-2 with the option of that name, else 1, shape (layers, 1)."""
    config = checkpoint.model.config
    divided = getattr(config, "scale_attn_by_inverse_layer_idx", False)
    return torch.tensor([[1 / (i + 1) if divided else 1.0] for i in range(config.num_hidden_layers)])


def near(ours, expected):
    """Equal relative to the largest number, because large weights make these models' numbers large."""
    largest = max([1.0, *expected.abs().flatten().tolist()])
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-4 * largest)


def assert_equal_to_eager(checkpoint, records, i, ids, *, n_context, monkeypatch):
    """Query i, recorded at the last of all `ids`, of which the first `n_context` are the prefix."""
    eager = Eager(checkpoint, ids, monkeypatch)
    own, context = records.own_scores[i], records.context_scores[i]
    assert (context.shape[-1], own.shape[-1]) == (n_context, len(ids) - n_context)
    scores = torch.cat([context, own], -1)
    near(records.outputs[i], eager.outputs)
    near(records.queries[i], eager.queries * layer_scale(checkpoint))
    near(scores.softmax(-1), eager.weights)
    near(scores, eager.scores)


each_kind = pytest.mark.parametrize(("context", "suffix"), [([], ""), ("", SUFFIX), (CONTEXT, ""), (CONTEXT, SUFFIX)])


@each_kind
def test_outputs_scores_and_queries_equal_eager_attention(checkpoint, context, suffix, monkeypatch):
    prefix = scoring.encode(checkpoint, context)
    records = record(checkpoint, prefix, PROMPTS, suffix=suffix)
    assert list(records.log_probs) == [None] * len(PROMPTS)
    assert len(checkpoint.tokenize(PROMPTS[2])) == 1
    for i, prompt in enumerate(PROMPTS):
        ids = [*prefix.ids, *checkpoint.tokenize(prompt + suffix)]
        assert_equal_to_eager(checkpoint, records, i, ids, n_context=len(prefix), monkeypatch=monkeypatch)


@pytest.mark.parametrize("budget", [1, 30, 256])
def test_packing_changes_nothing(checkpoint, budget, monkeypatch):
    prefix = scoring.encode(checkpoint, CONTEXT)
    alone = [record(checkpoint, prefix, [prompt], CANDIDATES) for prompt in PROMPTS]
    monkeypatch.setattr(scoring, "PACK_TOKENS", budget)
    together = record(checkpoint, prefix, PROMPTS, CANDIDATES)
    for i, one in enumerate(alone):
        near(together.outputs[i], one.outputs[0])
        near(together.queries[i], one.queries[0])
        near(together.own_scores[i], one.own_scores[0])
        near(together.context_scores[i], one.context_scores[0])
        np.testing.assert_allclose(together.log_probs[i], one.log_probs[0], atol=1e-4, rtol=0)


@pytest.mark.parametrize("keep", [0, 1, 4])
def test_a_blind_prefix_shows_the_scores_that_are_left(llama, keep):
    prefix = scoring.encode(llama, CONTEXT)
    seeing, blind = (record(llama, p, PROMPTS) for p in (prefix, prefix.masked(keep)))
    assert blind.context_scores.shape == (4, 3, 6, keep)
    near(blind.context_scores[:, 0], seeing.context_scores[:, 0, :, :keep])  # the first layer sees only tokens
    if keep == 0:  # positions are rotations, and only differences of positions count
        zero_shot = record(llama, scoring.encode(llama, []), PROMPTS)
        near(blind.outputs, zero_shot.outputs)
        near(blind.queries, zero_shot.queries)
        near(torch.cat(blind.own_scores, -1), torch.cat(zero_shot.own_scores, -1))


def test_queries_are_those_that_fine_tuning_records(checkpoint):
    seen = []
    ids = [checkpoint.first_token_id, *checkpoint.tokenize(PROMPTS[0])]
    finetuning.fine_tune(checkpoint, [ids], 1e-9, on_queries=lambda _t, queries: seen.append(queries))
    near(record(checkpoint, scoring.encode(checkpoint, ""), PROMPTS[:1]).queries[0], seen[0][:, -1])


@pytest.mark.parametrize("suffix", ["", SUFFIX, " Ouagadougou"])
def test_candidates_are_scored_at_the_end_of_the_prompt(checkpoint, suffix):
    prefix = scoring.encode(checkpoint, CONTEXT)
    expected = scoring.candidate_log_probs(checkpoint, prefix, PROMPTS, CANDIDATES)
    ours = record(checkpoint, prefix, PROMPTS, CANDIDATES, suffix=suffix)
    np.testing.assert_allclose(ours.log_probs, expected, atol=1e-4, rtol=0)
    for i, prompt in enumerate(PROMPTS):
        assert ours.own_scores[i].shape[-1] == len(checkpoint.tokenize(prompt + suffix))


def test_candidates_that_begin_alike_are_recorded_where_they_part(checkpoint):
    """As if what they have in common stood in the prompts."""
    alike, prefix = ("unhappy", "unsure"), scoring.encode(checkpoint, CONTEXT)
    longer = [f"{prompt} un" for prompt in PROMPTS]
    ours, expected = record(checkpoint, prefix, PROMPTS, alike), record(checkpoint, prefix, longer)
    torch.testing.assert_close(ours.outputs, expected.outputs, rtol=1e-4, atol=2e-5)
    torch.testing.assert_close(ours.own_scores, expected.own_scores, rtol=1e-4, atol=2e-5)
    for a, b in zip(
        recording.linear_maps(checkpoint, prefix, PROMPTS, alike),
        recording.linear_maps(checkpoint, prefix, longer),
        strict=True,
    ):
        torch.testing.assert_close(a.own, b.own)
    scores = scoring.candidate_log_probs(checkpoint, prefix, PROMPTS, alike)
    np.testing.assert_allclose(ours.log_probs, scores, atol=1e-4, rtol=0)


@pytest.mark.parametrize("family", ["llama", "gpt2", "gpt_neox", "opt"])
def test_bfloat16_is_recorded_in_float32_and_passes_the_check(tiny, family):
    checkpoint = tiny[family]
    half = replace(checkpoint, model=copy.deepcopy(checkpoint.model).bfloat16())
    records = [record(c, scoring.encode(c, CONTEXT), PROMPTS) for c in (checkpoint, half)]
    assert {t.dtype for r in records for t in (r.outputs, *r.own_scores, r.context_scores, r.queries)} == {
        torch.float32
    }
    exact, rounded = (r.own_scores[3][0] for r in records)
    torch.testing.assert_close(rounded, exact, rtol=0, atol=0.05 * exact.abs().max().item())


def double(checkpoint):
    """The checkpoint in float64; XGLM, whose mask overflows there, as it is. GPT-Neo forms scores in float32 anyway."""
    if checkpoint.model.config.model_type == "xglm":
        return checkpoint
    return replace(checkpoint, model=copy.deepcopy(checkpoint.model).double())


def turned(model, layer, queries, place):
    """Queries (heads, d) of a layer rotated by transformers to a position; as they are in a family without rotation."""
    base = model.base_model
    if not hasattr(base, "rotary_emb"):
        return queries
    kind = model.config.layer_types[layer : layer + 1] if model.config.model_type == "gemma3_text" else ()
    rotation = base.rotary_emb(queries, torch.tensor([[place]]), *kind)
    heads = queries[None, :, None]
    return sys.modules[type(model).__module__].apply_rotary_pos_emb(heads, heads, *rotation)[0][0, :, 0]


def keys_and_values(checkpoint, ids):
    """Those of transformers in one pass over the ids, per layer (key heads, T, d) each, in float64."""
    cache = DynamicCache()  # made by the model it would keep a window only
    copy.deepcopy(checkpoint.model)(input_ids=torch.tensor([ids]), use_cache=True, **{architectures.CACHE: cache})
    return [(layer.keys[0].double(), layer.values[0].double()) for layer in cache.layers]


@each_kind
def test_linear_maps_are_the_sum_of_values_times_scores(checkpoint, context, suffix):
    """W q = sum_j (k_j . R q) v_j for any q, with keys, values and rotation of transformers."""
    exact = double(checkpoint)
    prefix = scoring.encode(exact, context)
    all_maps = list(recording.linear_maps(exact, prefix, PROMPTS, suffix=suffix))
    assert len(all_maps) == len(PROMPTS)
    for prompt, maps in zip(PROMPTS, all_maps, strict=True):
        ids = [*prefix.ids, *exact.tokenize(prompt + suffix)]
        demonstrated = torch.arange(len(ids)).bool() & (torch.arange(len(ids)) < len(prefix))
        for layer, (K, V) in enumerate(keys_and_values(exact, ids)):
            q = torch.randn(len(K), K.shape[-1], generator=torch.Generator().manual_seed(layer), dtype=torch.float64)
            weights = torch.einsum("hd,htd->ht", turned(exact.model, layer, q, len(ids) - 1), K)
            for W, tokens in ((maps.own[layer], ~demonstrated), (maps.context[layer], demonstrated)):
                expected = torch.einsum("ht,htd->hd", weights * tokens, V)
                W_q = torch.einsum("hvd,hd->hv", W.double(), q)
                digits = 1e-5 if exact.model.config.model_type == "xglm" else 1e-10
                largest = weights.abs().amax().item() * V.abs().amax().item()
                torch.testing.assert_close(W_q, expected, rtol=0, atol=digits * largest)
    if len(prefix) < 2:
        assert not any(maps.context.any() for maps in all_maps)


def test_linear_maps_do_not_depend_on_the_absolute_position(checkpoint):
    """Where positions are rotations: hidden demonstrations move the query to other places, and its map stays.

    To the precision of the angles, which transformers keeps in float32.
    """
    exact = double(checkpoint)
    rotary = checkpoint.model.config.model_type in ("gemma3_text", "gpt_neox", "llama", "qwen2", "qwen3")
    blind, nothing = scoring.encode(exact, CONTEXT).masked(), scoring.encode(exact, [])
    for moved, maps in zip(*(recording.linear_maps(exact, p, PROMPTS) for p in (blind, nothing)), strict=True):
        error = (moved.own - maps.own).abs().max() / maps.own.abs().max()
        assert error < 1e-5 if rotary else error > 1e-2
        assert not moved.context.any()


IDS = [0, *range(5, 40)]
UNSCALED = GPT2Config(n_positions=64, n_embd=32, n_layer=3, n_head=4, vocab_size=64, scale_attn_weights=False)
BY_LAYER = tiny_models.MORE["gpt2, scaled by layer"]


@pytest.mark.parametrize(
    "config",
    [*tiny_models.CONFIGS.values(), UNSCALED, BY_LAYER, tiny_models.MORE["gemma3_text"]],
    ids=lambda one: one.model_type,
)
def test_softmax_attention_of_a_head_is_what_transformers_computes(config, monkeypatch):
    """The query carries an unusual scale."""
    checkpoint = tiny_models.random_checkpoint(config)
    with tiny_models.unchanged(checkpoint.model):
        layers = read_heads(checkpoint, IDS)
    eager = Eager(checkpoint, IDS, monkeypatch)
    assert len(layers) == len(eager.weights) == len(eager.read)
    for layer, weights, read in zip(layers, eager.weights, eager.read, strict=True):
        assert {x.dtype for head in layer for x in (head.query, head.keys, head.values)} == {torch.float64}
        ours = torch.stack([duality.scaled_logits(head.query, head.keys).softmax(-1) for head in layer])
        torch.testing.assert_close(ours.float(), weights, rtol=0, atol=1e-4)
        ours = torch.cat([duality.softmax_attention(head.query, head.keys, head.values) for head in layer])
        torch.testing.assert_close(ours.float(), read, rtol=1e-4, atol=1e-4)


def test_rows_first_moves_rows_and_keeps_the_output(llama):
    head = read_heads(llama, IDS)[1][2]
    moved = head.with_rows_first(3, 10)
    assert torch.equal(moved.keys, torch.cat([head.keys[3:10], head.keys[:3], head.keys[10:]]))
    assert torch.equal(moved.values, torch.cat([head.values[3:10], head.values[:3], head.values[10:]]))
    outputs = [duality.softmax_attention(h.query, h.keys, h.values) for h in (head, moved)]
    torch.testing.assert_close(*outputs, rtol=0, atol=1e-12)


def test_heads_of_a_prompt_have_the_demonstrations_first(llama):
    """The rows are those of one pass over the prompt: the first token stands behind the n demonstration tokens."""
    data = tasks.load("capitals")
    prompt = recording.PromptHeads.read(llama, data, seed=3, k=2)
    text = "".join(data.task.demonstration(one) + "\n" for one in tasks.demonstrations(data, 2, 3))
    assert prompt.ids[1 : prompt.n + 1] == llama.tokenize(text)
    for found, head in zip(prompt.heads, chain.from_iterable(read_heads(llama, prompt.ids)), strict=True):
        assert torch.equal(found.query, head.query)
        assert torch.equal(found.keys[: prompt.n], head.keys[1 : prompt.n + 1])
        assert torch.equal(found.values[prompt.n], head.values[0])
        assert torch.equal(found.values[prompt.n + 1 :], head.values[prompt.n + 1 :])


@pytest.mark.parametrize(("cap", "error", "refused"), [(2, 0, True), (1e4, 0.0011, True), (1e4, 0.0009, False)])
def test_attention_that_is_no_softmax_of_the_scores_is_refused(tiny, cap, error, refused):
    """A soft cap, as in Gemma 2, behind the attention interface; a thousandth of the largest value is rounding."""
    checkpoint = replace(tiny["llama"], model=copy.deepcopy(tiny["llama"].model))

    def capped(module, query, key, value, _mask, *, scaling=None, **_):
        n_groups = query.shape[1] // key.shape[1]
        scores = query @ key.repeat_interleave(n_groups, 1).mT * scaling
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(scores.shape[-1] - scores.shape[-2])
        scores = (cap * torch.tanh(scores / cap)).masked_fill(~allowed, -torch.inf)
        output = scores.softmax(-1) @ value.repeat_interleave(n_groups, 1) + error * value.abs().max()
        return output.transpose(1, 2), None

    ALL_ATTENTION_FUNCTIONS["capped"] = capped
    try:
        checkpoint.model.set_attn_implementation("capped")
        said = pytest.raises(CheckpointError, match=r"attention in layers \[0, 1, 2\] is not a softmax of q . k")
        with tiny_models.unchanged(checkpoint.model), said if refused else contextlib.nullcontext():
            record(checkpoint, scoring.encode(checkpoint, CONTEXT), PROMPTS[3:])
    finally:
        del ALL_ATTENTION_FUNCTIONS["capped"]


@pytest.mark.parametrize("part", ["key", "value"])
def test_a_wrong_head_in_one_layer_is_refused(llama, part, monkeypatch):
    finish = recording._Recorder._finish

    def corrupt(self, module, args, inputs, output):
        changed = inputs[architectures.CACHE].layers[1]
        (changed.keys if part == "key" else changed.values)[0, 1].neg_()
        return finish(self, module, args, inputs, output)

    monkeypatch.setattr(recording._Recorder, "_finish", corrupt)
    with pytest.raises(CheckpointError, match=r"attention in layers \[1\] is not"):
        record(llama, scoring.encode(llama, CONTEXT), PROMPTS)
