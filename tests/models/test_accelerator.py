"""On a pretended accelerator everything gives the processor's numbers, and no tensor is left on the wrong side."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT


@pytest.mark.slow
@pytest.mark.parametrize(
    "families",
    [("llama",), pytest.param(("gpt2", "gpt_neox", "opt", "xglm"), marks=pytest.mark.weekly)],
    ids="-".join,
)
def test_every_part_gives_the_numbers_of_the_processor_and_what_a_gpu_refuses_is_refused(families):
    environment = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(ROOT / "tests" / "on_accelerator.py"), *families]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert ["accel" in refusal for refusal in found.pop("refusals")] == [True] * 3
    assert tuple(found) == families
    for family, parts in found.items():
        for name, (here, there) in parts.items():
            sides = [list(side.values()) if isinstance(side, dict) else side for side in (here, there)]
            np.testing.assert_allclose(*map(np.array, sides), rtol=2e-3, atol=2e-4, err_msg=f"{family}, {name}")
