"""Scoring: what a checkpoint predicts after demonstrations that are encoded once and shared by all queries.

A causal model computes the keys and values of the demonstrations without looking at the query. They are therefore
computed once (a `Prefix`) and sliced for every smaller number of demonstrations. Queries are packed one behind the
other into rows that attend to the prefix; a block-diagonal mask keeps them apart, and positions are passed explicitly,
so that every number equals that of one forward pass over the whole prompt. No padding, no copies.
"""

import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, permutations, takewhile

import numpy as np
import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache

from explainer.data import tasks
from explainer.data.tasks import Example, Task
from explainer.errors import TaskError
from explainer.models.architectures import CACHE
from explainer.models.checkpoint import Checkpoint

PACK_TOKENS = 512
"""Query tokens in one forward pass: enough for fast matrix products, few enough that a mask costs little."""

_NEIGHBOURS = 64
"""Characters before a prompt that are tokenized with it: what stands further away changes no token of it."""


@dataclass(frozen=True)
class Prefix:
    """The keys and values of a context of P tokens, all that a causal model needs to remember of it.

    `keys[l]` and `values[l]` have shape (1, key heads, P, head size), or fewer than P after `masked`. Whatever is
    hidden, the next token has position P.
    """

    ids: tuple[int, ...]
    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]

    def __len__(self) -> int:
        """P, the number of tokens."""
        return len(self.ids)

    def first(self, n_tokens: int) -> "Prefix":
        """The prefix of the first `n_tokens` tokens: a slice, because the model is causal."""
        visible = self.keys[0].shape[2] if self.keys else 0
        if not 0 <= n_tokens <= visible:
            raise ValueError(f"a prefix with keys of {visible} tokens has no first {n_tokens}.")
        return replace(self.masked(n_tokens), ids=self.ids[:n_tokens])

    def masked(self, keep: int = 0) -> "Prefix":
        """The same prefix with all but the first `keep` tokens hidden from attention, positions unchanged.

        With `keep=0` a model with rotary positions gives exactly its zero-shot answer without a first token; other
        models see the prompt at a later absolute position.
        """
        keys, values = (tuple(x[:, :, :keep] for x in layers) for layers in (self.keys, self.values))
        return replace(self, keys=keys, values=values)


@dataclass(frozen=True)
class Record:
    """Answers of one checkpoint to n queries after k demonstrations.

    `prompts` are the texts of the queries, which other records may have too, and `correct` has shape (n,). For a task
    with a closed answer set `log_probs` has shape (n, c) and `labels` (n,); for free answers both are None.
    """

    task: str
    seed: int
    k: int
    prompts: list[str]
    correct: np.ndarray
    log_probs: np.ndarray | None = None
    labels: np.ndarray | None = None


@torch.inference_mode()
def encode(
    checkpoint: Checkpoint, text_or_ids: str | Sequence[int], cut: Iterable[tuple[int, int]] | None = None
) -> Prefix:
    """Keys and values of a context: of the first token followed by a text, or of exactly the given token ids.

    For (t, s) in `cut`, token t attends to token s in no layer and no head.
    """
    ids = text_or_ids
    if isinstance(ids, str):
        ids = [checkpoint.first_token_id, *checkpoint.tokenize(ids)]
    if len(ids) == 0:
        return Prefix((), (), ())
    options, cache = {}, DynamicCache()
    if cut is not None:
        forbidden = torch.finfo(checkpoint.dtype).min
        mask = torch.full((len(ids), len(ids)), forbidden, dtype=checkpoint.dtype).triu(1)
        for t, s in cut:
            mask[t, s] = forbidden
        positions = torch.arange(len(ids), device=checkpoint.device)  # OPT would count them from a mask of two axes
        options = {"attention_mask": mask[None, None].to(checkpoint.device), "position_ids": positions[None]}
    checkpoint.hidden(input_ids=checkpoint.row(ids), use_cache=True, **options, **{CACHE: cache})
    keys, values = zip(*((layer.keys, layer.values) for layer in cache.layers), strict=True)
    return Prefix(tuple(ids), keys, values)


