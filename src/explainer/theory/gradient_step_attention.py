"""A positive control: attention whose in-context learning *is* one gradient step, compared with its own fine-tuning.

Letters: d the width of inputs x, d_out of targets y, N demonstrations (x_i, y_i), n queries q, T own tokens of an
example or a query (its input and T - 1 tokens before it that say nothing), H heads with keys of width d_k = d / H and
values of width d_v = d_out, D = 2 d + d_out the width of tokens, eta the rate. Rows are examples; float64.

Source: Dai et al. 2023, sections 2.2 and 3; von Oswald et al. 2023 (arXiv 2212.07677), Proposition 1.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from explainer.errors import DivergenceError
from explainer.theory import metrics
from explainer.theory.duality import squared_error_gradient
from explainer.theory.regression import draw_prompts
from explainer.theory.shapes import shaped
from explainer.theory.statistics import Interval, student

# Part 1. Linear attention with heads.


class _Heads(NamedTuple):
    """H heads of linear attention whose outputs are added: W_Q, W_K (H, d_k, D) and W_V (H, d_v, D)."""

    W_Q: Float[Tensor, "H d_k D"]
    W_K: Float[Tensor, "H d_k D"]
    W_V: Float[Tensor, "H d_v D"]


def _readings(heads: _Heads, E: Float[Tensor, "n tokens D"]) -> Float[Tensor, "n H D"]:
    """What each head reads at the last token, before its values: p^h = E^T E (W_K^h)^T W_Q^h e_T."""
    queries = torch.einsum("hkD,nD->nhk", heads.W_Q, E[:, -1])
    sought = torch.einsum("hkD,nhk->nhD", heads.W_K, queries)
    return sought @ E.mT @ E


def attention_output(heads: _Heads, E: Float[Tensor, "n tokens D"]) -> Float[Tensor, "n d_v"]:
    """Attend linearly from the last token to all tokens, itself included: h = sum_h W_V^h p^h (Dai et al., Eq. 11)."""
    return torch.einsum("hvD,nhD->nv", heads.W_V, _readings(heads, E))


def linear_maps(heads: _Heads, E: Float[Tensor, "n tokens D"]) -> Float[Tensor, "n H d_v d_k"]:
    """The map that each head applies to its attention query: V^T K = W_V^h E^T E (W_K^h)^T.

    Over demonstrations it is dW_ICL, over own tokens W_ZSL.
    """
    return (E[:, None] @ heads.W_V.mT).mT @ (E[:, None] @ heads.W_K.mT)


# Part 2. The construction.


class Lesson(NamedTuple):
    """Examples, of which the last token is the input x_i, and their targets."""

    examples: Float[Tensor, "N T d"]
    targets: Float[Tensor, "N d_out"]


def gradient_step_heads(
    W_0: Float[Tensor, "d_out d"], *, n_heads: int = 1, preconditioner: Float[Tensor, "d d"] | None = None
) -> _Heads:
    """Build attention whose ICL is one gradient step from W_0: W_Q = [I 0 0], W_K = [P 0 0], W_V = [0 W_0 I].

    Head h has block h of the rows of I and P. P is I unless given; then dW_ICL = eta sum_i r_i x_i^T P^T.
    Raises: ValueError unless n_heads divides d.
    """
    d_out, d = W_0.shape
    if n_heads < 1 or d % n_heads:
        raise ValueError(f"n_heads = {n_heads} should divide the width of the inputs, d = {d}.")
    identity = torch.eye(d).to(W_0)
    P = identity if preconditioner is None else preconditioner
    W_Q, W_K = (torch.cat([M, M.new_zeros(d, d + d_out)], 1).unflatten(0, (n_heads, -1)) for M in (identity, P))
    W_V = torch.cat([torch.zeros_like(W_0), W_0, torch.eye(d_out).to(W_0)], 1)
    return _Heads(W_Q, W_K, W_V.expand(n_heads, -1, -1))


def zero_shot_tokens(X: Float[Tensor, "n T d"], d_out: int) -> Float[Tensor, "n T D"]:
    """The query's own tokens alone: (x_t, 0, 0) for the T - 1 silent ones and (x, x, 0) for the input, the last."""
    said = torch.cat([torch.zeros_like(X[:, :-1]), X[:, -1:]], 1)
    return torch.cat([X, said, X.new_zeros(*X.shape[:2], d_out)], 2)


