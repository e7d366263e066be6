"""A small model with one memory, to compare the rules by which a memory is written and read.

The models of one seed start from the same weights, to the bit, and see the same sequences in the same order; they
differ in the rule of their memory alone. A token is a pair, the embedding of the key beside that of the value. There
are no embeddings of positions; the softmax rules have a bias that falls with the distance, with a slope that is learned
(ALiBi, Press et al. 2022, arXiv 2108.12409).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import normalize

from explainer.data import recall_data
from explainer.data.recall_data import Sequences
from explainer.theory import fast_weights
from explainer.theory.momentum import momentum_attention

_ETA = 0.5
"""Decay of the average in `momentum-attention`, and the momentum of `delta-half`, which no training can switch off."""

_CHUNK = 32  # tokens; of 16, 32 and 80 the fastest
_FIRST = {"rate": 0.5, "retention": 0.98, "momentum": 0.5}  # of the gates, where the token says nothing
_FIRST_OF_HEADS = {"sharpness": 8.0, "slope": 0.1}  # of the softmax, and of its bias per token of distance


class _Tokens(NamedTuple):
    """What a memory has of every token: queries and keys of length 1, values, and three gates in (0, 1).

    What the softmax rules have of every head besides: the factor c of the scores, and the slope m of their bias.
    """

    queries: Float[Tensor, "B H T d"]
    keys: Float[Tensor, "B H T d"]
    values: Float[Tensor, "B H T d"]
    rate: Float[Tensor, "B H T"]
    retention: Float[Tensor, "B H T"]
    momentum: Float[Tensor, "B H T"]
    sharpness: Float[Tensor, " H"]
    slope: Float[Tensor, " H"]


def _linear_attention(its: _Tokens) -> Float[Tensor, "B H T d"]:
    """Write values, not errors: S <- S + beta v k^T, and read S q."""
    return (its.queries @ its.keys.mT).tril() @ (its.rate[..., None] * its.values)


def _delta_rule(its: _Tokens, retention: float | None = 1.0, momentum: float | None = 0.0) -> Float[Tensor, "B H T d"]:
    """Write errors, e = beta (v - alpha S k), by the rule of `fast_weights`; None leaves a gate to the tokens."""
    alpha = its.retention if retention is None else retention
    mu = its.momentum if momentum is None else momentum
    return fast_weights.chunked(*its[:3], its.rate, alpha, mu, chunk=_CHUNK)


def _ascent(its: _Tokens) -> Float[Tensor, "B H T d"]:
    """Climb the squared error for the value -v: S <- S - beta (-v - S k) k^T. The writes of v are those of descent."""
    return fast_weights.chunked(its.queries, its.keys, -its.values, -its.rate, 1.0, 0.0, chunk=_CHUNK)


def _softmax_attention(its: _Tokens, eta: float) -> Float[Tensor, "B H T d"]:
    """Attend to all tokens up to one's own, softmax_i (c k_i . q_t - m (t - i)), and add an average of past values."""
    positions = torch.arange(its.keys.shape[-2])
    distance = positions[:, None] - positions
    mask = (-its.slope[:, None, None] * distance).masked_fill(distance < 0, -torch.inf)
    queries = its.sharpness[:, None, None] * its.queries
    return momentum_attention(queries, its.keys, its.values, eta, attn_mask=mask, scale=1.0)


RULES = {
    "linear": _linear_attention,
    "delta": _delta_rule,
    "delta-momentum": partial(_delta_rule, momentum=None),
    "delta-half": partial(_delta_rule, momentum=_ETA),
    "gated": partial(_delta_rule, retention=None),
    "gated-momentum": partial(_delta_rule, retention=None, momentum=None),
    "ascent": _ascent,
    "softmax": partial(_softmax_attention, eta=0.0),
    "momentum-attention": partial(_softmax_attention, eta=_ETA),
}
"""How a memory is written and read, (B, H, T, d) from `_Tokens`, by the names of the settings."""

