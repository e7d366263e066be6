"""A task of 60 phrases with two labels, and how the tests of the study use it."""

import json
from dataclasses import replace

from explainer.compare.comparison import ComparisonSetting, prepare, run_comparison
from explainer.data.files import rounded
from explainer.data.tasks import Example, Task, TaskData
from explainer_lab.comparison import Comparison

ADJECTIVES = ("a fine", "a dull", "a loud", "an odd", "a long", "a sad")
NOUNS = ("film", "book", "play", "song", "tale", "dance", "show", "joke", "plot", "cast")
LABELS = ("Negative", "Positive")
TOY = Task(name="toy", template="{text}\nIs:", labels=LABELS)


def _examples(nouns, labels):
    return tuple(
        Example({"text": f"{a} {n}"}, labels[(i + j) % 2], (i + j) % 2)
        for i, a in enumerate(ADJECTIVES)
        for j, n in enumerate(nouns)
    )


def with_labels(*labels):
    """The same phrases with other words for the two labels."""
    return TaskData(replace(TOY, labels=labels), _examples(NOUNS[:4], labels), _examples(NOUNS[4:], labels))


DATA = with_labels(*LABELS)
ALIKE = with_labels("unhappy", "unsure")
"""With labels that begin with the same three tokens, and have eight and six."""
N = 6


def setting(directory, **changes):
    return ComparisonSetting(
        **({"checkpoint": directory, "task": "toy", "seed": 0, "k": 3, "lr": 1e-3, "n_queries": N} | changes)
    )


def compute(checkpoint, one, data=DATA):
    return rounded(run_comparison(prepare(checkpoint, data, one), one))


def contents(store):
    return {path.name: path.read_bytes() for path in store.directory.glob("*.json")}


def start(settings, store, **options):
    return Comparison(data={"toy": DATA}).run(settings, store, progress=False, **options)


def write_mr(directory):
    """The toy data as the task MR, in the layout that --data-dir reads."""
    for split, examples in (("train", DATA.train), ("validation", DATA.test)):
        path = directory / "mr" / f"{split}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps({"text": e.fields["text"], "label": e.label}) + "\n" for e in examples))
    return str(directory)


def write_corpus(path):
    """A text file of 30 documents, and its name."""
    words = ("the", "model", "reads", "a", "field", "and", "writes", "query", "never", "again")
    path.write_text("\n\n\n".join(f"{i} " + " ".join(words[i * j % 10] for j in range(1, 60)) for i in range(30)))
    return str(path)


def rows(table, **where):
    """The rows of a table that have these values."""
    every = (dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True))
    return [row for row in every if where.items() <= row.items()]


def column(table, name, **where):
    """A column of these rows."""
    return [row[name] for row in rows(table, **where)]
