"""explainer_lab.store: what is stored comes back, whole or not at all, and nothing else passes for it."""

import json
import math
import os
import tempfile
from decimal import Decimal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from explainer.data.files import published_directory, rounded, to_json
from explainer.errors import ResultsError
from explainer.models import stored_weights
from explainer_lab.reversal import Reversal
from explainer_lab.store import SETTING, Identity, Store, read

FIRST = Identity("model-task-k4", {SETTING: {"k": 4, "lr": 0.00016}, "weights": "w", "data": "abc", "protocol": 1})
RESULT = {"settings": {"accuracy": 0.5}, "queries": {"query": [0, 1], "value": [0.1, None]}}


def save(store, identity=FIRST, result=RESULT):
    return store.save(identity, result, provenance={"threads": 1}, run={"seconds": 1.5})


def test_a_result_that_may_not_be_read_is_not_to_be_deleted(tmp_path, monkeypatch):
    path = save(Store(tmp_path))

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", str(path))  # simulated, as below

    monkeypatch.setattr(type(path), "read_text", refuse)
    with pytest.raises(ResultsError, match=r"may not be read by this user; allow it"):
        read(path)


@pytest.mark.parametrize(
    ("variable", "directory"),
    [("EXPLAINER_RESULTS", published_directory), ("EXPLAINER_WEIGHTS", stored_weights.directory)],
)
def test_a_tilde_in_a_variable_is_the_home_directory(tmp_path, monkeypatch, variable, directory):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine").mkdir()
    monkeypatch.setenv(variable, "~/mine")
    assert directory() == tmp_path / "mine"


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


def test_lists_of_numbers_stand_on_one_line():
    assert to_json({"é": "é"}).count("é") == 2, "what people read stands as it is"
    assert to_json({"b": [1, 2], "a": [[1], [2]]}) == '{\n "a": [\n  [1],\n  [2]\n ],\n "b": [1,2]\n}\n'


@given(st.floats(-1e300, 1e300))
def test_floats_keep_four_digits(x):
    value = rounded(x)
    assert value == pytest.approx(x, rel=0.6e-3, abs=1e-320)
    assert rounded(value) == value
    assert len(Decimal(repr(value)).normalize().as_tuple().digits) <= 4


@pytest.mark.parametrize("x", [math.nan, math.inf, -math.inf, 1.79769e308])
def test_what_is_no_number_is_null(x):
    assert rounded({"x": [x]}) == {"x": [None]}


def test_arrays_and_tensors_become_lists():
    value = {"a": np.array([1, 2]), "b": torch.tensor([[0.123456789, torch.nan]]), "c": np.float32(0.1), "d": (1,)}
    assert rounded(value) == {"a": [1, 2], "b": [[0.1235, None]], "c": 0.1, "d": [1]}
    assert rounded({"x": True, "n": 123456789, "s": "é"}) == {"x": True, "n": 123456789, "s": "é"}


def test_a_result_comes_back_with_what_determines_it(tmp_path):
    store = Store(tmp_path / "new" / "directory")
    assert store.load(FIRST) is None and store.all() == []
    path = save(store)
    stored = store.load(FIRST)
    assert stored.path == path == store.path(FIRST)
    assert (stored.identity, stored.provenance, stored.result) == (FIRST, {"threads": 1}, RESULT)
    assert stored.run == {"seconds": 1.5}
    assert sorted(p.name for p in store.directory.iterdir()) == [path.name, path.with_suffix(".run").name]
    assert [s.path for s in store.all()] == [path]
    assert path.stat().st_mode & 0o777 == 0o644
    path.with_suffix(".run").unlink()
    with pytest.raises(ResultsError, match=r"\.run cannot be read .* copy it too"):
        stored.run  # noqa: B018


def test_the_same_result_is_the_same_bytes_however_long_it_took(tmp_path):
    stores = [Store(tmp_path / name) for name in "ab"]
    paths = [
        store.save(FIRST, dict(items), provenance={"threads": 1}, run={"seconds": seconds})
        for store, items, seconds in zip(stores, (RESULT.items(), reversed(RESULT.items())), (1, 2), strict=True)
    ]
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_names_are_plain_and_differ_when_anything_differs():
    hostile = Identity("../a b\n<é>/c", FIRST.parts)
    assert hostile.filename == f"..-a-b-c-{FIRST.filename.removeprefix('model-task-k4-')}"
    assert "/" not in hostile.filename
    other = Identity(FIRST.slug, {SETTING: {"k": 4, "lr": 0.000161}, "data": "abc"})
    assert other.filename != FIRST.filename
    assert len(Identity("x" * 500, {SETTING: {}}).filename) < 150


