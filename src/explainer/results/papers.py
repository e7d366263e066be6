"""Numbers of the papers, as they print them: shares and similarities from 0 to 1, by model, condition and task.

Each table names the source it was copied from. Models are the dense fairseq language models with 1.3 and 2.7 billion
parameters, states "zsl", "ft" and "icl", tasks in the order of `TASKS`.
"""

from collections.abc import Mapping
from typing import TypeVar

DAI = "Dai et al. (2023), Findings of ACL 2023, 247"
DEUTCH = "Deutch et al. (2024), NAACL 2024"
DEUTCH_LOGS = "logs of Deutch et al. (2024), GiilDe/ft-vs-icl, means recomputed here"

TASKS = ("sst2", "sst5", "mr", "subj", "agnews", "cb")
MODELS = ("1.3B", "2.7B")


_Number = TypeVar("_Number", int, float)


def _row(*numbers: _Number, tasks: tuple[str, ...] = TASKS) -> Mapping[str, _Number]:
    return dict(zip(tasks, numbers, strict=True))


# Dai et al. (2023), Table 1.

N_VALIDATION: Mapping[str, int] = _row(872, 1101, 1066, 2000, 7600, 56)
"""Validation examples per task (`DAI`, Table 1). The released code evaluates at most `MOST_EVALUATED` of them."""

MOST_EVALUATED = 2000
"""Queries that the released code evaluates at most (microsoft/LMOps, understand_icl, fewshot_task.py)."""

ACCURACY: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "1.3B": {
        "zsl": _row(0.705, 0.393, 0.659, 0.726, 0.463, 0.375),
        "ft": _row(0.739, 0.395, 0.730, 0.778, 0.653, 0.554),
        "icl": _row(0.927, 0.450, 0.890, 0.900, 0.792, 0.571),
    },
    "2.7B": {
        "zsl": _row(0.714, 0.359, 0.609, 0.752, 0.398, 0.429),
        "ft": _row(0.769, 0.391, 0.800, 0.861, 0.657, 0.571),
        "icl": _row(0.950, 0.465, 0.913, 0.903, 0.803, 0.554),
    },
}
"""Validation accuracy, `ACCURACY[model][state][task]` (`DAI`, Table 1), one seed of demonstrations each."""


# Dai et al. (2023), Tables 2 to 5. The averages are those that the tables print.

REC2FTP: Mapping[str, Mapping[str, float]] = {
    "1.3B": _row(0.9184, 0.6667, 0.9708, 0.8717, 0.8308, 0.8750),
    "2.7B": _row(0.9683, 0.7160, 0.9583, 0.8763, 0.8444, 1.0000),
}
"""Share of the zero-shot errors that FT repairs which ICL repairs too, `REC2FTP[model][task]` (`DAI`, Table 2)."""

REC2FTP_AVERAGE: Mapping[str, float] = {"1.3B": 0.8556, "2.7B": 0.8939}
"""Averages over tasks (`DAI`, Table 2)."""

SIM_AOU: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "1.3B": {
        "random": _row(0.002, 0.003, 0.001, 0.002, 0.002, 0.003),
        "ft": _row(0.110, 0.080, 0.222, 0.191, 0.281, 0.234),
    },
    "2.7B": {
        "random": _row(0.000, -0.002, 0.000, 0.001, -0.002, 0.000),
        "ft": _row(0.195, 0.323, 0.157, 0.212, 0.333, 0.130),
    },
}
"""Similarity of attention output updates, of ICL and a random update or FT (`DAI`, Table 3)."""

SIM_AOU_AVERAGE: Mapping[str, Mapping[str, float]] = {
    "1.3B": {"random": 0.002, "ft": 0.186},
    "2.7B": {"random": -0.001, "ft": 0.225},
}
"""Averages over tasks (`DAI`, Table 3)."""

SIM_AM: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "1.3B": {
        "before": _row(0.555, 0.391, 0.398, 0.378, 0.152, 0.152),
        "after": _row(0.585, 0.404, 0.498, 0.490, 0.496, 0.177),
    },
    "2.7B": {
        "before": _row(0.687, 0.380, 0.314, 0.346, 0.172, 0.228),
        "after": _row(0.687, 0.492, 0.347, 0.374, 0.485, 0.217),
    },
}
"""Similarity of attention maps, of ICL and the model before fine-tuning (ZSL) or after it (`DAI`, Table 4)."""

SIM_AM_AVERAGE: Mapping[str, Mapping[str, float]] = {
    "1.3B": {"before": 0.338, "after": 0.442},
    "2.7B": {"before": 0.355, "after": 0.434},
}
"""Averages over tasks (`DAI`, Table 4)."""

KENDALL: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "1.3B": {
        "random": _row(0.000, -0.001, 0.000, 0.001, -0.001, 0.000),
        "ft": _row(0.192, 0.151, 0.173, 0.181, 0.190, 0.274),
    },
    "2.7B": {
        "random": _row(-0.001, 0.000, 0.000, 0.000, 0.000, -0.001),
        "ft": _row(0.213, 0.177, 0.264, 0.203, 0.201, 0.225),
    },
}
"""Kendall's tau of the attention of ICL, and random scores or FT, to the training tokens (`DAI`, Table 5)."""

