"""explainer.data.tasks: the table, the word pairs, sources, splits and every error a user can meet."""

import json
import re
from collections import Counter
from dataclasses import replace
from importlib import resources
from unittest.mock import Mock, call

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explainer.data import assets, tasks
from explainer.data.tasks import TASKS, Example, Hub, Task
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
            (tmp_path / task / f"{split}.jsonl").write_text(text, encoding="utf-8")
        return tmp_path

    return write


@pytest.fixture
def starter_assets(monkeypatch):
    """Small stand-ins for the downloaded assets: 3,000 sorted reviews, 600 articles."""
    reviews = [assets.Review(f"review\nnumber {i}", round(-4 + 8 * i / 2999, 3)) for i in range(3000)]
    topics = ("business", "entertainment", "politics", "sports", "tech")
    article = "Title {i}\n\nBody {i} begins. It goes on.\n\nMore."
    news = [assets.NewsItem(article.format(i=i), topics[i // 120]) for i in range(600)]
    monkeypatch.setattr(assets, "reviews", lambda: [*reviews, reviews[0]])
    monkeypatch.setattr(assets, "news", lambda: news)


# --- the table -------------------------------------------------------------------------------------------------

WORLD = ("World", "Sports", "Business", "Technology")
ENTAILED = ("True", "False", "Neither")
SIGNS = ("Negative", "Positive")
FIVE = ("terrible", "bad", "neutral", "good", "great")


def test_every_task_says_where_it_comes_from_and_what_ends_a_demonstration():
    assert all(task.name == name and task.source and task.licence for name, task in TASKS.items())
    papers = {f"{name}-paper" for name in PAPER_TASKS}
    assert set(TASKS) == {"reviews", "reviews5", "news", *PAIRS, *PAPER_TASKS, *papers}
    for name, task in TASKS.items():
        released = name.removesuffix("-paper") in PAPER_TASKS
        assert task.separator == (tasks.DOCUMENT_SEPARATOR if released else "\n")
        assert (task.hub is not None) == released, "starter tasks need no hub"
        assert not released or re.fullmatch(r"[\w-]+/[\w-]+ [0-9a-f]{40}", f"{task.hub.id} {task.hub.revision}")
    assert tuple(task.name for task in TASKS.values() if task.template == "{word} ->") == tuple(PAIRS)


@pytest.mark.parametrize(
    ("name", "fields", "prompt", "labels"),
    [
        ("sst2", {"sentence": "S"}, "Sentence: S Label:", SIGNS),
        ("sst5", {"text": "S"}, "Sentence: S Label:", FIVE),
        ("mr", {"text": "S"}, "Review: S Sentiment:", SIGNS),
        ("subj", {"text": "S"}, "Input: S Type:", ("objective", "subjective")),
        ("agnews", {"text": "S"}, f"{CATEGORIES} Article: S Answer:", WORLD),
        ("cb", {"premise": "P", "hypothesis": "H"}, "P Question: H. True, False, or Neither? Answer:", ENTAILED),
        ("sst2-paper", {"sentence": "S"}, "Sentence: S\nLabel:", SIGNS),
        ("agnews-paper", {"text": "S"}, f"{CATEGORIES}\nNews: S\nType:", WORLD),
        (
            "cb-paper",
            {"premise": "P", "hypothesis": "H"},
            "P\nQuestion: H True, False, or Neither?\nAnswer:",
            ENTAILED,
        ),
        ("reviews", {"text": "S"}, "Review: S\nSentiment:", SIGNS),
        ("capitals", {"word": "S"}, "S ->", None),
        ("capitals", {"word": "{text} {0} {"}, "{text} {0} { ->", None),
    ],
)
def test_templates_and_label_words(name, fields, prompt, labels):
    task = TASKS[name]
    assert task.prompt(Example(fields, "")) == prompt
    assert task.demonstration(Example(fields, "A")) == f"{prompt} A"
    assert (task.labels, task.fields) == (labels, tuple(fields))


@pytest.mark.parametrize(
    ("template", "rest", "message"),
    [
        ("Text:", {}, r"no \{field\}"),
        ("{text} {label}", {}, "shows the answer; take it out"),
        ("{text", {}, "is not one .*write {{ for a brace"),
        ("{text} }", {}, "is not one"),
        *((template, {}, "not the plain name of a column") for template in ("{}", "{0}", "{text.__class__}")),
        *((template, {}, "not the plain name of a column") for template in ("{text[0]}", "{text!r}", "{text:>9}")),
        ("{text} Label: ", {}, "ends with a space; remove it"),
        *(("{text}", {"labels": labels}, "two different words") for labels in ((), ("a",), ("a", "a", "b"))),
        *(("{t}", {"labels": labels}, "without white space") for labels in (("", "a"), (" a", "b"), ("a\n", "b"))),
        *(("{t}", {"splits": splits}, "give two, for demonstr") for splits in (("train",), ("a", "b", "c"))),
    ],
)
def test_tasks_that_cannot_be_asked_are_refused(template, rest, message):
    with pytest.raises(TaskError, match=f"task 't': .*{message}"):
        Task("t", template, **({"labels": None} | rest))


# --- a user's file -----------------------------------------------------------------------------------------------

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
    tone |= {"hub": Hub("me/tone", "abc"), "splits": ("train", "dev")}
    assert tasks.read_file(path) == [
        Task("tone", "Message: {text}\nTone:", ("rude", "polite"), **tone),
        Task("sums-1", "{question} =", None),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tone]\na", r"is not TOML \(.*; mend it there"),
        ("a = " + "[" * 9999, "is not TOML"),
        ("", r"describes no task; add a table, like \[tone\]"),
        ("template = '{text}'", "'template' is not a table; put it below"),
        ("['a/b']\ntemplate = '{text}'", r"\[a/b\]: use letters without accents, digits, - and _"),
        ("[reviews]\ntemplate = '{text}'", r"\[reviews\]: there is a task 'reviews' already; choose another name"),
        ("[a]\nlabels = ['x', 'y']", r"\[a\]: template is missing; add it"),
        ("[a]\ntemplate = 3", r"\[a\]: template = 3 must be a text"),
        ("[a]\ntemplate = '{x}'\nlabels = 'x y'", r"\[a\]: labels = 'x y' must be a list of texts"),
        ("[a]\ntemplate = '{x}'\nlabels = ['x', 1]", "must be a list of texts"),
        ("[a]\ntemplate = '{x}'\nlabels = ['x', 'x']", "tasks.toml, task 'a': .*two different words"),
        ("[a]\ntemplate = '{x}'\nlabel = ['x', 'y']", r"\[a\]: there is no key 'label'; known keys: template, labels"),
        ("[a]\ntemplate = '{x}'\nhub = 'me/x'", r"hub = 'me/x' must be a table"),
        ("[a]\ntemplate = '{x}'\nhub = {id = 'me/x'}", r"\[a.hub\]: revision is missing"),
        ("[a]\ntemplate = '{x}'\nhub = {name = 'me/x'}", r"\[a.hub\]: there is no key 'name'; known keys: id, rev"),
    ],
)
def test_a_bad_file_is_reported_with_table_and_key(tmp_path, text, message):
    path = tmp_path / "tasks.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TaskError, match=message) as caught:
        tasks.read_file(path)
    assert str(path) in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path):
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(TaskError, match=rf"cannot read the task file {re.escape(str(path))} .*give the path"):
            tasks.read_file(path)
    (tmp_path / "latin.toml").write_bytes(b"[a]\ntemplate = '\xfc {x}'")
    with pytest.raises(TaskError, match="is not TOML"):
        tasks.read_file(tmp_path / "latin.toml")


# --- another task ------------------------------------------------------------------------------------------------


def test_beside_a_task_of_ones_own_stand_word_pairs_which_are_short():
    assert tasks.contrast_task(TWO) == "capitals" and {tasks.contrast_task(task) for task in TASKS.values()} == {
        tasks.unrelated_task(task) for task in TASKS.values()
    }


def test_foreign_demonstrations_are_about_something_else_with_the_same_kind_of_answers():
    for task in (*TASKS.values(), TWO):
        other = TASKS[tasks.unrelated_task(task)]
        assert other.name != task.name and other.source != task.source
        assert (other.labels is None) == (task.labels is None)
        assert other.hub is None
    others = {"capitals": "plurals", "plurals": "capitals", "sst2-paper": "news", "agnews-paper": "reviews"}
    assert {name: tasks.unrelated_task(TASKS[name]) for name in others} == others


# --- word pairs ------------------------------------------------------------------------------------------------

ACCENTS = {"french": "àâçèéêëîïôùûü", "spanish": "áéíñóúü"}
DAYS = {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}
KINDS_WITH_NAMES = {"country", "city", "planet", "month", "day", "language"}


def repeated(words):
    return [word for word, count in Counter(words).items() if count > 1]


def unlike(pattern, words):
    return [word for word in words if not re.fullmatch(f"{pattern}( {pattern})*", word)]


@pytest.mark.parametrize("name", PAIRS)
def test_word_pairs_are_many_ask_each_word_once_and_are_spelled_alike(name):
    pairs = [(example.fields["word"], example.answer) for example in tasks.load(name).train]
    assert pairs == [tuple(pair) for pair in PAIRS[name]], "no white space around words"
    words, answers = zip(*pairs, strict=True)
    assert len(pairs) >= (200 if name in STUDIED_PAIRS else 100)
    assert repeated(words) == [] and not any(word == answer for word, answer in pairs)
    assert name == "categories" or repeated(answers) == []
    if name in STUDIED_PAIRS:
        assert repeated(word for pair in pairs for word in pair) == [], "none is there in both directions"
    accents = ACCENTS.get(name, "")
    assert unlike("[\u4e00-\u9fff]+" if name == "chinese" else "[A-Za-z]+", words) == []
    assert unlike(f"[A-Za-z{accents}]+", answers) == []
    assert bool(accents) == any(not answer.isascii() for answer in answers)
    names = name in ("capitals", "nationalities")
    for word, answer in pairs:
        named = names or word in DAYS or (name == "categories" and answer in KINDS_WITH_NAMES)
        assert word == (word.title() if named else word.lower())
        assert answer == (word.upper() if name == "uppercase" else answer.title() if names else answer.lower()), (
            "lower case but for proper nouns"
        )


def test_categories_are_many_and_plurals_and_pasts_mix_regular_and_irregular():
    words, categories = zip(*PAIRS["categories"], strict=True)
    counts = Counter(categories)
    assert len(counts) >= 12 and min(counts.values()) >= 3 and max(counts.values()) <= 0.1 * counts.total()
    assert not set(counts) & set(words)
    for name, endings in (("plurals", ("s",)), ("past", ("ed", "d"))):
        regular = [answer in (word + ending for ending in endings) for word, answer in PAIRS[name]]
        assert 15 <= sum(regular) <= len(regular) - 15


# --- drawing ---------------------------------------------------------------------------------------------------


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
    """However an accent is composed, and what is not seen; nor are those that the test rows repeat.

    In other case, a text with the same answer is a copy, and with another answer it is not.
    """
    rows({"text": "shared \u00e9", "label": 0}, {"text": "train only", "label": 1}, splits=("train",))
    once = {"text": "test only", "label": 1}
    copies = [f"shared e\u0301{more}" for more in ("\u200b", " \u200b", "\u00ad", "\ufe0f")] + ["Shared \u00c9"]
    others = [{"text": "TEST ONLY", "label": 1}, {"text": "Train only", "label": 0}]
    directory = rows(*({"text": text, "label": 0} for text in copies), once, once, others[0], splits=("test",))
    data = tasks.load(TWO, data_dir=directory)
    assert [e.fields["text"].lower() for e in tasks.queries(data, 1, 0)] == ["test only"]
    apart = tasks.load(TWO, data_dir=rows(*others, splits=("test",)))
    assert {e.fields["text"] for e in tasks.queries(apart, 2, 0)} == {"TEST ONLY", "Train only"}
    with pytest.raises(TaskError, match=r"'two': 2 queries asked for, 1 available; .* no training .*case and white"):
        tasks.queries(data, 2, 0)
    with pytest.raises(TaskError, match="'two': 3 demonstrations asked for, 2 available"):
        tasks.demonstrations(data, 3, 0)


# --- starter text ----------------------------------------------------------------------------------------------


def test_reviews_drop_the_neutral_band_and_split_once(starter_assets):
    data = tasks.load("reviews")
    assert (len(data.train), len(data.test)) == (626, 2000)  # |mean| < 0.5 is an eighth of the range
    of = {int(e.fields["text"].rsplit(" ", 1)[1]): e for e in (*data.train, *data.test)}
    assert len(of) == 2626 and {i: e.label for i, e in of.items()} == {i: int(i >= 1500) for i in of}
    assert all(e.answer == data.task.labels[e.label] for e in of.values())
    assert 0.4 < sum(e.label for e in data.test) / 2000 < 0.6
    assert data == tasks.load("reviews")


def test_five_class_reviews_are_equal_bins(starter_assets):
    data = tasks.load("reviews5")
    counts = Counter(e.label for e in (*data.train, *data.test))
    assert counts == dict.fromkeys(range(5), 600)
    by_text = {e.fields["text"]: e.answer for e in (*data.train, *data.test)}
    assert [by_text[f"review number {i}"] for i in (0, 700, 1500, 2300, 2999)] == list(data.task.labels)


def test_news_keeps_the_first_paragraph_below_the_title(starter_assets, monkeypatch):
    data = tasks.load("news")
    assert (len(data.train), len(data.test)) == (100, 500)
    example = next(e for e in data.test if e.fields["text"].startswith("Body 599 "))
    assert example == Example({"text": "Body 599 begins. It goes on."}, "Technology", 4)
    monkeypatch.setattr(assets, "news", lambda: [assets.NewsItem("t\nx", "weather")])
    with pytest.raises(TaskError, match=r"'news', starter asset row 0: label 'weather'.*0 \(Business\)"):
        tasks.load("news")


@given(st.text(alphabet="ab. \n", max_size=400))
def test_opening_is_a_run_of_whole_words_of_one_paragraph(article):
    opening = tasks._opening(article)
    assert len(opening.split()) <= tasks._NEWS_WORDS
    assert any(line.split()[: tasks._NEWS_WORDS] == opening.split() for line in article.split("\n"))
    assert tasks._opening("Only a title") == "Only a title"


# --- directory -------------------------------------------------------------------------------------------------


def test_directory_by_argument_and_by_environment(rows, monkeypatch):
    lines = {"sentence": "fine", "label": 1}, {"sentence": "bad", "label": 0}
    directory = rows(*lines, task="sst2", splits=("train", "validation"))
    expected = Example({"sentence": "fine"}, "Positive", 1)
    data = tasks.load("sst2", data_dir=directory)
    assert data.train[0] == data.test[0] == expected
    monkeypatch.setenv("EXPLAINER_DATA", str(directory))
    assert tasks.load("sst2-paper").train[0] == expected
    monkeypatch.setenv("HOME", str(directory))
    assert tasks.load(replace(tasks.TASKS["sst2"], folder="~/sst2"), data_dir="elsewhere").train[0] == expected


def test_an_own_task_with_free_answers(rows):
    task = Task("two", "{{{question}}} =", None, answer_column="result")  # doubled braces are braces
    data = tasks.load(task, data_dir=rows({"question": "{1} <b>", "result": "😀\n{0}"}))
    assert task.demonstration(data.train[0]) == "{{1} <b>} = 😀 {0}" and data.train[0].label is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"sentence": "x", "label": 0}, r"'two', train row 1: no column 'text', found 'sentence', 'label'; rename"),
        ({"text": "x"}, "train row 1: no column 'label', found 'text'"),
        ({"text": "x", "label": 2}, r"train row 1: label 2 in column 'label' is not one of 0 \(no\), 1 \(yes\)"),
        ({"text": "x", "label": None}, r"row 1: label None in column 'label' .*mend the row or the task's labels"),
        *(({"text": "x", "label": label}, f"label {label!r}") for label in (-1, "yes", True, 1.0)),
        ({"text": "x", "label": {"a": 10**99}}, r"label \{'a': 1000.*\.\.\. in"),
        ('{"text": "x", "label": NaN}', "label nan"),
        *(({"text": text, "label": 0}, "'text' holds .*, not a text; mend") for text in ("", " \n ", None, [""])),
        ({"text": "\ud83d", "label": 0}, r"train row 1: column 'text' holds half of a surrogate pair in '\\ud83d'"),
        *((line, r"train\.jsonl, line 2 is not JSON") for line in ('{"text": "raw \0 byte"}', "[" * 99999, "{broken")),
        ('{"text": "x", "label": ' + "9" * 5000 + "}", "line 2 is not JSON"),
        *((line, "line 2 is not a JSON object") for line in ('"text"', "null", "[1, 2]")),
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
    with pytest.raises(TaskError, match=r"'two': .*train\.jsonl is not UTF-8 .*; save it as UTF-8"):
        tasks.load(TWO, data_dir=tmp_path)
    with pytest.raises(TaskError, match=r"cannot read .*; put its rows there\.$"):  # a folder that no system allows
        tasks.load(replace(TWO, folder="a\0b"), data_dir=tmp_path)


