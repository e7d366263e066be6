"""The scoreboard: its entries are what the tables give, and what does not fit is refused."""

import json

import pytest
from jsonschema import Draft202012Validator, ValidationError

from explainer import commands
from explainer.data.files import PUBLISHED, json_digest, to_json
from explainer.errors import ResultsError
from explainer.results import scoreboard, verdict
from explainer.results.scoreboard import ENTRIES, SCHEMA

VALIDATOR = Draft202012Validator(json.loads(SCHEMA.read_text("utf-8")))
FILES = sorted(ENTRIES.glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_entry_is_whole(path):
    scoreboard.read(path)
    VALIDATOR.validate(json.loads(path.read_text("utf-8")))


def test_the_entry_of_the_book_is_what_the_command_writes(tmp_path, capsys, monkeypatch):
    path = tmp_path / "entry.json"
    asked = ["verdict", "--results", str(PUBLISHED), "--entry", str(path)]
    assert commands.main(asked) == 1 and "has rows of SmolLM2-135M-Instruct, gemma-3-270m" in capsys.readouterr().err
    assert commands.main([*asked, "--model", "gemma-3-270m"]) == 0
    assert path.read_text("utf-8") == (ENTRIES / "gemma-3-270m.json").read_text("utf-8")
    monkeypatch.chdir(PUBLISHED.parent)  # by whatever name, these are the book's tables
    asked[2] = PUBLISHED.name
    assert commands.main([*asked, "--model", "gemma-3-270m"]) == 0
    assert path.read_text("utf-8") == (ENTRIES / "gemma-3-270m.json").read_text("utf-8")
    assert commands.main(["verdict", "--model", "gemma-3-270m"]) == 1
    content = scoreboard.read(ENTRIES / "smollm2-135m-instruct.json")
    assert set(content["rows"]) == {*verdict.FOLDERS, *verdict.TEN_FOLDERS}
    row = verdict.five_rows()["SmolLM2-135M-Instruct (the book)"]["like training"]
    assert content["rows"]["like training"]["share"] == pytest.approx([row.share[i] for i in (1, 0, 2)], rel=1e-3)


def test_a_changed_entry_is_refused(tmp_path):
    """Whatever is changed; with a digest that fits, what the schema or the order of numbers says."""
    path = FILES[0]

    def with_change(change, seal=True):
        content = json.loads(path.read_text("utf-8"))
        stated = content.pop("sha256")
        change(content)
        stated = json_digest(content) if seal else stated
        (changed := tmp_path / "entry.json").write_text(to_json(content | {"sha256": stated}), "utf-8")
        return changed

    def improved(content):
        next(iter(content["rows"].values()))["draws"] += 1

    def swapped(content):
        next(iter(content["rows"].values()))["measured"].reverse()

    scoreboard.read(with_change(improved))
    with pytest.raises(ResultsError, match="changed after it was written"):
        scoreboard.read(with_change(improved, seal=False))
    with pytest.raises(ResultsError, match="out of order"):
        scoreboard.read(with_change(swapped))
    with pytest.raises(ResultsError, match="is no entry"):
        scoreboard.read(with_change(lambda content: content.pop("rows")))
    for change, said in {
        "rows": (lambda content: content["rows"].update({"my row": next(iter(content["rows"].values()))}), "my row"),
        "versions": (lambda content: content["versions"].pop("torch"), "'torch' is a required property"),
        "model": (lambda content: content["model"].update(sha256="0" * 63), "does not match"),
    }.values():
        with pytest.raises(ValidationError, match=said):
            VALIDATOR.validate(json.loads(with_change(change).read_text("utf-8")))


def test_the_schema_has_the_names_of_the_rows_and_of_their_tables():
    properties = VALIDATOR.schema["properties"]
    assert properties["rows"]["propertyNames"]["enum"] == [*verdict.FOLDERS, *verdict.TEN_FOLDERS]
    folders = {*verdict.FOLDERS.values(), *verdict.TEN_FOLDERS.values()}
    assert set(properties["experiments"]["propertyNames"]["enum"]) == folders
    assert tuple(properties["versions"]["required"]) == scoreboard.VERSIONS


def test_the_tables_of_the_page():
    one = scoreboard.read(ENTRIES / "gemma-3-270m.json")
    row = one["rows"]["new rule: learned"]
    none = one | {"rows": {"new rule: learned": row | {"share": None}}}
    found = scoreboard.shares({"a": one, "b": none})
    rows = [("carried by one vector", "a"), (verdict.LEARNED, "a"), (verdict.LEARNED, "b"), (verdict.OF_RULE, "a")]
    assert list(found.index) == rows
    shares = found["share of the way"].str.replace("\N{NO-BREAK SPACE}", " ")
    assert list(shares)[1:3] == ["0.53 [0.46, 0.60]", "none"]
    (shown,) = scoreboard.models({"a": one}).to_dict("records")
    assert shown["k"] == "16" and shown["tasks and cues"] == "category, first word, suffix, capitals, past"
