"""Scoring: what a checkpoint predicts after demonstrations that are encoded once and shared by all queries.

A causal model computes the keys and values of the demonstrations without looking at the query. They are therefore
computed once (a `Prefix`) and sliced for every smaller number of demonstrations. Queries are packed one behind the
other into rows that attend to the prefix; a block-diagonal mask, or attention in two parts that needs none, keeps them
apart, and positions are passed explicitly, so that every number equals that of one forward pass over the whole prompt.
No padding, no copies.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, permutations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode
from tqdm import tqdm
from transformers.cache_utils import DynamicCache

from explainer.data import tasks
from explainer.data.tasks import Example, Task, TaskData
from explainer.errors import CheckpointError, TaskError
from explainer.models.architectures import CACHE
from explainer.models.checkpoint import Checkpoint

PACK_TOKENS = 512
"""Query tokens in one forward pass: enough for fast matrix products, few enough that a mask costs little."""

_flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu


@dataclass(frozen=True)
class Prefix:
    """The keys and values of a context of P tokens, all that a causal model needs to remember of it.

    `keys[l]` and `values[l]` have shape (1, key heads, P, head size), or fewer than P after `blind`. Whatever is
    hidden, the next token has position P.
    """

    ids: tuple[int, ...]
    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]

    @classmethod
    def of(cls, ids: Sequence[int], cache: DynamicCache) -> "Prefix":
        """The prefix of the tokens that a cache holds."""
        keys, values = zip(*((layer.keys, layer.values) for layer in cache.layers), strict=True)
        return cls(tuple(ids), keys, values)

    def __len__(self) -> int:
        """P, the number of tokens."""
        return len(self.ids)

    def first(self, n_tokens: int) -> "Prefix":
        """The prefix of the first `n_tokens` tokens: a slice, because the model is causal."""
        visible = self.keys[0].shape[2] if self.keys else 0
        if not 0 <= n_tokens <= visible:
            raise ValueError(f"a prefix with keys of {visible} tokens has no first {n_tokens}.")
        return replace(self.blind(n_tokens), ids=self.ids[:n_tokens])

    def blind(self, keep: int = 0) -> "Prefix":
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
def encode(checkpoint: Checkpoint, text_or_ids: str | Sequence[int]) -> Prefix:
    """Keys and values of a context: of the first token followed by a text, or of exactly the given token ids."""
    ids = text_or_ids
    if isinstance(ids, str):
        ids = [checkpoint.first_token_id, *checkpoint.tokenize(ids)]
    if len(ids) == 0:
        return Prefix((), (), ())
    require_room(checkpoint, len(ids))
    cache = DynamicCache()
    checkpoint.hidden(input_ids=checkpoint.row(ids), use_cache=True, **{CACHE: cache})
    return Prefix.of(ids, cache)


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
        tokens = _cut(checkpoint, [task.demonstration(example) + task.separator for example in examples])
    ids = [checkpoint.first_token_id, *chain.from_iterable(tokens)]
    return ids, list(accumulate(map(len, tokens), initial=1))


def _cut(checkpoint: Checkpoint, pieces: Sequence[str]) -> list[list[int]]:
    """Token ids of each piece of a text in which the first piece follows the last one; TaskError if one straddles."""
    text = "".join([*pieces, *pieces[:1]])
    found = checkpoint.tokenizer(text, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True)
    tokens, places = [[] for _ in (*pieces, *pieces[:1])], list(accumulate(map(len, pieces)))
    for token, (start, end) in zip(found["input_ids"], found["offset_mapping"], strict=True):
        piece = bisect_right(places, start)
        if piece < len(places) and end > places[piece]:
            raise TaskError(_straddles(checkpoint, text[places[piece] :]))
        tokens[piece].append(token)
    return tokens[: len(pieces)]


def continuation_ids(checkpoint: Checkpoint, lefts: Sequence[str], rights: Sequence[str]) -> list[list[int]]:
    """Token ids of each right string as they are when it follows its left string; TaskError if a token straddles."""
    left_ids = checkpoint.tokenize_all(lefts)
    both_ids = checkpoint.tokenize_all([left + right for left, right in zip(lefts, rights, strict=True)])
    for left, both, right in zip(left_ids, both_ids, rights, strict=True):
        if both[: len(left)] != left:
            raise TaskError(_straddles(checkpoint, right))
    return [both[len(left) :] for left, both in zip(left_ids, both_ids, strict=True)]


def _straddles(checkpoint: Checkpoint, text: str) -> str:
    return (
        f"{checkpoint.name}: a token spans the boundary before {text[:40]!r}, so the pieces have other tokens than the "
        "whole string; change the template or the separator (a single newline is safe)."
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


def candidate_rows(
    checkpoint: Checkpoint, prompts: Sequence[str], candidates: Sequence[str], suffix: str = ""
) -> dict[tuple[int, ...], list[tuple[int, list[int]]]]:
    """The sequences to run, as (prompt number, *stem), and the candidates, as (number, ids), that each can score.

    A candidate is scored by a sequence whose stem begins with its tokens but the last. The first sequence of every
    prompt has the suffix for its stem, and serves no candidate if none begins like it. Raises TaskError when two
    candidates have the same tokens.
    """
    rows: dict[tuple[int, ...], list[tuple[int, list[int]]]] = {}
    suffixes = continuation_ids(checkpoint, prompts, [suffix] * len(prompts))
    for i, (prompt, first) in enumerate(zip(prompts, suffixes, strict=True)):
        rows[i, *first] = []
        answers = continuation_ids(checkpoint, [prompt] * len(candidates), [f" {word}" for word in candidates])
        if len({tuple(ids) for ids in answers}) < len(candidates):
            raise TaskError(f"{checkpoint.name}: two of {tuple(candidates)} have the same tokens; rename one.")
        for c, ids in enumerate(answers):
            stem = ids[:-1]
            served = first[: len(stem)] == stem
            rows.setdefault((i, *(first if served else stem)), []).append((c, ids))
    return rows


def exact_match(
    checkpoint: Checkpoint, prefix: Prefix, prompts: Sequence[str], answers: Sequence[str], end: str = "\n"
) -> np.ndarray:
    """Whether greedy decoding writes each answer followed by `end`, shape (n,), from one forward pass per batch.

    Greedy decoding after the prompt writes the target tokens t_1 ... t_m exactly if arg max p(. | prompt, t_<j) = t_j
    for every j: as long as it has written t_<j it stands where the teacher-forced pass stands.
    """
    correct = np.empty(len(prompts), dtype=bool)
    for i, logits, target in teacher_forced(checkpoint, prefix, prompts, [f" {answer}{end}" for answer in answers]):
        correct[i] = logits.argmax(-1).tolist() == target
    return correct


def teacher_forced(
    checkpoint: Checkpoint, prefix: Prefix, prompts: Sequence[str], targets: Sequence[str]
) -> Iterator[tuple[int, Tensor, list[int]]]:
    """For each prompt its number, the logits (m, vocab) that predict the m tokens of its target, and their ids."""
    prompt_ids = prompt_token_ids(checkpoint, prefix, prompts)
    target_ids = continuation_ids(checkpoint, prompts, targets)
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
    return [(checkpoint.tokenizer.decode([i]), float(probabilities[i])) for i in best]


def sweep(
    checkpoint: Checkpoint,
    data: TaskData,
    ks: Sequence[int],
    seeds: Sequence[int],
    n_queries: int,
    *,
    progress: bool = True,
) -> list[Record]:
    """Answers to the same queries after k demonstrations, for every seed and k.

    One prefix of max(ks) demonstrations per seed serves every k. A seed draws the demonstrations and the queries.
    """
    bar = tqdm(total=len(seeds) * len(ks), desc=data.task.name, disable=not progress, unit="run")
    records = []
    with bar:
        for seed in seeds:
            ids, ends = context_ids(checkpoint, data.task, tasks.demonstrations(data, max(ks), seed))
            prefix, queries = encode(checkpoint, ids), tasks.queries(data, n_queries, seed)
            for k in ks:
                records.append(answer(checkpoint, data.task, prefix.first(ends[k]), queries, seed=seed, k=k))
                bar.update()
    return records


def answer(
    checkpoint: Checkpoint, task: Task, prefix: Prefix, queries: Sequence[Example], *, seed: int = 0, k: int = 0
) -> Record:
    """Answers to the queries of a task after a prefix; `seed` and `k` only label the record."""
    prompts = [task.prompt(query) for query in queries]
    if task.labels is None:
        correct = exact_match(checkpoint, prefix, prompts, [query.answer for query in queries])
        return Record(task.name, seed, k, prompts, correct)
    require_distinct(checkpoint, task)
    log_probs = candidate_log_probs(checkpoint, prefix, prompts, task.labels)
    labels = np.array([query.label for query in queries])
    return Record(task.name, seed, k, prompts, log_probs.argmax(1) == labels, log_probs, labels)


def require_distinct(checkpoint: Checkpoint, task: Task) -> None:
    """TaskError if a label's tokens begin those of another label: it could never be the less probable of the two."""
    labels = [f" {label}" for label in task.labels or ()]
    for (a, a_ids), (b, b_ids) in permutations(zip(labels, checkpoint.tokenize_all(labels), strict=True), 2):
        if b_ids[: len(a_ids)] == a_ids:
            raise TaskError(
                f"task {task.name!r} with {checkpoint.name}: the tokens of the label {b.strip()!r} begin with those of "
                f"{a.strip()!r}, which therefore can never be less probable; rename one."
            )