@pytest.mark.parametrize(("encoding", "newline"), [("utf-8", "\n"), ("utf-8-sig", "\r\n"), ("utf-8-sig", "\n")])
def test_files_from_windows_read_the_same(tmp_path, encoding, newline):
    (tmp_path / "two").mkdir()
    for split in TWO.splits:
        text = '{"text": "a\\r\\nb", "label": 0}\n\n{"text": "é", "label": 1}\n'
        (tmp_path / "two" / f"{split}.jsonl").write_text(text, encoding=encoding, newline=newline)
    expected = (Example({"text": "a b"}, "no", 0), Example({"text": "é"}, "yes", 1))
    assert tasks.load(TWO, data_dir=tmp_path).train == expected


def test_the_same_split_twice_is_one_pool(rows):
    directory = rows(*({"text": str(i), "label": i % 2} for i in range(9)), splits=("all",))
    data = tasks.load(replace(TWO, splits=("all", "all")), data_dir=directory)
    assert data.train is data.test
    drawn = {e.fields["text"] for e in (*tasks.demonstrations(data, 3, 0), *tasks.queries(data, 6, 0))}
    assert len(drawn) == 9


def test_rows_that_a_pool_repeats_go_before_it_is_split(rows):
    """Each twice: the copy has other case and white space, and another value in a column that the template ignores."""
    once = [{"text": f"a text {i}", "label": i % 2, "id": i} for i in range(9)]
    copies = [{"text": f" A\n text\u00a0{i}", "label": i % 2, "id": 100 + i} for i in range(9)]
    pool = replace(TWO, splits=("all", "all"))
    data = tasks.load(pool, data_dir=rows(*once, *copies, splits=("all",)))
    assert data.train is data.test and [e.fields["text"] for e in data.train] == [row["text"] for row in once]
    with pytest.raises(TaskError, match=r"'Text: a text 3 Label:' is answered 'yes' in row 3 and 'no' in row 9; rem"):
        tasks.load(pool, data_dir=rows(*once, {"text": "a  text 3", "label": 0}, splits=("all",)))


