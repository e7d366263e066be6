"""explainer.tasks: the table, the word pairs, sources, splits and every error a user can meet."""

import json
import re
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explainer import assets, tasks
from explainer.errors import TaskError
from explainer.tasks import TASKS, Example, Hub, Task

PAIR_TASKS = ("capitals", "plurals", "past", "antonyms")
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
            (tmp_path / task / f"{split}.jsonl").write_text(text, encoding="utf-8")
        return tmp_path

    return write


@pytest.fixture
def starter_assets(monkeypatch):
    """Small stand-ins for the downloaded assets: 3,000 sorted reviews, 600 articles."""
    reviews = [assets.Review(f"review\nnumber {i}", round(-4 + 8 * i / 2999, 3)) for i in range(3000)]
    topics = ("business", "entertainment", "politics", "sports", "tech")
    news = [
        assets.NewsItem(f"Title {i}\n\nBody {i} begins. It goes on.\n\nMore.", topics[i // 120]) for i in range(600)
    ]
    monkeypatch.setattr(assets, "reviews", lambda: [*reviews, reviews[0]])
    monkeypatch.setattr(assets, "news", lambda: news)


# --- the table -------------------------------------------------------------------------------------------------


def test_table_is_keyed_by_name_and_every_entry_says_where_it_comes_from():
    assert all(task.name == name and task.source and task.licence for name, task in TASKS.items())
    assert set(TASKS) >= {
        "reviews",
        "reviews5",
        "news",
        *PAIR_TASKS,
        *PAPER_TASKS,
        *(f"{n}-paper" for n in PAPER_TASKS),
    }


@pytest.mark.parametrize(
    ("name", "fields", "prompt", "labels"),
    [
        ("sst2", {"sentence": "S"}, "Sentence: S Label:", ("Negative", "Positive")),
        ("sst5", {"text": "S"}, "Sentence: S Label:", ("terrible", "bad", "neutral", "good", "great")),
        ("mr", {"text": "S"}, "Review: S Sentiment:", ("Negative", "Positive")),
        ("subj", {"text": "S"}, "Input: S Type:", ("objective", "subjective")),
        (
            "agnews",
            {"text": "S"},
            f"{CATEGORIES} Article: S Answer:",
            ("World", "Sports", "Business", "Technology"),
        ),
        (
            "cb",
            {"premise": "P", "hypothesis": "H"},
            "P Question: H. True, False, or Neither? Answer:",
            ("True", "False", "Neither"),
        ),
        ("sst2-paper", {"sentence": "S"}, "Sentence: S\nLabel:", ("Negative", "Positive")),
        (
            "agnews-paper",
            {"text": "S"},
            f"{CATEGORIES}\nNews: S\nType:",
            ("World", "Sports", "Business", "Technology"),
        ),
        (
            "cb-paper",
            {"premise": "P", "hypothesis": "H"},
            "P\nQuestion: H True, False, or Neither?\nAnswer:",
            ("True", "False", "Neither"),
        ),
        ("reviews", {"text": "S"}, "Review: S\nSentiment:", ("Negative", "Positive")),
        ("capitals", {"word": "S"}, "S ->", None),
    ],
)
def test_templates_and_label_words(name, fields, prompt, labels):
    task = TASKS[name]
    assert task.prompt(Example(fields, "")) == prompt
    assert task.labels == labels
    assert task.fields == tuple(fields)


def test_demonstration_is_prompt_space_answer():
    assert TASKS["past"].demonstration(Example({"word": "go"}, "went")) == "go -> went"


def test_fields_with_braces_are_not_formatted_again():
    assert TWO.prompt(Example({"text": "{text} {0} {"}, "yes")) == "Text: {text} {0} { Label:"


def test_released_tasks_end_a_demonstration_with_the_document_separator_and_word_pairs_with_a_newline():
    assert all(TASKS[name].separator == tasks.DOCUMENT_SEPARATOR for name in PAPER_TASKS)
    assert all(TASKS[name].separator == "\n" for name in (*PAIR_TASKS, "reviews", "news"))


@pytest.mark.parametrize("name", PAPER_TASKS)
def test_hub_ids_are_namespaced_and_pinned(name):
    hub = TASKS[name].hub
    assert re.fullmatch(r"[\w-]+/[\w-]+", hub.id)
    assert re.fullmatch(r"[0-9a-f]{40}", hub.revision)


def test_template_without_field_and_equal_labels_are_refused():
    with pytest.raises(TaskError, match=r"no \{field\}"):
        Task("t", "Text:", ("a", "b"))
    for labels in ((), ("a",), ("a", "a", "b")):
        with pytest.raises(TaskError, match="two different words"):
            Task("t", "{text}", labels)


# --- word pairs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAIR_TASKS)
def test_word_pairs_are_many_distinct_single_words(name):
    pool = tasks.load(name).train
    words = [word for example in pool for word in (example.fields["word"], example.answer)]
    assert len(pool) >= 60
    assert [word for word, count in Counter(words).items() if count > 1] == []
    assert all(re.fullmatch(r"[A-Za-z]+", example.answer) for example in pool)
    assert all(word == (word.title() if name == "capitals" else word.lower()) for word in words)


def test_word_pairs_mix_regular_and_irregular():
    plurals = [e.answer == e.fields["word"] + "s" for e in tasks.load("plurals").train]
    past = [e.answer in (e.fields["word"] + "ed", e.fields["word"] + "d") for e in tasks.load("past").train]
    for regular in (plurals, past):
        assert 15 <= sum(regular) <= len(regular) - 15


# --- drawing ---------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**9), st.integers(0, 21), st.integers(0, 21))
def test_larger_k_extends_smaller_k(seed, k, more):
    data = tasks.load("capitals")
    small, large = sorted((k, more))
    assert tasks.demonstrations(data, large, seed)[:small] == tasks.demonstrations(data, small, seed)


@given(st.integers(0, 10**9))
def test_demonstrations_and_queries_of_a_pool_never_meet(seed):
    data = tasks.load("plurals")
    demonstrations, queries = tasks.demonstrations(data, 21, seed), tasks.queries(data, 43, seed)
    assert len({e.answer for e in (*demonstrations, *queries)}) == 64


def test_seeds_draw_differently_and_alike_when_equal():
    data = tasks.load("past")
    first = tasks.demonstrations(data, 8, 0)
    assert first == tasks.demonstrations(data, 8, 0)
    assert first != tasks.demonstrations(data, 8, 1)
    assert tasks.queries(data, 8, 0) != tasks.queries(data, 8, 1)


def test_test_rows_that_are_also_training_rows_are_not_queries(rows):
    directory = rows({"text": "shared", "label": 0}, {"text": "train only", "label": 1})
    (directory / "two" / "test.jsonl").write_text(
        '{"text": "shared", "label": 0}\n{"text": "test only", "label": 1}\n', encoding="utf-8"
    )
    data = tasks.load(TWO, data_dir=directory)
    assert [e.fields["text"] for e in tasks.queries(data, 1, 0)] == ["test only"]
    with pytest.raises(TaskError, match="'two': 2 queries asked for, 1 available"):
        tasks.queries(data, 2, 0)


def test_too_many_demonstrations_are_refused():
    with pytest.raises(TaskError, match=r"'capitals': 23 demonstrations asked for, 22 available"):
        tasks.demonstrations(tasks.load("capitals"), 23, 0)


# --- starter text ----------------------------------------------------------------------------------------------


def test_reviews_drop_the_neutral_band_and_split_once(starter_assets):
    data = tasks.load("reviews")
    assert (len(data.train), len(data.test)) == (626, 2000)  # |mean| < 0.5 is an eighth of the range
    number = [int(e.fields["text"].rsplit(" ", 1)[1]) for e in (*data.train, *data.test)]
    assert len(set(number)) == len(number)
    assert all(
        e.label == (i >= 1500) and e.answer == data.task.labels[e.label]
        for i, e in zip(number, (*data.train, *data.test), strict=True)
    )
    assert 0.4 < sum(e.label for e in data.test) / 2000 < 0.6
    assert data == tasks.load("reviews")


def test_five_class_reviews_are_equal_bins(starter_assets):
    data = tasks.load("reviews5")
    counts = Counter(e.label for e in (*data.train, *data.test))
    assert counts == dict.fromkeys(range(5), 600)
    by_text = {e.fields["text"]: e.answer for e in (*data.train, *data.test)}
    assert [by_text[f"review number {i}"] for i in (0, 700, 1500, 2300, 2999)] == list(data.task.labels)


def test_news_keeps_the_first_paragraph_below_the_title(starter_assets):
    data = tasks.load("news")
    assert (len(data.train), len(data.test)) == (100, 500)
    example = next(e for e in data.test if e.fields["text"].startswith("Body 599 "))
    assert example == Example({"text": "Body 599 begins. It goes on."}, "Technology", 4)


@given(st.text(alphabet="ab. \n", max_size=400))
def test_opening_is_a_run_of_whole_words_of_one_paragraph(article):
    opening = tasks.opening(article)
    assert len(opening.split()) <= tasks.NEWS_WORDS
    assert any(line.split()[: tasks.NEWS_WORDS] == opening.split() for line in article.split("\n"))


def test_opening_of_a_title_alone_is_the_title():
    assert tasks.opening("Only a title") == "Only a title"
    assert tasks.opening("T\n\n" + "word " * 300) == " ".join(["word"] * 40)


def test_unknown_topic_names_the_row(starter_assets, monkeypatch):
    monkeypatch.setattr(assets, "news", lambda: [assets.NewsItem("t\nx", "weather")])
    with pytest.raises(TaskError, match=r"'news', starter asset row 0: label 'weather'.*0 \(Business\)"):
        tasks.load("news")


# --- directory -------------------------------------------------------------------------------------------------


def test_directory_by_argument_and_by_environment(rows, monkeypatch):
    directory = rows(
        {"sentence": "fine", "label": 1}, {"sentence": "bad", "label": 0}, task="sst2", splits=("train", "validation")
    )
    expected = Example({"sentence": "fine"}, "Positive", 1)
    data = tasks.load("sst2", data_dir=directory)
    assert data.train[0] == data.test[0] == expected
    monkeypatch.setenv("EXPLAINER_DATA", str(directory))
    assert tasks.load("sst2-paper").train[0] == expected


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("two\nlines\r\n and\ttabs", "two lines and tabs"),
        ("<b>bold</b> &amp; more", "<b>bold</b> &amp; more"),
        ("so good 😀", "so good 😀"),
        ("a\u2028b", "a b"),
        ("word " * 10_000, " ".join(["word"] * 10_000)),
    ],
)
def test_text_is_kept_but_for_white_space(rows, raw, clean):
    data = tasks.load(TWO, data_dir=rows({"text": raw, "label": 1}))
    assert data.train[0].fields["text"] == clean