def prompt_token_ids(checkpoint: Checkpoint, prefix: Prefix, prompts: Sequence[str]) -> list[list[int]]:
    """Token ids of the prompts as they follow the prefix: the text of its last token is the left neighbour."""
    last = [i for i in prefix.ids[-1:] if i not in checkpoint.tokenizer.all_special_ids]
    return continuation_ids(checkpoint, [checkpoint.tokenizer.decode(last)] * len(prompts), prompts)


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
    require_room(checkpoint, len(prefix) + max(map(len, sequences), default=0))
    for pack in _packs([len(ids) for ids in sequences], 0 if _attends_by_index(checkpoint) else PACK_TOKENS):
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


def _attends_by_index(checkpoint: Checkpoint) -> bool:
    """Whether attention has a window or a bias counted in places of the row, which packing would get wrong."""
    config = checkpoint.model.config
    alibi = config.model_type == "bloom" or getattr(config, "alibi", False)
    return config.model_type == "gpt_neo" or alibi or getattr(config, "sliding_window", None) is not None


def _hidden(checkpoint: Checkpoint, prefix: Prefix, pack: list[list[int]]) -> tuple[Tensor, ...]:
    """Last hidden states, shape (length, d), of sequences that each follow the prefix."""
    lengths = [len(ids) for ids in pack]
    place = torch.cat([torch.arange(n) for n in lengths])
    cache = cache_of(prefix.keys, prefix.values)
    mask = _mask(checkpoint, cache.get_seq_length(), lengths) if len(pack) > 1 else None
    with _SharedPrefix(mask, lengths):
        hidden = checkpoint.hidden(
            input_ids=torch.tensor([list(chain.from_iterable(pack))], device=checkpoint.device),
            position_ids=(len(prefix) + place)[None].to(checkpoint.device),
            attention_mask=mask,
            use_cache=True,
            **{CACHE: cache},
        )
    return hidden[0].split(lengths)


