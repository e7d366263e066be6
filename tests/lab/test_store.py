"""explainer_lab.lab_store: what is stored comes back, whole or not at all, and is folded into tables as it went in."""

import json
import math
import os
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from explainer.data.files import rounded, to_json
from explainer.errors import ResultsError
from explainer_lab import lab_store as module
from explainer_lab.lab_store import SETTING, Computed, Identity, Published, Store, frames
from explainer_lab.reversal import Reversal

FIRST = Identity("model-task-k4", {SETTING: {"k": 4, "lr": 0.00016}, "weights": "w", "data": "abc", "protocol": 1})
RESULT = {"settings": {"accuracy": 0.5}, "queries": {"query": [0, 1], "value": [0.1, None]}}


def save(store, identity=FIRST, result=RESULT, **more):
    return store.save(identity, Computed(result, {"threads": 1}, {"seconds": 1.5}, **more))


# How numbers are written.


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(json_values)
def test_json_gives_the_values_back_whatever_the_order_of_keys(value):
    text = to_json(value)
    assert json.loads(text) == value
    assert to_json(json.loads(json.dumps(value, sort_keys=True))) == text


@given(st.floats(-1e300, 1e300))
def test_floats_keep_four_digits(x):
    value = rounded(x)
    assert value == pytest.approx(x, rel=0.6e-3, abs=1e-320)
    assert rounded(value) == value
    assert len(Decimal(repr(value)).normalize().as_tuple().digits) <= 4


def test_arrays_and_tensors_become_lists_and_what_is_no_number_null():
    value = {"a": np.array([1, 2]), "b": torch.tensor([[0.123456789, torch.nan]]), "c": np.float32(0.1), "d": (1,)}
    assert rounded(value) == {"a": [1, 2], "b": [[0.1235, None]], "c": 0.1, "d": [1]}
    assert rounded({"x": True, "n": 123456789, "s": "é"}) == {"x": True, "n": 123456789, "s": "é"}
    assert rounded([math.nan, math.inf, -math.inf, 1.79769e308]) == [None] * 4


# One result.


def test_a_result_comes_back_with_what_determines_it(tmp_path):
    store = Store(tmp_path / "new" / "directory")
    assert store.load(FIRST) is None
    path = save(store)
    stored = store.load(FIRST)
    assert (stored.identity, stored.provenance, stored.result) == (FIRST, {"threads": 1}, RESULT)
    assert stored.run == {"seconds": 1.5}
    assert sorted(p.name for p in store.directory.iterdir()) == [path.name, path.with_suffix(".run").name]
    assert path.stat().st_mode & 0o777 == 0o644


def test_names_are_plain_and_differ_when_anything_differs():
    hostile = Identity("../a b\n<é>/c", FIRST.parts)
    assert hostile.filename == f"..-a-b-c-{FIRST.filename.removeprefix('model-task-k4-')}"
    other = Identity(FIRST.slug, {SETTING: {"k": 4, "lr": 0.000161}, "data": "abc"})
    assert other.filename != FIRST.filename
    assert len(Identity("x" * 500, {SETTING: {}}).filename) < 150
    by_case = [Reversal.of(checkpoint=name, lr=0.1, epochs=1, seed=0) for name in ("My_Model", "my_model")]
    assert len({Reversal().key(setting).filename.casefold() for setting in by_case}) == 2


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], "cannot be read"),
        (lambda text: text.replace('"accuracy": 0.5', '"accuracy": 0.9'), "damaged or was edited"),
        (lambda text: text.replace('"threads": 1', '"threads": 2'), "damaged or was edited"),
        (lambda text: '{"some": "file"}', "cannot be read"),
        (lambda text: "[1, 2]", "cannot be read"),
    ],
)
def test_a_damaged_file_is_named_with_its_remedy(tmp_path, damage, message):
    store = Store(tmp_path)
    path = save(store)
    path.write_text(damage(path.read_text()))
    with pytest.raises(ResultsError, match=f"{path.name} .*{message}.*delete it"):
        store.load(FIRST)


