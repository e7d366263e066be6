"""Corpora: where documents come from, their split, the tokenizer."""

import datasets
import pytest
import torch

from explainer.data import assets
from explainer.data.assets import Document
from explainer_lab import training_corpora

WORDS = ("the", "model", "reads", "a", "field", "and", "café", "writes", "→", "query")


def texts(n):
    return [f"{i} " + " ".join(WORDS[(i * j) % len(WORDS)] for j in range(1, 30)) for i in range(n)]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "own.txt"
    path.write_text("\n\n\n".join(texts(20)), encoding="utf8")
    return str(path)


# --- documents and their split ---------------------------------------------------------------------------------


def test_the_other_genre_is_every_tenth_article_in_the_tokens_of_the_corpus(monkeypatch, file):
    monkeypatch.setattr(assets, "news", lambda: [(f"article {i}", "tech") for i in range(25)])
    tokens = training_corpora.tokens(file, 300)
    other = training_corpora.other_genre(tokens)
    assert tokens.tokenizer.decode(other.tolist(), skip_special_tokens=True) == "article 0article 10article 20"
    assert (other == 0).sum() == 3


def test_a_text_file_and_a_saved_data_set_hold_out_every_tenth_document(file, tmp_path):
    """In the file two empty lines are between documents; the data set has an empty one and one twice, spaced apart."""
    found = datasets.Dataset.from_dict({"text": [*texts(20), "", texts(20)[3].replace(" ", "\n")]})
    found.save_to_disk(tmp_path / "saved")
    for name in (file, str(tmp_path / "saved")):
        corpus = training_corpora._load(name)
        assert [d.text for d in corpus.held_out] == [texts(20)[9], texts(20)[19]]
        assert [d.text for d in corpus.train] == [t for i, t in enumerate(texts(20)) if i not in (9, 19)]
    assert corpus.name == "saved"


@pytest.mark.parametrize("split", ["validation", "test"])
def test_a_data_set_with_splits_is_held_out_as_it_says_and_loses_what_is_in_both(tmp_path, split):
    parts = {"train": texts(12), split: [f"{text} " for text in texts(14)[11:]]}
    saved = datasets.DatasetDict({name: datasets.Dataset.from_dict({"text": rows}) for name, rows in parts.items()})
    saved.save_to_disk(tmp_path / "saved")
    corpus = training_corpora._load(str(tmp_path / "saved"))
    assert [d.text for d in corpus.train] == texts(12)[:11]
    assert [d.text for d in corpus.held_out] == parts[split]


def test_the_lines_of_wikitext_become_articles():
    rows = ["", " = One = \n", "", " text of one \n", " = = Part = = \n", " more \n", " = Two = \n", " text of two \n"]
    one, two = training_corpora._documents(datasets.Dataset.from_dict({"text": rows}))
    assert (one.text, two.text) == ("".join(rows[1:6]), "".join(rows[6:]))


# --- tokens ----------------------------------------------------------------------------------------------------


def test_every_document_can_be_read_back_from_the_tokens(file):
    tokens, corpus = training_corpora.tokens(file, 300), training_corpora._load(file)
    for stream, documents in ((tokens.train, corpus.train), (tokens.held_out, corpus.held_out)):
        pieces = tokens.tokenizer.decode(stream.tolist(), skip_special_tokens=False).split(training_corpora.SEPARATOR)
        assert pieces == ["", *(d.text for d in documents)]
    assert (tokens.held_out[tokens.starts] == 0).all() and (tokens.held_out == 0).sum() == len(tokens.starts)
    assert tokens.corpus == corpus
    assert tokens.train.dtype == torch.int64 and int(tokens.train.max()) < 300


def test_the_tokenizer_can_write_everything_and_sees_the_training_part_only(file):
    tokenizer = training_corpora._train_tokenizer((d.text for d in training_corpora._load(file).train), 300)
    assert training_corpora.tokens(file, 300).tokenizer.to_str() == tokenizer.to_str(), "the same each time"
    assert tokenizer.token_to_id(training_corpora.SEPARATOR) == 0 and tokenizer.get_vocab_size() == 300
    assert tokenizer.decode(tokenizer.encode("naïve ☃\x00\n\t x").ids) == "naïve ☃\x00\n\t x"
    (ids,) = training_corpora._encoded(tokenizer, [Document("0", f"a {training_corpora.SEPARATOR} b")])
    assert (ids == 0).tolist() == [True] + [False] * (len(ids) - 1), "its name in a text is text"


def test_tokens_are_the_same_for_the_same_text_and_no_other(file, tmp_path):
    first = training_corpora.tokens(file, 300)
    assert first.digest == training_corpora.tokens(file, 300).digest != training_corpora.tokens(file, 301).digest
    path = tmp_path / "own.txt"
    path.write_text(path.read_text("utf8").replace("model", "reader"), encoding="utf8")
    assert training_corpora.tokens(file, 300).digest != first.digest