@pytest.mark.parametrize("split", TWO.splits)
def test_a_split_that_answers_one_text_in_two_ways_is_named_and_read(rows, split):
    once = [{"text": "caf\u00e9", "label": 0}, {"text": "b", "label": 1}]
    rows(*once)
    directory = rows(*once, {"text": "cafe\u0301", "label": 1}, {"text": "B", "label": 0}, splits=(split,))
    message = rf"'two', {split}: .* 'no' in row 0 and 'yes' in row 2; remove .* are one\.$"
    with pytest.warns(UserWarning, match=message) as warned:
        data = tasks.load(TWO, data_dir=directory)
    assert warned[0].filename == __file__, "the line that loads"
    assert sorted((len(data.train), len(data.test))) == [2, 4]


def test_labels_that_no_row_has_are_named_as_where_they_begin_with_1(rows):
    three = replace(TWO, labels=("a", "b", "c"))
    with pytest.warns(UserWarning, match="no row has the label a; the first of the labels has number 0"):
        tasks.load(three, data_dir=rows({"text": "x", "label": 1}, {"text": "y", "label": 2}))


# --- from the row to the tokens ----------------------------------------------------------------------------------


HOSTILE = (
    *("<s>struck</s> <pad>", "two\nlines\r\nand\u2028more", "<script>alert('&amp;')</script><br/>", "good 😀👩‍👩‍👧 🇫🇷"),
    *("{text} {} {0!r} }{ %s", "a\0b", "سلام \u202eעולם\u202c !", "e\u0301 ﬀ ½ \u200b", "\ufeffa", "no\nLabel: yes"),
    '\\n \\" \\u0041',
)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_rows_are_tokenized_as_the_text_they_are(rows, checkpoint, text):
    rows({"text": text, "label": 1}, {"text": "plain", "label": 0}, splits=("train",))
    directory = rows({"text": f"{text} query", "label": 0}, {"text": text, "label": 0}, splits=("test",))
    task = replace(TWO, template="{text}\nLabel:")
    data = tasks.load(task, data_dir=directory)
    shown, (query,) = tasks.demonstrations(data, 2, 0), tasks.queries(data, 1, 0)
    clean = " ".join(text.split())
    assert query.fields["text"] == f"{clean} query"

    ids, ends = scoring.context_ids(checkpoint, task, shown)
    context = "".join(f"{e.fields['text']}\nLabel: {e.answer}\n" for e in shown)
    assert checkpoint.tokenizer.decode(ids[1:]) == context
    assert clean in context and ends[-1] == len(ids)
    assert not set(ids[1:]) & set(checkpoint.tokenizer.all_special_ids)