@pytest.mark.parametrize(("failing", "written"), [("replace", 0), ("replace", 1), ("fsync", 0)])
def test_a_failed_write_leaves_what_was_there_and_counts_only_with_its_last_rename(
    tmp_path, monkeypatch, failing, written
):
    store, work, left = Store(tmp_path), getattr(os, failing), iter(range(written))
    before = save(store).read_bytes()

    def full(*given):
        if next(left, None) is None:
            raise OSError(28, "No space left on device")
        work(*given)

    monkeypatch.setattr(os, failing, full)
    with pytest.raises(OSError, match="No space left"):
        save(store, result={"settings": {"accuracy": 0.75}})
    monkeypatch.undo()
    assert store.path(FIRST).read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"data": "else"}, "other data than are here"),
        ({"weights": "else"}, "other weights"),
        ({"protocol": 2, "weights": "else"}, "other weights and protocol"),
    ],
)
def test_a_result_of_another_origin_is_refused_and_stays(tmp_path, parts, message):
    store = Store(tmp_path)
    before = save(store).read_bytes()
    other = Identity(FIRST.slug, FIRST.parts | parts)
    with pytest.raises(ResultsError, match=rf"{message}.*use another directory"):
        store.load(other)
    assert store.path(other).read_bytes() == before
    unknown = Identity(FIRST.slug, FIRST.parts | dict.fromkeys(parts))
    assert store.load(unknown).result == RESULT, "what is not known here is not compared"


def test_arrays_are_kept_in_half_precision_unless_they_are_too_large(tmp_path, monkeypatch):
    store, arrays = Store(tmp_path), {"ICL own": np.linspace(-3, 3, 600, dtype=np.float32).reshape(20, 30)}
    assert store.arrays(FIRST) == {}
    save(store, arrays=arrays)
    (kept,) = store.arrays(FIRST).values()
    assert kept.dtype == np.float16 and kept == pytest.approx(arrays["ICL own"], rel=1e-3, abs=1e-3)
    outputs = np.zeros((24, 30, 576), np.float16)  # queries, layers, width; 39 changes and ZSL in the book's settings
    save(store, arrays={str(n): outputs for n in range(40)})
    assert len(store.arrays(FIRST)) == 40
    monkeypatch.setattr(module, "KEPT_MB", 0.001)
    save(large := Store(tmp_path / "large"), arrays=arrays)
    assert large.arrays(FIRST) == {} and large.load(FIRST).result == RESULT


# Tables.


def identity(n, **parts):
    return Identity(f"setting-{n}", {SETTING: {"n": n, "name": "é" * n}, "protocol": 1} | parts)


def tables(n):
    row = {"mean": n / 4, "losses": [0.5] * n, "at": n if n == 2 else None, "note": ""}
    queries = {"query": list(range(n)), "right": [True] * n, "value": [None, *[0.25] * (n - 1)], "logs": [[n, 0.5]] * n}
    return {"settings": row, "queries": queries} if n else {"settings": row}


def stored(directory, ns):
    store = Store(directory)
    for n in ns:
        store.save(identity(n), Computed(tables(n), {"threads": 1}, {"seconds": float(n)}))
    return [store.load(identity(n)) for n in ns]


def test_each_setting_has_its_rows_with_its_key(tmp_path):
    found = frames(stored(tmp_path, (2, 0, 3)))
    keys = [identity(n).key for n in (2, 0, 3)]
    assert found.keys() == {"settings", "queries", "runs"}
    rows = found["settings"].to_pylist()
    assert [(row["setting"], row["n"], row["name"], row["mean"], row["at"]) for row in rows] == [
        (keys[0], 2, "éé", 0.5, 2), (keys[1], 0, "", 0.0, None), (keys[2], 3, "ééé", 0.75, None)
    ]  # fmt: skip
    queries = found["queries"].to_pylist()
    assert [row["setting"] for row in queries] == [keys[0]] * 2 + [keys[2]] * 3
    assert [row["value"] for row in queries] == [None, 0.25, None, 0.25, 0.25]
    assert queries[0]["logs"] == [2.0, 0.5] and queries[0]["right"] is True
    (run, *_) = found["runs"].to_pylist()
    assert json.loads(run["identity"]) == identity(2).parts
    assert (run["slug"], run["threads"], run["seconds"]) == ("setting-2", 1, 2.0)