def demonstration_tokens(lesson: Lesson, rate: float) -> Float[Tensor, "N D"]:
    """Write demonstrations (x_i, -eta x_i, eta y_i), of which W_V makes error signals, eta (y_i - W_0 x_i)."""
    x, y = lesson.examples[:, -1], lesson.targets
    return torch.cat([x, -rate * x, rate * y], 1)


def in_context_tokens(D: Float[Tensor, "N D"], E: Float[Tensor, "n T D"]) -> Float[Tensor, "n NT D"]:
    """Put the demonstrations before the own tokens of every query."""
    return torch.cat([D.expand(len(E), -1, -1), E], 1)


# Part 3. Fine-tuning.


@shaped
def fine_tune(
    heads: _Heads, E: Float[Tensor, "N T D"], targets: Float[Tensor, "N d_out"], lr: float, *, keys: bool = True
) -> _Heads:
    """Train W_K and W_V for one epoch, one example at a time: W <- W - lr dL_i/dW, L_i = 1/2 |h(E_i) - y_i|^2.

    With g = h(E_i) - y_i: dL_i/dW_V^h = g p^h(E_i)^T and dL_i/dW_K^h = (W_Q^h e_T) (E_i^T E_i (W_V^h)^T g)^T. With
    `keys=False` only W_V is trained.
    Raises: DivergenceError when the loss is no longer finite.
    Source: Dai et al. 2023, section 3.2 (keys and values alone, order and number of examples as in ICL).
    """
    for i, (e, y) in enumerate(zip(E, targets, strict=True)):
        (p,) = _readings(heads, e[None])
        g = squared_error_gradient(torch.einsum("hvD,hD->v", heads.W_V, p)[None], y[None])[0]
        if not g.isfinite().all():
            raise DivergenceError(f"the loss at step {i} is {(g @ g).item() / 2}; lower the learning rate.")
        dL_dW_V = g[:, None] * p[:, None]
        dL_dW_K = (heads.W_Q @ e[-1])[..., None] * (g @ heads.W_V @ e.T @ e)[:, None]
        heads = heads._replace(W_K=heads.W_K - keys * lr * dL_dW_K, W_V=heads.W_V - lr * dL_dW_V)
    return heads


# Part 4. The comparison.


class _Compared(NamedTuple):
    """ZSL, ICL and FT on n queries as `metrics` takes them, with one layer; `own_keys` are those before fine-tuning."""

    zsl: Float[Tensor, "n 1 d_out"]
    icl: Float[Tensor, "n 1 d_out"]
    ft: Float[Tensor, "n 1 d_out"]
    dW_icl: Float[Tensor, "n H d_v d_k"]
    dW_ft: Float[Tensor, "n H d_v d_k"]
    own_keys: Float[Tensor, "n H T d_k"]
    dW_V: Float[Tensor, "H d_v D"]


def _compare(
    heads: _Heads,
    shown: Lesson,
    taught: Lesson,
    queries: Float[Tensor, "n T d"],
    *,
    rate: float,
    lr: float,
    keys: bool = True,
) -> _Compared:
    """Give the queries zero-shot, with the demonstrations `shown` in context, and after fine-tuning on `taught`."""
    d_out = shown.targets.shape[1]
    D, E = demonstration_tokens(shown, rate), zero_shot_tokens(queries, d_out)
    tuned = fine_tune(heads, zero_shot_tokens(taught.examples, d_out), taught.targets, lr, keys=keys)
    outputs = (attention_output(heads, E), attention_output(heads, in_context_tokens(D, E)), attention_output(tuned, E))
    return _Compared(
        *(h[:, None] for h in outputs),
        dW_icl=linear_maps(heads, D[None]).expand(len(E), -1, -1, -1),
        dW_ft=linear_maps(tuned, E) - linear_maps(heads, E),
        own_keys=torch.einsum("ntD,hkD->nhtk", E, heads.W_K),
        dW_V=tuned.W_V - heads.W_V,
    )


@shaped
def update_cosine_ceiling(
    dW_icl: Float[Tensor, "*m d_v d_k"], own_keys: Float[Tensor, "*m T d_k"]
) -> Float[Tensor, "*m"]:
    """Largest cos(dW_ICL, dW_FT) that any update of the values can reach: |dW_ICL Pi|_F / |dW_ICL|_F, or NaN.

    Pi projects on the span of the keys k_t of the query's own tokens, in which dW_FT = sum_t (dv_t) k_t^T has its rows.
    Source: derived here; the update matrices: Dai et al. 2023, Eq. 11-12.
    """
    span = torch.linalg.pinv(own_keys) @ own_keys
    return torch.linalg.matrix_norm(dW_icl @ span) / torch.linalg.matrix_norm(dW_icl)


