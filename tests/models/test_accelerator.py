"""On a pretended accelerator everything gives the processor's numbers, and no tensor is left on the wrong side."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT

FAMILIES = ("gpt2", "gpt_neo", "gpt_neox", "llama", "opt", "xglm")
MIXED = """
import accelerator, torch
there = torch.ones(2, 2).to(accelerator.DEVICE)
for wrong in (lambda: there @ torch.ones(2, 2), lambda: there.numpy(), lambda: torch.cat([there, torch.ones(2, 2)])):
    try:
        wrong()
    except (RuntimeError, TypeError) as error:
        print("accel" in str(error))
"""


def python(*arguments):
    environment = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_what_a_gpu_refuses_is_refused():
    assert python("-c", MIXED).split() == ["True"] * 3


@pytest.mark.slow
def test_every_part_gives_the_numbers_of_the_processor():
    found = json.loads(python(str(ROOT / "tests" / "on_accelerator.py"), *FAMILIES))
    assert list(found) == list(FAMILIES)
    for family, parts in found.items():
        for name, (here, there) in parts.items():
            sides = [list(side.values()) if isinstance(side, dict) else side for side in (here, there)]
            np.testing.assert_allclose(*map(np.array, sides), rtol=2e-3, atol=2e-4, err_msg=f"{family}, {name}")