def test_an_own_task_with_free_answers(rows):
    task = Task("two", "{question} =", None, answer_column="result")
    data = tasks.load(task, data_dir=rows({"question": "1 + 1", "result": "2"}))
    assert task.demonstration(data.train[0]) == "1 + 1 = 2"
    assert data.train[0].label is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"sentence": "x", "label": 0}, r"'two', train row 1: no column 'text', found 'sentence', 'label'; rename"),
        ({"text": "x"}, "train row 1: no column 'label', found 'text'"),
        ({"text": "x", "label": 2}, r"train row 1: label 2 in column 'label' is not one of 0 \(no\), 1 \(yes\)"),
        ({"text": "x", "label": -1}, "label -1"),
        ({"text": "x", "label": "yes"}, "label 'yes'"),
        ({"text": "x", "label": True}, "label True"),
        ({"text": "x", "label": 1.0}, r"label 1\.0"),
        ({"text": " \n ", "label": 0}, r"train row 1: column 'text' holds ' \\n ', not a text"),
        ({"text": None, "label": 0}, "holds None, not a text"),
        ("{broken", r"train\.jsonl, line 2 is not JSON"),
        ("[1, 2]", "line 2 is not a JSON object"),
    ],
)
def test_bad_rows_are_named(rows, line, message):
    with pytest.raises(TaskError, match=message):
        tasks.load(TWO, data_dir=rows({"text": "good", "label": 1}, line))