_Value = TypeVar("_Value")


class _Measures(NamedTuple, Generic[_Value]):
    """What one task (numbers) or many (intervals over tasks) say; every entry is a mean over queries and heads.

    Names as in `published/README.md`. `value_cosine` compares the change of the value projections with dW_ICL.
    """

    sim_aou: _Value
    sim_aou_raw: _Value
    sim_aou_tangent: _Value
    sim_aou_tangent_uncentred: _Value
    sim_aou_residual: _Value
    sim_aou_noise: _Value
    sim_aou_isotropic: _Value
    sim_aou_permuted: _Value
    update_cosine: _Value
    update_cosine_ceiling: _Value
    value_cosine: _Value


def _measures(compared: _Compared, seed: int) -> _Measures[float]:
    """Apply the measures of `metrics` and their floors, and take means; the seed is that of the floors."""
    outputs = zsl, icl, ft = compared[:3]
    side_by_side = torch.cat(list(compared.dW_icl[0]), -1)
    dW_V = compared.dW_V[..., : side_by_side.shape[-1]]
    values = _Measures(
        sim_aou=metrics.sim_aou(*outputs),
        sim_aou_raw=metrics.sim_aou(*outputs, normalize=False),
        sim_aou_tangent=metrics.sim_aou_tangent(*outputs),
        sim_aou_tangent_uncentred=metrics.sim_aou_tangent_uncentred(*outputs),
        sim_aou_residual=metrics.sim_aou_residual(*outputs),
        sim_aou_noise=metrics.normalised_noise_value(*outputs),
        sim_aou_isotropic=metrics.sim_aou(zsl, icl, metrics.ft_with_random_directions(zsl, ft, seed)),
        sim_aou_permuted=metrics.sim_aou(zsl, icl, metrics.ft_with_permuted_updates(zsl, ft, seed)),
        update_cosine=metrics.update_cosines(compared.dW_icl, compared.dW_ft),
        update_cosine_ceiling=update_cosine_ceiling(compared.dW_icl, compared.own_keys),
        value_cosine=metrics.update_cosines(side_by_side.expand_as(dW_V), dW_V),
    )
    return _Measures(*(value.mean().item() for value in values))


# Part 5. Many tasks.


def _draw_inputs(n: int, T: int, d: int, generator: torch.Generator, *, unit: bool = True) -> Float[Tensor, "n T d"]:
    """Draw T own tokens for each of n examples or queries: x ~ N(0, I / d), divided by their lengths if `unit`."""
    # One prompt for each, of T - 1 rows before its query.
    X = draw_prompts(n, T - 1, torch.eye(d) / d, generator=generator).inputs
    return X / torch.linalg.vector_norm(X, dim=-1, keepdim=True) if unit else X


def _draw_task(centre: Float[Tensor, "d_out d"], generator: torch.Generator) -> Float[Tensor, "d_out d"]:
    """Draw a task W whose rows are w ~ N(centre, I / d)."""
    d_out, d = centre.shape
    return centre + _matrix(d_out, d, generator)


def _lesson_of(W: Float[Tensor, "d_out d"], examples: Float[Tensor, "N T d"]) -> Lesson:
    """Give examples their targets in a task, y_i = W x_i."""
    return Lesson(examples, examples[:, -1] @ W.T)


def _matrix(d_out: int, d: int, generator: torch.Generator) -> Float[Tensor, "d_out d"]:
    """Rows of length about 1."""
    return torch.randn(d_out, d, generator=generator, dtype=torch.float64) / d**0.5


@dataclass(frozen=True)
class PositiveControlSetting:
    """What a positive control is made of; rows of W_0 are N(0, scale^2 I / d), those of tasks N(0, I / d) about them.

    `shown` and `taught` name what stands in the context and what is fine-tuned on, keys of `_LESSONS`. `centred` tasks
    scatter about W_0, others about 0. P is diagonal, from 1 - spread to 1 + spread. `direction` -1 is gradient ascent.
    """

    d: int = 20
    d_out: int = 8
    n_examples: int = 32
    n_queries: int = 40
    n_heads: int = 1
    own_tokens: int = 1
    rate: float = 1e-3
    shown: str = "own"
    taught: str = "own"
    direction: int = 1
    centred: bool = True
    unit: bool = True
    keys: bool = True
    spread: float = 0.0
    scale: float = 1.0

    @property
    def lr(self) -> float:
        """The rate of fine-tuning that takes as long a step as ICL, lr = H eta / 2 for T = 1 and P = I.

        An input stands in two slots of its token, and H heads share its length: kappa is about 2 x_i . q / H.
        """
        return self.direction * self.rate * self.n_heads / 2


