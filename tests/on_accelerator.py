"""All that is done to a checkpoint, on the processor and on a pretended accelerator: `on_accelerator.py FAMILY ...`.

Writes JSON: family -> what -> [numbers of the processor, numbers of the accelerator]; and under "refusals" what is
said where tensors of both meet.
"""

import json
import sys
import tempfile
from pathlib import Path

import accelerator
import torch

accelerator.pretend()  # before any decorator of the package asks for inference mode

import tiny_models  # noqa: E402

from explainer.compare import comparison  # noqa: E402
from explainer.data import tasks  # noqa: E402
from explainer.models import finetuning, interventions, loading, scoring  # noqa: E402
from explainer_lab.agreement import Agreement  # noqa: E402
from explainer_lab.new_rule import NewRule  # noqa: E402

LR = 1e-2


def numbers(checkpoint):
    """What each part of the package computes with a checkpoint, wherever it is."""
    data = tasks.load("capitals")
    shown, asked = tasks.demonstrations(data, 3, 0), tasks.queries(data, 3, 0)
    prompts, ids = [data.task.prompt(one) for one in asked], scoring.context_ids(checkpoint, data.task, shown)[0]
    prefix, sequences = scoring.encode(checkpoint, ids), finetuning.training_ids(checkpoint, data.task, shown)
    runs = [finetuning.Run(sequences, LR), finetuning.Run(sequences[::-1], LR)]
    setting = comparison.ComparisonSetting(checkpoint.name, "capitals", seed=0, k=3, lr=LR, n_queries=3)
    columns = comparison.run_comparison(comparison.prepare(checkpoint, data, setting), setting)["queries"]
    after, without = (
        make(checkpoint, prefix, prompts) for make in (interventions.after_context, interventions.without_context)
    )
    patches = interventions.context_weight_patches(after, without)
    patched = without.run(
        interventions.with_weight_patches(after.layers, patches, torch.eye(3, device=checkpoint.device))
    )
    return {
        "candidates": scoring.candidate_log_probs(checkpoint, prefix, prompts, ["Paris", "Rome"]).tolist(),
        "exact": scoring.exact_match(checkpoint, prefix, prompts, [one.answer for one in asked]).tolist(),
        "records": tiny_models.record(checkpoint, prefix, prompts).context_scores.tolist(),
        "setting": {name: [float(x) for x in each] for name, each in columns.items() if name.startswith("sim_")},
        "lockstep": [states[3].loss_after for states in finetuning.fine_tune_runs(checkpoint, runs, [3])],
        "layer-causal": finetuning.fine_tune(checkpoint, sequences, LR, layer_causal=True).losses,
        "patched": patched.logits.cpu().tolist(),
    }


def settings(directory, device):
    """What two experiments find, whatever the family; the third of the hosted notebook is among the `numbers`."""
    sizes = {"checkpoint": str(directory), "seed": 0, "k": 4, "n_queries": 4, "epochs": 2}
    for kind, values in (
        (Agreement, {"task": "capitals", "lessons": "bounds"}),
        (NewRule, {"cue": "category", "training": "answers"}),
    ):
        found = kind(device=device).compute(kind.of(**sizes, **values), progress=False).tables["settings"]
        yield kind.name, {name: float(value) for name, value in found.items() if name != "note"}


def refusals():
    """What is said of a product and a sum of tensors on both sides, and of an array of one that is there."""
    here, there = torch.ones(2, 2), torch.ones(2, 2).to(accelerator.DEVICE)
    for wrong in (lambda: there @ here, there.numpy, lambda: torch.cat([there, here])):
        try:
            wrong()
        except (RuntimeError, TypeError) as error:
            yield str(error)


def main(families):
    yield "refusals", list(refusals())
    for family in families:
        with tempfile.TemporaryDirectory() as place:
            directory = tiny_models.save(family, Path(place))
            here, there = (loading.load(directory, device=device) for device in ("cpu", accelerator.DEVICE))
            devices = ("cpu", accelerator.DEVICE)
            experiments = len(families) > 1 and family == families[-1]  # half a minute
            found = [dict(settings(directory, device) if experiments else ()) for device in devices]
        assert there.device == accelerator.DEVICE
        found = [numbers(of) | its for of, its in zip((here, there), found, strict=True)]
        yield family, {name: [side[name] for side in found] for name in found[0]}


if __name__ == "__main__":
    json.dump(dict(main(sys.argv[1:])), sys.stdout)