# --- names and hub ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "near"), [("SST-2", "sst2"), ("review", "reviews"), ("zzzz", None)])
def test_unknown_name_suggests_the_nearest_and_lists_all(name, near):
    hint = rf"Did you mean '{near}'\? " if near else ""
    with pytest.raises(TaskError, match=rf"no task '{name}'\. {hint}Known tasks: reviews, .*cb-paper"):
        tasks.load(name)


def test_hub_is_asked_for_the_pinned_revision(monkeypatch):
    import datasets  # noqa: PLC0415

    hub = Mock(return_value=[{"premise": "P", "hypothesis": "H", "label": 2, "idx": 0}])
    monkeypatch.delenv("EXPLAINER_DATA", raising=False)
    monkeypatch.setattr(datasets, "load_dataset", hub)
    assert tasks.load("cb").test[0].answer == "Neither"
    cb, revision = ("aps/super_glue", "cb"), TASKS["cb"].hub.revision
    assert hub.call_args_list == [call(*cb, revision=revision, split=split) for split in ("train", "validation")]


@pytest.mark.parametrize(
    ("names", "labels", "wrong"),
    [
        (("negative", "positive"), ("Positive", "Negative"), "label 0 is 'Positive'.*has 'positive' for 1; give"),
        (("neg", "pos"), ("Positive", "Negative"), "label 0 is 'Positive'.*order of the data set: neg, pos"),
        (("World", "Sci/Tech", "Sport"), ("World", "Sport", "Technology"), "label 1 is 'Sport'.*has 'Sport' for 2"),
        *((names, labels, None) for names, labels in (
            (("neg", "pos"), ("Negative", "Positive")),
            (("World", "Sports", "Business", "Sci/Tech"), WORLD),
            (("entailment", "contradiction", "neutral"), ENTAILED),
            (("not_equivalent", "equivalent"), ("no", "yes")),
            (("very negative", "negative", "neutral", "positive", "very positive"), FIVE),
        )),
    ],
)  # fmt: skip
def test_labels_have_the_order_of_the_data_set(monkeypatch, names, labels, wrong):
    import datasets  # noqa: PLC0415

    columns = {"text": [f"text {i}" for i in range(len(names))], "label": list(range(len(names)))}
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=list(names))})
    found = datasets.Dataset.from_dict(columns, features)
    monkeypatch.delenv("EXPLAINER_DATA", raising=False)
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: found)
    task = replace(TWO, labels=labels, hub=Hub("a/set", "main"), splits=("train", "train"))
    if wrong:
        with pytest.raises(TaskError, match=wrong):
            tasks.load(task)
    else:
        assert [example.answer for example in tasks.load(task).train] == list(labels)


