"""What answers say beside how many of them are right: label bias and the cap it puts on accuracy."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from explainer.results import papers
from explainer.theory import statistics
from explainer.theory.statistics import Interval

STATES: Mapping[str, str] = {"zsl": "ZSL", "ft": "FT", "icl": "ICL"}
"""The three settings, in the order in which the paper prints them, and their names."""

N_QUOTED: Mapping[str, int] = {task: min(n, papers.MOST_EVALUATED) for task, n in papers.N_VALIDATION.items()}
"""How many queries the accuracies of the paper are shares of."""


def quoted(model: str) -> dict[str, dict[str, Interval]]:
    """The paper's accuracies as whole numbers of queries, by setting and task, with Wilson's intervals."""
    return {
        name: {task: statistics.binomial_interval(p, N_QUOTED[task]) for task, p in papers.ACCURACY[model][s].items()}
        for s, name in STATES.items()
    }


def answer_shares(queries: pd.DataFrame, state: str | None = None) -> pd.DataFrame:
    """How often each label is the model's answer in a state, or is right (without a state): a row for each seed."""
    chosen = queries["label"].to_numpy() if state is None else np.stack(list(queries[f"{state}_log_probs"])).argmax(1)
    labels = range(len(queries["zsl_log_probs"].iloc[0]))
    shares = pd.crosstab(queries["seed"].to_numpy(), chosen, normalize="index", rownames=["seed"], colnames=["label"])
    return shares.reindex(columns=labels, fill_value=0.0)


def ceiling(queries: pd.DataFrame, state: str) -> pd.Series:
    """The highest accuracy that the given answers allow, in whatever order: sum_c min(p_c, q_c), for each seed.

    p are the shares of the model's answers, q those of the right ones. Of label c at most min(p_c, q_c) can be right.
    """
    return pd.DataFrame(np.minimum(answer_shares(queries, state), answer_shares(queries))).sum(axis=1)
