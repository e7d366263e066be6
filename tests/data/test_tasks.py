"""explainer.data.tasks: the table, the word pairs, sources, splits and every error a user can meet."""

import json
import re
import unicodedata
from collections import Counter
from dataclasses import replace
from importlib import resources
from unittest.mock import Mock, call

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explainer.data import assets, tasks
from explainer.data.tasks import TASKS, Example, Task
from explainer.errors import TaskError
from explainer.models import scoring

STUDIED_PAIRS = ("capitals", "plurals", "past", "antonyms")
PAIRS = json.loads(resources.files("explainer").joinpath("data/word_pairs.json").read_text(encoding="utf-8"))
PAPER_TASKS = ("sst2", "sst5", "mr", "subj", "agnews", "cb")
CATEGORIES = "Classify the news articles into the categories of World, Sports, Business, and Technology."
TWO = Task("two", "Text: {text} Label:", ("no", "yes"))


@pytest.fixture
def rows(tmp_path):
    """Write rows as a task's splits and return the data directory."""

    def write(*lines, task="two", splits=("train", "test")):
        (tmp_path / task).mkdir(exist_ok=True)
        for split in splits:
            text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
            # A byte order mark in front, as editors of Windows put it.
            (tmp_path / task / f"{split}.jsonl").write_text(text, encoding="utf-8-sig", newline="\r\n")
        return tmp_path

    return write