def context_ids(checkpoint: Checkpoint, task: Task, examples: Sequence[Example]) -> tuple[list[int], list[int]]:
    """Token ids of the demonstrations in a row, and `ends`, where `ends[k]` is the length of the first k of them.

    The first token stands at position 0, so `ends[0]` is 1. The document separator is one id. A string separator is
    part of the text, which is tokenized as a whole, followed by what begins like a query, and cut where demonstrations
    end. Raises TaskError when a token would straddle two demonstrations.
    """
    if task.separator == tasks.DOCUMENT_SEPARATOR:
        pieces = checkpoint.tokenize_all([task.demonstration(example) for example in examples])
        tokens = [[*piece, checkpoint.document_separator_id] for piece in pieces]
    else:
        shown = [task.demonstration(example) + task.separator for example in examples]
        tokens = _cut(checkpoint, [*shown, *shown[:1]])[: len(shown)]
    ids = [checkpoint.first_token_id, *chain.from_iterable(tokens)]
    return ids, list(accumulate(map(len, tokens), initial=1))


def _cut(checkpoint: Checkpoint, pieces: Sequence[str]) -> list[list[int]]:
    """Token ids of each piece of a text that is tokenized as a whole.

    Raises TaskError if a token straddles two pieces, or if a character beside a seam is in no token: it was dropped, or
    joined with one of the other piece. Spaces may be left out of what the tokenizer says of its tokens' places.
    """
    text, ends = "".join(pieces), list(accumulate(map(len, pieces)))
    found = checkpoint.tokenizer(text, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True)
    tokens, covered = [[] for _ in pieces], 0
    for token, (start, end) in zip(found["input_ids"], found["offset_mapping"], strict=True):
        piece = min(bisect_right(ends, start), len(pieces) - 1)
        seam = ends[piece - 1] if piece else 0
        dropped = text[seam:start].strip(" ") if covered == seam else covered < seam
        if end > ends[piece] or (piece and dropped):
            raise TaskError(_refused(checkpoint, text[ends[piece] if end > ends[piece] else seam :]))
        tokens[piece].append(token)
        covered = max(covered, end)
    return tokens


def continuation_ids(checkpoint: Checkpoint, lefts: Sequence[str], rights: Sequence[str]) -> list[list[int]]:
    """Token ids of each right string behind its left string; TaskError if the left string has other tokens then."""
    left_ids = checkpoint.tokenize_all(lefts)
    both_ids = checkpoint.tokenize_all([left + right for left, right in zip(lefts, rights, strict=True)])
    for left, both, right in zip(left_ids, both_ids, rights, strict=True):
        if both[: len(left)] != left:
            raise TaskError(_refused(checkpoint, right))
    return [both[len(left) :] for left, both in zip(left_ids, both_ids, strict=True)]