def test_empty_split_missing_file_and_wrong_encoding(rows, tmp_path):
    with pytest.raises(TaskError, match="split 'train' is empty"):
        tasks.load(TWO, data_dir=rows(""))
    with pytest.raises(TaskError, match=r"'mr': cannot read .*mr/train\.jsonl.*EXPLAINER_DATA"):
        tasks.load("mr", data_dir=tmp_path)
    (tmp_path / "two" / "train.jsonl").write_bytes(b'{"text": "\xff", "label": 0}')
    with pytest.raises(TaskError, match="cannot read"):
        tasks.load(TWO, data_dir=tmp_path)


# --- names and hub ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "near"), [("SST-2", "sst2"), ("review", "reviews"), ("capital", "capitals")])
def test_unknown_name_suggests_the_nearest(name, near):
    with pytest.raises(TaskError, match=rf"no task '{name}'. Did you mean '{near}'\? Known tasks: reviews"):
        tasks.load(name)


def test_unknown_name_far_from_any_lists_them_all():
    with pytest.raises(TaskError, match=r"no task 'zzzz'\. Known tasks: reviews, .*cb-paper"):
        tasks.load("zzzz")


def test_hub_is_asked_for_the_pinned_revision(monkeypatch):
    import datasets  # noqa: PLC0415

    asked = []

    def load_dataset(*args, **options):
        asked.append((*args, options))
        return [{"premise": "P", "hypothesis": "H", "label": 2, "idx": 0}]

    monkeypatch.delenv("EXPLAINER_DATA", raising=False)
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    assert tasks.load("cb").test[0].answer == "Neither"
    revision = TASKS["cb"].hub.revision
    assert asked == [("aps/super_glue", "cb", {"revision": revision, "split": s}) for s in ("train", "validation")]


def test_no_network_says_what_to_do(monkeypatch, tmp_path):
    import datasets  # noqa: PLC0415

    monkeypatch.delenv("EXPLAINER_DATA", raising=False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    task = replace(TASKS["mr"], hub=Hub("explainer-test/no-such-data", "0" * 40))
    with pytest.raises(
        TaskError, match=r"'explainer-test/no-such-data' .* could not be loaded .*EXPLAINER_DATA.*capitals"
    ):
        tasks.load(task)


def test_own_task_without_any_source(monkeypatch):
    monkeypatch.delenv("EXPLAINER_DATA", raising=False)
    with pytest.raises(TaskError, match="'two' has no hub id; give data_dir"):
        tasks.load(TWO)
