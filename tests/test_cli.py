import subprocess
import sys

import pytest

from explainer import __version__, assets, cli
from explainer.errors import DownloadError


@pytest.fixture
def fetched(monkeypatch, tmp_path):
    """Records what would be fetched; everything is then missing but the reviews."""
    calls = []
    monkeypatch.setenv("EXPLAINER_CACHE", str(tmp_path))
    monkeypatch.setattr(assets, "fetch", lambda names, *, offline: calls.append((names, offline, assets.cache_dir())))
    monkeypatch.setattr(assets, "missing", lambda: [a for a in assets.ASSETS if a.name != "reviews"])
    return calls


def test_fetch_prints_a_row_for_each_asset(fetched, capsys, tmp_path):
    assert cli.main(["fetch"]) == 0
    assert fetched == [(None, False, tmp_path)]
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split() == ["name", "what", "download", "licence", "state"]
    assert [row.split()[0] for row in rows] == ["SmolLM2-135M-Instruct", "reviews", "news"]
    assert [row.split()[-1] for row in rows] == ["missing", "ready", "missing"]
    assert "Apache-2.0" in rows[0] and "92.9 MB" in rows[0]


def test_fetch_passes_its_options_on(fetched, tmp_path):
    assert cli.main(["fetch", "--offline", "--cache", str(tmp_path / "a b"), "news", "reviews"]) == 0
    assert fetched == [(["news", "reviews"], True, tmp_path / "a b")]


def test_verify_reads_what_was_fetched(fetched, monkeypatch):
    verified = []
    monkeypatch.setattr(assets, "require_intact", verified.append)
    cli.main(["fetch", "reviews"])
    assert verified == []
    cli.main(["fetch", "--verify", "reviews"])
    assert verified == [["reviews"]]


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (DownloadError("no network"), 1, "explainer: no network\n"),
        (KeyboardInterrupt(), 130, "explainer: interrupted; run again to resume\n"),
    ],
)
@pytest.mark.usefixtures("fetched")
def test_errors_are_one_line_and_an_exit_code(monkeypatch, capsys, error, code, line):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(assets, "fetch", fail)
    assert cli.main(["fetch"]) == code
    captured = capsys.readouterr()
    assert captured.err == line
    assert captured.out.count("\n") == 4


def test_offline_without_assets_fails(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("EXPLAINER_CACHE", str(tmp_path))
    assert cli.main(["fetch", "--offline"]) == 1
    assert "explainer fetch SmolLM2-135M-Instruct reviews news" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["fetsh"], ["fetch", "--nope"]])
def test_wrong_usage(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == 2
    assert "usage: explainer" in capsys.readouterr().err


def test_version(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"explainer {__version__}\n"


def test_help_loads_nothing_heavy():
    script = (
        "import sys, explainer.cli as c\ntry: c.main(['--help'])\n"
        "except SystemExit: print({'requests', 'torch', 'tqdm'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("set()\n")
    assert "fetch" in done.stdout
