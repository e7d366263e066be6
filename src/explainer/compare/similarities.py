"""Similarities of what ICL and FT do to attention, with their floors: for each query in each layer, (n, layers).

ZSL, ICL and FT stand for zero-shot, in-context and fine-tuned, as in `theory.metrics`, which defines each similarity.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate

import torch
from torch import Tensor

from explainer.compare.observations import Observed
from explainer.theory import metrics

_TOP_K = 100
_TOP_EXAMPLES = 5


def of_outputs(zsl: Tensor, icl: Tensor, ft: Tensor, seed: int) -> dict[str, Tensor]:
    """SimAOU of attention outputs (n, layers, hidden) and what else compares their changes; the seed draws the floors.

    FT is replaced by a change in a random direction (isotropic) and by that of another query (permuted).
    """
    stand_ins = {
        "": ft,
        "_isotropic": metrics.ft_with_random_directions(zsl, ft, seed),
        "_permuted": metrics.ft_with_permuted_updates(zsl, ft, seed),
    }
    similarities: dict[str, Callable[..., Tensor]] = {
        "sim_aou": metrics.sim_aou,
        "sim_aou_raw": partial(metrics.sim_aou, normalize=False),
        "sim_aou_tangent": metrics.sim_aou_tangent,
        "sim_aou_tangent_uncentred": metrics.sim_aou_tangent_uncentred,
        "sim_aou_residual": metrics.sim_aou_residual,
    }
    measures = {
        name + floor: similarity(zsl, icl, h)
        for name, similarity in similarities.items()
        for floor, h in stand_ins.items()
    }
    return measures | {
        "sim_aou_noise": metrics.normalised_noise_value(zsl, icl, ft),
        "sim_aou_uniform": metrics.uniform_floor(zsl, icl, seed),
    }


def of_scores(
    zsl: list[Tensor], icl: list[Tensor], ft: list[Tensor], context_tokens: int, seed: int
) -> dict[str, Tensor]:
    """SimAM of the scores to a query's own tokens, (layers, heads, tokens) for each query; means over heads."""
    isotropic = metrics.ft_with_random_directions(zsl, ft, seed)
    by_head = {
        "sim_am": metrics.sim_am(icl, ft),
        "sim_am_isotropic": metrics.sim_am(icl, isotropic),
        "sim_am_zsl": metrics.sim_am(icl, zsl),
        "sim_am_delta": metrics.sim_am_delta(zsl, icl, ft, context_tokens),
        "sim_am_delta_isotropic": metrics.sim_am_delta(zsl, icl, isotropic, context_tokens),
    }
    return {name: values.nanmean(-1) for name, values in by_head.items()}


def of_updates(dW_icl: Sequence[Tensor], W_zsl: Sequence[Tensor], W_ft: Sequence[Tensor]) -> dict[str, Tensor]:
    """dW_ICL and dW_FT = W_FT - W_ZSL of Dai et al. (2023), eq. 11 to 13, as matrices; means over the key heads.

    One tensor (layers, key heads, d_v, d) for each query. Permuted: dW_FT of another query. The ratio is of norms, FT
    over ICL.
    """
    dW_ft = [ft - zsl for ft, zsl in zip(W_ft, W_zsl, strict=True)]
    changed = [
        metrics.nan_within_rounding(dW, zsl, metrics.machine_epsilon(zsl), axes=2)
        for dW, zsl in zip(dW_ft, W_zsl, strict=True)
    ]
    another = [*changed[1:], *changed[:1]]

    def mean_cosines(a: Sequence[Tensor], b: Sequence[Tensor]) -> Tensor:
        return torch.stack([metrics.update_cosines(x, y).nanmean(-1) for x, y in zip(a, b, strict=True)])

    def norms(dW: Sequence[Tensor]) -> Tensor:
        return torch.stack([torch.linalg.matrix_norm(x).mean(-1) for x in dW])

    return {
        "update_cosine": mean_cosines(dW_icl, changed),
        "update_cosine_permuted": mean_cosines(dW_icl, another),
        "update_cosine_zsl": mean_cosines(dW_icl, W_zsl),
        "update_norm_ratio": norms(dW_ft) / norms(dW_icl),
    }


def of_training_tokens(
    icl: Observed, ft: Observed, training_queries: Sequence[Tensor], spans: Sequence[tuple[int, int]], seed: int
) -> dict[str, Tensor]:
    """Dai et al. (2023, ACL version), table 5: m_ICL, the score to a token; m_FT, q'_token . q; summed over heads.

    `training_queries` are the q' of each training sequence, (layers, tokens, heads * head size), first token included;
    `spans` say where each stands in the context, and how many of its tokens are compared.
    """
    m_icl = torch.cat([icl.context_scores[..., start : start + n] for start, n in spans], dim=-1)
    queries = zip(training_queries, spans, strict=True)
    q_train = torch.cat([q[:, 1 : 1 + n] for q, (_, n) in queries], dim=1)
    m_ft = torch.einsum("ltd,nld->nlt", q_train, ft.queries.float())
    by_token = {
        "kendall_tau_b": metrics.kendall_training_tokens(m_icl, m_ft),
        "kendall_tau_a": metrics.kendall_tau_a(m_icl, m_ft),
    }
    return by_token | _recall("top_k_recall", m_icl, m_ft, _TOP_K) | _of_examples(m_icl, m_ft, spans, seed)


def _of_examples(m_icl: Tensor, m_ft: Tensor, spans: Sequence[tuple[int, int]], seed: int) -> dict[str, Tensor]:
    """Agreement on whole demonstrations, with the same lengths on both sides: see `metrics.attention_by_example`."""
    ends = list(accumulate(n for _, n in spans))
    parts = list(zip([0, *ends], ends, strict=False))
    stand_ins = {"": m_ft, "_permuted": metrics.permuted_tokens(m_ft, seed)}
    measures = {}
    for name, mean in (("example", False), ("example_mean", True)):
        a_icl, *others = (metrics.attention_by_example(m, parts, mean=mean) for m in (m_icl, *stand_ins.values()))
        for floor, a_ft in zip(stand_ins, others, strict=True):
            measures[f"{name}_tau_b{floor}"] = metrics.kendall_tau_b(a_icl, a_ft)
        measures |= _recall(f"{name}_recall", a_icl, others[0], _TOP_EXAMPLES)
    return measures


def _recall(name: str, m_icl: Tensor, m_ft: Tensor, k: int) -> dict[str, Tensor]:
    """Top-k recall and its value by chance."""
    T = m_icl.shape[-1]
    k = min(k, T)
    chance = torch.full(m_icl.shape[:-1], k / T, dtype=torch.float64)
    return {name: metrics.top_k_recall(m_icl, m_ft, k), f"{name}_chance": chance}


def summaries(measures: Mapping[str, Tensor], n: int) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Columns of the tables of layers and of queries; values that do not exist (NaN) are left out of the means."""
    layers, queries = {}, {}
    for name, values in measures.items():
        defined = ~values.isnan()
        deviation = (values - values.nanmean(0)).nan_to_num() * defined
        count = defined.sum(0)
        sd = (deviation.square().sum(0) / (count - 1)).sqrt().where(count > 1, torch.nan)
        layers |= {name: values.nanmean(0), f"{name}_sd": sd}
        queries[name] = torch.cat([values.nanmean(1), values.new_full((n - len(values),), torch.nan)])
    return layers, queries
