"""The first draw of a made-up rule, asked of the checkpoint: what `LearnRule` shows.

The attention that ten heads have to the labels of sixteen lines is moved, in part, to the lines of one label, as in
the study *The vote*: a_j becomes (1 - dose) a_j + dose u_j sum a, with u even over these lines.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from explainer.compare import cued_words
from explainer.data.tasks import TaskData
from explainer.models import attention_edits, interventions, loading, scoring
from explainer.models.attention_edits import AttentionEdit
from explainer.models.circuits import TokenSpans
from explainer.models.interventions import Pass
from explainer.results import contrast_results
from explainer.results.published import results

CUE, SEED, K, N = "suffix", 0, 16, 24
"""The first draw of the grids `edits` and `rule-contexts`, fixed before anything was asked: its lines and queries."""
SHOWN, DOSES = 8, (20, 50, 100)
"""How many queries are shown, the first of the draw; and shares of the attention that are moved, in per cent."""


@dataclass(frozen=True, eq=False)
class RuleDraw:
    """The last tokens of the draw's queries after its lines, the tokens and labels of the lines, and the ten heads."""

    last: Pass
    lines: Float[Tensor, "k N"]
    labels: Int[Tensor, " k"]
    heads: Bool[Tensor, "layers heads"]
    tokens: Int[Tensor, " c"]

    @classmethod
    def read(cls) -> "RuleDraw":
        """Of the starter checkpoint; the heads are those that the study chose on other draws, by what they cost."""
        data, checkpoint = rule_data(), loading.load(dtype=torch.float32, device="cpu")
        shown = data.train[:K]
        spans = TokenSpans.of(checkpoint, data.task, shown)
        lines = torch.zeros(K, len(spans.ids))
        for line, start, end in zip(lines, spans.answers, spans.ends[1:], strict=True):
            line[start : end - 1] = 1  # without the end of the line
        config = checkpoint.model.config
        heads = torch.zeros(config.num_hidden_layers, config.num_attention_heads, dtype=torch.bool)
        for head in results("edits")["effect"].iloc[0].split()[:10]:
            heads[tuple(map(int, head.split(".")))] = True
        prompts, prefix = list(map(data.task.prompt, data.test)), scoring.encode(checkpoint, spans.ids)
        passed = interventions.after_context(checkpoint, prefix, prompts, cued_words.LABELS)
        labels = torch.tensor([example.label for example in shown])
        (tokens,) = {tuple(its) for its in scoring.label_tokens(checkpoint, data.task, data.test)}
        return cls(passed.at_last(), lines, labels, heads, torch.tensor(tokens))

    def probabilities(self, logits: Float[Tensor, "n vocab"]) -> Float[Tensor, "n c"]:
        """Those of the labels among themselves."""
        return logits[:, self.tokens].softmax(-1)

    def moved(self, target: int, dose: float) -> dict[str, Float[Tensor, "n c"]]:
        """Probabilities `p` of the labels, and their shares `votes` of the ten heads' attention to all labels."""
        mix = attention_edits.moved(self.labels, torch.tensor([target]), dose)
        edit, looks = AttentionEdit(self.heads[None, None], self.lines, mix[None]), []

        def changed(layer: int, A: Tensor) -> Tensor:
            A = edit(layer, A)
            looks.append(A[:, self.heads[layer], -1, : self.lines.shape[1]].sum(1) @ self.lines.T)
            return A

        with attention_edits.changed_attention(self.last.checkpoint, changed):
            logits = self.last.run().logits
        votes = torch.stack(looks).sum(0) @ torch.nn.functional.one_hot(self.labels).float()
        return {"p": self.probabilities(logits), "votes": votes / votes.sum(-1, keepdim=True)}


def rule_data() -> TaskData:
    """The draw under rule A: K lines, K other words, which are not shown, and N queries."""
    return cued_words.data(CUE, SEED, "A", 2 * K, N)


def measured_rule() -> dict[str, Any]:
    """The lines, queries and endings, [word, number of its label]; the answers without an edit, `plain`, and `moved`.

    `moved[dose][target]` are those of `RuleDraw.moved`, doses in per cent; `draws`, how many draws of this kind there
    are, and the share of right answers over all of them.
    """
    draw, data = RuleDraw.read(), rule_data()

    def answers(target: int, dose: int) -> dict[str, list]:
        return {name: its[:SHOWN].tolist() for name, its in draw.moved(target, dose / 100).items()}

    labels, changes = range(len(cued_words.LABELS)), results("rule-contexts", "changes")
    changes = changes[(changes["cue"] == CUE) & (changes["kind"] == "ICL") & (changes["strength"] == K)]
    endings = zip(cued_words.SUFFIXES, cued_words.draw_labels(CUE, SEED)[0].tolist(), strict=True)
    return {
        "labels": list(cued_words.LABELS),
        "endings": list(map(list, endings)),
        "lines": [[one.fields["word"], one.label] for one in data.train[:K]],
        "queries": [[one.fields["word"], one.label] for one in data.test[:SHOWN]],
        "plain": answers(0, 0),
        "moved": {str(dose): [answers(target, dose) for target in labels] for dose in DOSES},
        "draws": [changes["seed"].nunique(), float(contrast_results.accuracy_by_own_rule(changes).mean())],
    }