def test_models_whose_names_differ_by_case_have_files_of_their_own_on_a_disk_that_knows_no_case():
    settings = [Reversal.of(checkpoint=name, lr=0.1, epochs=1, seed=0) for name in ("My_Model", "my_model")]
    identities = [Reversal().key(setting) for setting in settings]
    assert settings[0].slug.casefold() == settings[1].slug.casefold()
    assert identities[0].filename.casefold() != identities[1].filename.casefold()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], "cannot be read"),
        (lambda text: "", "cannot be read"),
        (lambda text: text.replace('"accuracy": 0.5', '"accuracy": 0.9'), "damaged or was edited"),
        (lambda text: text.replace('"accuracy": 0.5', '"accuracy": NaN'), "damaged or was edited"),
        (lambda text: text.replace('"threads": 1', '"threads": 2'), "damaged or was edited"),
        (lambda text: text.replace('"provenance"', '"origin"'), "damaged or was edited"),
        (lambda text: text.replace('"format": 4', '"format": 99'), "format 99"),
        (lambda text: '{"format": 4}', "damaged"),
        (lambda text: '{"some": "file"}', "not the result of a study"),
        (lambda text: "[1, 2]", "not the result of a study"),
        (lambda text: b"\xff\xfe\x00", "cannot be read"),
    ],
)
def test_a_damaged_or_foreign_file_is_named_with_its_remedy(tmp_path, damage, message):
    store = Store(tmp_path)
    path = save(store)
    damaged = damage(path.read_text())
    path.write_bytes(damaged if isinstance(damaged, bytes) else damaged.encode())
    for look in (lambda: store.load(FIRST), store.all, lambda: read(path)):
        with pytest.raises(ResultsError, match=message) as caught:
            look()
        assert str(path) in str(caught.value)
        assert any(word in str(caught.value) for word in ("delete it", "move it"))


def test_a_copy_under_the_name_of_another_setting_is_refused(tmp_path):
    store, other = Store(tmp_path), Identity("model-task-k8", {SETTING: {"k": 8}, "data": "abc"})
    save(store).rename(store.path(other))
    with pytest.raises(ResultsError, match="renamed"):
        store.load(other)


@pytest.mark.parametrize("failing", ["replace", "fsync"])
def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch, failing):
    store = Store(tmp_path)
    before = save(store).read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, failing, full)
    with pytest.raises(ResultsError, match=r"No space left.*choose another"):
        save(store, result={"settings": {"accuracy": 0.75}})
    monkeypatch.undo()
    assert store.path(FIRST).read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 2


def test_a_setting_counts_as_finished_only_with_its_last_rename(tmp_path, monkeypatch):
    store, replace, calls = Store(tmp_path), os.replace, []

    def once(source, target):
        if calls:
            raise KeyboardInterrupt
        calls.append(target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", once)
    with pytest.raises(KeyboardInterrupt):
        save(store)
    assert store.load(FIRST) is None
    assert [p.suffix for p in tmp_path.iterdir()] == [".run"]


def test_a_directory_that_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ResultsError, match="file"):
        Store(file).require_writable()

    def denied(**_):
        raise PermissionError(13, "Permission denied")  # simulated: tests may run as root, whom no mode stops

    monkeypatch.setattr(tempfile, "TemporaryFile", denied)
    with pytest.raises(ResultsError, match="Permission denied"):
        Store(tmp_path).require_writable()
    monkeypatch.setattr(tempfile, "NamedTemporaryFile", lambda *_, **__: denied())
    with pytest.raises(ResultsError, match=r"Permission denied.*that you can write"):
        save(Store(tmp_path))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"data": "else"}, "other data than are here"),
        ({"weights": "else"}, "other weights"),
        ({"protocol": 2, "weights": "else"}, "computed by protocol 1, this version computes protocol 2"),
    ],
)
def test_a_result_of_another_origin_is_refused_and_stays(tmp_path, parts, message):
    store = Store(tmp_path)
    path = save(store)
    before = path.read_bytes()
    other = Identity(FIRST.slug, FIRST.parts | parts)
    assert store.path(other) == path
    with pytest.raises(ResultsError, match=rf"{message}.*use another directory"):
        store.load(other)
    assert path.read_bytes() == before


def test_what_is_not_known_here_is_not_compared(tmp_path):
    store = Store(tmp_path)
    save(store)
    assert store.load(Identity(FIRST.slug, FIRST.parts | {"data": None})).result == RESULT


def test_remains_are_temporary_files_of_killed_runs(tmp_path):
    store = Store(tmp_path)
    save(store)
    remains = tmp_path / ".setting.json.x1.tmp"
    remains.write_text("{")
    assert store.remains() == [remains]
    assert len(store.all()) == 1


def test_published_results_are_those_of_the_package_or_those_that_are_given(tmp_path, monkeypatch):
    monkeypatch.delenv("EXPLAINER_RESULTS", raising=False)
    assert (published_directory() / "comparison" / "settings.parquet").is_file()
    monkeypatch.setenv("EXPLAINER_RESULTS", str(tmp_path))
    assert published_directory() == tmp_path
    monkeypatch.setenv("EXPLAINER_RESULTS", str(tmp_path / "none"))
    with pytest.raises(ResultsError, match=r"EXPLAINER_RESULTS = .*none"):
        published_directory()
