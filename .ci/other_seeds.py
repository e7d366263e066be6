"""Every seed of a kernel, moved by $SHIFT: other draws, the same code. Kernels run what PYTHONSTARTUP names:

SHIFT=1000 PYTHONSTARTUP=.ci/other_seeds.py PYTHONPATH=book/_ext .venv/bin/python -m bookbuilder.execute _build/seeds 2
"""

import os as _os

import numpy as _np
import torch as _torch

_SHIFT = int(_os.environ["SHIFT"])
_manual_seed, _default_rng = _torch.manual_seed, _np.random.default_rng


class _Generator(_torch.Generator):
    def manual_seed(self, seed):
        return super().manual_seed(seed + _SHIFT)


def _shifted(seed=None, *more):
    if seed is None or isinstance(seed, (_np.random.Generator, _np.random.BitGenerator)):
        return _default_rng(seed, *more)
    return _default_rng(_np.atleast_1d(seed) + _SHIFT, *more)


_torch.Generator, _torch.manual_seed = _Generator, lambda seed: _manual_seed(seed + _SHIFT)
_np.random.default_rng = _shifted