def test_a_column_of_whole_and_other_numbers_has_floats_however_large(tmp_path):
    """Of which no one takes the large whole number for exact; whole numbers alone stay whole."""
    store = Store(tmp_path)
    for n, value in enumerate([2**53 + 1, 0.5, None]):
        store.save(identity(n), Computed({"settings": {"mean": value, "seed": 2**53 + n}}, {}))
    rows = frames([store.load(identity(n)) for n in range(3)])["settings"].to_pylist()
    assert [row["mean"] for row in rows] == [2.0**53, 0.5, None]
    assert [row["seed"] for row in rows] == [2**53, 2**53 + 1, 2**53 + 2]


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(5)), st.integers(0, 5))
def test_the_same_results_are_the_same_bytes_in_any_order_and_portions(tmp_path_factory, order, first):
    place = tmp_path_factory.mktemp("published")
    results = stored(place / "store", order)
    for portion in (results[:first], results[first:]):
        if portion:
            Published(place / "tables").add([*portion, portion[0]], {})  # one that stands in two grids
    whole = Published(place / "whole")
    whole.add(stored(place / "store", range(5)), {})
    assert len(whole.tables()["runs"]) == 5
    for path in whole.directory.glob("*.parquet"):
        assert path.read_bytes() == (place / "tables" / path.name).read_bytes()


def test_a_result_computed_again_takes_the_place_of_the_old_one(tmp_path):
    published = Published(tmp_path / "tables")
    assert published.identities() == {}
    published.add(stored(tmp_path / "store", (1, 2)), {})
    assert published.identities() == {identity(n).key: identity(n).parts for n in (1, 2)}
    store = Store(tmp_path / "again")
    store.save(identity(1), Computed({"settings": {"mean": 9.5}}, {}))
    published.add([store.load(identity(1))], {})
    assert [row["mean"] for row in published.tables()["settings"].to_pylist()] == [9.5, 0.5]
    assert len(published.tables()["queries"]) == 2


def test_damaged_tables_and_a_mixture_are_named(tmp_path):
    one, two = Published(tmp_path / "one"), Published(tmp_path / "two")
    one.add(stored(tmp_path / "store", (1, 2)), {})
    two.add(stored(tmp_path / "store", (1, 3)), {})
    (one.directory / "queries.parquet").write_bytes((two.directory / "queries.parquet").read_bytes())
    with pytest.raises(ResultsError, match="different publications"):
        Published(tmp_path / "one").tables()
    path = two.directory / "settings.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ResultsError, match="two cannot be read"):
        two.tables()


class Killed(BaseException):
    """What no `except` of the package stops."""


@pytest.mark.parametrize("first", [True, False], ids=["the first publication", "a second one"])
@pytest.mark.parametrize("steps", range(-1, 6))  # while it is written; the folder, its four tables, the empty folder
def test_a_kill_at_any_step_leaves_the_old_tables_or_the_new_ones(tmp_path, monkeypatch, steps, first):
    (old, new), grids = stored(tmp_path / "store", (1, 2)), {"grid": [{"setting": identity(1).key}]}
    published, expected = Published(tmp_path / "tables"), Published(tmp_path / "expected")
    for one in (published, expected) if not first else ():
        one.add([old], grids)
    expected.add([new], grids)
    left = iter(range(steps))

    def until_killed(of):
        def step(*given, **how):
            if next(left, None) is None:
                raise Killed
            return of(*given, **how)

        return step

    with monkeypatch.context() as patch, pytest.raises(Killed):
        if steps < 0:
            patch.setattr(pq, "ParquetWriter", until_killed(pq.ParquetWriter))
        patch.setattr(os, "replace", until_killed(os.replace))
        patch.setattr(Path, "rmdir", until_killed(Path.rmdir))
        published.add([new], grids)
    if not (first and steps < 1):
        assert (identity(2).key in published.identities()) == (steps > 0)
        assert published.tables().keys() == {"settings", "queries", "runs"}
    published.add([new], grids)
    found = {path.name: path.read_bytes() for path in published.directory.iterdir()}
    assert found == {path.name: path.read_bytes() for path in expected.directory.iterdir()}
    assert published.tables() == expected.tables()
