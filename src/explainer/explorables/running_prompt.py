"""All heads at the end of the running prompt, `Japan ->`, and the one that `RealHead` shows."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from explainer.theory import duality

if TYPE_CHECKING:
    from explainer.models.heads import Head
    from explainer.models.loading import Checkpoint

_SHOWN, _ASKED = ("France", "Italy", "Egypt", "China"), "Japan"
_ANSWER, _INPUT = " Tokyo", " Japan"


def measured() -> dict[str, Any]:
    """The numbers of the head that `choose` finds in the starter checkpoint, in bases in which few are needed.

    `layer` and `head`, from 1; `tokens`, the rows, of which the first `n` are the demonstrations'. `query`: the
    length of q / sqrt(d). `keys`, shape (T, 2): along the query, and along the part of the mean key that is
    orthogonal to it; logits are query * keys[:, 0]. `values`, shape (T, rank): in an orthonormal basis whose first
    two axes span the change of softmax attention and the sum of the demonstrations' values. `answer`, shape (T,): v
    . direction, nats. `added`: what attention to the demonstrations adds. `cosine`: quartiles of the cosines of
    `_changes` over `heads` heads.
    """
    from explainer.models import loading  # noqa: PLC0415 - as below

    prompt = read(loading.load(device="cpu"))
    i, j = strongest_head(prompt)
    head, direction, n = prompt.heads[i][j], prompt.directions[i][j], prompt.n
    soft, _ = _changes(head.query, head.keys, head.values, n)
    along, mean = head.query / head.query.norm(), head.keys.mean(0)
    across = mean - (mean @ along) * along
    keys = head.keys @ torch.stack([along, across / across.norm()], dim=1)
    basis = _basis(torch.stack([soft, head.values[:n].sum(0), *head.values]))
    both = [_changes(h.query, h.keys, h.values, n) for layer in prompt.heads for h in layer]
    cosines = [torch.cosine_similarity(soft, linear, dim=0).item() for soft, linear in both]
    return {
        "layer": i + 1,
        "head": j + 1,
        "tokens": prompt.tokens,
        "n": n,
        "query": head.query.norm().item() / math.sqrt(len(head.query)),
        "keys": keys.tolist(),
        "values": (head.values @ basis).tolist(),
        "answer": (head.values @ direction).tolist(),
        "added": _added_by_demonstrations(head, direction, n),
        "cosine": quartiles(cosines),
        "heads": sum(map(len, prompt.heads)),
    }


class RunningPrompt(NamedTuple):
    """All heads at the end of the running prompt, demonstrations first: rows 0 to n - 1 of keys and values.

    `tokens` are the texts of the rows. `directions[layer][head]`, shape (d_v,), says how much a vector of the head's
    output adds to the logit of " Tokyo" minus that of " Japan" on the direct path: v . direction, in nats, with the
    scale of the final norm held at its value in this pass.
    """

    heads: "list[list[Head]]"
    directions: list[list[Tensor]]
    tokens: list[str]
    n: int


def read(checkpoint: "Checkpoint") -> RunningPrompt:
    """Read the heads of the prompt of four capitals and `Japan ->` in a forward pass, and in another the final norm.

    Source of the direct path: Elhage et al. 2021, A Mathematical Framework for Transformer Circuits.
    """
    from explainer.data import tasks  # noqa: PLC0415
    from explainer.models import architectures, heads, scoring  # noqa: PLC0415

    data = tasks.load("capitals")
    *shown, asked = tasks.examples_of_words(data, *_SHOWN, _ASKED)
    ids, ends = scoring.context_ids(checkpoint, data.task, shown)
    ids = ids + scoring.continuation_ids(checkpoint, ["\n"], [data.task.prompt(asked)])[0]
    n = ends[-1] - 1
    read = [[head.with_rows_first(1, n + 1) for head in layer] for layer in heads.read_heads(checkpoint, ids)]
    parts, last = architectures.architecture(checkpoint.model), {}
    norm = parts.final[0]
    hook = norm.register_forward_pre_hook(lambda _, inputs: last.update(x=inputs[0][0, -1]))
    with torch.no_grad(), hook:
        checkpoint.model(input_ids=torch.tensor([ids], device=checkpoint.device))
    with torch.no_grad():
        scale = norm(last["x"]) / last["x"]
    embedding = checkpoint.model.get_output_embeddings().weight
    answer, given = (checkpoint.tokenize(text)[0] for text in (_ANSWER, _INPUT))
    wanted = (scale * (embedding[answer] - embedding[given])).detach().double().cpu()
    directions = [
        list((wanted @ layer.output.weight.detach().double().cpu()).unflatten(0, (parts.n_heads, -1)))
        for layer in parts.layers
    ]
    tokens = [checkpoint.tokenizer.decode([i]) for i in ids]
    return RunningPrompt(read, directions, tokens[1 : n + 1] + tokens[:1] + tokens[n + 1 :], n)


def _added_by_demonstrations(head: "Head", direction: Tensor, n: int) -> float:
    """What a head's attention to the demonstrations adds to the answer: sum_{i<=n} p_i v_i . direction, in nats."""
    parts = duality.split_attention(head.query, head.keys, head.values, n)
    return (parts.gate * parts.demonstrations @ direction).item()


def strongest_head(prompt: RunningPrompt) -> tuple[int, int]:
    """The layer and head, from 0, whose attention to the demonstrations adds most to " Tokyo" minus " Japan"."""
    added = {
        (i, j): _added_by_demonstrations(head, prompt.directions[i][j], prompt.n)
        for i, layer in enumerate(prompt.heads)
        for j, head in enumerate(layer)
    }
    return max(added, key=added.__getitem__)


def _changes(query: Tensor, keys: Tensor, values: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """What demonstrations change: of softmax attention, F(q) - z, and of linear attention, Delta W_ICL q / (T sqrt d).

    The factor is that of the expansion of softmax to first order; query (d,), keys (T, d), values (T, d_v).
    """
    parts = duality.split_attention(query, keys, values, n)
    linear = parts.delta_W_icl @ query / (len(keys) * math.sqrt(len(query)))
    return parts.attention - parts.zero_shot, linear


def quartiles(sample: list[float]) -> list[float]:
    """The 25th, 50th and 75th percentile of a sample."""
    levels = torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64)
    return torch.tensor(sample, dtype=torch.float64).quantile(levels).tolist()


def _basis(rows: Tensor) -> Tensor:
    """An orthonormal basis of the span of the rows, as columns, by Gram-Schmidt in their order."""
    columns: list[Tensor] = []
    for row in rows:
        rest = row
        for _ in range(2):  # twice is enough for full precision
            rest = rest - sum((column * (column @ rest) for column in columns), torch.zeros_like(row))
        if rest.norm() > 1e-9 * row.norm():
            columns.append(rest / rest.norm())
    return torch.stack(columns, dim=1)
