"""explainer_lab.publication: results are folded into tables whole, in any portions, and come out as they went in."""

import json
import os
from pathlib import Path
from unittest.mock import DEFAULT, Mock

import pyarrow.parquet as pq
import pytest
from datasets import load_dataset
from hypothesis import given, settings
from hypothesis import strategies as st

from explainer.errors import ResultsError
from explainer_lab.publication import Published, frames, joined, of_settings
from explainer_lab.store import SETTING, Identity, Store


def identity(n, **parts):
    return Identity(f"setting-{n}", {SETTING: {"n": n, "name": "é" * n}, "protocol": 1} | parts)


def tables(n):
    settings = {"mean": n / 4, "losses": [0.5] * n, "at": n if n == 2 else None, "note": ""}
    queries = {"query": list(range(n)), "right": [True] * n, "value": [None, *[0.25] * (n - 1)], "logs": [[n, 0.5]] * n}
    return {"settings": settings, "queries": queries} if n else {"settings": settings}


def stored(directory, ns):
    store = Store(directory)
    for n in ns:
        store.save(identity(n), tables(n), provenance={"threads": 1}, run={"seconds": float(n)})
    return [store.load(identity(n)) for n in ns]


def test_each_setting_has_its_rows_with_its_key(tmp_path):
    found = frames(stored(tmp_path, (2, 0, 3)))
    keys = [identity(n).key for n in (2, 0, 3)]
    assert found.keys() == {"settings", "queries", "runs"}
    settings = found["settings"].to_pylist()
    assert [row["setting"] for row in settings] == keys
    assert [(row["n"], row["name"], row["mean"], row["at"]) for row in settings] == [
        (2, "éé", 0.5, 2), (0, "", 0.0, None), (3, "ééé", 0.75, None)
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
    large = [2**53 + 1, 0.5, None]
    store = Store(tmp_path)
    for n, value in enumerate(large):
        store.save(identity(n), {"settings": {"mean": value, "seed": 2**53 + n}}, provenance={}, run={})
    settings = frames([store.load(identity(n)) for n in range(3)])["settings"].to_pylist()
    assert [row["mean"] for row in settings] == [2.0**53, 0.5, None]
    assert [row["seed"] for row in settings] == [2**53, 2**53 + 1, 2**53 + 2]


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(5)), st.integers(0, 5))
def test_the_same_results_are_the_same_bytes_in_any_order_and_portions(tmp_path_factory, order, first):
    place = tmp_path_factory.mktemp("published")
    results = stored(place / "store", order)
    for portion in (results[:first], results[first:]):
        if portion:
            Published(place / "tables").add(portion)
    whole = Published(place / "whole")
    whole.add(stored(place / "store", range(5)))
    for path in whole.directory.glob("*.parquet"):
        assert path.read_bytes() == (place / "tables" / path.name).read_bytes()


def test_a_result_computed_again_takes_the_place_of_the_old_one(tmp_path):
    published = Published(tmp_path / "tables")
    published.add(stored(tmp_path / "store", (1, 2)))
    store = Store(tmp_path / "again")
    store.save(identity(1), {"settings": {"mean": 9.5}}, provenance={}, run={})
    published.add(store.all())
    assert [row["mean"] for row in published.tables()["settings"].to_pylist()] == [9.5, 0.5]
    assert len(published.tables()["queries"]) == 2


def test_a_result_of_two_grids_is_published_once(tmp_path):
    published = Published(tmp_path / "tables")
    results = stored(tmp_path / "store", (1, 2))
    published.add([*results, results[0]])
    assert [len(published.tables()[name]) for name in ("settings", "runs")] == [2, 2]


def test_what_is_published_counts_unless_it_was_made_of_something_else(tmp_path):
    published = Published(tmp_path / "tables")
    assert not published.has(identity(1))
    published.add(stored(tmp_path / "store", (1,)))
    assert published.has(identity(1)) and not published.has(identity(2))
    with pytest.raises(ResultsError, match=r"setting-1 in .*protocol 1, this version computes protocol 2"):
        published.has(identity(1, protocol=2))


