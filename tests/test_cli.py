import json
import re
import shlex

import pytest
import tiny_models
import toy_study
from conftest import ROOT

from explainer import commands
from explainer.compare.few_shot_comparison import Look
from explainer.data import tasks
from explainer.results import published
from explainer.theory.statistics import Interval
from explainer_lab import cli
from explainer_lab.comparison import Comparison
from explainer_lab.experiment import Experiment

# --- study -----------------------------------------------------------------------------------------------------


def recorded(monkeypatch, experiment):
    """Runs of the experiment are recorded with how it was made, not computed."""
    calls = []

    def run(self, settings, store, published, *, engine):
        calls.append((settings, {"engine": engine, "experiment": self, "published": published}))

    monkeypatch.setattr(experiment, "run", run)
    monkeypatch.setattr(experiment, "tables", lambda *_: {})
    return calls


def test_publish_names_the_tables(tmp_path, monkeypatch, capsys):
    calls, folded = recorded(monkeypatch, Comparison), []
    monkeypatch.setattr(Comparison, "publish", lambda _, settings, store, published: folded.append(published.directory))
    command = ["comparison", "--results", str(tmp_path / "results"), "--tasks", "capitals", "--publish"]
    assert cli.main([*command, str(tmp_path)]) == 0
    ((_, how),) = calls
    assert [how["published"].directory] == folded == [tmp_path / "comparison"]
    assert cli.main(command) == 1
    assert "task of your own would be published under the names of the book's grids" in capsys.readouterr().err
    own = tmp_path / "own.toml"
    own.write_text('[agreement]\ntask = "capitals"\nseed = 0\n')
    with_file = ["comparison", "--results", str(tmp_path), "--publish", "--grid"]
    assert cli.main([*with_file, str(own)]) == 1
    assert "settings of your own would be published" in capsys.readouterr().err
    of_book = ROOT / "src" / "explainer" / "published" / "comparison" / "grids.toml"
    assert cli.main([*with_file, str(of_book), "--only", "word-pairs-k"]) == 0
    assert folded[1:] == [of_book.parent]


# --- the user's own task ---------------------------------------------------------------------------------------