@pytest.fixture
def starter_assets(monkeypatch):
    """Small stand-ins for the downloaded assets: 3,000 sorted reviews, 600 articles."""
    reviews = [(f"review\nnumber {i}", round(-4 + 8 * i / 2999, 3)) for i in range(3000)]
    topics = ("business", "entertainment", "politics", "sports", "tech")
    article = "Title {i}\n\nBody {i} begins. It goes on.\n\nMore."
    news = [(article.format(i=i), topics[i // 120]) for i in range(600)]
    monkeypatch.setattr(assets, "reviews", lambda: [*reviews, reviews[0]])
    monkeypatch.setattr(assets, "news", lambda: news)


WORLD = ("World", "Sports", "Business", "Technology")
ENTAILED = ("True", "False", "Neither")
SIGNS = ("Negative", "Positive")
FIVE = ("terrible", "bad", "neutral", "good", "great")


def test_every_task_says_where_it_comes_from_and_what_ends_a_demonstration():
    assert all(task.name == name and task.source and task.licence for name, task in TASKS.items())
    for name, task in TASKS.items():
        released = name.removesuffix("-paper") in PAPER_TASKS
        assert task.separator == (tasks.DOCUMENT_SEPARATOR if released else "\n")
        assert (task.hub is not None) == released, "starter tasks need no hub"
        assert not released or re.fullmatch(r"[\w-]+/[\w-]+ [0-9a-f]{40}", f"{task.hub['id']} {task.hub['revision']}")


@pytest.mark.parametrize(
    ("name", "fields", "prompt", "labels"),
    [
        ("sst2", {"sentence": "S"}, "Sentence: S Label:", SIGNS),
        ("sst5", {"text": "S"}, "Sentence: S Label:", FIVE),
        ("mr", {"text": "S"}, "Review: S Sentiment:", SIGNS),
        ("subj", {"text": "S"}, "Input: S Type:", ("objective", "subjective")),
        ("agnews", {"text": "S"}, f"{CATEGORIES} Article: S Answer:", WORLD),
        ("cb", {"premise": "P", "hypothesis": "H"}, "P Question: H. True, False, or Neither? Answer:", ENTAILED),
        ("agnews-paper", {"text": "S"}, f"{CATEGORIES}\nNews: S\nType:", WORLD),
        ("cb-paper", {"premise": "P", "hypothesis": "H"}, "P\nQuestion: H True, False, or Neither?\nAnswer:", ENTAILED),
        ("reviews", {"text": "S"}, "Review: S\nSentiment:", SIGNS),
        ("capitals", {"word": "{text} {0} {"}, "{text} {0} { ->", None),
    ],
)
def test_templates_and_label_words(name, fields, prompt, labels):
    task = TASKS[name]
    assert task.prompt(Example(fields, "")) == prompt
    assert task.demonstration(Example(fields, "A")) == f"{prompt} A"
    assert (task.labels, task.fields) == (labels, tuple(fields))


@pytest.mark.parametrize("template", ["Text:", "{text} {label}", "{text} Label: "])
def test_templates_that_ask_nothing_or_tell_the_answer_are_refused(template):
    with pytest.raises(TaskError, match=r"task 't': the template .* must show a column, like \{text\}"):
        Task("t", template)


@pytest.mark.parametrize("labels", [(), ("a",), ("a", "a", "b"), ("", "a"), (" a", "b"), ("a\n", "b"), "ab"])
def test_labels_that_cannot_be_told_apart_are_refused(labels):
    with pytest.raises(TaskError, match=r"task 't': the labels .* at least two different words, without white space"):
        Task("t", "{text}", labels)


FULL = """
[tone]
template = "Message: {text}\\nTone:"
labels = ["rude", "polite"]
separator = "eos"
answer_column = "tone"
folder = "tones"
splits = ["train", "dev"]
hub = {id = "me/tone", revision = "abc"}

[sums-1]
template = '{question} ='
"""


def test_a_file_describes_tasks(tmp_path):
    path = tmp_path / "tasks.toml"
    path.write_text(FULL, encoding="utf-8-sig", newline="\r\n")
    tone = {"separator": tasks.DOCUMENT_SEPARATOR, "answer_column": "tone", "folder": "tones"}
    tone |= {"hub": {"id": "me/tone", "revision": "abc"}, "splits": ("train", "dev")}
    assert tasks.read_file(path) == [
        Task("tone", "Message: {text}\nTone:", ("rude", "polite"), **tone),
        Task("sums-1", "{question} =", None),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"the task file .*tasks.toml describes no task"),
        ("[tone]\na", r"cannot read the task file .*tasks.toml: Expected"),
        ("[reviews]\ntemplate = '{text}'", r"\[reviews\]: .* another name"),
        ("template = '{text}'", r"\[template\] describes no task"),
        ("[a]\ntemplate = '{x}'\nlabels = ['x', 1]", r"\[a\] describes no task"),
        ("[a]\ntemplate = '{x}'\nfolder = 3", r"\[a\] describes no task: folder = 3 cannot be used"),
        ("[a]\ntemplate = '{x}'\nsplits = ['train']", r"\[a\] describes no task: splits"),
        ("[a]\ntemplate = '{x}'\nlabels = 'xy'", "task 'a': the labels xy must be"),
    ],
)
def test_a_bad_file_is_reported_with_its_table(tmp_path, text, message):
    path = tmp_path / "tasks.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TaskError, match=message):
        tasks.read_file(path)
    with pytest.raises(TaskError, match=r"cannot read the task file .*none.toml: .*No such file"):
        tasks.read_file(tmp_path / "none.toml")


def test_foreign_demonstrations_are_about_something_else_with_the_same_kind_of_answers():
    for task in (*TASKS.values(), TWO):
        other = TASKS[tasks.unrelated_task(task)]
        assert other.name != task.name and other.source != task.source
        assert (other.labels is None) == (task.labels is None)
        assert other.hub is None
    others = {"capitals": "plurals", "plurals": "capitals", "sst2-paper": "news", "agnews-paper": "reviews"}
    assert {name: tasks.unrelated_task(TASKS[name]) for name in others} == others
    assert tasks.unrelated_task(TWO, short=True) == "capitals", "beside one's own task a word pair, which is short"


@pytest.mark.parametrize("name", PAIRS)
def test_word_pairs_are_many_and_ask_each_word_once(name):
    pairs = [(example.fields["word"], example.answer) for example in tasks.load(name).train]
    assert pairs == [tuple(pair) for pair in PAIRS[name]], "no white space around words, accents composed"
    words, answers = zip(*pairs, strict=True)
    assert len(set(words)) == len(pairs) >= (200 if name in STUDIED_PAIRS else 100)
    assert name == "categories" or len(set(answers)) == len(pairs)
    if name in STUDIED_PAIRS:
        assert set(words).isdisjoint(answers), "none is there in both directions"


@given(st.sampled_from(sorted(PAIRS)), st.integers(0, 10**9), st.integers(0, 33))
def test_demonstrations_and_queries_of_a_pool_never_meet_and_more_of_them_begin_alike(name, seed, k):
    data = tasks.load(name)
    third = len(data.train) // 3
    assert data.train is data.test
    shown, asked = tasks.demonstrations(data, third, seed), tasks.queries(data, len(data.test) - third, seed)
    assert Counter(map(repr, (*shown, *asked))) == Counter(map(repr, data.train))
    assert (tasks.demonstrations(data, k, seed), tasks.queries(data, k, seed)) == (shown[:k], asked[:k])
    assert shown != tasks.demonstrations(data, third, seed + 1)


def test_test_rows_that_are_also_training_rows_are_not_queries(rows):
    """However an accent is composed; nor are those that the test rows repeat.

    In other case, a text with the same answer is a copy, and with another answer it is not.
    """
    rows({"text": "shared \u00e9", "label": 0}, {"text": "train only", "label": 1}, splits=("train",))
    once = {"text": "test only", "label": 1}
    copies = [{"text": text, "label": 0} for text in ("shared e\u0301", "shared  \u00e9 ", "Shared \u00c9")]
    others = [{"text": "TEST ONLY", "label": 1}, {"text": "Train only", "label": 0}]
    data = tasks.load(TWO, data_dir=rows(*copies, once, once, others[0], splits=("test",)))
    assert [e.fields["text"].lower() for e in tasks.queries(data, 1, 0)] == ["test only"]
    apart = tasks.load(TWO, data_dir=rows(*others, splits=("test",)))
    assert {e.fields["text"] for e in tasks.queries(apart, 2, 0)} == {"TEST ONLY", "Train only"}
    with pytest.raises(TaskError, match=r"'two': 2 queries asked for, 1 available; .* no training examples"):
        tasks.queries(data, 2, 0)
    with pytest.raises(TaskError, match="'two': 3 demonstrations asked for, 2 available"):
        tasks.demonstrations(data, 3, 0)


def test_a_word_is_one_word_however_its_accents_are_composed(rows):
    """In the context and among the queries, so that a right answer counts as right."""
    free = replace(TWO, labels=None)
    rows({"text": "milk", "label": "cafe\u0301"}, splits=("train",))
    data = tasks.load(free, data_dir=rows({"text": "coffee", "label": "caf\u00e9"}, splits=("test",)))
    assert data.train[0].answer == data.test[0].answer == "caf\u00e9"


def test_five_class_reviews_are_equal_bins(starter_assets):
    data = tasks.load("reviews5")
    assert Counter(e.label for e in (*data.train, *data.test)) == dict.fromkeys(range(5), 600)
    by_text = {e.fields["text"]: e.answer for e in (*data.train, *data.test)}
    assert [by_text[f"review number {i}"] for i in (0, 700, 1500, 2300, 2999)] == list(data.task.labels)


def test_news_keeps_the_first_paragraph_below_the_title(starter_assets):
    data = tasks.load("news")
    assert (len(data.train), len(data.test)) == (100, 500)
    example = next(e for e in data.test if e.fields["text"].startswith("Body 599 "))
    assert example == Example({"text": "Body 599 begins. It goes on."}, "Technology", 4)
    assert tasks._opening(f"Title\n\n{'word ' * 60}\n\nMore.") == " ".join(["word"] * 40) and tasks._opening("A") == "A"


def test_an_own_task_with_free_answers(rows):
    task = Task("two", "{{{question}}} =", None, answer_column="result")  # doubled braces are braces
    data = tasks.load(task, data_dir=rows({"question": "{1} <b>", "result": "😀\n{0}"}))
    assert task.demonstration(data.train[0]) == "{{1} <b>} = 😀 {0}" and data.train[0].label is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"sentence": "x", "label": 0}, "'two', train row 1: no column 'text', found 'sentence', 'label'"),
        ({"text": "x"}, "train row 1: no column 'label', found 'text'"),
        *(({"text": "x", "label": label}, rf"column 'label' holds {label!r}, none of 0 \(no\), 1 \(yes\)")
          for label in (2, -1, "yes", True, 1.0, None)),
        *(({"text": text, "label": 0}, "'text' holds .*, which is no text") for text in (" \n ", None, [""], "\ud83d")),
        *((line, r"train\.jsonl, line 2 is no JSON object") for line in ('{"text": "raw \0 byte"}', '"text"', "null")),
    ],
)  # fmt: skip
def test_bad_rows_are_named(rows, line, message):
    with pytest.raises(TaskError, match=message):
        tasks.load(TWO, data_dir=rows({"text": "good", "label": 1}, line))