def test_rows_are_chosen_in_the_order_that_is_asked_for(tmp_path):
    found = frames(stored(tmp_path, (1, 2, 3)))
    chosen = of_settings(found, [identity(3).key, identity(1).key])
    assert [row["n"] for row in chosen["settings"].to_pylist()] == [3, 1]
    assert chosen["queries"]["query"].to_pylist() == [0, 1, 2, 0]
    both = joined([chosen, of_settings(found, [identity(2).key])])
    assert both["settings"]["n"].to_pylist() == [3, 1, 2]


def test_no_tables_damaged_ones_and_a_mixture_are_named(tmp_path):
    with pytest.raises(ResultsError, match="no tables of results"):
        Published(tmp_path / "none").tables()
    one, two = Published(tmp_path / "one"), Published(tmp_path / "two")
    one.add(stored(tmp_path / "store", (1, 2)))
    two.add(stored(tmp_path / "store", (1, 3)))
    (one.directory / "queries.parquet").write_bytes((two.directory / "queries.parquet").read_bytes())
    with pytest.raises(ResultsError, match="different publications"):
        Published(tmp_path / "one").tables()
    path = two.directory / "settings.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ResultsError, match=r"settings\.parquet cannot be read"):
        two.tables()


@pytest.mark.parametrize("error", [FileNotFoundError, PermissionError])
def test_a_table_that_is_being_moved_is_read_again_and_one_that_is_forbidden_is_not_damaged(
    tmp_path, monkeypatch, error
):
    (published := Published(tmp_path)).add(stored(tmp_path / "store", (1,)))
    monkeypatch.setattr(pq, "read_table", Mock(wraps=pq.read_table, side_effect=[error, *4 * [DEFAULT]]))
    if error is PermissionError:
        with pytest.raises(PermissionError):
            published.tables()
    assert published.tables()["settings"]["n"].to_pylist() == [1]


@pytest.mark.parametrize("failing", ["ParquetWriter", "replace"])
def test_a_full_disk_leaves_the_tables_that_were_there(tmp_path, monkeypatch, failing):
    published = Published(tmp_path / "tables")
    published.add(stored(tmp_path / "store", (1,)))
    before = {path.name: path.read_bytes() for path in published.directory.iterdir()}
    more = stored(tmp_path / "store", (2,))

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*((pq, failing) if failing == "ParquetWriter" else (os, failing)), full)
    with pytest.raises(ResultsError, match="No space left"):
        published.add(more)
    assert {path.name: path.read_bytes() for path in published.directory.iterdir()} == before


class Killed(BaseException):
    """What no `except` of the package stops."""


@pytest.mark.parametrize("first", [True, False], ids=["the first publication", "a second one"])
@pytest.mark.parametrize("steps", range(6))  # the folder, its four tables, and the empty folder
def test_a_kill_at_any_step_leaves_the_old_tables_or_the_new_ones(tmp_path, monkeypatch, steps, first):
    (old, new), grids = stored(tmp_path / "store", (1, 2)), {"grid": [{"setting": identity(1).key}]}
    published, expected = Published(tmp_path / "tables"), Published(tmp_path / "expected")
    for one in (published, expected) if not first else ():
        one.add([old], grids)
    expected.add([new], grids)
    left = iter(range(steps))

    def until_killed(of):
        def step(*given):
            if next(left, None) is None:
                raise Killed
            return of(*given)

        return step

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(os, "replace", until_killed(os.replace))
        patch.setattr(Path, "rmdir", until_killed(Path.rmdir))
        published.add([new], grids)
    if first and not steps:
        assert not published.has(identity(2))
    else:
        assert published.has(identity(2)) == bool(steps)
        assert published.tables().keys() == {"settings", "queries", "runs"}
    published.add([new], grids)
    found = {path.name: path.read_bytes() for path in published.directory.iterdir()}
    assert found == {path.name: path.read_bytes() for path in expected.directory.iterdir()}
    assert published.tables() == expected.tables()


def test_a_data_set_library_reads_them_as_they_are(tmp_path):
    published = Published(tmp_path / "tables")
    published.add(stored(tmp_path / "store", (1, 2)))
    file = str(published.directory / "queries.parquet")
    rows = load_dataset("parquet", data_files=file, split="train", cache_dir=str(tmp_path / "cache"))
    assert rows.num_rows == 3 and rows[0]["right"] is True