def test_no_network_and_no_source_say_what_to_do(monkeypatch, tmp_path):
    import datasets  # noqa: PLC0415

    monkeypatch.delenv("EXPLAINER_DATA", raising=False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    task = replace(TASKS["mr"], hub=Hub("explainer-test/no-data", "0" * 40))
    with pytest.raises(TaskError, match=r"'explainer-test/no-data' .* could not be loaded .*EXPLAINER_DATA.*capitals"):
        tasks.load(task)
    with pytest.raises(TaskError, match="'two' has no hub id; give data_dir"):
        tasks.load(TWO)


def test_named_examples_come_in_the_order_asked_and_unknown_words_are_named():
    capitals = tasks.load("capitals")
    assert [example.answer for example in tasks.examples_of_words(capitals, "Japan", "France")] == ["Tokyo", "Paris"]
    with pytest.raises(TaskError, match="Atlantis"):
        tasks.examples_of_words(capitals, "Japan", "Atlantis")


def test_labels_are_those_of_the_examples_and_one_without_is_an_error():
    examples = [tasks.Example({"text": "a"}, "yes", 1), tasks.Example({"text": "b"}, "no", 0)]
    assert tasks.example_labels(TWO, examples) == [1, 0]
    assert tasks.example_labels(replace(TWO, labels=None), examples) is None
    with pytest.raises(TaskError, match="1 examples of task 'two' have no label"):
        tasks.example_labels(TWO, [*examples, tasks.Example({"text": "c"}, "yes")])


def test_an_article_is_its_first_paragraph_of_at_most_forty_words():
    words = [f"w{i}" for i in range(60)]
    assert tasks._opening(f"Title\n\n{' '.join(words)}\n\nMore.") == " ".join(words[:40])
    assert tasks._opening("Title\n\nShort.\n\nMore.") == "Short." and tasks._opening("Alone") == "Alone"
