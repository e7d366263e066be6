"""models.circuits: attention maps and their scores, heads switched off by hand and by hook, tokens kept apart."""

import copy

import pytest
import tiny_models
import torch

from explainer.data import tasks
from explainer.data.tasks import Example
from explainer.models import architectures, circuits, hooks, scoring
from explainer.models.recording import read_heads

CAPITALS = tasks.TASKS["capitals"]
EXAMPLES = [Example({"word": word}, answer) for word, answer in (("France", "Paris"), ("Italy", "Rome"), ("cat", "x"))]


@pytest.fixture(scope="module", params=tiny_models.CONFIGS)
def any_family(request):
    """A tiny random model of each family, in float64 where the family computes in it."""
    return tiny_models.random_checkpoint(tiny_models.CONFIGS[request.param], tiny_models.widest(request.param))


@pytest.fixture(scope="module", params=["llama", "gpt2"])
def checkpoint(request):
    return tiny_models.random_checkpoint(tiny_models.CONFIGS[request.param], torch.float64)


IDS = (0, 31, 7, 12, 99, 7, 12, 50)


# Attention maps.


def test_maps_are_causal_and_their_rows_sum_to_one(any_family):
    maps = circuits.attention_maps(any_family, IDS)
    found = architectures.architecture(any_family.model)
    assert maps.shape == (len(found.layers), found.n_heads, len(IDS), len(IDS))
    torch.testing.assert_close(maps.sum(-1), torch.ones(maps.shape[:-1]))
    assert maps.triu(1).abs().max() == 0


def test_the_last_row_is_the_softmax_of_the_heads_that_are_read(checkpoint):
    maps = circuits.attention_maps(checkpoint, IDS)
    for layer, heads in enumerate(read_heads(checkpoint, IDS)):
        for h, head in enumerate(heads):
            weights = (head.keys @ head.query / len(head.query) ** 0.5).softmax(-1)
            torch.testing.assert_close(maps[layer, h, -1].double(), weights, rtol=0, atol=1e-6)


# Scores.


def test_scores_against_loops():
    n = 4
    maps = torch.rand(2, 3, 2 * n + 1, 2 * n + 1).tril()
    ids = [0, *range(1, n + 1), *range(1, n + 1)]
    for layer in range(2):
        for head in range(3):
            A = maps[layer, head]
            found = [A[t, ids.index(ids[t]) + 1] for t in range(n + 1, 2 * n + 1)]
            torch.testing.assert_close(circuits.induction_score(maps)[layer, head], torch.stack(found).mean())
            found = [A[t, t - 1] for t in range(2, 2 * n + 1)]
            torch.testing.assert_close(circuits.previous_token_score(maps)[layer, head], torch.stack(found).mean())


def test_a_repeated_sequence_is_random_different_and_said_twice(checkpoint):
    ids, again, other = (circuits.repeated_random_tokens(checkpoint, 20, seed) for seed in (3, 3, 4))
    assert ids[0] == checkpoint.first_token_id and ids[1:21] == ids[21:] and len(set(ids[1:])) == 20
    assert ids == again != other


def test_the_strongest_heads_and_others_of_their_layers():
    scores = torch.tensor([[0.1, 0.9, 0.3], [0.2, 0.8, 0.7], [0.0, 0.0, 0.0]])
    heads = circuits.strongest_heads(scores, 3)
    assert heads == [(0, 1), (1, 1), (1, 2)]
    with pytest.raises(ValueError, match="larger sample"):
        circuits.random_heads_like(heads, 3, seed=0)
    drawn = circuits.random_heads_like(heads, 6, seed=0)
    assert sorted(layer for layer, _ in drawn) == [0, 1, 1] and len(set(drawn)) == 3 and not set(drawn) & set(heads)
    assert len({tuple(circuits.random_heads_like(heads, 6, seed)) for seed in range(10)}) > 3


# Heads switched off.


def logits(model, ids=IDS):
    return model(input_ids=torch.tensor([ids]), use_cache=False).logits


def test_zero_output_is_a_projection_without_the_columns_of_the_head(any_family):
    """By hand: zeros in the part of the output projection's weight that reads the head."""
    heads, d = [(0, 1), (2, 0), (2, 3)], architectures.architecture(any_family.model).layers[0].key.head_size
    by_hand = copy.deepcopy(any_family.model)
    for layer, head in heads:
        module = architectures.architecture(by_hand).layers[layer].output
        weight = module.weight if type(module).__name__ == "Conv1D" else module.weight.T
        weight[d * head : d * (head + 1)] = 0
    own = logits(any_family.model)
    with tiny_models.unchanged(any_family.model), circuits.ablate_heads(any_family, heads):
        off = logits(any_family.model)
    torch.testing.assert_close(off, logits(by_hand), rtol=1e-4, atol=1e-4 * own.abs().max().item())
    assert (off - own).abs().max() > 1e-2
    assert logits(any_family.model).equal(own)


