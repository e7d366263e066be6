"""What the lines of a context hold for the heads that look at their labels: values, attention, the source of keys.

A context shows k lines of a rule that nobody could know; `vote` has the lessons and the heads.

- *values*: one line more is added, after the first four lines or after all. Its word was not shown ("new"), was shown
  ("repeated"), and its label is the right one, or another ("wrong", "contradicted"). Head h writes g . W_O v at its
  label, where g is the gradient of the logit of the line's label, less the mean of the others, with respect to the
  attention output where queries are decided. If v were an error signal, it would be in proportion to 1 - p, where p is
  what the model gave that label before it saw it.
- *keys*: while the context is passed, the residual stream of one token of each line is exchanged after a block: of four
  lines in a row, each gets that of the line whose label is the one before. If a head finds lines by what that stream
  holds, attention moves from the lines of a label to those of the next, and so does the answer.
- *kernels*: the vote of a kernel regression, the label with the largest sum over lines of exp(tau cos(x, x_j)), x and
  x_j the stream after a block where a query is decided and at the arrow of a line, each less its mean.

The plan and the predictions, from before the runs, are in published/PLANS.md.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import cosine_similarity, one_hot

from explainer.compare import cued_words
from explainer.data.files import Tables
from explainer.models import architectures, attention_edits, hooks, scoring
from explainer.models.interventions import Pass
from explainer.models.loading import Checkpoint
from explainer.models.scoring import Prefix
from explainer_lab import vote
from explainer_lab.experiment import Computed
from explainer_lab.on_checkpoint import OnCheckpoint, as_columns
from explainer_lab.vote import Vote, VoteLesson, VoteSetting

PLACES: Mapping[str, int | None] = {"early": 4, "late": None}
"""Where the line more is added: after so many lines, or after all."""

FORMS: Mapping[str, tuple[bool, bool]] = {
    "new": (False, True),
    "repeated": (True, True),
    "wrong": (False, False),
    "contradicted": (True, False),
}
"""Whether the word of the line more was shown before, and whether its label is right."""

SITES: Mapping[str, tuple[str, ...]] = {
    "first": ("first",),
    "word": ("word",),
    "arrow": ("arrow",),
    "word and arrow": ("word", "arrow"),
    "label": ("label",),
}
"""Tokens of a line: of its word the first and the last, the one before the label, and the label."""

TAUS = (2, 4, 8, 16, 32)
_EVERY = 3  # blocks from one that is tried to the next


@dataclass(frozen=True, kw_only=True)
class _LinesSetting(VoteSetting):
    """Part "values" or "keys", for the heads named by `effect`, or "kernels"; raises ExperimentError for others."""

    known: ClassVar = {**VoteSetting.known, "part": ("values", "keys", "kernels"), "cue": cued_words.CUES}


# Values.


def _gradients(last: Pass, tokens: Int[Tensor, " c"]) -> Float[Tensor, "c layers d"]:
    """Gradients g of the logit of each label, less the mean of all, by attention outputs: means over the queries."""
    width, dtype = last.checkpoint.model.config.hidden_size, last.checkpoint.dtype
    added = [torch.zeros(len(last), 1, width, dtype=dtype, requires_grad=True) for _ in last.layers]
    shifted = [(layer.output, lambda _x, y, e=e: y + e) for layer, e in zip(last.layers, added, strict=True)]
    with torch.enable_grad(), hooks.outputs(shifted):
        logits = attention_edits.side_by_side(last, 1)[:, 0, tokens]
        sums = (logits - logits.mean(-1, keepdim=True)).mean(0)
        each = [torch.autograd.grad(one, added, retain_graph=True) for one in sums]
    return torch.stack([torch.stack([g.sum((0, 1)) for g in gradients]) for gradients in each])


def _written(
    checkpoint: Checkpoint, prefix: Prefix, line: Bool[Tensor, " N"], gradients: Float[Tensor, "c layers d"]
) -> Float[Tensor, "layers heads c"]:
    """What each head adds to each label, g . W_O v, when all its attention is on these tokens of a context."""
    found, layers = [], architectures.architecture(checkpoint.model).layers
    for layer, V, g in zip(layers, prefix.values, gradients.unbind(1), strict=True):
        v = V[0][:, line].mean(1).repeat_interleave(layer.query.heads // layer.value.heads, 0)
        weight: Any = layer.output.weight
        found.append(torch.einsum("dhe,he,cd->hc", weight.unflatten(1, (layer.query.heads, -1)), v, g))
    return torch.stack(found)


def _values(lesson: VoteLesson, heads: Mapping[str, Tensor]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows by place, form and label: p, what is written, attention; and what is written by each layer's heads."""
    last = lesson.passed(lesson.queries).at_last()
    gradients = _gradients(last, lesson.tokens)
    right = torch.tensor([query.label for query in lesson.queries])
    rows, by_layer = [], []
    for place, n_before in PLACES.items():
        before = list(lesson.shown)[:n_before]
        prefix = lesson.prefix.first(lesson.spans.ends[len(before)])
        for form, (was_shown, is_right) in FORMS.items():
            of_layers = []
            for c in range(4):
                word = next(e for e in (lesson.shown if was_shown else lesson.others) if e.label == c)
                given = c if is_right else (c + 1) % 4
                line = replace(word, label=given, answer=lesson.labels[given])
                log_p = scoring.candidate_log_probs(
                    lesson.checkpoint, prefix, [lesson.task.prompt(line)], lesson.labels
                )
                p = torch.from_numpy(log_p[0].astype(float)).softmax(-1)[given].item()
                longer = replace(lesson, shown=[*before, line, *lesson.shown[len(before) :]])
                own = _written(longer.checkpoint, longer.prefix, longer.lines[len(before)].bool(), gradients)
                a = vote.attention_to_lines(longer.passed(lesson.queries).at_last(), longer.lines)
                row = {"place": place, "form": form, "label": given, "p": p}
                for name, mask in heads.items():
                    share = (a[:, mask, len(before)] / a[:, mask].sum(-1))[right == c]
                    row[f"written_{name}"] = vote.margin(own[mask], torch.tensor(given)).mean().item()
                    row[f"attention_same_{name}"] = share.mean().item()
                rows.append(row)
                of_layers.append(vote.margin(own, torch.tensor(given)).mean(1))
            for layer, written in enumerate(torch.stack(of_layers).mean(0).tolist()):
                by_layer.append({"place": place, "form": form, "layer": layer, "written": written})
    return rows, by_layer