def test_rows_that_a_pool_repeats_go_before_it_is_split(rows):
    """Each twice: the copy has other case and white space, and another value in a column that the template ignores."""
    once = [{"text": f"a text {i}", "label": i % 2, "id": i} for i in range(9)]
    copies = [{"text": f" A\n text\u00a0{i}", "label": i % 2, "id": 100 + i} for i in range(9)]
    pool = replace(TWO, splits=("all", "all"))
    data = tasks.load(pool, data_dir=rows(*once, *copies, splits=("all",)))
    assert data.train is data.test and [e.fields["text"] for e in data.train] == [row["text"] for row in once]


@pytest.mark.parametrize("splits", [("train", "test"), ("train", "train")])
def test_a_text_that_is_answered_in_two_ways_is_named(rows, splits):
    rows({"text": "c", "label": 0}, splits=("test",))
    once = [{"text": "caf\u00e9", "label": 0}, {"text": "b", "label": 1}]
    directory = rows(*once, {"text": "cafe\u0301", "label": 1}, {"text": "B", "label": 0}, splits=("train",))
    with pytest.warns(
        UserWarning, match=r"'two', train: 'Text: caf\u00e9 Label:' is answered 'no' and 'yes'"
    ) as warned:
        data = tasks.load(replace(TWO, splits=splits), data_dir=directory)
    assert warned[0].filename == __file__, "the line that loads"
    assert len(data.train) == (3 if splits[0] == splits[1] else 4), "in a pool each text is once"


