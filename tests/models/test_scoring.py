"""explainer.models.scoring against plain forward passes over the whole prompt and against greedy generation."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import tiny_models
import torch
from hypothesis import given
from hypothesis import strategies as st

from explainer.data import assets, tasks
from explainer.data.tasks import Example, Task, TaskData
from explainer.errors import CheckpointError, TaskError
from explainer.models import loading, scoring

FAMILIES = tuple(tiny_models.CONFIGS)
CANDIDATES = ("Paris", "Rome", "Positive", "Ouagadougou", "Rome Italy")
PROMPTS = ("Spain ->", "the little old town ->", "x", "Review: a dull film, and too long by an hour\nSentiment:")
CONTEXT = "France -> Paris\nItaly -> Rome\nJapan -> Tokyo\n"
CAPITALS = tasks.load("capitals")


@pytest.fixture(scope="module")
def trained(tiny):
    """A tiny Llama that has learned half of some word pairs by heart, so that greedy answers are right and wrong."""
    checkpoint = tiny["llama"]
    model = type(checkpoint.model)(tiny_models.CONFIGS["llama"])
    pairs = [CAPITALS.task.demonstration(e) + "\n" for e in CAPITALS.train[:12]]
    rows = [torch.tensor([[checkpoint.first_token_id, *checkpoint.tokenize(pair)]]) for pair in pairs]
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        if parameter.ndim == 2:
            torch.nn.init.normal_(parameter.data, std=0.1, generator=generator)
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(25 * len(rows)):
        optimiser.zero_grad()
        model(input_ids=rows[step % len(rows)], labels=rows[step % len(rows)]).loss.backward()
        optimiser.step()
    return replace(checkpoint, model=model.eval().requires_grad_(False))


def naive_log_prob(checkpoint, left, right):
    """log p(right | left), strings tokenized as a whole, from one forward pass over everything, without a cache."""
    ids, start = checkpoint.tokenize(left + right), len(checkpoint.tokenize(left))
    whole = torch.tensor([[checkpoint.first_token_id, *ids]])
    log_probs = checkpoint.model(input_ids=whole, use_cache=False).logits[0].log_softmax(-1)
    return sum(log_probs[start + j, token].item() for j, token in enumerate(ids[start:]))


def naive_candidates(checkpoint, context, prompts, candidates):
    """The same table as candidate_log_probs, cell by cell."""
    table = [[naive_log_prob(checkpoint, context + one, f" {word}") for word in candidates] for one in prompts]
    return np.array(table)


# --- equal to the plain forward pass ---------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("context", ["", CONTEXT])
def test_candidate_log_probs_equal_the_whole_prompts(tiny, family, context):
    checkpoint = tiny[family]
    ours = scoring.candidate_log_probs(checkpoint, scoring.encode(checkpoint, context), PROMPTS, CANDIDATES)
    assert ours.shape == (len(PROMPTS), len(CANDIDATES))
    np.testing.assert_allclose(ours, naive_candidates(checkpoint, context, PROMPTS, CANDIDATES), atol=1e-4, rtol=0)


@pytest.mark.parametrize("family", FAMILIES)
def test_first_tokens_of_a_prefix_are_the_prefix_of_the_first_tokens(tiny, family):
    checkpoint = tiny[family]
    prefix = scoring.encode(checkpoint, CONTEXT)
    for n in (0, 1, 7, len(prefix.ids)):
        short, fresh = prefix.first(n), scoring.encode(checkpoint, prefix.ids[:n])
        assert short.ids == fresh.ids == prefix.ids[:n]
        assert len(short) == n
        log_probs = [scoring.candidate_log_probs(checkpoint, p, PROMPTS, CANDIDATES) for p in (short, fresh)]
        np.testing.assert_allclose(*log_probs, atol=1e-4, rtol=0)


@pytest.mark.parametrize("family", FAMILIES)
def test_next_token_log_probs_are_a_distribution_and_the_models(tiny, family):
    checkpoint = tiny[family]
    log_probs = scoring.next_token_log_probs(checkpoint, scoring.encode(checkpoint, CONTEXT), "Spain ->")
    ids = [checkpoint.first_token_id, *checkpoint.tokenize(CONTEXT + "Spain ->")]
    expected = checkpoint.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1].log_softmax(-1)
    np.testing.assert_allclose(log_probs, expected.numpy(), atol=1e-4, rtol=0)
    assert np.exp(log_probs).sum() == pytest.approx(1, abs=1e-5)


def test_top_tokens_are_the_most_probable_in_order(tiny):
    checkpoint = tiny["gpt2"]
    prefix = scoring.encode(checkpoint, CONTEXT)
    top = scoring.top_tokens(checkpoint, prefix, "Spain ->", 3)
    probabilities = np.exp(scoring.next_token_log_probs(checkpoint, prefix, "Spain ->"))
    assert [p for _, p in top] == pytest.approx(sorted(probabilities, reverse=True)[:3])
    assert top[0][0] == checkpoint.tokenizer.decode([int(probabilities.argmax())])


# --- without the demonstrations' keys and values ---------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("keep", [0, 1, 4])
def test_blind_equals_an_attention_mask_with_the_same_positions(tiny, family, keep):
    checkpoint = tiny[family]
    prefix, prompt = scoring.encode(checkpoint, CONTEXT), checkpoint.tokenize("Spain ->")
    n = len(prefix.ids) + len(prompt)
    allowed = torch.ones(n, n, dtype=torch.bool).tril()
    allowed[len(prefix.ids) :, keep : len(prefix.ids)] = False
    mask = torch.zeros(n, n).masked_fill(~allowed, torch.finfo(torch.float32).min)
    logits = checkpoint.model(
        input_ids=torch.tensor([[*prefix.ids, *prompt]]),
        attention_mask=mask[None, None],
        position_ids=torch.arange(n)[None],
        use_cache=False,
    ).logits
    ours = scoring.next_token_log_probs(checkpoint, prefix.masked(keep), "Spain ->")
    np.testing.assert_allclose(ours, logits[0, -1].log_softmax(-1).numpy(), atol=1e-4, rtol=0)


# --- greedy decoding -------------------------------------------------------------------------------------------


def generated(checkpoint, context, prompt, n_tokens):
    ids = torch.tensor([[checkpoint.first_token_id, *checkpoint.tokenize(context + prompt)]])
    out = checkpoint.model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        max_new_tokens=n_tokens,
        eos_token_id=-1,
        pad_token_id=1,
    )
    return out[0, ids.shape[1] :].tolist()


@pytest.mark.parametrize("context", ["", CONTEXT])
def test_exact_match_is_what_greedy_generation_writes(trained, context):
    queries = CAPITALS.train[:24]
    prompts, answers = [CAPITALS.task.prompt(e) for e in queries], [e.answer for e in queries]
    ours = scoring.exact_match(trained, scoring.encode(trained, context), prompts, answers)
    targets = [trained.tokenize(f" {answer}\n") for answer in answers]
    expected = [generated(trained, context, p, len(t)) == t for p, t in zip(prompts, targets, strict=True)]
    assert ours.tolist() == expected
    if not context:
        assert 4 <= sum(expected) <= 20  # both outcomes occur


def test_an_answer_ends_as_its_demonstrations_do(tiny):
    """With the end of a document where that separates them, else with the separator as it is before the next one."""
    checkpoint, prefix = tiny["llama"], scoring.encode(tiny["llama"], "")

    def targets(end):
        return [ids for _, _, ids in scoring.teacher_forced(checkpoint, prefix, ["Spain ->"], ["Madrid"], end)]

    answer = checkpoint.tokenize(" Madrid")
    assert targets(tasks.DOCUMENT_SEPARATOR) == [[*answer, checkpoint.document_separator_id]]
    assert targets("\n") == [[*answer, *checkpoint.tokenize("\n")]]


# --- tokens at the seams ---------------------------------------------------------------------------------------


def test_document_separator_is_one_id_after_each_demonstration(tiny):
    checkpoint = tiny["xglm"]
    task = tasks.TASKS["mr"]
    examples = [Example({"text": "fine"}, "Positive", 1), Example({"text": "dull"}, "Negative", 0)]
    ids, ends = scoring.context_ids(checkpoint, task, examples)
    one, two = (checkpoint.tokenize(task.demonstration(e)) for e in examples)
    assert ids == [0, *one, 2, *two, 2]
    assert ends == [1, len(one) + 2, len(ids)]
    assert scoring.context_ids(checkpoint, task, []) == ([checkpoint.first_token_id], [1])


def test_a_token_across_the_seam_is_refused(tiny):
    checkpoint = tiny["llama"]
    assert checkpoint.tokenize("Sentiment") != checkpoint.tokenize("Senti") + checkpoint.tokenize("ment")
    with pytest.raises(TaskError, match=r"a token spans the boundary before 'ment'.*change the template"):
        scoring.continuation_ids(checkpoint, ["Senti"], ["ment"])
    with pytest.raises(TaskError, match="a token spans the boundary"):
        scoring.next_token_log_probs(checkpoint, scoring.encode(checkpoint, "Senti"), "ment")
    task = Task("t", "{a}", None, separator="", answer_column="b")
    with pytest.raises(TaskError, match="a token spans the boundary"):
        scoring.context_ids(checkpoint, task, [Example({"a": "ment"}, "Senti"), Example({"a": "ment"}, "x")])


@given(st.lists(st.integers(1, 60), max_size=30), st.integers(0, 200))
def test_packs_hold_every_sequence_once_in_order_within_the_budget(lengths, budget):
    packs = list(scoring._packs(lengths, budget))
    assert [i for pack in packs for i in pack] == list(range(len(lengths)))
    assert all(len(pack) == 1 or sum(lengths[i] for i in pack) <= budget for pack in packs)
    for pack, following in pairwise(packs):  # none could have taken one more
        assert sum(lengths[i] for i in pack) + lengths[following[0]] > budget


# --- refusals --------------------------------------------------------------------------------------------------


def test_too_long_a_context_or_query_is_refused(tiny):
    checkpoint = tiny["gpt2"]
    limit = tiny_models.LENGTH
    with pytest.raises(CheckpointError, match=rf"has {limit} positions, .* need 257"):
        scoring.encode(checkpoint, [5] * 257)
    prefix = scoring.encode(checkpoint, [5] * 250)
    prompt = "x x x x x x"
    assert len(checkpoint.tokenize(prompt)) > 6
    with pytest.raises(CheckpointError, match="positions"):
        scoring.candidate_log_probs(checkpoint, prefix, [prompt], ["Paris"])


def test_an_empty_prompt_and_candidates_with_the_same_tokens_are_refused(tiny):
    with pytest.raises(TaskError, match="a prompt is empty"):
        scoring.next_token_log_probs(tiny["gpt2"], scoring.encode(tiny["gpt2"], CONTEXT), "")
    with pytest.raises(TaskError, match=r"two of \('Rome', 'Rome'\) have the same tokens"):
        scoring.candidate_log_probs(tiny["gpt2"], scoring.encode(tiny["gpt2"], ""), ["x"], ["Rome", "Rome"])


# --- answers---------------------------------------------------------------------------------------------------

TASK = Task("toy", "Review: {text}\nSentiment:", ("Negative", "Positive"))
POOL = tuple(Example({"text": f"film {i}"}, TASK.labels[i % 2], i % 2) for i in range(30))
DATA = TaskData(TASK, POOL, POOL)


def test_labels_of_which_one_begins_another_are_refused(tiny):
    task = replace(TASK, labels=("ab", "abc"))
    with pytest.raises(TaskError, match="label 'abc' begin with those of 'ab'"):
        scoring.answer(tiny["gpt2"], task, scoring.encode(tiny["gpt2"], ""), [Example({"text": "x"}, "ab", 0)])


ALIKE, TREE = ("unhappy", "unsure"), ("unhappy", "unsure", "Rome")
"""Labels that have their first three tokens in common, and the same with one that has not."""


def test_attention_is_recorded_where_all_candidates_part(tiny):
    """Behind the longest beginning that they all have; a suffix, one candidate or none ask for another place."""
    un = tiny["llama"].tokenize(" un")
    assert len(un) == 3 and len(tiny["llama"].tokenize(" Negative")) > 1
    for labels, stem in ((ALIKE, un), (TREE, []), (TASK.labels, []), (("Rome",), []), ((), [])):
        assert scoring.answer_prefixes(tiny["llama"], PROMPTS, labels) == [stem] * len(PROMPTS)
    assert scoring.answer_prefixes(tiny["llama"], ["x"], ALIKE, " Rome") == [tiny["llama"].tokenize(" Rome")]


@pytest.mark.parametrize("labels", (ALIKE, TREE, TASK.labels))
def test_sums_over_the_tokens_of_a_label_and_their_number_are_those_of_transformers(tiny, labels):
    checkpoint, prefix = tiny["llama"], scoring.encode(tiny["llama"], CONTEXT)
    sums = naive_candidates(checkpoint, CONTEXT, PROMPTS, labels)
    tokens = [[len(checkpoint.tokenize(f" {label}")) for label in labels]] * len(PROMPTS)
    ours = scoring.candidate_log_probs(checkpoint, prefix, PROMPTS, labels)
    np.testing.assert_allclose(ours, sums, atol=1e-4, rtol=0)
    assert scoring.candidate_lengths(checkpoint, PROMPTS, labels).tolist() == tokens


def test_the_token_that_tells_labels_apart_stands_where_they_part(tiny):
    checkpoint, queries = tiny["llama"], [Example({"text": "x"}, "unhappy", 0), Example({"text": "y"}, "unsure", 1)]
    tokens = [checkpoint.tokenize(f" {query.answer}") for query in queries]
    tell = lambda labels: scoring.distinguishing_tokens(checkpoint, replace(TASK, labels=labels), queries)  # noqa: E731
    assert tell(ALIKE) == [ids[3] for ids in tokens]
    assert tell(None) == [ids[0] for ids in tokens]
    with pytest.raises(TaskError, match="no one token tells all apart"):
        tell(TREE)


@pytest.mark.parametrize("k", [0, 1, 3])
def test_answers_to_a_closed_task_equal_plain_forward_passes(tiny, k):
    checkpoint, queries, shown = tiny["llama"], tasks.queries(DATA, 5, 1), tasks.demonstrations(DATA, 3, 1)
    ids, ends = scoring.context_ids(checkpoint, TASK, shown)
    record = scoring.answer(checkpoint, TASK, scoring.encode(checkpoint, ids).first(ends[k]), queries, seed=1, k=k)
    assert (record.task, record.seed, record.k) == ("toy", 1, k)
    context = "".join(TASK.demonstration(e) + "\n" for e in shown[:k])
    expected = naive_candidates(checkpoint, context, [TASK.prompt(q) for q in queries], TASK.labels)
    np.testing.assert_allclose(record.log_probs, expected, atol=1e-4, rtol=0)
    assert record.labels.tolist() == [q.label for q in queries]
    assert (record.correct == (expected.argmax(1) == record.labels)).all()


def test_free_answers_are_right_where_they_are_written(trained):
    prefix, queries = scoring.encode(trained, ""), tasks.queries(CAPITALS, 30, 0)
    record = scoring.answer(trained, CAPITALS.task, prefix, queries)
    assert record.log_probs is record.labels is None
    prompts, answers = [CAPITALS.task.prompt(q) for q in queries], [q.answer for q in queries]
    assert record.correct.tolist() == scoring.exact_match(trained, prefix, prompts, answers).tolist()
    assert record.correct.any()


# --- the starter checkpoint ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def starter():
    """The starter checkpoint, or a failure that says how to get it."""
    return loading.load(assets.checkpoint_path())


@pytest.mark.slow
def test_starter_equals_the_whole_prompt_and_learns_in_context(starter):
    data = tasks.load("reviews")
    examples = tasks.demonstrations(data, 4, 0)
    context = "".join(data.task.demonstration(e) + "\n" for e in examples)
    ids, _ = scoring.context_ids(starter, data.task, examples)
    prompts = [data.task.prompt(q) for q in tasks.queries(data, 2, 0)]
    ours = scoring.candidate_log_probs(starter, scoring.encode(starter, ids), prompts, data.task.labels)
    np.testing.assert_allclose(ours, naive_candidates(starter, context, prompts, data.task.labels), atol=1e-4, rtol=0)
    ids, _ = scoring.context_ids(starter, CAPITALS.task, tasks.demonstrations(CAPITALS, 16, 0))
    asked = tasks.queries(CAPITALS, 20, 0)
    few, many = (scoring.answer(starter, CAPITALS.task, scoring.encode(starter, its), asked) for its in (ids[:1], ids))
    assert few.correct.mean() == 0
    assert many.correct.mean() > 0.4