def prompt_token_ids(checkpoint: Checkpoint, prefix: Prefix, prompts: Sequence[str]) -> list[list[int]]:
    """Token ids of each prompt behind the prefix.

    Raises TaskError if the text of the prefix, which is what stands behind its last special token, would end with other
    tokens then, or ends with one that stands for a text that the tokenizer does not know.
    """
    tokenizer, separators = checkpoint.tokenizer, {checkpoint.first_token_id, checkpoint.document_separator_id}
    unknown, special = tokenizer.unk_token_id, {*tokenizer.all_special_ids, *separators}
    if prefix.ids[-1:] == (unknown,) and unknown not in separators:
        raise TaskError(f"{checkpoint.name}: its tokenizer has no token for the last character before a query.")
    last = max((i for i, token in enumerate(prefix.ids) if token in special), default=-1)
    before, prompt_ids = list(prefix.ids[last + 1 :]), []
    left = tokenizer.decode(before, clean_up_tokenization_spaces=False)[-_NEIGHBOURS:]
    for prompt in prompts:
        left_ids, ids = _cut(checkpoint, [left, prompt])
        n = max(min(1, len(before)), (1 + len(left_ids)) // 2)  # the first ones may be others, because it is cut there
        if left_ids[max(0, len(left_ids) - n) :] != before[max(0, len(before) - n) :]:
            raise TaskError(_refused(checkpoint, prompt))
        prompt_ids.append(ids)
    return prompt_ids


def _refused(checkpoint: Checkpoint, text: str) -> str:
    return (
        f"{checkpoint.name}: a token spans the boundary before {text[:40]!r}, or what stands there is dropped or read "
        "otherwise than alone; change the template or the separator (a single newline is safe, mostly)."
    )


def candidate_log_probs(
    checkpoint: Checkpoint, prefix: Prefix, prompts: Sequence[str], candidates: Sequence[str]
) -> np.ndarray:
    """log p(candidate | prefix, prompt), shape (n, c): Dai et al. (2023), section 2.1, before the arg max over Y.

    A candidate follows its prompt after a space; the log-probabilities of its tokens are summed. Raises TaskError
    when two candidates have the same tokens.
    """
    prompt_ids = prompt_token_ids(checkpoint, prefix, prompts)
    rows = {stem: served for stem, served in candidate_rows(checkpoint, prompts, candidates).items() if served}
    result = np.empty((len(prompts), len(candidates)), dtype=np.float32)
    keys = list(rows)
    for row, logits in row_logits(checkpoint, prefix, [(prompt_ids[i], list(stem)) for i, *stem in keys]):
        log_probs = logits.log_softmax(-1)
        for c, ids in rows[keys[row]]:
            result[keys[row][0], c] = log_probs[range(len(ids)), ids].sum().item()
    return result


def candidate_lengths(checkpoint: Checkpoint, prompts: Sequence[str], candidates: Sequence[str]) -> np.ndarray:
    """Number of tokens of each candidate behind each prompt, shape (n, c); raises as `candidate_log_probs`."""
    lengths = [list(map(len, _candidate_ids(checkpoint, prompt, candidates))) for prompt in prompts]
    return np.array(lengths, dtype=int).reshape(len(prompts), len(candidates))


def answer_prefixes(
    checkpoint: Checkpoint, prompts: Sequence[str], candidates: Sequence[str] = (), suffix: str = ""
) -> list[list[int]]:
    """The tokens behind each prompt at whose last one attention is recorded; where there are none, the prompt's last.

    They are those of the suffix if there is one; else the longest beginning that the tokens of *all* candidates have
    in common, so that it is recorded where the candidates part. Of candidates that begin alike in groups (a tree) that
    is where they part for the first time; those that differ in their first token have none in common.
    """
    rows = candidate_rows(checkpoint, prompts, candidates, suffix)
    first = {i: stem for i, *stem in reversed(rows)}
    return [first[i] for i in range(len(prompts))]


def _candidate_ids(checkpoint: Checkpoint, prompt: str, candidates: Sequence[str]) -> list[list[int]]:
    """Tokens of the candidates behind a prompt and a space; TaskError when two have the same."""
    ids = continuation_ids(checkpoint, [prompt] * len(candidates), [f" {word}" for word in candidates])
    if len(set(map(tuple, ids))) < len(candidates):
        raise TaskError(f"{checkpoint.name}: two of {tuple(candidates)} have the same tokens; rename one.")
    return ids


def candidate_rows(
    checkpoint: Checkpoint, prompts: Sequence[str], candidates: Sequence[str], suffix: str = ""
) -> dict[tuple[int, ...], list[tuple[int, list[int]]]]:
    """The sequences to run, as (prompt number, *stem), and the candidates, as (number, ids), that each can score.

    A candidate is scored by a sequence whose stem begins with its tokens but the last. The first sequence of every
    prompt has the one of `answer_prefixes`, and serves no candidate if none begins like it. Raises TaskError
    when two candidates have the same tokens.
    """
    rows: dict[tuple[int, ...], list[tuple[int, list[int]]]] = {}
    suffixes = continuation_ids(checkpoint, prompts, [suffix] * len(prompts))
    for i, (prompt, asked) in enumerate(zip(prompts, suffixes, strict=True)):
        answers = _candidate_ids(checkpoint, prompt, candidates)
        places = zip(*answers, strict=False) if len(answers) > 1 else ()  # fewer than two need not part
        shared = takewhile(lambda tokens: len(set(tokens)) == 1, places)
        first = asked or [tokens[0] for tokens in shared]
        rows[i, *first] = []
        for c, ids in enumerate(answers):
            stem = ids[:-1]
            served = first[: len(stem)] == stem
            rows.setdefault((i, *(first if served else stem)), []).append((c, ids))
    return rows


def label_tokens(checkpoint: Checkpoint, task: Task, queries: Sequence[Example]) -> list[list[int]]:
    """Of each query the token of every label that is predicted where labels part; its first token, as a rule.

    Where they part is the end of `answer_prefixes`. Raises TaskError where two labels have the same token there, so
    that one token does not tell them apart.
    """
    prompts, tokens = [task.prompt(query) for query in queries], []
    for prompt, shared in zip(prompts, answer_prefixes(checkpoint, prompts, task.labels), strict=True):
        tokens.append([ids[len(shared)] for ids in _candidate_ids(checkpoint, prompt, task.labels)])
        if len(set(tokens[-1])) < len(task.labels):
            raise TaskError(
                f"task {task.name!r} with {checkpoint.name}: some of {task.labels} begin with the same tokens and "
                "others do not, so that no one token tells all apart, by which this study judges."
            )
    return tokens


def distinguishing_tokens(checkpoint: Checkpoint, task: Task, queries: Sequence[Example]) -> list[int]:
    """Of each query the one of its `label_tokens` that is right; of free answers the first token."""
    if task.labels is None:
        prompts, answers = ([task.prompt(query) for query in queries], [f" {query.answer}" for query in queries])
        return [ids[0] for ids in continuation_ids(checkpoint, prompts, answers)]
    right = [task.labels.index(query.answer) for query in queries]
    return [tokens[i] for tokens, i in zip(label_tokens(checkpoint, task, queries), right, strict=True)]


def exact_match(
    checkpoint: Checkpoint, prefix: Prefix, prompts: Sequence[str], answers: Sequence[str], end: str = "\n"
) -> np.ndarray:
    """Whether greedy decoding writes each answer followed by `end`, shape (n,), from one forward pass per batch.

    Greedy decoding after the prompt writes the target tokens t_1 ... t_m exactly if arg max p(. | prompt, t_<j) = t_j
    for every j: as long as it has written t_<j it stands where the teacher-forced pass stands. `end` is the separator
    of a task: text, with the tokens that it has before the next prompt, or `DOCUMENT_SEPARATOR`.
    """
    correct = np.empty(len(prompts), dtype=bool)
    for i, logits, target in teacher_forced(checkpoint, prefix, prompts, answers, end):
        correct[i] = logits.argmax(-1).tolist() == target
    return correct


def teacher_forced(
    checkpoint: Checkpoint, prefix: Prefix, prompts: Sequence[str], answers: Sequence[str], end: str
) -> Iterator[tuple[int, Tensor, list[int]]]:
    """For each prompt its number, the logits (m, vocab) that predict the m tokens of answer and end, and their ids.

    They are those that an answer has with a space before it and its end behind it, behind a prompt and before one.
    """
    prompt_ids = prompt_token_ids(checkpoint, prefix, prompts)
    if end == tasks.DOCUMENT_SEPARATOR:
        ids = continuation_ids(checkpoint, prompts, [f" {answer}" for answer in answers])
        target_ids = [[*each, checkpoint.document_separator_id] for each in ids]
    else:
        targets = [f" {answer}{end}" for answer in answers]
        continuation_ids(checkpoint, prompts, targets)
        asked = zip(prompts, targets, strict=True)
        target_ids = [_cut(checkpoint, [prompt, target, prompt if end else ""])[1] for prompt, target in asked]
    rows = [(prompt, target[:-1]) for prompt, target in zip(prompt_ids, target_ids, strict=True)]
    for i, logits in row_logits(checkpoint, prefix, rows):
        yield i, logits, target_ids[i]


def next_token_log_probs(checkpoint: Checkpoint, prefix: Prefix, prompt: str) -> np.ndarray:
    """log p(token | prefix, prompt) for every token of the vocabulary, shape (vocab,)."""
    ((_, logits),) = row_logits(checkpoint, prefix, [(prompt_token_ids(checkpoint, prefix, [prompt])[0], [])])
    return logits[0].log_softmax(-1).cpu().numpy()


def top_tokens(checkpoint: Checkpoint, prefix: Prefix, prompt: str, n: int) -> list[tuple[str, float]]:
    """The n most probable next tokens after a prefix and a prompt, as (text, probability), most probable first."""
    probabilities = np.exp(next_token_log_probs(checkpoint, prefix, prompt))
    best = np.argsort(-probabilities)[:n]
    return [(checkpoint.text([int(i)]), float(probabilities[i])) for i in best]


def answer(
    checkpoint: Checkpoint, task: Task, prefix: Prefix, queries: Sequence[Example], *, seed: int = 0, k: int = 0
) -> Record:
    """Answers to the queries of a task after a prefix; `seed` and `k` only label the record."""
    prompts = [task.prompt(query) for query in queries]
    if task.labels is None:
        correct = exact_match(checkpoint, prefix, prompts, [query.answer for query in queries], task.separator)
        return Record(task.name, seed, k, prompts, correct)
    require_distinct(checkpoint, task)
    log_probs = candidate_log_probs(checkpoint, prefix, prompts, task.labels)
    labels = np.array([query.label for query in queries])
    return Record(task.name, seed, k, prompts, log_probs.argmax(1) == labels, log_probs, labels)


def require_distinct(checkpoint: Checkpoint, task: Task) -> None:
    """TaskError if a label's tokens begin those of another label: it could never be the less probable of the two.

    A UserWarning, which Python shows once for a model and a task, tells that labels have unequal numbers of tokens.
    """
    if task.labels is None:
        return
    nothing = task.prompt(Example(dict.fromkeys(task.fields, "N/A"), ""))
    ids = _candidate_ids(checkpoint, nothing, task.labels)
    for (a, a_ids), (b, b_ids) in permutations(zip(task.labels, ids, strict=True), 2):
        if b_ids[: len(a_ids)] == a_ids:
            raise TaskError(
                f"task {task.name!r} with {checkpoint.name}: the tokens of the label {b!r} begin with those of {a!r}, "
                "which therefore can never be less probable; rename one."
            )
    fewest, most = min(map(len, ids)), max(map(len, ids))
    if fewest < most:
        warnings.warn(
            f"task {task.name!r} with {checkpoint.name}: the labels have {fewest} to {most} tokens, and the sum of "
            "their log-probabilities favours the short ones.",
            stacklevel=2,
        )


@torch.inference_mode()
def row_logits(
    checkpoint: Checkpoint, prefix: Prefix, rows: Sequence[tuple[list[int], list[int]]]
) -> Iterator[tuple[int, Tensor]]:
    """For each row (prompt, stem): its number and the float32 logits, shape (1 + stem, vocab).

    These are the predictions at the last token of the prompt and at every token of the stem. Raises TaskError for an
    empty prompt and CheckpointError for too many tokens.
    """
    if not all(prompt for prompt, _ in rows):
        raise TaskError("a prompt is empty: there is no position to predict from; put at least one token there.")
    sequences = [[*prompt, *stem] for prompt, stem in rows]
    length, config = len(prefix) + max(map(len, sequences), default=0), checkpoint.model.config
    checkpoint.require_room(length)
    # A window is counted in places of the row; where it is a mask, and none is cut by it, that of a pack stands in.
    own = any(getattr(config, name, None) for name in ("window_size", "attention_chunk_size"))
    packed = not own and length <= (getattr(config, "sliding_window", None) or length)
    for pack in _packs([len(ids) for ids in sequences], PACK_TOKENS if packed else 0):
        hidden = _hidden(checkpoint, prefix, [sequences[i] for i in pack])
        needed = [h[len(rows[i][0]) - 1 :] for i, h in zip(pack, hidden, strict=True)]
        logits = checkpoint.logits(torch.cat(needed))
        yield from zip(pack, logits.split([len(h) for h in needed]), strict=True)


def _packs(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Numbers of the sequences, in order, in groups of at most `budget` tokens or of one."""
    pack, tokens = [], 0
    for i, length in enumerate(lengths):
        if pack and tokens + length > budget:
            yield pack
            pack, tokens = [], 0
        pack.append(i)
        tokens += length
    if pack:
        yield pack


def _hidden(checkpoint: Checkpoint, prefix: Prefix, pack: list[list[int]]) -> tuple[Tensor, ...]:
    """Last hidden states, shape (length, d), of sequences that each follow the prefix.

    A token sees the prefix and what precedes it in its own sequence: an additive mask, (1, 1, T, visible prefix + T).
    """
    lengths = [len(ids) for ids in pack]
    place = torch.cat([torch.arange(n) for n in lengths])
    cache = DynamicCache(list(zip(prefix.keys, prefix.values, strict=True)))
    mask = None
    if len(pack) > 1:
        own = torch.block_diag(*(torch.ones(n, n).tril() for n in lengths))
        seen = torch.cat([torch.ones(len(own), cache.get_seq_length()), own], dim=1).to(checkpoint.device)
        forbidden = torch.finfo(checkpoint.dtype).min
        mask = torch.zeros_like(seen, dtype=checkpoint.dtype).masked_fill(seen == 0, forbidden)[None, None]
    hidden = checkpoint.hidden(
        input_ids=torch.tensor([list(chain.from_iterable(pack))], device=checkpoint.device),
        position_ids=(len(prefix) + place)[None].to(checkpoint.device),
        attention_mask=mask,
        use_cache=True,
        **{CACHE: cache},
    )
    return hidden[0].split(lengths)
