"""The notebook for a hosted GPU: its commands where there is a GPU, which no build executes; they fit a card."""

import os
import re
import shlex

import torch
from conftest import ROOT
from transformers import XGLMForCausalLM

from at_size import SHAPES, config
from bookbuilder import pages
from explainer import commands
from explainer.models import loading, memory
from explainer.results import papers
from explainer_lab import cli
from explainer_lab.on_checkpoint import OnCheckpoint

CELLS = pages.cells(ROOT / "book" / "reference" / "hosted_gpu.ipynb")
CODE = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]
T4 = 15_000_000_000
"""Bytes of a card of 16 GB that are free."""


def typed():
    """What the notebook gives the commands on a T4, in its order."""
    names = {"RATE": "5e-4"}
    for code in CODE[1 : next(i for i, code in enumerate(CODE) if code.startswith("!explainer look"))]:
        if not code.startswith("!"):
            exec(code.replace('FOLDER = ""', "FOLDER = '.'"), names)
    exec(re.search("^OWN = .*", "\n".join(CODE), re.MULTILINE)[0], names)
    for line in re.findall(r"!(explainer.*?)(?<!\\)$", "\n".join(CODE), re.MULTILINE | re.DOTALL):
        filled = re.sub(r"\{(.*?)\}", lambda m: str(eval(m[1], names)), line)
        yield shlex.split(filled.replace("\\\n", " ").partition("|")[0])


def test_every_command_is_one_and_gpt_1_3b_fits_a_card_of_16_gb_in_a_format_that_it_computes_in(monkeypatch, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Tesla T4")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.environ["PATH"])  # the notebook adds to it
    written = list(typed())
    scripts = {"explainer": commands, "explainer-lab": cli}
    options = [scripts[script]._parser().parse_args(words) for script, *words in written]
    results = [one.results for one in options if hasattr(one, "publish")]
    assert results == ["comparison", "agreement", "agreement", "new_rule"]
    with torch.device("meta"):
        model = XGLMForCausalLM(config(*SHAPES["1.3B"], vocabulary=50264))
    asked = []

    def record(experiment, settings, *_, **__):
        asked.append((experiment, settings, max(map(experiment.needs, settings))))

    for name, instead in {"run": record, "plan": lambda *_: [], "publish": lambda *_: None}.items():
        monkeypatch.setattr(OnCheckpoint, name, instead)
    monkeypatch.setattr(loading, "skeleton", lambda name: {"KoboldAI/fairseq-dense-1.3B": model}[name])
    monkeypatch.setattr(memory, "device_of", lambda _: torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: False)
    monkeypatch.setattr(memory, "free_bytes", lambda _: T4)
    for words in written:
        if words[0] == "explainer-lab":
            assert cli.main(words[1:]) == 0
    assert [str(experiment._dtype) for experiment, *_ in asked] == [f"torch.float{n}" for n in (32, 32, 16, 16)]
    assert max(need for *_, need in asked) < T4
    comparisons = asked[0][1]
    assert {one.task: (one.k, one.lr) for one in comparisons} == {
        task: (papers.quoted("demonstrations")[task], papers.quoted("learning_rate")["1.3B"][task])
        for task in papers.TASKS
    }
    assert {(one.control, one.position, one.n_queries) for one in comparisons} == {("none", "prompt", 56)}