# Keys.


def _sites(lesson: VoteLesson) -> dict[str, Int[Tensor, " k"]]:
    """Where tokens of the lines stand; the arrow is what stands before the label."""
    label = torch.tensor(lesson.spans.answers)
    start = torch.tensor(lesson.spans.ends[:-1])
    prompts = [lesson.task.prompt(example) for example in lesson.shown]
    words = [prompt.index(example.fields["word"]) for prompt, example in zip(prompts, lesson.shown, strict=True)]
    ends = [at + len(example.fields["word"]) for at, example in zip(words, lesson.shown, strict=True)]
    tokenize = lesson.checkpoint.tokenize
    first = start + torch.tensor([len(tokenize(p[:at].rstrip())) for p, at in zip(prompts, words, strict=True)])
    last = start + torch.tensor([len(tokenize(p[:end])) - 1 for p, end in zip(prompts, ends, strict=True)])
    return {"first": first, "word": last, "arrow": label - 1, "label": label}


def _turned(y: Int[Tensor, " k"]) -> Int[Tensor, " k"]:
    """Of four lines in a row each gets the place of the line whose label is the one before its own."""
    four = torch.arange(len(y)) // 4
    return ((y == (y[:, None] - 1) % 4) & (four == four[:, None])).int().argmax(-1)