def cache_of(keys: Sequence[Tensor], values: Sequence[Tensor]) -> DynamicCache:
    """A cache of these keys and values, one tensor for each layer; what is passed with it comes behind them."""
    cache = DynamicCache()
    for layer, keys_values in enumerate(zip(keys, values, strict=True)):
        cache.update(*keys_values, layer)
    return cache


class _SharedPrefix(TorchFunctionMode):
    """Attention of packed sequences as two parts without a mask, to the prefix and to each sequence itself.

    o = o_1 + sigmoid(l_2 - l_1) (o_2 - o_1), where o_1, o_2 are the outputs and l_1, l_2 the logarithms of the sums
    of exp(scores) of the parts. Only calls with our own mask are replaced, and only on a processor, whose attention
    computes all that a mask hides; a model that attends in another way just goes on with the mask.
    """

    def __init__(self, mask: Tensor | None, lengths: list[int]):
        super().__init__()
        self._mask = mask if mask is not None and mask.device.type == "cpu" else None
        self._lengths = lengths

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if (
            function is not scaled_dot_product_attention
            or self._mask is None
            or kwargs.get("attn_mask") is not self._mask
        ):
            return function(*args, **kwargs)
        return self._attention(*args, kwargs.get("scale"))

    def _attention(
        self, q: Float[Tensor, "1 H T d"], k: Float[Tensor, "1 H N d"], v: Float[Tensor, "1 H N d"], scale: float | None
    ) -> Float[Tensor, "1 H T d"]:
        n_prefix = k.shape[2] - q.shape[2]
        parts = (x.split(self._lengths, dim=2) for x in (q, k[:, :, n_prefix:], v[:, :, n_prefix:]))
        own = [_flash(*part, 0.0, True, scale=scale) for part in zip(*parts, strict=True)]
        o2, l2 = (torch.cat(part, dim=2) for part in zip(*own, strict=True))
        if n_prefix == 0:
            return o2
        o1, l1 = _flash(q, k[:, :, :n_prefix], v[:, :, :n_prefix], 0.0, False, scale=scale)
        return torch.lerp(o1, o2, torch.sigmoid(l2 - l1)[..., None].to(o1.dtype))


def _mask(checkpoint: Checkpoint, n_prefix: int, lengths: list[int]) -> Tensor:
    """Additive mask, shape (1, 1, T, n_prefix + T): a token sees the prefix and what precedes it in its sequence."""
    own = torch.block_diag(*(torch.ones(n, n).tril() for n in lengths))
    seen = torch.cat([torch.ones(len(own), n_prefix), own], dim=1).to(checkpoint.device)
    hidden = torch.finfo(checkpoint.dtype).min
    return torch.zeros_like(seen, dtype=checkpoint.dtype).masked_fill(seen == 0, hidden)[None, None]


def require_room(checkpoint: Checkpoint, length: int) -> None:
    """CheckpointError if a context and a query of so many tokens together are more than the model has positions for."""
    if length > checkpoint.context_length:
        raise CheckpointError(
            f"{checkpoint.name} has {checkpoint.context_length} positions, the demonstrations and the longest query "
            f"need {length} tokens; give fewer demonstrations or shorter texts."
        )