@pytest.fixture
def example(tmp_path, monkeypatch):
    """The worked example of the book: its file, data as it describes them, and its command with a small model."""
    page = (ROOT / "book" / "reference" / "reproduce.md").read_text("utf8")
    (toml,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (command,) = re.findall(r"^explainer-lab (comparison --task-file .*)$", page, re.MULTILINE)
    folder = tmp_path / "my_data" / "tone"
    folder.mkdir(parents=True)
    (tmp_path / "my_data" / "tasks.toml").write_text(toml, encoding="utf8")
    rows = [json.dumps({"text": f"{word} {i}", "label": label}) for i in range(6) for label, word in enumerate("ab")]
    (folder / "train.jsonl").write_text("\n".join(rows[:4]))
    (folder / "test.jsonl").write_text("\n".join(rows[4:]))
    model = tiny_models.save("llama", tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    return [*shlex.split(command), "--model", str(model), "--device", "cpu", "--k", "2", "--queries", "4"]


def test_the_example_of_the_book_runs_from_the_file_to_the_stored_result(example, tmp_path, capsys):
    """Where its results are, a changed entry is refused."""
    assert cli.main([*example, "--list"]) == 0
    assert "0 stored, 1 waiting" in capsys.readouterr().out
    assert cli.main(example) == 0
    assert "model-tone-k2" in capsys.readouterr().out
    (path,) = (tmp_path / "my_results").glob("*.json")
    content = json.loads(path.read_text())
    assert content["identity"]["cell"]["task"] == "tone"
    assert len(content["result"]["queries"]["query_id"]) == 4
    file = tmp_path / "my_data" / "tasks.toml"
    assert {"rude", "polite"} == set(tasks.read_file(file)[0].labels)
    file.write_text(file.read_text().replace("Message", "Text"))
    assert cli.main([*example, "--list"]) == 1
    assert "computed from other data than are here: use another directory" in capsys.readouterr().err


# --- train -----------------------------------------------------------------------------------------------------


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """A text file to train on, as an option of the command."""
    monkeypatch.setenv("EXPLAINER_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "own.txt"
    path.write_text("\n\n\n".join(f"{i} " + "the model reads the text again " * 8 for i in range(20)))
    return ["--corpus", str(path), "--vocabulary", "260", "--length", "16", "--steps", "5"]


SMALL = ["--layers", "1", "--width", "8", "--heads", "2", "--batch", "2", "--warmup", "1", "--seeds", "3"]


def test_train_stores_a_pair_and_lists_it(corpus, tmp_path, capsys):
    command = ["language-models", *corpus, *SMALL, "--average", "none", "momentum", "--eta", "0.5"]
    where = ["--results", str(tmp_path / "results")]
    assert cli.main([*command, *where, "--list"]) == 0
    assert capsys.readouterr().out.count("\nwaiting ") == 2
    assert cli.main([*command, *where]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split() == ["setting", "held_out", "copied"]
    assert [row.split()[0].partition("seed3-")[2] for row in rows] == ["plain", "momentum-eta0.5"]
    assert cli.main([*command, *where, "--list"]) == 0
    assert capsys.readouterr().out.count("\nstored ") == 2
    assert cli.main([*command, "--list"]) == 0  # by default the results are in the cache
    assert capsys.readouterr().out.count("\nwaiting ") == 2


# Another model, and a task of one's own, in every study.


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory):
    return str(tiny_models.save("llama", tmp_path_factory.mktemp("model") / "tiny"))


@pytest.mark.parametrize(
    ("command", "values"),
    [("agreement", {"task": "capitals", "k": 4}), ("causal-tests", {"task": "capitals", "k": 4}),
     ("shared-part", {"k": 4}), ("reversal", {}), ("minimal-pairs", {"k": 4})],
)  # fmt: skip
def test_what_is_given_takes_the_place_of_the_values_of_a_grid(monkeypatch, tmp_path, tiny_model, command, values):
    monkeypatch.setenv("EXPLAINER_MODEL", tiny_model)
    options = [w for name, value in values.items() for w in ({"task": "--tasks"}.get(name, f"--{name}"), str(value))]
    calls = recorded(monkeypatch, Experiment)
    assert cli.main([command, *options, "--seeds", "3", "5", "--results", str(tmp_path)]) == 0
    ((settings, _),) = calls
    assert {one.checkpoint for one in settings} == {tiny_model} and {one.seed for one in settings} == {3, 5}
    assert all(getattr(one, name) == value for one in settings for name, value in values.items())


FEW = ["--seeds", "0", "--k", "2", "--queries", "4"]


def test_a_task_that_fails_ends_its_own_settings_and_the_rest_is_computed_and_published(tiny_model, tmp_path, capsys):
    publish = ["--results", str(tmp_path / "results"), "--publish", str(tmp_path / "tables")]
    grid = tmp_path / "grids.toml"
    of = f'checkpoint = "{tiny_model}"\nseed = 0\nn_queries = 4\n'
    grid.write_text(f'[few]\n{of}task = "capitals"\nk = 2\n[many]\n{of}task = "past"\nk = 100000\n')
    assert cli.main(["comparison", "--grid", str(grid), *publish]) == 1
    out, err = capsys.readouterr()
    assert "tiny-capitals-k2" in out and "explainer: 1 of 2 could not be computed:" in err
    (folder,) = (tmp_path / "tables").iterdir()
    assert published.rows_of_experiment(folder)["task"].tolist() == ["capitals"]


def test_a_look_says_which_models_could_not_be_asked(tiny_model, tmp_path, capsys):
    models = [str(tmp_path / "nowhere"), tiny_model]
    assert commands.main(["look", "--model", *models, "--tasks", "past"]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[1].split()[:6] == [tiny_model, "past", "16", "5", "x", "24"]
    assert "1 could not be asked:" in err
    assert commands.main(["look", "--model", tiny_model, "--tasks", "past", *FEW, "--seeds", "0", "0"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:4] == [tiny_model, "past", "2", "1"]
    assert commands.main(["look"]) == 1


def test_a_look_asks_the_data_that_are_given_and_says_what_is_seen(monkeypatch, tmp_path, tiny_model, capsys):
    def looked(_, data, k, seeds, n):
        assert len(data.train) == len(toy_study.DATA.train)
        return Look(*[Interval(0.5, 0.5, 0.5)] * 2, Interval(0.2, 0.1 if k == 2 else -0.1, 0.3), None)

    monkeypatch.setattr(Look, "of", looked)
    where = ["--model", tiny_model, "--data-dir", toy_study.write_mr(tmp_path)]
    assert commands.main(["look", *where, "--tasks", "mr", "--k", "2", "4"]) == 0
    _, two, four, *_ = capsys.readouterr().out.splitlines()
    assert two.endswith("yes") and four.endswith("not seen")


@pytest.mark.parametrize("options", [[], ["--splits", "report"], ["--publish", "mine"], ["--only", "agreement"]])
def test_a_choice_is_made_on_its_own_split_of_tasks(capsys, tiny_model, options):
    tasks_asked = ["--tasks", "capitals"] * bool(options)
    assert cli.main(["agreement", "--model", tiny_model, "--choose", *tasks_asked, *options]) == 1
    assert "--choose compares rates on tasks" in capsys.readouterr().err


def test_a_choice_is_never_made_on_what_is_reported(monkeypatch, tmp_path, tiny_model):
    calls = recorded(monkeypatch, Experiment)
    monkeypatch.setattr(cli, "_print_choice", lambda _: None)
    options = ["--model", tiny_model, "--tasks", "capitals", "--choose", "--results", str(tmp_path)]
    assert cli.main(["agreement", *options]) == 0
    ((settings, _),) = calls
    assert {(one.split, one.lessons) for one in settings} == {("selection", "own")}
    assert {one.seed for one in settings}.isdisjoint(range(20)) and len({one.lr for one in settings}) == 4


@pytest.mark.usefixtures("example")
def test_a_file_of_tasks_alone_asks_for_all_of_them_and_reads_what_is_beside_it(monkeypatch, tmp_path, capsys):
    path = tmp_path / "my_data" / "tasks.toml"
    path.write_text(path.read_text() + path.read_text().replace("[tone]", '[voice]\nfolder = "tone"'))
    monkeypatch.chdir("/")
    calls = recorded(monkeypatch, Comparison)
    assert cli.main(["comparison", "--task-file", str(path), "--results", str(tmp_path / "results")]) == 0
    ((settings, how),) = calls
    assert [one.task for one in settings] == ["tone", "voice"] == list(how["experiment"].made_of["data"])
