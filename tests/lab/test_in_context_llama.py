"""The small Llama that learns in context: its start, its texts, its training, its way through the disk."""

from dataclasses import replace

import pytest
import torch

from explainer.data.tasks import Example
from explainer.models import loading, scoring
from explainer_lab import llama_training, training_words
from explainer_lab.llama_training import LlamaSetting
from explainer_lab.training_words import TASK

TINY = LlamaSetting(n_examples=4, layers=1, width=16, heads=2, inner=16, steps=4, batch=4)


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(llama_training, "EVERY", 2)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    place = tmp_path_factory.mktemp("tiny") / "model"
    llama_training.save(llama_training._initial_model(TINY), place)
    return loading.load(place, dtype=torch.float32, device="cpu")


def weights(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def test_words_start_as_a_linear_map_of_their_points_and_as_large_as_other_embeddings():
    E = llama_training._initial_model(LlamaSetting()).get_input_embeddings().weight.detach()
    words, others = E[training_words.WORD_IDS], E[: training_words.WORD_IDS.start]
    x = training_words.points_of_words()
    read_in = torch.linalg.lstsq(x, words).solution
    torch.testing.assert_close(x @ read_in, words, atol=1e-5, rtol=0)
    assert words.std().item() == pytest.approx(others.std().item(), rel=0.25)


def test_texts_of_the_training_have_the_tokens_of_demonstrations_in_a_context(tiny):
    ids = training_words.sequences(1, 4, torch.Generator().manual_seed(0))[0].tolist()
    words = [tiny.tokenizer.convert_ids_to_tokens(ids[start : start + 3]) for start in range(1, len(ids), 3)]
    examples = [Example({"word": word}, answer, TASK.labels.index(answer)) for word, answer, _ in words]
    assert scoring.context_ids(tiny, TASK, examples) == (ids, list(range(1, len(ids) + 1, 3)))
    assert scoring.prompt_token_ids(tiny, scoring.encode(tiny, ids), ["x7"]) == [tiny.tokenize("x7")]
    assert tiny.first_token_id == ids[0] and tiny.tokenizer.decode(ids[1:4]).split() == words[0][:2]


def test_a_training_repeats_itself_to_the_bit_and_another_seed_is_another_one():
    def trained(setting):
        return {step: weights(model) for step, model in llama_training.train(setting, progress=False)}

    first, again, other = trained(TINY), trained(TINY), trained(replace(TINY, seed=1))
    assert list(first) == [0, 2, 4]
    assert all(torch.equal(first[step], again[step]) for step in first)
    assert not torch.equal(first[0], first[2]) and not torch.equal(first[0], other[0])