def test_hostile_rows_are_tokenized_as_the_text_they_are(rows, checkpoint):
    text = "<s>struck</s> <pad> two\nlines\u2028more <br/> &amp; 👩‍👩‍👧 {0!r} }{ a\0b \u202eעולם\u202c e\u0301 ﬀ \u200b"
    directory = rows({"text": text, "label": 1}, {"text": "plain", "label": 0})
    data = tasks.load(replace(TWO, template="{text}\nLabel:"), data_dir=directory)
    clean = unicodedata.normalize("NFC", " ".join(text.split()))
    assert data.train[0].fields["text"] == clean
    ids, ends = scoring.context_ids(checkpoint, data.task, data.train)
    assert checkpoint.tokenizer.decode(ids[1:]) == f"{clean}\nLabel: yes\nplain\nLabel: no\n"
    assert ends[-1] == len(ids) and not set(ids[1:]) & set(checkpoint.tokenizer.all_special_ids)


def test_hub_is_asked_for_the_pinned_revision(monkeypatch):
    import datasets  # noqa: PLC0415

    hub = Mock(return_value=[{"premise": "P", "hypothesis": "H", "label": 2, "idx": 0}])
    monkeypatch.delenv("EXPLAINER_DATA", raising=False)
    monkeypatch.setattr(datasets, "load_dataset", hub)
    assert tasks.load("cb").test[0].answer == "Neither"
    cb, revision = ("aps/super_glue", "cb"), TASKS["cb"].hub["revision"]
    assert hub.call_args_list == [call(*cb, revision=revision, split=split) for split in ("train", "validation")]


@pytest.mark.parametrize("labels", [SIGNS, SIGNS[::-1]])
def test_labels_have_the_order_of_the_data_set(monkeypatch, labels):
    import datasets  # noqa: PLC0415

    names, found = ["negative", "positive"], [{"text": f"text {i}", "label": i} for i in range(2)]
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=names)})
    found = datasets.Dataset.from_list(found, features)
    monkeypatch.delenv("EXPLAINER_DATA", raising=False)
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: found)
    task = replace(TWO, labels=labels, hub={"id": "a/set", "revision": "main"}, splits=("train", "train"))
    if labels == SIGNS:
        assert [example.answer for example in tasks.load(task).train] == list(labels)
    else:
        with pytest.raises(TaskError, match="in the order of the data set: negative, positive"):
            tasks.load(task)


def test_no_network_and_no_source_say_what_to_do(monkeypatch, tmp_path):
    import datasets  # noqa: PLC0415

    monkeypatch.delenv("EXPLAINER_DATA", raising=False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    task = replace(TASKS["mr"], hub={"id": "explainer-test/no-data", "revision": "0" * 40})
    with pytest.raises(TaskError, match=r"'explainer-test/no-data' .* could not be loaded .*EXPLAINER_DATA"):
        tasks.load(task)
    with pytest.raises(TaskError, match="'two' has no hub id; give data_dir"):
        tasks.load(TWO)


def test_named_examples_come_in_the_order_asked_and_unknown_words_are_named():
    capitals = tasks.load("capitals")
    assert [example.answer for example in capitals.examples_of("Japan", "France")] == ["Tokyo", "Paris"]
    with pytest.raises(TaskError, match="Atlantis"):
        capitals.examples_of("Japan", "Atlantis")
