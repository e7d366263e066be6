"""The answers of the last chapter for a reader's models, as lines and tables, and what to run for those that lack."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from explainer.data.files import PUBLISHED, replace_file, to_json
from explainer.data.tasks import TASKS
from explainer.errors import CheckpointError, ResultsError
from explainer.figures import verdict_figures as page
from explainer.results import papers, published, scoreboard
from explainer.results import scorecard as cards
from explainer.results import verdict as verdict_rows

Line = str | Sequence[Sequence[str]]
"""A line, or a table with its head."""

_EXPERIMENTS = ("agreement", "shared_part", "causal_tests", "rival", "new_rule", "comparison")
_WORD_PAIRS = ("capitals", "plurals", "past", "antonyms")
_NEW_RULE, _SEEDS = published.GRIDS["new_rule"], [0, 1, 2, 3, 4]
_COLUMNS = {"task": "tasks", "k": "k", "n_queries": "queries", "lr": "lr", "epochs": "epochs", "seed": "seeds"}


def verdict(directory: Path, output: Path) -> Iterator[Line]:
    """A row and a sentence for each question and model, what to run for those that lack, and a page with all of it.

    Raises ResultsError where nothing is published, and ExperimentError as `results.verdict.five_rows`.
    """
    own, ten, card, notes = {}, {}, {}, []
    if directory != PUBLISHED:
        own, card = verdict_rows.five_rows(directory), cards.cards(directory)
        try:
            if (directory / "agreement").is_dir():
                ten = verdict_rows.ten_rows(directory)
        except ResultsError as error:
            notes.append(str(error))
        if not own | ten | card:
            notes.append(_command_for(directory, "shared_part"))
            raise ResultsError(" ".join([f"nothing that answers is published in {directory}.", *notes]))
    models = list(dict.fromkeys([*own, *ten, *card]))
    lacking = {
        name: [_command_for(directory, *each, checkpoint=name) for each in _lacking(name, own, ten, card)]
        for name in models
    }
    told = list(dict.fromkeys(row.sentence for rows in ten.values() for row in rows.values() if row.sentence))
    shown = {name: own.get(name, {}) for name in models} | verdict_rows.five_rows()
    yield from _of_questions(shown)
    for name, commands in lacking.items():
        yield from (f"{name}: {command}" for command in commands)
    yield from notes
    ten |= verdict_rows.ten_rows()
    yield "\nTen finer rows (All claims)"
    for checkpoint, rows in ten.items():
        yield checkpoint
        yield [("", *page.COLUMNS[:4]), *((name, *page.table_cells(row)[:4]) for name, row in rows.items())]
    yield from told
    replace_file(output, page.verdict_page(shown, ten, card | cards.cards(), lacking, told))
    yield str(output)


def entry(directory: Path, checkpoint: str | None, file: Path) -> Iterator[Line]:
    """The file of an entry of the scoreboard; raises as `results.scoreboard.entry`."""
    found = scoreboard.entry(None if directory == PUBLISHED else directory, checkpoint)
    replace_file(file, to_json(found))
    yield f"{file}: {len(found['rows'])} rows of {found['model']['name']}"


def _of_questions(shown: Mapping[str, verdict_rows.Rows]) -> Iterator[Line]:
    for question in verdict_rows.FOLDERS:
        its = {name: found[question] for name, found in shown.items() if question in found}
        yield f"\n{question}"
        yield [("", *page.COLUMNS), *((name, *page.table_cells(one)) for name, one in its.items())]
        yield from (f"{name}: {one.sentence.removeprefix(f'{name}: ')}" for name, one in its.items())


def _lacking(
    name: str, own: Mapping[str, verdict_rows.Rows], ten: Mapping[str, verdict_rows.Rows], card: cards.Cards
) -> Iterator[tuple[str, str]]:
    """The folders of experiments whose tables would answer more of a model, and what they would."""
    wanted: dict[str, list[str]] = {}
    for question, folder in verdict_rows.FOLDERS.items():
        if question not in own.get(name, {}):
            wanted.setdefault(folder, []).append(question)
    for folder in dict.fromkeys(verdict_rows.TEN_FOLDERS.values()):
        rows = {row for row, its_folder in verdict_rows.TEN_FOLDERS.items() if its_folder == folder}
        if not rows & set(ten.get(name, {})):
            wanted.setdefault(folder, []).append(f"{len(rows)} of the ten rows")
    if name not in card:
        wanted["comparison"] = ["the scorecard"]
    return ((folder, ", ".join(rows)) for folder, rows in wanted.items())


def scorecard(directory: Path) -> Iterator[Line]:
    """The paper's ten claims, each with what it prints and what is found, of every model.

    Raises ResultsError, which names the command, where nothing of the comparison is published.
    """
    shown = {} if directory == PUBLISHED else cards.cards(directory)
    if not shown and directory != PUBLISHED:
        raise ResultsError(f"no comparison is published in {directory}. {_command_for(directory, 'comparison')}")
    shown |= cards.cards()
    yield from (f"{name}: {card.note}." for name, card in shown.items())
    for claim in next(iter(shown.values())).claims:
        yield f"\n{claim} (the paper: {cards.quoted_values(claim)})"
        yield [(f"  {name}", *card.claims[claim]) for name, card in shown.items()]


def _command_for(directory: Path, folder: str, what: str = "the answers", checkpoint: str | None = None) -> str:
    """The command that gives the tables of an experiment, with the values of what is published, and for how long."""
    like = {} if checkpoint is None else _published_of(directory, checkpoint)
    usual = _WORD_PAIRS
    if folder == "comparison" and set(like.get("tasks", ())) <= set(TASKS):
        usual, like = papers.TASKS, {"seeds": like.get("seeds")}  # the paper's own, beside no task of the reader
    tasks, seeds = like.get("tasks") or list(usual), like.get("seeds") or _SEEDS
    words = [*published.command(folder).split(), *(["--model", checkpoint] if checkpoint else [])]
    if folder == "new_rule":
        words += ["--only", *_NEW_RULE]
    else:
        words += ["--tasks", *tasks, *(["--task-file", "FILE"] if not set(tasks) <= set(TASKS) else [])]
        for name in _OPTIONS[folder]:
            words += [f"--{name}", *(f"{value:g}" for value in like[name])] if like.get(name) else []
        words += ["--splits", "report"] * (folder in ("agreement", "comparison"))
    words += ["--seeds", *map(str, seeds), "--publish", str(directory)]
    time = ""
    if checkpoint is not None:
        try:
            time = f" ({_duration(checkpoint, folder, _wanted(folder, len(tasks), len(seeds)))})"
        except CheckpointError:
            time = " (for a time that is unknown, because the model is not here)"
    return f"For {what}, run `{shlex.join(words)}`{time}."


_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "agreement": ("k", "queries", "lr", "epochs"),
    "shared_part": ("k", "queries", "lr", "epochs"),
    "causal_tests": ("k", "queries", "lr", "epochs"),
    "rival": ("k", "queries"),
    "comparison": ("k", "queries", "lr"),
}
"""Options that take the values of what is published."""


def _duration(checkpoint: str, folder: str, wanted: Mapping[str, int]) -> str:
    """About how long so many settings of each grid of the book take on a checkpoint; raises CheckpointError."""
    from explainer.models import loading  # noqa: PLC0415 (all else here answers without torch, which takes seconds)

    model, seconds = loading.skeleton(checkpoint), 0.0
    for grid, n in wanted.items():
        of_book = published.rows_of_experiment(PUBLISHED / folder, "runs", grid)["seconds"].mean()
        seconds += n * published.seconds_on(model, of_book)
    return f"{published.in_words(seconds)} in one process, the book's mean scaled by the numbers of weights and layers"


def _wanted(folder: str, n_tasks: int, n_seeds: int) -> dict[str, int]:
    """How many settings are asked for, by the grid of the book whose settings take as long."""
    if folder == "new_rule":
        return {grid: n_seeds * (1 if grid.endswith("category") else 2) for grid in _NEW_RULE}
    grid = "classification" if folder == "comparison" else folder.replace("_", "-")
    return {grid: n_seeds * (1 if folder == "shared_part" else n_tasks)}


def _published_of(directory: Path, checkpoint: str) -> dict[str, list[Any]]:
    """Tasks, demonstrations, rates, epochs and seeds of a checkpoint in the first experiment that is published."""
    for folder in (directory / name for name in _EXPERIMENTS if name != "new_rule"):
        if "settings" in published.files(folder):
            settings = published.rows_of_experiment(folder)
            settings = settings[(settings["checkpoint"] == checkpoint) & (settings.get("split", "") != "selection")]
            if len(settings):
                return {name: _values(settings, column) for column, name in _COLUMNS.items()}
    return {}


def _values(settings: pd.DataFrame, column: str) -> list[Any]:
    if column == "task" and "tasks" in settings:
        return sorted({name for names in settings["tasks"] for name in names.split("/")})
    return sorted(settings[column].dropna().unique().tolist()) if column in settings else []
