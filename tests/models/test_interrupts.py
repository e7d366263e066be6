"""Whatever interrupts a training, an update, a recorder, heads off or an edit: the model is as it was before."""

import sys
from contextlib import closing
from pathlib import Path

import pytest
import tiny_models
import torch
from tiny_models import SEQUENCES, loss_of

from explainer.models import architectures, circuits, finetuning, hooks, interventions, recording, scoring

FILES = {module.__file__ for module in (circuits, finetuning, hooks, interventions, recording)}
IDS = [0, 31, 7, 12, 99, 7]


def applied(llama):
    layers = architectures.architecture(llama.model).layers
    update = tuple(finetuning.KeysValues.of(layer).map(torch.ones_like) for layer in layers)
    with finetuning.FineTuned(llama, update, 1.0, (), (), 0.0, None).applied():
        loss_of(llama.model, SEQUENCES[0])


def every_weight(llama):
    with closing(finetuning.fine_tune_every_weight(llama, finetuning.Run(SEQUENCES, 1e-2), 2)) as taken:
        list(taken)


def heads_off(llama):
    with circuits.ablate_heads(llama, [(0, 1), (2, 0)]):
        loss_of(llama.model, SEQUENCES[0])


def edited(llama):
    asked = llama, scoring.encode(llama, "France -> Paris\n"), ("Spain ->", "x")
    after, without = (make(*asked) for make in (interventions.after_context, interventions.without_context))
    patches = interventions.context_weight_patches(after, without)
    without.run(interventions.with_weight_patches(without.layers, patches, torch.eye(2)))


ACTIONS = {
    "a training": lambda llama: finetuning.fine_tune(llama, SEQUENCES[:1], 1e-2, on_queries=lambda *_: None),
    "every weight": every_weight,
    "an update": applied,
    "records": lambda llama: list(recording.iter_records(llama, scoring.encode(llama, ""), ["Spain ->", "x"])),
    "heads": lambda llama: recording.read_heads(llama, IDS),
    "attention maps": lambda llama: circuits.attention_maps(llama, IDS),
    "heads off": heads_off,
    "edits": edited,
}


def traced(act, llama, at_line):
    """Run with a call of `at_line((file, line))` before every line of our modules."""

    def trace(frame, event, _argument):
        if frame.f_code.co_filename not in FILES:
            return None
        if event == "line":
            at_line((Path(frame.f_code.co_filename).name, frame.f_lineno))
        return trace

    sys.settrace(trace)
    try:
        act(llama)
    finally:
        sys.settrace(None)


@pytest.mark.parametrize("start", [0, *(pytest.param(start, marks=pytest.mark.weekly) for start in (1, 2))])
@pytest.mark.parametrize("name", ACTIONS)
def test_an_interrupt_before_any_line_leaves_the_model_as_it_was(tiny, name, start):
    """The last time that a line is reached, of every third line; the traceback is still held, as a notebook does."""
    llama, lines = tiny["llama"], []
    traced(ACTIONS[name], llama, lines.append)
    for place in [*{line: i for i, line in enumerate(lines)}.values()][start::3]:
        reached = []

        def interrupt(line, reached=reached, place=place):
            reached.append(line)
            if len(reached) == place + 1:
                raise KeyboardInterrupt

        with tiny_models.unchanged(llama.model), pytest.raises(KeyboardInterrupt) as held:
            traced(ACTIONS[name], llama, interrupt)
        assert reached[-1] == lines[place], held