def _keys(lesson: VoteLesson, heads: Tensor) -> Iterator[dict[str, Any]]:
    """Rows by site and block: shares of attention to the answer's label and the next, before and after; answers."""
    y, sites = lesson.label_of_line, _sites(lesson)
    order, labels = _turned(y), one_hot(y, 4).float()
    layers = architectures.architecture(lesson.checkpoint.model).layers

    def asked(prefix: Prefix) -> tuple[Float[Tensor, "n c"], Int[Tensor, " n"]]:
        last = lesson.passed(lesson.queries, prefix).at_last()
        votes = vote.attention_to_lines(last, lesson.lines)[:, heads].sum(1) @ labels
        return votes / votes.sum(-1, keepdim=True), last.run().logits[:, lesson.tokens].argmax(-1)

    votes, answer = asked(lesson.prefix)
    following = (answer + 1) % 4

    def share(its: Float[Tensor, "n c"], label: Int[Tensor, " n"]) -> float:
        return its.gather(1, label[:, None]).mean().item()

    for name, parts in SITES.items():
        at = torch.cat([sites[part] for part in parts])
        from_ = torch.cat([sites[part][order] for part in parts])
        for block in range(_EVERY - 1, len(layers), _EVERY):

            def exchange(_x: Tensor, stream: Tensor, at: Tensor = at, from_: Tensor = from_) -> Tensor:
                stream = stream.clone()
                stream[:, at] = stream[:, from_]
                return stream

            with hooks.outputs([(layers[block].block, exchange)]):
                prefix = scoring.encode(lesson.checkpoint, lesson.spans.ids)
            after, given = asked(prefix)
            yield {
                "site": name,
                "block": block,
                "before_answer": share(votes, answer),
                "before_next": share(votes, following),
                "after_next": share(after, following),
                "next": (given == following).float().mean().item(),
            }


# Kernels.


def _kernels(lesson: VoteLesson) -> Iterator[dict[str, Any]]:
    """Rows by block, tau and query: the label that is right, the answer, the vote, and the label that is favoured.

    The last is the one with the largest weight over the other words, whatever is asked.
    """
    labels, arrows, kept = one_hot(lesson.label_of_line, 4).float(), _sites(lesson)["arrow"], []
    asked, others = (lesson.passed(its).at_last().run() for its in (lesson.queries, lesson.others))
    answers = asked.logits[:, lesson.tokens].argmax(-1)
    layers = architectures.architecture(lesson.checkpoint.model).layers
    with hooks.outputs((layer.block, lambda _x, stream: kept.append(stream[0, arrows])) for layer in layers):
        scoring.encode(lesson.checkpoint, lesson.spans.ids)
    for block in range(_EVERY - 1, len(layers), _EVERY):
        x_j = kept[block].float() - kept[block].float().mean(0)
        both = [its.stream[:, block].float() for its in (asked, others)]
        cosines = [cosine_similarity((x - x.mean(0))[:, None], x_j, dim=-1) for x in both]
        for tau in TAUS:
            vote, constant = ((tau * its).softmax(-1) @ labels for its in cosines)
            favoured = int(constant.mean(0).argmax())
            for i, query in enumerate(lesson.queries):
                answer = {"right": query.label, "answer": int(answers[i]), "vote": int(vote[i].argmax())}
                yield {"block": block, "tau": tau, "query": i, **answer, "favoured": favoured}


class LabelLines(OnCheckpoint[_LinesSetting]):
    """Computes the lessons of each setting, under rule A."""

    name = "label_lines"
    setting = _LinesSetting
    protocol = 1
    slowest_first = Vote.slowest_first
    usual: ClassVar = {"k": 16, "n_queries": 24}

    def compute(self, setting: _LinesSetting, *, progress: bool) -> Computed:
        """One setting.

        - "lines", "layers", of part "values": see `_values`;
        - "exchanges", of part "keys": see `_keys`;
        - "kernels": see `_kernels`.
        """
        checkpoint, tables = self._load(setting.checkpoint), {}
        lesson = VoteLesson.of(checkpoint, setting, "A")
        if setting.part == "kernels":
            kernels = as_columns(list(_kernels(lesson)))
            return Computed({"settings": {}, "kernels": kernels}, self._provenance(checkpoint, cued_words.TASK))
        shape = len(lesson.prefix.keys), checkpoint.model.config.num_attention_heads
        sets = vote.head_sets(setting, shape, "A")
        m = vote.MAIN[setting.sizes]
        if setting.part == "values":
            chosen = {name: sets[f"{name} {m}"] for name in ("effect", "random")}
            tables["lines"], tables["layers"] = _values(lesson, chosen)
        else:
            tables["exchanges"] = list(_keys(lesson, sets[f"effect {m}"]))
        found: Tables = {name: as_columns(rows) for name, rows in tables.items()}
        return Computed({"settings": {}} | found, self._provenance(checkpoint, cued_words.TASK))