def test_mean_output_is_the_mean_by_hand(checkpoint):
    found = architectures.architecture(checkpoint.model)
    texts, read = [IDS, IDS[:3]], []
    with hooks.inputs([(found.layers[1].output, lambda x: read.append(x[0, 1:]))]):
        for ids in texts:
            logits(checkpoint.model, ids)
    with tiny_models.unchanged(checkpoint.model):
        means = circuits.mean_head_outputs(checkpoint, texts)
    by_hand = torch.cat(read[:2]).mean(0)
    torch.testing.assert_close(means[1].flatten(), by_hand)
    assert means.shape == (len(found.layers), found.n_heads, found.layers[0].key.head_size)

    listening = hooks.inputs([(found.layers[1].output, lambda x: read.append(x[0, 1:]))])
    with circuits.ablate_heads(checkpoint, [(1, 2)], means), listening:
        logits(checkpoint.model)
    d = found.layers[0].key.head_size
    own, x = read[0], read[2]
    assert x[:, 2 * d : 3 * d].equal(means[1, 2].expand(len(x), d))
    torch.testing.assert_close(x[:, : 2 * d], own[:, : 2 * d])
    torch.testing.assert_close(x[:, 3 * d :], own[:, 3 * d :])


# Tokens kept apart.


def test_nothing_cut_is_the_prefix(any_family):
    plain, cut = scoring.encode(any_family, IDS), scoring.encode(any_family, IDS, [])
    for a, b in zip((*plain.keys, *plain.values), (*cut.keys, *cut.values), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_what_is_cut_off_on_every_way_leaves_no_trace(any_family):
    """Token 3 seen by nobody: the keys and values behind it do not depend on it; cut from token 5 only, they do."""
    other = (*IDS[:3], 200, *IDS[4:])
    all_ways = [(t, 3) for t in range(4, len(IDS))]
    for cut, same in ((all_ways, True), ([(5, 3)], False)):
        a, b = (scoring.encode(any_family, ids, cut) for ids in (IDS, other))
        change = max((x - y)[:, :, 4:].abs().max() for x, y in zip(a.values, b.values, strict=True))
        assert (change < 1e-6) == same


# Few-shot prompts.


def test_columns_are_where_the_words_stand(checkpoint):
    found = circuits.TokenSpans.of(checkpoint, CAPITALS, EXAMPLES)
    text = [checkpoint.tokenizer.decode([i]) for i in found.ids]
    assert list(found.ids) == scoring.context_ids(checkpoint, CAPITALS, EXAMPLES)[0]
    for i, example in enumerate(EXAMPLES):
        start, answer, end = found.ends[i], found.answers[i], found.ends[i + 1]
        assert "".join(text[start : answer - 1]) == example.fields["word"] and text[answer - 1] == " ->"
        assert "".join(text[answer:end]) == f" {example.answer}\n"


def test_pairs_between_answers_and_what_stands_before_them():
    """Those that hide the input from the arrow as well keep the arrow itself."""
    two = circuits.TokenSpans((0,) * 10, answers=(4, 8), ends=(1, 6, 10))  # input of two tokens, then one
    assert two.between("input") == [(4, 1), (4, 2), (5, 1), (5, 2), (8, 6), (9, 6)]
    assert two.between("arrow") == [(4, 3), (5, 3), (8, 7), (9, 7)]
    assert set(two.between("both")) == {*two.between("input"), *two.between("arrow")}
    assert two.between("both", back=1) == [(8, 1), (8, 2), (8, 3), (9, 1), (9, 2), (9, 3)]
    assert two.between("input", arrow=True) == [(3, 1), (3, 2), (4, 1), (4, 2), (5, 1), (5, 2), (7, 6), (8, 6), (9, 6)]
    assert two.between("input", back=1, arrow=True) == [(7, 1), (7, 2), (8, 1), (8, 2), (9, 1), (9, 2)]


def test_answers_are_those_of_scoring(checkpoint):
    prefix = scoring.encode(checkpoint, circuits.TokenSpans.of(checkpoint, CAPITALS, EXAMPLES).ids, [])
    queries = [Example({"word": "Spain"}, "Madrid"), Example({"word": "Peru"}, "Lima")]
    prompts, words = [CAPITALS.prompt(one) for one in queries], [one.answer for one in queries]
    found = circuits.Answers.of(checkpoint, CAPITALS, prefix, queries)
    assert found.correct.tolist() == scoring.exact_match(checkpoint, prefix, prompts, words).tolist()
    expected = scoring.candidate_log_probs(checkpoint, prefix, prompts, words).diagonal()
    torch.testing.assert_close(torch.tensor(found.log_probs), torch.tensor(expected).double(), rtol=1e-4, atol=1e-4)
