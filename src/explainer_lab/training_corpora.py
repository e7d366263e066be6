"""Corpora to train language models on: documents, their split, a tokenizer made for them, and the tokens."""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor

from explainer.data import assets
from explainer.data.assets import Document
from explainer.errors import ExperimentError

DEFAULT = assets.DOCUMENTATION.name
_MANUALS = "manuals"  # the documentation of several packages

SEPARATOR = "<|endoftext|>"
"""Stands before every document; token 0."""

SMALLEST_VOCABULARY = 257  # the bytes and the separator
_HELD_OUT_EVERY = 10
_TITLE = re.compile(r" = [^=].* = \n")  # WikiText has a line per row; an article starts at its title


@dataclass(frozen=True)
class _Corpus:
    """Documents to train on and documents held out; no document is in both."""

    name: str
    source: str
    licence: str
    train: tuple[Document, ...] = field(repr=False)
    held_out: tuple[Document, ...] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of a corpus: two streams, int64, each document after a separator.

    `starts[i]` is where document i of the held-out stream begins.
    """

    corpus: _Corpus
    tokenizer: Tokenizer = field(repr=False)
    train: Tensor = field(repr=False)
    held_out: Tensor = field(repr=False)
    starts: Tensor = field(repr=False)

    @property
    def digest(self) -> str:
        """SHA-256 of both streams."""
        return hashlib.sha256(self.train.numpy().tobytes() + self.held_out.numpy().tobytes()).hexdigest()


def _load(name: str = DEFAULT) -> _Corpus:
    """A corpus by name: `documentation`, `manuals`, a text file, a directory, or a data set of the hub.

    A text file holds documents with two empty lines between them. A directory is what `save_to_disk` of `datasets`
    wrote. A name like `Salesforce/wikitext:wikitext-103-raw-v1` is a data set of the hub and its configuration. The
    held-out part is the split `validation`, else `test`, else every tenth document. Raises ExperimentError.
    """
    if name == DEFAULT:
        asset = assets.DOCUMENTATION
        return _Corpus(name, asset.source, asset.licence, *_split(assets.documentation(), name))
    if name == _MANUALS:
        documents = [
            Document(f"{asset.project}/{document.name}", document.text)
            for asset in assets.MANUALS
            for document in assets.documentation(asset)
        ]
        sources, licences = ([getattr(asset, key) for asset in assets.MANUALS] for key in ("source", "licence"))
        return _Corpus(name, "; ".join(sources), ", ".join(dict.fromkeys(licences)), *_split(documents, name))
    path = Path(os.path.expanduser(name))
    if path.is_file():
        documents = _named(part.strip("\n") for part in re.split(r"\n{3,}", path.read_text("utf-8-sig")))
        return _Corpus(path.name, path.name, "your own", *_split(documents, name))
    import datasets  # optional, and it takes a second to import  # noqa: PLC0415

    of_card = "see the data set's card"
    if path.is_dir():
        return _Corpus(path.name, path.name, of_card, *_parts(datasets.load_from_disk(path), path.name))
    hub_id, _colon, configuration = name.partition(":")
    try:
        found = datasets.load_dataset(hub_id, configuration or None)
    except Exception as error:  # the library raises a dozen unrelated types for a missing network or data set
        raise ExperimentError(f"{name!r} is no file or directory, and no data set of the hub ({error}).") from error
    return _Corpus(name, f"huggingface.co/datasets/{hub_id}", of_card, *_parts(found, name))


def tokens(name: str = DEFAULT, vocabulary: int = 1024) -> Tokens:
    """The tokens of a corpus with a byte-level BPE vocabulary made from its training part.

    Raises ExperimentError if the corpus cannot be loaded or the vocabulary cannot hold the 256 bytes and the separator.
    """
    if vocabulary < SMALLEST_VOCABULARY:
        raise ExperimentError(f"vocabulary = {vocabulary} is too small; the least is {SMALLEST_VOCABULARY}.")
    corpus = _load(name)
    tokenizer = _train_tokenizer((document.text for document in corpus.train), vocabulary)
    train, held_out = (_encoded(tokenizer, part) for part in (corpus.train, corpus.held_out))
    starts = torch.tensor([0, *(len(ids) for ids in held_out)]).cumsum(0)[:-1]
    return Tokens(corpus, tokenizer, torch.cat(train), torch.cat(held_out), starts)


def other_genre(tokens: Tokens) -> Tensor:
    """A stream of another genre than documentation, news articles, in the tokens of a corpus: int64.

    Every tenth article, each after a separator.
    """
    articles = [Document(str(i), text) for i, (text, _) in enumerate(assets.news())][::_HELD_OUT_EVERY]
    return torch.cat(_encoded(tokens.tokenizer, articles))


def _train_tokenizer(texts: Iterable[str], vocabulary: int) -> Tokenizer:
    """Byte-level byte-pair encoding (Sennrich et al. 2016; Radford et al. 2019) with SEPARATOR as token 0."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[SEPARATOR],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


# Where documents come from


def _split(documents: Sequence[Document], name: str) -> tuple[tuple[Document, ...], tuple[Document, ...]]:
    """Every tenth document is held out."""
    if len(documents) < _HELD_OUT_EVERY:
        raise ExperimentError(
            f"{name!r} has {len(documents)} documents and at least {_HELD_OUT_EVERY} are needed, since every tenth is "
            "held out; in a text file, two empty lines end a document."
        )
    kept = (document for i, document in enumerate(documents, 1) if i % _HELD_OUT_EVERY)
    return tuple(kept), tuple(documents[_HELD_OUT_EVERY - 1 :: _HELD_OUT_EVERY])


def _parts(found: Any, name: str) -> tuple[tuple[Document, ...], tuple[Document, ...]]:
    """The training and held-out documents of a data set or of its splits."""
    splits = found if isinstance(found, Mapping) else {"train": found}
    for other in ("validation", "test"):
        if other in splits:
            held_out = _documents(splits[other])
            known = {_spaced(document.text) for document in held_out}
            train = (document for document in _documents(splits["train"]) if _spaced(document.text) not in known)
            return tuple(train), tuple(held_out)
    return _split(_documents(splits["train"]), name)


def _documents(rows: Any) -> list[Document]:
    texts = rows["text"]
    titles = [i for i, text in enumerate(texts) if _TITLE.fullmatch(text)]
    if titles:
        ends = [*titles[1:], len(texts)]
        return _named("".join(texts[start:end]) for start, end in zip(titles, ends, strict=True))
    return _named(texts)


def _named(texts: Iterable[str]) -> list[Document]:
    """Documents with their number for a name, without empty ones and repetitions, whatever their white space."""
    first: dict[str, str] = {}
    for text in texts:
        first.setdefault(_spaced(text), text)
    first.pop("", None)
    return [Document(str(i), text) for i, text in enumerate(first.values())]


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _encoded(tokenizer: Tokenizer, documents: Iterable[Document]) -> list[Tensor]:
    separator = tokenizer.token_to_id(SEPARATOR)
    tokenizer.encode_special_tokens = True  # a text that contains the separator's name is text
    batch = tokenizer.encode_batch([document.text for document in documents], add_special_tokens=False)
    return [torch.tensor([separator, *encoding.ids]) for encoding in batch]
