"""Tokens across joins: a prompt in pieces has the tokens and scores of the whole text, or is refused for a true reason.

Demonstrations, separators, prompts and labels that are hostile to tokenizers, on tokenizers of several kinds.
"""

from dataclasses import replace
from itertools import accumulate

import pytest
import tiny_models
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from explainer.data.tasks import Example, Task
from explainer.errors import CheckpointError, TaskError
from explainer.models import scoring

SEPARATORS = ("\n", "\n\n", " ", "\t", "###", "\u2028", "\U0001f469\u200d\U0001f467", ". ", "", "\r\n", "  ", "#\n\n")
PIECES = (
    "", " ", "   ", "a film\n", "e\u0301", "\u0301x", "好看", "فيلم", "\U0001f469\u200d\U0001f467", "<|endoftext|>",
    "</s>", "<s> x", "12", "Review", " a", "a  ", "\n\nb", "\u2028", "\t", "it's", "▁", "<0x0A>", "\ufffd",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=2).map("".join)
TEMPLATES = ("Review: {text}\nSentiment:", "{text}\nIs:", "{text}", "{text} ->", "\n{text}:", "{text}\n\n")
LABELS = (("Positive", "Negative"), ("unhappy", "unsure", "Rome"), ("好", "坏"), ("a", "\U0001f469"))
TRUE = ("a token spans the boundary", "a prompt is empty", "positions", "have the same tokens")


@st.composite
def asked(draw):
    """A task, demonstrations of it, and a query."""
    task = Task("t", *(draw(st.sampled_from(values)) for values in (TEMPLATES, LABELS, SEPARATORS)))
    query, *examples = (
        Example({"text": text}, draw(st.sampled_from(task.labels)))
        for text in draw(st.lists(TEXTS, min_size=1, max_size=4))
    )
    return task, examples, query


@pytest.fixture(scope="module", params=tiny_models.TOKENIZERS)
def checkpoint(request):
    """A tiny Llama with a tokenizer of each kind."""
    return replace(
        tiny_models.random_checkpoint(tiny_models.CONFIGS["llama"]), tokenizer=tiny_models.TOKENIZERS[request.param]()
    )


def cut(checkpoint, *pieces):
    """Tokens of each piece of a text that is tokenized as one, and whether one spans two pieces."""
    found = checkpoint.tokenizer(
        "".join(pieces), add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True
    )
    ends, tokens, spans = list(accumulate(map(len, pieces))), [[] for _ in pieces], False
    for token, (start, end) in zip(found["input_ids"], found["offset_mapping"], strict=True):
        piece = next(i for i, at in enumerate(ends) if start < at or at == ends[-1])
        spans |= end > ends[piece]
        tokens[piece].append(token)
    return tokens, spans


def keeps_together(checkpoint, shown, prompt, answers):
    """Whether no text of one of the answers can be put together of its pieces."""
    of_answers = [cut(checkpoint, *shown, prompt, answer) for answer in answers]
    behind = [cut(checkpoint, prompt, answer) for answer in answers]
    (alone,), next_one = cut(checkpoint, prompt)[0], cut(checkpoint, *shown, *shown[:1])
    whole = of_answers[0][0]
    return (
        any(spans for _, spans in (*of_answers, *behind, next_one))
        or any(tokens[:-1] != whole[:-1] for tokens, _ in of_answers)
        or any(tokens[0] != alone for tokens, _ in behind)
        or next_one[0][: len(shown)] != whole[: len(shown)]
        or cut(checkpoint, *shown, prompt)[0] != whole[:-1]
    )


def whole_scores(checkpoint, text, answers):
    """log p of the answers, from transformers' pass over one text each."""
    for answer in answers:
        ids = [checkpoint.first_token_id, *checkpoint.tokenize(text + answer)]
        m = len(cut(checkpoint, text, answer)[0][1])
        logits = checkpoint.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -m - 1 : -1]
        yield logits.log_softmax(-1).gather(1, torch.tensor(ids[-m:])[:, None]).sum().item()


@given(asked())
@settings(max_examples=50)
def test_scores_are_those_of_the_whole_text_or_it_is_refused_for_a_true_reason(checkpoint, case):
    task, examples, query = case
    shown, prompt = [task.demonstration(one) + task.separator for one in examples], task.prompt(query)
    answers = [f" {label}" for label in task.labels]
    try:
        ids, _ = scoring.context_ids(checkpoint, task, examples)
        prefix = scoring.encode(checkpoint, ids)
        ours = scoring.candidate_log_probs(checkpoint, prefix, [prompt], task.labels)[0]
        counted = scoring.candidate_lengths(checkpoint, [prompt], task.labels)[0]
    except (TaskError, CheckpointError) as error:
        reason = next(reason for reason in TRUE if reason in str(error))
        assert reason != TRUE[0] or keeps_together(checkpoint, shown, prompt, answers), str(error)
        return
    expected = list(whole_scores(checkpoint, "".join([*shown, prompt]), answers))
    lengths = [len(cut(checkpoint, *shown, prompt, answer)[0][-1]) for answer in answers]
    assert ours.tolist() == pytest.approx(expected, abs=2e-4)
    assert counted.tolist() == lengths


@given(asked())
@settings(max_examples=25)
def test_a_free_answer_is_written_with_the_separator_as_it_stands_in_a_context(checkpoint, case):
    task, _, query = case
    try:
        ids, ends = scoring.context_ids(checkpoint, task, [query, query])
        asked = checkpoint, scoring.encode(checkpoint, ids[: ends[1]]), [task.prompt(query)]
        ((_, _, target),) = scoring.teacher_forced(*asked, [query.answer], task.separator)
        (begun,) = scoring.prompt_token_ids(*asked)
    except (TaskError, CheckpointError) as error:
        assert any(reason in str(error) for reason in TRUE), error
        return
    assert [*ids[: ends[1]], *begun, *target] == ids