KENDALL_AVERAGE: Mapping[str, Mapping[str, float]] = {
    "1.3B": {"random": 0.000, "ft": 0.193},
    "2.7B": {"random": 0.000, "ft": 0.214},
}
"""Averages over tasks (`DAI`, Table 5)."""


# Dai et al. (2023), Tables 8 and 9: seed and learning rate are those of the best accuracy on the reported examples.

SEED: Mapping[str, Mapping[str, int]] = {"1.3B": _row(2, 5, 5, 4, 3, 3), "2.7B": _row(7, 5, 1, 4, 3, 3)}
"""Selected seed of the demonstrations (`DAI`, appendix)."""

LEARNING_RATE: Mapping[str, Mapping[str, float]] = {
    "1.3B": _row(0.0005, 0.00016, 0.003, 0.003, 0.2, 0.08),
    "2.7B": _row(0.007, 0.04, 0.001, 0.002, 0.2, 0.01),
}
"""Selected learning rate of FT (`DAI`, appendix)."""

N_SEEDS_SEARCHED = 7
"""Seeds 1 to 7 were tried for every task and model (`DAI`, appendix)."""

N_RATES_SEARCHED = 36
"""Learning rates 1 to 9 times 0.1, 0.01, 0.001 and 0.0001 were tried, and more for 1.3B on SST-5 (`DAI`, appendix)."""

DEMONSTRATIONS: Mapping[str, int] = _row(32, 32, 32, 32, 22, 19)
"""Number of demonstrations k (microsoft/LMOps, understand_icl, icl_ft/compute_training_example_attn.py)."""


# Deutch et al. (2024), Table 2: 1.3B, means of 3 seeds.

DEUTCH_SIM_AOU: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "normalised": {
        "gd": _row(0.11, 0.09, 0.22, 0.18, 0.31, 0.21),
        "lcgd": _row(0.22, 0.11, 0.33, 0.35, 0.33, 0.34),
    },
    "raw": {
        "gd": _row(0.05, 0.04, 0.17, 0.06, 0.18, 0.11),
        "lcgd": _row(0.13, 0.11, 0.21, 0.18, 0.13, 0.24),
    },
}
"""SimAOU as Dai et al. define it, and without normalising, of gradient descent and layer-causal gradient descent.

`DEUTCH_SIM_AOU["normalised" | "raw"]["gd" | "lcgd"][task]`, model 1.3B (`DEUTCH`, Table 2).
"""

DEUTCH_SIM_AOU_AVERAGE: Mapping[str, Mapping[str, float]] = {
    "normalised": {"gd": 0.187, "lcgd": 0.279},
    "raw": {"gd": 0.102, "lcgd": 0.167},
}
"""Averages over tasks (`DEUTCH`, Table 2)."""

DEUTCH_N_LAYERS = 24
"""The number of layers of fairseq 1.3B."""

DEUTCH_LAYERS: Mapping[int, float] = {0: 0.166, 1: 0.012, 13: 0.297, 19: 0.069, 23: 0.294}
"""Normalised SimAOU of FT by gradient descent in some layers of 1.3B, mean over six tasks.

Source: output of scripts/analysis.ipynb in GiilDe/ft-vs-icl, the code of Deutch et al. (2024).
"""


# Deutch et al. (2024), Table 1: untrained models, of 1.3B, without AGNews.

_DEUTCH_UNTRAINED_TASKS = ("sst2", "sst5", "mr", "subj", "cb")
"""Tasks that were run with untrained models."""

DEUTCH_UNTRAINED_SIM_AOU: Mapping[str, Mapping[str, float]] = {
    "embeddings": _row(0.114, 0.062, 0.246, 0.202, 0.012, tasks=_DEUTCH_UNTRAINED_TASKS),
    "none": _row(0.091, 0.073, 0.177, 0.165, 0.044, tasks=_DEUTCH_UNTRAINED_TASKS),
}
"""SimAOU of models whose embeddings and layer norms alone are trained, or whose layer norms alone (`DEUTCH_LOGS`).

Every committed version of the script that computes it normalises, and the paper's Table 1 sets these numbers beside
those of the trained model that are not normalised (DEUTCH_SIM_AOU["raw"]["gd"]).
"""

# Dai et al. (2023), Tables 6, 7 and 10: momentum attention.

MOMENTUM_PERPLEXITY: Mapping[str, Mapping[str, float]] = {
    "plain": {"train, 1024": 17.61, "256": 19.50, "512": 16.87, "1024": 15.14},
    "momentum": {"train, 1024": 17.55, "256": 19.37, "512": 16.73, "1024": 15.02},
}
"""Perplexity by context length of models with 350M parameters, one run each, eta not stated (`DAI`, Table 6)."""

MOMENTUM_ACCURACY: Mapping[str, Mapping[str, float]] = {
    "plain": {"SST5": 0.253, "IMDB": 0.640, "MR": 0.612, "CB": 0.439, "ARC-E": 0.482, "PIQA": 0.687},
    "momentum": {"SST5": 0.274, "IMDB": 0.703, "MR": 0.648, "CB": 0.468, "ARC-E": 0.500, "PIQA": 0.690},
}
"""With up to 32 demonstrations, of the same models, one run each (`DAI`, Table 7)."""

MOMENTUM_ACCURACY_AVERAGE: Mapping[str, float] = {"plain": 0.519, "momentum": 0.547}
"""Averages over tasks (`DAI`, Table 7)."""