GATES: Mapping[str, tuple[str, ...]] = dict.fromkeys(RULES, ("rate",)) | {
    "delta-momentum": ("rate", "momentum"),
    "gated": ("rate", "retention"),
    "gated-momentum": ("rate", "retention", "momentum"),
    "softmax": (),
    "momentum-attention": (),
}
"""The gates that a rule learns."""


@dataclass(frozen=True, kw_only=True)
class FastWeightSetting:
    """Everything that determines a trained model, but for the numbers of keys in its sequences.

    `rule` is a key of RULES, `inner` the width of the feed-forward layer.
    """

    rule: str
    width: int = 64
    heads: int = 2
    head_width: int = 16
    inner: int = 128
    steps: int = 600
    batch: int = 32
    learning_rate: float = 5e-3
    seed: int = 0

    @property
    def slug(self) -> str:
        """A readable name."""
        sizes = f"{self.width}-{self.heads}x{self.head_width}-n{self.steps}"
        return f"recall-{sizes}-lr{self.learning_rate:g}-seed{self.seed}-{self.rule}"


class FastWeightModel(nn.Module):
    """Embeddings of key and value side by side, a memory, a feed-forward layer, and a readout over all values.

    The memory of several heads stands between a norm, projections to q, k, v and gates, a norm of each head and an
    output projection. The gates beta, alpha and mu, one of each for every head, are sigmoids of maps of the token.
    """

    def __init__(self, setting: FastWeightSetting):
        """Draw the weights from the setting's seed, whatever the rule; the gates begin near 0.5, 0.98 and 0.5.

        The global generator stays as it was.
        """
        super().__init__()
        self.setting = setting
        width, heads, of_heads = setting.width, setting.heads, setting.heads * setting.head_width
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(setting.seed)
            self.key = nn.Embedding(recall_data.KEYS, width // 2)
            self.value = nn.Embedding(recall_data.VALUES + 1, width // 2)
            self.logs = nn.ParameterDict(
                {name: torch.full((heads,), first).log() for name, first in _FIRST_OF_HEADS.items()}
            )
            self.before, self.of_head = nn.LayerNorm(width), nn.RMSNorm(setting.head_width)
            self.queries, self.keys, self.values = (nn.Linear(width, of_heads, bias=False) for _ in range(3))
            self.gates = nn.Linear(width, len(_FIRST) * heads)
            self.output = nn.Linear(of_heads, width, bias=False)
            self.feed_forward = nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, setting.inner), nn.GELU(), nn.Linear(setting.inner, width)
            )
            self.read_out = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, recall_data.VALUES))
        first = torch.tensor(list(_FIRST.values())).repeat_interleave(heads)
        with torch.no_grad():
            self.gates.bias.copy_(first.logit())

    def embedded(self, keys: Int[Tensor, "B T"], values: Int[Tensor, "B T"]) -> Float[Tensor, "B T width"]:
        """The embedding of every key beside that of its value."""
        return torch.cat([self.key(keys), self.value(values)], -1)

    def tokens(self, x: Float[Tensor, "B T width"]) -> _Tokens:
        """What the memory has of embedded tokens."""
        x, heads = self.before(x), self.setting.heads
        projected = (of(x).unflatten(-1, (heads, -1)).transpose(1, 2) for of in (self.queries, self.keys, self.values))
        queries, keys, values = projected
        gates = self.gates(x).sigmoid().unflatten(-1, (-1, heads)).permute(2, 0, 3, 1)
        of_heads = (log.exp() for log in self.logs.values())
        return _Tokens(normalize(queries, dim=-1), normalize(keys, dim=-1), values, *gates, *of_heads)

    def forward(self, sequences: Sequences) -> Float[Tensor, "B n values"]:
        """Logits of all values at the queries, the last n tokens; the memory is written and read at every token."""
        x = self.embedded(sequences.keys, sequences.values)
        read = RULES[self.setting.rule](self.tokens(x))
        x = x + self.output(self.of_head(read).transpose(1, 2).flatten(2))
        x = x[:, -sequences.answers.shape[1] :]
        return self.read_out(x + self.feed_forward(x))
