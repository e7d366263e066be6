"""Which layers and heads an answer in context needs: each is held at its mean at every token, and answers are counted.

With a(x) for what the attention of a layer, its MLP, or some heads give, mean(a) stands in place of a(x) at all tokens
of context and query (but the first, for an MLP, whose output there is like no other). The mean is over contexts of all
tasks and rules of `MEANS`, the own one among them. Heads that a grid names were ranked on other draws: those of the
vote (`vote`) and those that carry a task (`rival`). The plan is in published/PLANS.md.
Source: Wang et al. (2023), mean ablation.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from explainer.compare import controls, cued_words
from explainer.compare.cued_words import CUES
from explainer.data import tasks
from explainer.data.tasks import TaskData
from explainer.models import architectures, circuits, hooks, interventions, scoring
from explainer.models.loading import Checkpoint
from explainer_lab import lab_lessons, on_checkpoint
from explainer_lab.experiment import Computed
from explainer_lab.lab_lessons import N_RANDOM
from explainer_lab.on_checkpoint import OnCheckpoint, as_columns, data_digest
from explainer_lab.vote import KNOWN, head_mask, named_heads, random_like

MEANS = (*KNOWN, "suffix", "first word", "category")


@dataclass(frozen=True, kw_only=True)
class _AblationsSetting(on_checkpoint.CheckpointSetting):
    """The k demonstrations and the queries of a task, or of a kind of cue under rule A, and heads as "18.6 20.5".

    Raises ExperimentError where a value is impossible.
    """

    task: str
    k: int
    n_queries: int
    vote_heads: str
    task_heads: str
    least: ClassVar = {"k": 4, "n_queries": 4}

    @property
    def slug(self) -> str:
        """A readable name."""
        sizes = f"k{self.k}-n{self.n_queries}-seed{self.seed}"
        return "-".join(["ablations", self.name, self.task.replace(" ", "-"), sizes])


def _mean_mlp_outputs(checkpoint: Checkpoint, sequences: Sequence[Sequence[int]]) -> list[Float[Tensor, " d"]]:
    """Of the MLP of each layer, over all tokens but the first of some sequences."""
    layers, kept = architectures.architecture(checkpoint.model).layers, []
    with hooks.outputs((layer.mlp.output, lambda _x, y: kept.append(y[0, 1:])) for layer in layers):
        for ids in sequences:
            checkpoint.hidden(input_ids=checkpoint.row(ids), use_cache=False)
    return [torch.cat(kept[number :: len(layers)]).mean(0) for number in range(len(layers))]


def _held(module: nn.Module, mean: Float[Tensor, " d"], first: int) -> AbstractContextManager:
    """The module gives its mean at all tokens from one on."""

    def replaced(_x: Tensor, y: Tensor) -> Tensor:
        return torch.cat([y[:, :first], mean.expand_as(y[:, first:])], 1)

    return hooks.outputs([(module, replaced)])


class Ablations(OnCheckpoint[_AblationsSetting]):
    """Computes the ablations of each setting."""

    name = "ablations"
    setting = _AblationsSetting
    protocol = 1
    slowest_first = ("checkpoint", "task", "k", "n_queries", "vote_heads", "task_heads", "seed")
    shown = ("right",)
    usual: ClassVar = {"k": 16, "n_queries": 24}

    def _of(self, setting: _AblationsSetting, task: str) -> TaskData:
        if task in CUES:
            return cued_words.data(task, setting.seed, "A", setting.k, setting.n_queries)
        return self._load_data(task)

    def parts(self, setting: _AblationsSetting) -> dict[str, Any]:
        """Weights and data."""
        data = {task: data_digest(self._of(setting, task)) for task in dict.fromkeys((setting.task, *MEANS))}
        return {"weights": self._weights(setting.checkpoint), "data": data}

    def compute(self, setting: _AblationsSetting, *, progress: bool) -> Computed:
        """One setting.

        - "ablations": of nothing ("none"), of each layer's "attention" and "mlp", and of "heads" by name, random ones
        in N_RANDOM sets: the share of queries whose most probable token is the right one, and, where there are labels,
        of those whose most probable label is.
        """
        checkpoint, data = self._load(setting.checkpoint), self._of(setting, setting.task)
        found = architectures.architecture(checkpoint.model)
        lessons = {task: controls.own(self._of(setting, task), setting.k, setting.seed) for task in MEANS}
        texts = [scoring.context_ids(checkpoint, *lesson)[0] for lesson in lessons.values()]
        of_heads, of_mlp = circuits.mean_head_outputs(checkpoint, texts), _mean_mlp_outputs(checkpoint, texts)
        task, examples = controls.own(data, setting.k, setting.seed)
        queries = tasks.queries(data, setting.n_queries, setting.seed)
        prompts, labels = [*map(task.prompt, queries)], task.labels or ()
        first = torch.tensor(scoring.distinguishing_tokens(checkpoint, task, queries))

        def right(of_context: AbstractContextManager, of_queries: AbstractContextManager) -> dict[str, float | None]:
            with of_context:
                prefix = lab_lessons.context(checkpoint, task, examples)
            with of_queries:
                logits = interventions.after_context(checkpoint, prefix, prompts, labels).run().logits
            found: dict[str, float | None] = {"right": (logits.argmax(-1) == first).float().mean().item()}
            found["right_label"] = None
            if labels:
                of_labels = logits.gather(1, torch.tensor(scoring.label_tokens(checkpoint, task, queries)))
                wanted = torch.tensor([query.label for query in queries])
                found["right_label"] = (of_labels.argmax(-1) == wanted).float().mean().item()
            return found

        def heads(chosen: Sequence[circuits.HeadIndex]) -> dict[str, float | None]:
            off = partial(circuits.ablate_heads, checkpoint, chosen, of_heads)
            return right(off(), off())

        def rows() -> Iterator[Mapping[str, Any]]:
            yield {"part": "none", "layer": None, "name": None} | right(nullcontext(), nullcontext())
            for number, layer in enumerate(found.layers):
                whole = [(number, head) for head in range(found.n_heads)]
                yield {"part": "attention", "layer": number, "name": None} | heads(whole)
                held = [_held(layer.mlp.output, of_mlp[number], start) for start in (1, 0)]
                yield {"part": "mlp", "layer": number, "name": None} | right(*held)
            for name, its in {"vote": setting.vote_heads, "task": setting.task_heads}.items():
                chosen, generator = named_heads(its), setting.generator(18, name)
                yield {"part": "heads", "layer": None, "name": name} | heads(chosen)
                for _ in range(N_RANDOM):
                    random = random_like(head_mask((len(found.layers), found.n_heads), chosen), generator)
                    yield {"part": "heads", "layer": None, "name": f"random like {name}"} | heads(
                        random.nonzero().tolist()
                    )

        table = as_columns([*rows()])
        return Computed(
            {"settings": {"right": table["right"][0]}, "ablations": table}, self._provenance(checkpoint, task)
        )