_LESSONS = "own", "other", "shuffled", "foreign"
"""What a context shows or a training teaches: the own lesson, other examples of the task, the own inputs with each
other's targets, other inputs and another task."""


def _draw(setting: PositiveControlSetting, seed: int) -> tuple[_Heads, dict[str, Lesson], Float[Tensor, "n T d"]]:
    """A layer, the lessons of a task by name, and queries."""
    generator = torch.Generator().manual_seed(seed)
    s, draw = setting, partial(_draw_inputs, T=setting.own_tokens, d=setting.d, generator=generator, unit=setting.unit)
    W_0 = s.scale * _matrix(s.d_out, s.d, generator)
    P = torch.linspace(1 - s.spread, 1 + s.spread, s.d, dtype=torch.float64).diag()
    heads = gradient_step_heads(W_0, n_heads=s.n_heads, preconditioner=P)
    centre = W_0 if s.centred else torch.zeros_like(W_0)
    examples = draw(s.n_examples)
    W = _draw_task(centre, generator)
    foreign = draw(s.n_examples)
    foreign = _lesson_of(_draw_task(centre, generator), foreign)
    queries = draw(s.n_queries)
    own, other = _lesson_of(W, examples), _lesson_of(W, draw(s.n_examples))
    shuffled = own._replace(targets=own.targets[torch.randperm(s.n_examples, generator=generator)])
    lessons = own, other, shuffled, foreign
    return heads, dict(zip(_LESSONS, lessons, strict=True)), queries


def _compared_task(setting: PositiveControlSetting, seed: int) -> _Compared:
    """Draw W_0, a task, its demonstrations and queries, and compare ZSL, ICL and FT."""
    heads, lessons, queries = _draw(setting, seed)
    shown, taught = lessons[setting.shown], lessons[setting.taught]
    return _compare(heads, shown, taught, queries, rate=setting.rate, lr=setting.lr, keys=setting.keys)


def positive_control(setting: PositiveControlSetting, seeds: Iterable[int]) -> _Measures[Interval]:
    """Measure ZSL, ICL and FT on one task for each seed; intervals are Student's over tasks, not over queries.

    Raises: KeyError for an unknown lesson; ValueError unless the heads divide d; DivergenceError at a large rate.
    """
    by_task = [_measures(_compared_task(setting, seed), seed) for seed in seeds]
    return _Measures(*map(student, zip(*by_task, strict=True)))


def both_swaps(setting: PositiveControlSetting, seeds: Iterable[int]) -> dict[str, dict[str, Interval]]:
    """SimAOU of a context and a training when either has another lesson, beside two trainings and two contexts.

    Student's interval over tasks, by what is compared, then by the lesson of the side that is swapped; "both" has other
    examples of the task on both sides.
    """
    by_task = torch.stack([_similarities(setting, seed) for seed in seeds])

    def of(a: tuple[str, str], b: tuple[str, str]) -> Interval:
        return student(by_task[:, _CHANGES.index(a), _CHANGES.index(b)].numpy())

    own = ("shown", "own"), ("taught", "own")
    return {
        "context and training, training swapped": {name: of(own[0], ("taught", name)) for name in _LESSONS}
        | {"both": of(("shown", "other"), ("taught", "other"))},
        "context and training, context swapped": {name: of(("shown", name), own[1]) for name in _LESSONS},
        "two training runs": {name: of(own[1], ("taught", name)) for name in _LESSONS if name != "own"},
        "two contexts": {name: of(own[0], ("shown", name)) for name in _LESSONS if name != "own"},
    }


_CHANGES = tuple((kind, name) for kind in ("shown", "taught") for name in _LESSONS)


def _similarities(setting: PositiveControlSetting, seed: int) -> Float[Tensor, "changes changes"]:
    """SimAOU of every two changes of one draw, means over queries."""
    heads, lessons, queries = _draw(setting, seed)
    found = []
    for kind, name in _CHANGES:
        changed = {"shown": lessons["own"], "taught": lessons["own"]} | {kind: lessons[name]}
        shown, taught = changed["shown"], changed["taught"]
        found.append(_compare(heads, shown, taught, queries, rate=setting.rate, lr=setting.lr, keys=setting.keys))
    outputs = [each.icl if kind == "shown" else each.ft for (kind, _), each in zip(_CHANGES, found, strict=True)]
    return metrics.pairwise_outputs(found[0].zsl, outputs)["sim_aou"].nanmean((2, 3))
