"""Few-shot prompts cut and heads switched off, all conditions of both tasks, for the chapter and the study of heads."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from explainer.compare.head_circuit_comparison import CUTS, DRAWS, HEADS, KINDS, TASKS, Bench, answer_queries
from explainer.data.tasks import Example
from explainer.errors import TaskError
from explainer.models import circuits
from explainer.models.circuits import Answers, HeadIndex
from explainer.models.loading import Checkpoint


def measure(checkpoint: Checkpoint) -> dict[str, dict]:
    """The answers of each of TASKS in all conditions, for `explainer.compare.head_circuit_comparison.stored`."""
    return {task: {name: _plain(each) for name, each in _answers(checkpoint, task).items()} for task in TASKS}


def _plain(answers: Sequence[Answers]) -> dict[str, list]:
    return {
        "correct": [one.correct.astype(int).tolist() for one in answers],
        "log_probs": [[round(p, 4) for p in one.log_probs.tolist()] for one in answers],
    }


def _answers(checkpoint: Checkpoint, task: str) -> dict[str, list[Answers]]:
    """The answers of one task in all conditions.

    "whole" and "alone" with all heads and nothing cut, after all demonstrations and after none; "shuffled";
    "cut: ..." for each of CUTS and "cut, shuffled"; "off: <kind>" and "off: <kind>, alone" for each of KINDS, and
    "random: <kind>, <draw>" with its "alone" for as many other heads of the same layers.
    """
    normal, alone = Bench.draw(task), Bench.draw(task, demonstrations=0)
    mixed, heads = _shuffled(normal), _strongest_heads(checkpoint)
    means = circuits.mean_head_outputs(checkpoint, [columns.ids for columns in normal.columns(checkpoint)])
    found = {
        "whole": answer_queries(checkpoint, normal),
        "alone": answer_queries(checkpoint, alone),
        "shuffled": answer_queries(checkpoint, mixed),
        **{f"cut: {name}": answer_queries(checkpoint, normal, cut) for name, cut in CUTS.items()},
        "cut, shuffled": answer_queries(checkpoint, mixed, CUTS["input"]),
    }
    n_heads = checkpoint.model.config.num_attention_heads
    off = {f"off: {kind}": its for kind, its in heads.items()} | {
        f"random: {kind}, {draw}": circuits.random_heads_like(its, n_heads, draw)
        for kind, its in heads.items()
        for draw in range(DRAWS)
    }
    for name, each in off.items():
        found[name] = answer_queries(checkpoint, normal, off=each, means=means)
        found[f"{name}, alone"] = answer_queries(checkpoint, alone, off=each, means=means)
    return found


def _shuffled(bench: Bench) -> Bench:
    """The same inputs, answers and queries, with no answer left at its own input; TaskError where that cannot be."""
    mixed = tuple(_shuffled_answers(each, seed) for seed, each in enumerate(bench.demonstrations))
    return replace(bench, demonstrations=mixed)


def _shuffled_answers(examples: Sequence[Example], seed: int) -> tuple[Example, ...]:
    """The examples with their answers in a random order in which none keeps its own.

    Raises TaskError where there is no such order: fewer than two examples, or one answer more often than half.
    """
    answers = [one.answer for one in examples]
    if len(answers) < 2 or max(map(answers.count, answers)) > len(answers) / 2:
        raise TaskError(f"the answers {answers} cannot be exchanged so that none stays; give others.")
    generator = np.random.default_rng(seed)
    while True:
        mixed = [answers[i] for i in generator.permutation(len(answers))]
        if all(a != b for a, b in zip(mixed, answers, strict=True)):
            return tuple(replace(one, answer=other) for one, other in zip(examples, mixed, strict=True))


def _strongest_heads(checkpoint: Checkpoint, m: int = HEADS, n: int = 50) -> dict[str, list[HeadIndex]]:
    """The m strongest heads of each of KINDS: on 4 sequences of n random tokens said twice, and on 4 prompts of "past".

    The answer heads are found on a task that no page asks about, so that they are chosen on one and judged on others.
    """
    found: dict[str, list[torch.Tensor]] = {kind: [] for kind in KINDS}
    asked = Bench.draw("past", range(4), queries=1)
    for seed, columns in enumerate(asked.columns(checkpoint)):
        maps = circuits.attention_maps(checkpoint, circuits.repeated_random_tokens(checkpoint, n, seed))
        found["previous token"].append(circuits.previous_token_score(maps))
        found["induction"].append(circuits.induction_score(maps))
        prompt = checkpoint.tokenize(asked.data.task.prompt(asked.queries[seed][0]))
        maps = circuits.attention_maps(checkpoint, [*columns.ids, *prompt])
        found["answer"].append(maps[..., -1, list(columns.answers)].sum(-1))
    return {kind: circuits.strongest_heads(torch.stack(each).mean(0), m) for kind, each in found.items()}
