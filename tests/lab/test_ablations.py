"""Layers and heads at their means: what is held, at which tokens, and which answers are counted."""

import pytest
import torch
from toy_study import rows

from explainer.compare import controls, cued_words
from explainer.data import tasks
from explainer.models import architectures, scoring
from explainer_lab import ablations
from explainer_lab.ablations import Ablations


@pytest.fixture(scope="module")
def setting(directory):
    return Ablations.of(
        checkpoint=directory, task="suffix", seed=0, k=4, n_queries=8, vote_heads="0.0 1.1", task_heads="1.0"
    )


@pytest.fixture(scope="module")
def table(setting):
    return rows(Ablations().compute(setting, progress=False).tables["ablations"])


def test_a_held_module_gives_its_mean_at_all_tokens_but_the_first(checkpoint):
    layer, ids = architectures.architecture(checkpoint.model).layers[1], checkpoint.tokenize("a fine film, a dull play")
    texts = [[checkpoint.first_token_id, *ids], [checkpoint.first_token_id, *ids[:3]]]
    kept = []
    handle = layer.mlp.output.register_forward_hook(lambda _m, _x, y: kept.append(y[0]))
    mean = ablations._mean_mlp_outputs(checkpoint, texts)[1]
    torch.testing.assert_close(mean, torch.cat([y[1:] for y in kept]).mean(0))
    handle.remove()
    kept.clear()
    with ablations._held(layer.mlp.output, mean, 1):
        handle = layer.mlp.output.register_forward_hook(lambda _m, _x, y: kept.append(y[0]))
        scoring.encode(checkpoint, texts[0])
        handle.remove()
    torch.testing.assert_close(kept[0][1:], mean.expand(len(ids), -1))
    assert not torch.allclose(kept[0][0], mean)


def test_nothing_held_answers_as_the_model_does(table, checkpoint):
    data = cued_words.data("suffix", 0, "A", 4, 8)
    task, examples = controls.own(data, 4, 0)
    queries = tasks.queries(data, 8, 0)
    prompts, right = [*map(task.prompt, queries)], 0
    tokens = scoring.label_tokens(checkpoint, task, queries)
    for query, prompt, stem, of_labels in zip(
        queries, prompts, scoring.answer_prefixes(checkpoint, prompts, task.labels), tokens, strict=True
    ):
        ids = [*scoring.context_ids(checkpoint, task, examples)[0], *checkpoint.tokenize(prompt), *stem]
        with torch.no_grad():
            logits = checkpoint.model(torch.tensor([ids])).logits[0, -1]
        right += int(logits[of_labels].argmax() == query.label)
    assert table[0]["part"] == "none" and table[0]["right_label"] == pytest.approx(right / 8)


def test_every_layer_and_set_of_heads_stands_in_the_table(table, checkpoint):
    n_layers = checkpoint.model.config.num_hidden_layers
    held = [(row["part"], row["layer"]) for row in table if row["layer"] is not None]
    assert sorted(held) == sorted((part, layer) for part in ("attention", "mlp") for layer in range(n_layers))
    names = [row["name"] for row in table if row["part"] == "heads"]
    assert names.count("vote") == names.count("task") == 1 and names.count("random like vote") == 5


def test_all_heads_of_a_layer_are_its_attention(setting, table, checkpoint):
    n_heads = architectures.architecture(checkpoint.model).n_heads
    every = " ".join(f"1.{head}" for head in range(n_heads))
    other = Ablations.of(**{**vars(setting), "vote_heads": every, "task_heads": "0.0"})
    again = rows(Ablations().compute(other, progress=False).tables["ablations"])
    (whole,) = (row for row in table if row["part"] == "attention" and row["layer"] == 1)
    (heads,) = (row for row in again if row["name"] == "vote")
    assert heads["right"] == whole["right"] and heads["right_label"] == whole["right_label"]
