"""explainer.models.loading on tiny random models saved to disk: what loads, and what every refusal says."""

import json
import pickle
import re
import shutil
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import gguf
import huggingface_hub
import numpy as np
import pytest
import tiny_models
import torch
from huggingface_hub import errors as hub_errors
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    BertConfig,
    BertForMaskedLM,
    BertLMHeadModel,
    ByT5Tokenizer,
    CohereConfig,
    CohereForCausalLM,
    GPT2Tokenizer,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from explainer.data import assets
from explainer.errors import CheckpointError
from explainer.models import loading, scoring, validation


@pytest.fixture
def copy(saved, tmp_path):
    """A copy of the tiny Llama that a test may damage."""
    return shutil.copytree(saved["llama"], tmp_path / "copy")


IS_SILENT = loading._is_silent


@pytest.fixture(autouse=True)
def no_hub_is_asked(monkeypatch):
    """Tests without a server of their own say what the hub answers."""
    monkeypatch.setattr(loading, "_is_silent", lambda *_: False)
    loading._download.cache_clear()


class Hub(BaseHTTPRequestHandler):
    """What stands in place of the hub, by the first part of a path."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        kind = self.path.split("/")[1]
        if kind == "silent":
            self.server.ended.wait()
            return
        body = b"<html>Please log in to this network</html>"
        self.send_response({"page": 200, "refusing": 403, "busy": 503}.get(kind, 407))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_CONNECT(self):
        self.send_error(407)


@pytest.fixture
def asked(monkeypatch, tmp_path, no_hub_is_asked):
    """What an error says of a model that is asked of such a hub, or through such a proxy, named by a variable."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.ended = threading.Event()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    address = f"127.0.0.1:{server.server_port}"
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(loading, "_is_silent", IS_SILENT)
    monkeypatch.setattr(loading, "_HUB_SECONDS", 0.5)
    for variable in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)

    def message(hub=None, **variables):
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", f"http://{address}/{hub}" if hub else "https://hub")
        for name, value in variables.items():
            monkeypatch.setenv(name, value.format(address))
        huggingface_hub.close_session()
        with pytest.raises(CheckpointError) as raised:
            loading.load("a/b")
        return str(raised.value)

    yield message
    server.ended.set()
    server.shutdown()
    huggingface_hub.close_session()


@pytest.fixture
def no_network(monkeypatch, tmp_path):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))


def refused(message, name, read=loading.load, **options):
    with pytest.raises(CheckpointError, match=message):
        read(name, **options)


def edit_config(directory, name="config.json", **changes):
    path = directory / name
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


# --- loading ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", tiny_models.CONFIGS)
def test_every_family_loads_ready_for_inference(saved, family):
    checkpoint = loading.load(saved[family])
    assert checkpoint.model.config.model_type == family
    assert not checkpoint.model.training
    assert not any(p.requires_grad for p in checkpoint.model.parameters())
    assert checkpoint.dtype == torch.float32
    assert checkpoint.device.type == "cpu"
    assert checkpoint.context_length == tiny_models.LENGTH
    assert (checkpoint.name, checkpoint.revision) == (str(saved[family]), None)


def test_a_tokenizer_that_would_take_spaces_away_keeps_them(directory, tmp_path):
    """As the starter checkpoint has it where an older transformers converted it."""
    home = Path(shutil.copytree(directory, tmp_path / "model"))
    edit_config(home, "tokenizer_config.json", clean_up_tokenization_spaces=True)
    assert loading.load(home).tokenizer.clean_up_tokenization_spaces is False


def test_dtype_and_device_can_be_set(saved):
    checkpoint = loading.load(saved["gpt2"], dtype=torch.bfloat16, device="cpu")
    assert {p.dtype for p in checkpoint.model.parameters()} == {torch.bfloat16}
    hidden = checkpoint.hidden(input_ids=torch.tensor([[4, 5]]))
    assert hidden.dtype == torch.bfloat16
    assert checkpoint.logits(hidden).dtype == torch.float32


@pytest.mark.parametrize("family", tiny_models.CONFIGS)
def test_logits_of_hidden_states_are_the_models(saved, family):
    checkpoint = loading.load(saved[family])
    ids = torch.randint(tiny_models.VOCAB, (2, 30), generator=torch.Generator().manual_seed(0))
    expected = checkpoint.model(input_ids=ids).logits
    torch.testing.assert_close(checkpoint.logits(checkpoint.hidden(input_ids=ids)), expected, rtol=1e-5, atol=1e-5)


def test_digest_is_that_of_everything_that_is_read(saved, tmp_path):
    """Weights, configuration and tokenizer, and nothing else."""
    same, digests = loading.digest(saved["llama"]), set()
    for name, old, new in (
        ("config.json", '"rms_norm_eps": 1e-06', '"rms_norm_eps": 1e-05'),
        ("tokenizer.json", '"add_prefix_space": false', '"add_prefix_space": true'),
    ):
        copy = shutil.copytree(saved["llama"], tmp_path / name)
        for beside in ("normalizer.json", "eval_results.json", "tokenizer_eval.json", "a.safetensors", loading._INDEX):
            (copy / beside).write_text("not read")
        assert loading.digest(copy) == same
        text = (copy / name).read_text()
        assert old in text
        (copy / name).write_text(text.replace(old, new))
        digests.add(loading.digest(copy))
    digests.add(loading.digest(tiny_models.save("llama", tmp_path / "weights", seed=1)))
    assert len(digests | {same}) == 4
    edit_config(copy, "tokenizer_config.json", tokenizer_class="WhisperTokenizer")
    before = loading.digest(copy)
    (copy / "normalizer.json").write_text("{}")
    assert loading.digest(copy) != before, "this class reads it"
    assert loading.digest(loading.STARTER) == assets.CHECKPOINT.sha256


def test_environment_names_the_default_and_the_starter_comes_last(saved, monkeypatch):
    monkeypatch.setenv("EXPLAINER_MODEL", str(saved["opt"]))
    assert loading.load().model.config.model_type == "opt"
    assert loading.load(saved["gpt2"]).model.config.model_type == "gpt2"
    monkeypatch.delenv("EXPLAINER_MODEL")
    monkeypatch.setattr(assets, "checkpoint_path", lambda: saved["llama"])
    assert loading.load().name == loading.STARTER
    assert loading.load(loading.STARTER).files == (saved["llama"] / "model.safetensors",)


def test_sharded_weights(saved, tmp_path):
    original = loading.load(saved["llama"])
    original.model.save_pretrained(tmp_path, max_shard_size="40KB")
    original.tokenizer.save_pretrained(tmp_path)
    again = loading.load(tmp_path)
    assert len(again.files) > 1
    shards = loading.digest(tmp_path)
    (tmp_path / "eval_results.json").write_text("{}")
    assert loading.digest(tmp_path) == shards
    index = tmp_path / loading._INDEX
    index.write_text(index.read_text().replace("\n", " "))
    assert loading.digest(tmp_path) != shards
    for name, weight in original.model.state_dict().items():
        assert torch.equal(weight, again.model.state_dict()[name])
    again.files[0].unlink()
    refused(rf"lacks {again.files[0].name}, listed in model.safetensors.index.json", tmp_path)


def write_gguf(checkpoint, path, settings=None, **more):
    """The checkpoint's weights and tokenizer in llama.cpp's layout, in float32, `more` tensors and `settings`."""
    config, bpe = checkpoint.model.config, json.loads(checkpoint.tokenizer.backend_tokenizer.to_str())["model"]
    heads, key_heads = config.num_attention_heads, config.num_key_value_heads
    sizes = dict(
        context_length=config.max_position_embeddings, embedding_length=config.hidden_size, head_count=heads,
        block_count=config.num_hidden_layers, feed_forward_length=config.intermediate_size, head_count_kv=key_heads,
        layer_norm_rms_eps=config.rms_norm_eps, vocab_size=config.vocab_size,
    )  # fmt: skip
    words = dict(
        tokenizer_model="gpt2", token_list=sorted(bpe["vocab"], key=bpe["vocab"].get), bos_token_id=0, eos_token_id=2,
        token_types=[3 if i < 3 else 1 for i in range(len(bpe["vocab"]))],
        token_merges=[" ".join(pair) for pair in bpe["merges"]],
    )  # fmt: skip
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    with tiny_models.gguf_file(path, **sizes, **words, **settings or {}) as writer:
        for name, weight in checkpoint.model.state_dict().items():
            if name == "lm_head.weight":
                continue  # tied
            for kind, n in (("q_proj", heads), ("k_proj", key_heads)):
                if kind in name:  # llama.cpp rotates neighbouring pairs, transformers the two halves of a head
                    weight = weight.view(n, 2, -1, weight.shape[1]).transpose(1, 2).reshape(weight.shape)  # noqa: PLW2901
            writer.add_tensor(names.get_name(name, (".weight",)), weight.contiguous().numpy())
        for name, values in more.items():
            writer.add_tensor(name, np.array(values, np.float32))


def test_gguf_holds_the_same_model(saved, tmp_path):
    original = loading.load(saved["llama"])
    write_gguf(original, tmp_path / "model.gguf")
    checkpoint = loading.load(tmp_path / "model.gguf")
    assert checkpoint.files == (tmp_path / "model.gguf",)
    ids = original.tokenize("Review: a dull film\nSentiment:")
    assert checkpoint.tokenize("Review: a dull film\nSentiment:") == ids
    logits = [c.logits(c.hidden(input_ids=torch.tensor([ids]))) for c in (original, checkpoint)]
    torch.testing.assert_close(*logits, rtol=1e-4, atol=1e-4)


def test_what_lies_beside_a_model_and_belongs_to_another_is_not_loaded(saved, copy, monkeypatch):
    """PEFT, where it is installed, would add an adapter, and a tokenizer.json replaces that of a GGUF file."""
    seen, from_pretrained = [], AutoModelForCausalLM.from_pretrained
    look = lambda at, **its: (seen.extend(path.name for path in at.iterdir()), from_pretrained(at, **its))[1]  # noqa: E731
    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", look)
    write_gguf(loading.load(copy), copy / "model.gguf")
    text = (copy / "tokenizer.json").read_text()
    (copy / "tokenizer.json").write_text(text.replace('"add_prefix_space": false', '"add_prefix_space": true'))
    (copy / "adapter_config.json").write_text("{}")
    seen.clear()
    assert loading.load(copy / "model.gguf").tokenize("film") == loading.load(saved["llama"]).tokenize("film")
    loading.load(copy)
    assert {"model.gguf", "model.safetensors", "tokenizer.json"} <= set(seen)
    assert "adapter_config.json" not in seen


def test_an_upper_case_suffix_is_one_and_a_part_of_a_split_file_is_named(saved, tmp_path):
    whole, part = tmp_path / "MODEL.GGUF", tmp_path / "model-00001-of-00002.gguf"
    write_gguf(loading.load(saved["llama"]), whole)
    assert loading.load(whole).files == (whole,)
    with tiny_models.gguf_file(part) as writer:
        writer.add_uint16(gguf.Keys.Split.LLM_KV_SPLIT_COUNT, 2)
    refused("is one of the 2 parts of a split file; merge them", part)


def test_hub_id_and_revision_are_passed_on_and_the_commit_is_kept(saved, monkeypatch, tmp_path):
    asked = []
    commit = shutil.copytree(saved["gpt2"], tmp_path / "c0ffee")

    def snapshot_download(hub_id, **options):
        asked.append((hub_id, options["revision"], options["allow_patterns"]))
        return str(commit)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    checkpoint = loading.load("someone/model@v1")
    assert (checkpoint.name, checkpoint.revision) == ("someone/model", "c0ffee")
    assert loading.load("gpt2").name == "gpt2"
    loading.digest("gpt2"), loading.skeleton("gpt2")  # the hub is asked once a process
    assert [a[:2] for a in asked] == [("someone/model", "v1"), ("gpt2", None)]
    assert not any(pattern.endswith((".bin", ".pt", ".py", "*")) for pattern in asked[0][2])


@pytest.mark.parametrize(
    ("lacks", "loads"),
    [
        ("LICENSE.txt", True),
        ("generation_config.json", True),
        ("model.fp16.safetensors", True),
        ("model.safetensors", False),
        ("tokenizer_config.json", False),
    ],
)
def test_offline_what_is_needed_decides(saved, tmp_path, monkeypatch, lacks, loads):
    """Of a hub's listing that was kept, files that were fetched by name may lack what is not loaded."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    commit, home = "c" * 40, tmp_path / "models--someone--model"
    files = shutil.copytree(saved["llama"], home / "snapshots" / commit)
    (files / lacks).unlink(missing_ok=True)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(commit)
    listed = {*(path.name for path in saved["llama"].iterdir()), lacks}
    tree = pytest.importorskip("huggingface_hub._tree_cache")
    entry = tree.TreeCacheEntry(size=1, blob_id="b", lfs_sha256=None, lfs_size=None, xet_hash=None)
    tree.write_tree_cache(str(home), commit, dict.fromkeys(listed, entry))
    if loads:
        assert loading.load("someone/model").revision == commit
    else:
        refused("is not in the local hub cache", "someone/model")


# --- tokens ----------------------------------------------------------------------------------------------------


def test_tokenize_adds_no_special_token(saved):
    checkpoint = loading.load(saved["llama"])
    ids = checkpoint.tokenize("cat -> cats\n")
    assert checkpoint.tokenizer.decode(ids) == "cat -> cats\n" and all(map(checkpoint._declared, ids))
    for text in ("cat -> cats\n", "cat</s>cat"):  # text is text
        assert not set(checkpoint.tokenize(text)) & set(checkpoint.tokenizer.all_special_ids)
    assert checkpoint.tokenize_all(["cat", "", "walk"]) == [checkpoint.tokenize(t) for t in ("cat", "", "walk")]
    assert checkpoint.tokenize_all([]) == []


END = "<|endoftext|>"
OF_CHAT = {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>", "unk_token": END}


@pytest.mark.parametrize(
    ("family", "tokens", "first", "separator"),
    [
        ("llama", {}, "<s>", "</s>"),
        ("llama", OF_CHAT, END, END),
        *((family, {"bos_token": END, "eos_token": END}, "<s>", "</s>") for family in ("opt", "xglm")),
    ],
)
def test_special_tokens(saved, tmp_path, family, tokens, first, separator):  # noqa: PLR0917
    """By default bos and eos; end of text before the chat format's bos; fairseq models follow their configuration."""
    directory, tokenizer = shutil.copytree(saved[family], tmp_path / "with_tokens"), tiny_models.tokenizer()
    tokenizer.add_special_tokens(tokens)
    tokenizer.save_pretrained(directory)
    checkpoint = loading.load(directory)
    ids = checkpoint.tokenizer.convert_tokens_to_ids([first, separator])
    assert [checkpoint.first_token_id, checkpoint.document_separator_id] == ids


def test_an_end_of_text_token_without_an_embedding_is_not_used(saved, tmp_path):
    directory, tokenizer = shutil.copytree(saved["llama"], tmp_path / "model"), tiny_models.tokenizer()
    tokenizer.add_tokens([f"<extra_{i}>" for i in range(20)])
    tokenizer.add_special_tokens({"unk_token": "<|endoftext|>"})
    tokenizer.save_pretrained(directory)
    checkpoint = loading.load(directory)
    assert checkpoint.tokenizer.unk_token_id >= tiny_models.VOCAB
    assert (checkpoint.first_token_id, checkpoint.document_separator_id) == (0, 2)


def test_the_tokenizers_own_first_token_comes_first(saved):
    checkpoint = loading.load(saved["xglm"])
    from tokenizers.processors import TemplateProcessing  # noqa: PLC0415

    checkpoint.tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="</s> $A", special_tokens=[("</s>", 2)]
    )
    assert replace(checkpoint).first_token_id == 2
    assert checkpoint.tokenize("cat")[0] != 2


def test_a_tokenizer_without_any_special_token_is_refused(saved, monkeypatch):
    checkpoint = loading.load(saved["llama"])
    bare = PreTrainedTokenizerFast(tokenizer_object=tiny_models.tokenizer().backend_tokenizer)
    monkeypatch.setattr(checkpoint.model.config, "bos_token_id", None)
    with pytest.raises(CheckpointError, match=r"no <\|endoftext\|> and no bos_token_id; set tokenizer.bos_token"):
        _ = replace(checkpoint, tokenizer=bare).first_token_id


@pytest.mark.parametrize("kind", tiny_models.TOKENIZERS)
def test_a_tokenizer_that_keeps_what_a_text_holds_is_taken(copy, kind):
    with_tokenizer(copy, tiny_models.TOKENIZERS[kind]())
    assert loading.load(copy).first_token_id == 0


def test_the_first_token_is_the_declared_one_not_one_that_the_class_adds(saved, tmp_path):
    directory = shutil.copytree(saved["gpt2"], tmp_path / "model")
    tokenizer = GPT2Tokenizer.from_pretrained(directory, bos_token="<s>", eos_token="</s>")
    assert "<|endoftext|>" in tokenizer.get_vocab(), "the class adds its own"
    assert loading.load(directory).first_token_id == 0
    edit_config(directory, "tokenizer_config.json", tokenizer_class="GPT2Tokenizer")
    assert loading.load(directory).first_token_id == 0


def test_a_text_is_no_longer_than_the_angles_of_its_positions_stay(tmp_path):
    """LongRoPE turns all tokens by other angles where a text passes the length of the first training."""
    rope = {"rope_type": "longrope", "short_factor": [1.0] * 4, "long_factor": [4.0] * 4, "rope_theta": 10000.0}
    config = AutoConfig.for_model(
        "phi3",
        **tiny_models.FURTHER["phi3"] | {"original_max_position_embeddings": 32, "rope_parameters": rope},
    )
    tiny_models.random_model(config, torch.float32).save_pretrained(tmp_path)
    tiny_models.tokenizer().save_pretrained(tmp_path)
    checkpoint = loading.load(tmp_path)
    assert checkpoint.context_length == 32
    prefix = scoring.encode(checkpoint, list(range(3, 33)))
    assert len(list(scoring.row_logits(checkpoint, prefix, [([5, 6], [])]))) == 1
    with pytest.raises(CheckpointError, match="has 32 positions"):
        list(scoring.row_logits(checkpoint, prefix, [([5, 6, 7], [])]))


# --- refusals --------------------------------------------------------------------------------------------------


def test_no_network(no_network):
    refused(r"'nobody/nothing' is not in the local hub cache.*checkpoint SmolLM2", "nobody/nothing")


def _http_error(kind):
    import httpx  # noqa: PLC0415

    return kind("refused", response=httpx.Response(404, request=httpx.Request("GET", "https://huggingface.co")))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            lambda: _http_error(hub_errors.RepositoryNotFoundError),
            "no model 'a/b@r' on the hub; names look like",
        ),
        (lambda: _http_error(hub_errors.RevisionNotFoundError), "'a/b' has no revision 'r' on the hub; leave out @r"),
        (lambda: _http_error(hub_errors.GatedRepoError), "'a/b@r' needs permission on the hub"),
        (lambda: hub_errors.HFValidationError("bad"), "there is no model 'a/b@r'"),
        (
            lambda: OSError(28, "No space left on device"),
            r"cannot be kept in .*hub \(No space left on device\); free some space, or set HF_HOME",
        ),
    ],
)
def test_answers_of_the_hub(monkeypatch, error, message):
    def snapshot_download(*_, **__):
        raise error()

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    refused(message, "a/b@r")


@pytest.mark.parametrize(
    ("hub", "message"),
    [
        ("page", r"the hub http://\S+/page could not be reached \(what answers is no hub; is it the login page"),
        ("refusing", r"the hub http://\S+/refusing could not be reached \(.*403 Forbidden"),
        ("busy", r"the hub http://\S+/busy could not be reached \(.*503"),
        ("silent", r"the hub http://\S+/silent could not be reached \(no answer within 0.5 s\)"),
    ],
)
def test_what_stands_in_place_of_the_hub_is_named_with_its_address(asked, hub, message):
    assert re.search(message + r"(.|\n)*Check the name and the connection, give a local directory", asked(hub))


@pytest.mark.parametrize(
    ("variable", "proxy", "reason"),
    [
        ("ALL_PROXY", "socks5://me:secret@localhost:1", "SOCKS proxy.* not installed|refused"),
        ("HTTPS_PROXY", "http://me:secret@localhost:1", "refused"),
        ("HTTPS_PROXY", "http://me:secret@{}", "407"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_named_with_its_variable(asked, variable, proxy, reason):
    message = asked(**{variable: proxy})
    assert re.search(rf"{reason}(.|\n)*asked through {variable} = \w+://[\w.]+:\d+: correct it or unset it", message)
    assert "secret" not in message


@pytest.mark.parametrize("converted", [True, False])
def test_of_a_pickled_repository_the_converted_revision_is_named(monkeypatch, tmp_path, converted):
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    (tmp_path / "config.json").write_text("{}")
    files = {"refs/pr/2": ["README.md"], "refs/pr/10": ["model.safetensors"] if converted else []}
    refs = SimpleNamespace(pull_requests=[SimpleNamespace(ref=ref) for ref in reversed(files)])
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: str(tmp_path))
    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_refs", lambda *_, **__: refs)
    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_files", lambda _self, _id, revision: files[revision])
    refused("give 'a/b@refs/pr/10'" if converted else "convert them", "a/b")


@pytest.mark.parametrize("device", ["cuda:99", "nonsense"])
def test_a_device_that_is_not_here_is_named(saved, device):
    refused(f"device '{device}' cannot be used here .* give cpu, or leave it out", saved["llama"], device=device)


@pytest.mark.parametrize(("computes", "dtype"), [(True, torch.bfloat16), (False, torch.float16)])
def test_the_number_format_follows_the_device(monkeypatch, computes, dtype):
    emulated = True  # as PyTorch says of any GPU
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda including_emulation=emulated: computes or including_emulation
    )
    monkeypatch.setattr(loading, "device_of", torch.device)
    assert loading.dtype_of("auto", "cuda") == dtype
    assert loading.dtype_of("auto", "cpu") == torch.float32
    assert loading.dtype_of("float16", "cpu") == torch.float16


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/model", "~/nowhere", "MODEL.GGUF"])
def test_missing_path(name):
    refused(r"neither a directory nor an existing \.gguf file", name)


@pytest.mark.parametrize(("name", "message"), [("x" * 999, "name too long"), ("m\udcff", "is not UTF-8; rename")])
def test_a_name_that_no_directory_can_have(name, message):
    refused(message, name)


def test_a_tokenizer_drops_merges_in_training_only(copy):
    path = copy / "tokenizer.json"
    found = json.loads(path.read_text())
    found["model"]["dropout"] = 0.9
    path.write_text(json.dumps(found))
    checkpoint = loading.load(copy)
    assert len({tuple(checkpoint.tokenize("Review: a wonderful film")) for _ in range(9)}) == 1


def test_a_class_that_leaves_out_what_its_tokenizer_has_is_named(copy):
    edit_config(copy, "tokenizer_config.json", tokenizer_class="GPT2Tokenizer")
    edit_config(copy, "tokenizer.json", normalizer={"type": "Lowercase"})
    with pytest.warns(UserWarning, match="GPT2Tokenizer gives other tokens than its tokenizer.json; if"):
        loading.load(copy)


@pytest.mark.parametrize("left", ["return_dict", "output_attentions", "output_hidden_states"])
def test_what_a_training_left_in_the_configuration_is_not_heeded(saved, copy, left):
    edit_config(copy, **{left: left != "return_dict"})
    model = loading.load(copy).model
    ids = torch.arange(5)[None]
    found = model(input_ids=ids)
    assert found.attentions is None and found.hidden_states is None
    assert torch.equal(found.logits, loading.load(saved["llama"]).model(input_ids=ids).logits)


@pytest.mark.parametrize("left", ["use_return_dict", "attn_implementation"])
def test_what_a_training_left_and_cannot_be_loaded_is_named(copy, left):
    edit_config(copy, **{left: "flash_attention_2"})
    for read in (loading.load, loading.skeleton):
        refused(f"; take {left}, left by a training, out of config.json", copy, read)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_file_that_may_not_be_read_is_named(copy, monkeypatch, name):
    """Simulated: tests may run as root, whom no mode stops."""
    opened = Path.open

    def refuse(path, *args, **options):
        if path.name == name:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *args, **options)

    monkeypatch.setattr(Path, "open", refuse)
    for read in (loading.load, loading.digest, loading.skeleton):
        refused(rf"{name} may not be read by this user; allow it \(chmod", copy, read)


def without(*names):
    return lambda directory: [(directory / name).unlink() for name in names]


def adapter(suffix, *lacks):
    def damage(directory):
        (directory / "adapter_config.json").write_text("{}")
        assert loading.load(directory).name == str(directory)  # a whole model beside which it lies
        (directory / "model.safetensors").rename(directory / f"adapters.{suffix}")
        without(*lacks)(directory)

    return damage, r"holds an adapter .* merge them: .*merge_and_unload"


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("the pickle was opened",))


def pickled(directory):
    (directory / "model.safetensors").unlink()
    (directory / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb()))


def rewritten(change):
    def damage(directory):
        weights = load_file(directory / "model.safetensors")
        save_file(weights | change(weights), directory / "model.safetensors", metadata={"format": "pt"})

    return damage


def checkpoints(directory):
    """As a training leaves them."""
    for name in ("a-9", "a-10"):
        (directory / name).mkdir()
        shutil.copy(directory / "config.json", directory / name)
    (directory / "config.json").unlink()


def indexed(found):
    def damage(directory):
        (directory / "model.safetensors").rename(directory / "a.safetensors")
        (directory / loading._INDEX).write_text(json.dumps({"weight_map": found}))

    return damage, "index.json does not say which file beside it holds which weight"


def cut(keep):
    return lambda directory: (path := directory / "model.safetensors").write_bytes(path.read_bytes()[:keep])


def evil(directory):
    (directory / "evil.py").write_text("import pytest; pytest.fail('ran')")
    classes = {"AutoConfig": "evil.C", "AutoModelForCausalLM": "evil.M"}
    edit_config(directory, model_type="evil", architectures=["Evil"], auto_map=classes)


def other(kind, config, **more):
    """Another model in place of the Llama."""

    def save(directory):
        torch.manual_seed(0)
        kind(config(**more)).save_pretrained(directory)

    return save


def with_tokenizer(directory, tokenizer):
    for path in directory.glob("*token*"):
        path.unlink()
    tokenizer.save_pretrained(directory)


def of_words(known, **unknown):
    """A tokenizer that cuts a text into words, so that line breaks are lost; it knows few of them."""
    words = Tokenizer(models.WordLevel({"<s>": 0, "?": 6} | known, unk_token="?"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    options = dict(bos_token="<s>", eos_token="<s>") | unknown
    return lambda copy: with_tokenizer(copy, PreTrainedTokenizerFast(tokenizer_object=words, **options))


def fewer_rows(directory):
    model = loading.load(directory).model
    model.resize_token_embeddings(100)
    model.save_pretrained(directory)


def not_finite(directory):
    model = loading.load(directory).model
    model.get_input_embeddings().weight.data[3] = float("nan")
    model.save_pretrained(directory)


SMALL = dict(vocab_size=400, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
T5 = dict(vocab_size=400, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
COHERE = SMALL | dict(num_key_value_heads=1, logit_scale=8.0, initializer_range=0.5)
OF_ANOTHER_VERSION = '{"version": "9.0", "model": {"type": "Unheard"}}'
POINTER = "version https://git-lfs.github.com/spec/v1\nsize 12"
WORDS, UNKNOWN, GPTQ = {"a": 3, "b": 4, "1": 5}, {"unk_token": "?"}, {"quant_method": "gptq"}
NO_NEXT = "holds a {}, which does not predict the next token"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (without("config.json"), r"has no config\.json"),
        (lambda copy: (copy / "config.json").write_text("{"), r"config\.json cannot be read"),
        *((cut(keep), r"model\.safetensors is damaged or cut short") for keep in (0, 6, 1000, -1)),
        (lambda copy: edit_config(copy, num_hidden_layers=4), r"lacks weights that the model needs \(model\.layers\.3"),
        (lambda copy: edit_config(copy, num_hidden_layers=10**5), "100000 layers, and holds 29 tensors; fetch"),
        (rewritten(lambda _: {"_orig_mod.norm.weight": torch.ones(1)}), "stand in a wrapper of its training; save"),
        (lambda copy: edit_config(copy, intermediate_size=65), r"other shapes than its config\.json says \(model"),
        (lambda copy: (copy / "config.json").write_text("[]"), "holds no JSON object"),
        (lambda copy: edit_config(copy, architectures=[None], num_hidden_layers=4), "lacks weights"),
        (lambda copy: edit_config(copy, model_type=["llama"]), r"of the family \['llama'\], which transformers"),
        (lambda copy: edit_config(copy, dtype="bf16"), "take dtype, left by a training, out of config.json"),
        (rewritten(lambda _: {"model.norm.weight": torch.ones(48).byte()}), r"holds U8 where the .* \(model\.norm"),
        (rewritten(lambda of: {name: 0 * its for name, its in of.items()}), "not finite, or all alike"),
        *map(indexed, ([], None, {}, {"a": 1}, {"a": None}, {"a": ["b"]}, {"a": "../a.safetensors"}, {"a": "/b"})),
        (lambda copy: edit_config(copy, quantization_config="awq"), r"quantised weights \(awq\)"),
        (checkpoints, r"no config\.json; give .*a-10\."),
        (evil, "family 'evil', which transformers .* does not know, and code of a repository is never run"),
        (without("tokenizer.json", "tokenizer_config.json"), "no tokenizer that can be read"),
        (lambda copy: (copy / "tokenizer.json").write_text(OF_ANOTHER_VERSION), "no tokenizer that can be read"),
        (fewer_rows, r"its tokenizer gives token \d+, and the model has 100;"),
        *((of_words(known, **told), "reads .* back as") for known in ({}, WORDS) for told in ({}, UNKNOWN)),
        (lambda copy: with_tokenizer(copy, ByT5Tokenizer(bos_token="</s>")), "ByT5Tokenizer.*does not say where its"),
        (lambda copy: edit_config(copy, quantization_config=GPTQ), r"quantised weights \(gptq\)"),
        (lambda copy: edit_config(copy, quantization_config={"load_in_4bit": True}), r"quantised weights \(unknown\)"),
        *(adapter(suffix, *lacks) for suffix in ("safetensors", "bin") for lacks in ((), ("config.json",))),
        (rewritten(lambda _: {"base_model.model.norm.weight": torch.ones(1)}), r"are of an adapter; merge them"),
        (lambda copy: (copy / "tokenizer.json").write_text(POINTER), r"tokenizer\.json is a pointer of Git LFS"),
        (lambda copy: edit_config(copy, rope_theta=5e5), r"rope_theta 500000\.0 and 10000\.0; take out one"),
        (lambda copy: edit_config(copy, quantization_config={}), "take quantization_config, left by a training"),
        (lambda copy: edit_config(copy, pad_token_id=400), "take pad_token_id, left by a training"),
        (pickled, r"found pytorch_model\.bin.*a pickle can run any code.*save_pretrained"),
        (without("model.safetensors"), "found no weights"),
        (not_finite, r"logits are not finite, or all alike, in torch\.float32; its weights are damaged"),
        (other(BertForMaskedLM, BertConfig, **SMALL), NO_NEXT.format("BertForMaskedLM")),
        (other(T5ForConditionalGeneration, T5Config, **T5), NO_NEXT.format("T5ForConditionalGeneration")),
        (
            other(BertLMHeadModel, BertConfig, **SMALL, initializer_range=0.5),
            "is not causal: later tokens change earlier predictions",
        ),
        (other(CohereForCausalLM, CohereConfig, **COHERE), "changes its logits after the output embedding"),
    ],
)
def test_what_is_damaged_unsuitable_or_would_run_code_is_refused(copy, damage, message):
    damage(copy)
    refused(message, copy)


def test_a_family_that_keeps_no_keys_and_values_is_refused_by_name(tmp_path):
    few = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
    experts = {"num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 16, "intermediate_size": 32}
    heads = dict.fromkeys(("linear_num_key_heads", "linear_num_value_heads"), 2)
    sizes = dict.fromkeys(("linear_key_head_dim", "linear_value_head_dim"), 8)
    kinds = {"layer_types": ["linear_attention", "full_attention"], "vocab_size": tiny_models.VOCAB}
    config = AutoConfig.for_model("qwen3_next", **few, **experts, **heads, **sizes, **kinds)
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    tiny_models.tokenizer().save_pretrained(tmp_path)
    refused("'qwen3_next'", tmp_path)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_no_fault_and_other_logits_are_one_in_it(monkeypatch, dtype):
    checkpoint = loading.load(dtype=dtype, device="cpu")
    row_logits = scoring.row_logits
    swapped = lambda *given: ((i, logits.flip(-1)) for i, logits in row_logits(*given))  # noqa: E731
    monkeypatch.setattr(scoring, "row_logits", swapped)
    with pytest.raises(CheckpointError, match="score a prompt behind a prefix otherwise"):
        validation.require_usable(checkpoint)


BIAS = {f"model.layers.{i}.self_attn.{part}_proj.bias": torch.ones(48) for i in range(3) for part in "qo"}
MASK = torch.ones(1, 1, tiny_models.LENGTH, tiny_models.LENGTH).tril().bool()


def angles(theta, size, dtype=torch.float):
    return {"model.layers.0.self_attn.rotary_emb.inv_freq": (theta ** -(torch.arange(0, size, 2) / size)).to(dtype)}


def with_weights(saved, family, directory, more):
    shutil.copytree(saved[family], directory)
    rewritten(more)(directory)
    return directory


@pytest.mark.parametrize(
    ("more", "names"),
    [
        (BIAS, r"model\.layers\.0\.self_attn\.o_proj\.bias, model\.layers\.0\.self_attn\.q_proj\.bias, .*\.\.\."),
        ({"model.layers.3.mlp.up_proj.weight": torch.ones(64, 48)}, r"model\.layers\.3\.mlp\.up_proj\.weight"),
    ],
)
def test_weights_without_a_place_are_named(saved, tmp_path, more, names):
    path = with_weights(saved, "llama", tmp_path / "more", lambda _: more)
    refused(rf"describes has no place \({names}\).*Correct its configuration", path)


@pytest.mark.parametrize(
    ("family", "more", "name"),
    [
        ("llama", angles(1.1e4, 8), "inv_freq"),
        ("llama", angles(1e4, 4), "inv_freq"),
        ("gpt_neo", {"transformer.h.1.attn.attention.bias": MASK & ~MASK.tril(-8)}, r"attn\.attention\.bias"),
    ],
)
def test_what_older_versions_wrote_of_another_model_is_named(saved, tmp_path, family, more, name):
    path = with_weights(saved, family, tmp_path / "other", lambda _: more)
    refused(f"holds .*{name}, which is not what its configuration gives; correct", path)


@pytest.mark.parametrize(
    ("family", "more"),
    [
        *(("llama", lambda _, to=dtype: angles(1e4, 8, to)) for dtype in (torch.float, torch.half, torch.bfloat16)),
        ("llama", lambda of: {"lm_head.weight": of["model.embed_tokens.weight"].clone()}),
        ("gpt2", lambda _: {"transformer.h.0.attn.bias": MASK, "transformer.h.0.attn.masked_bias": torch.tensor(-1e4)}),
        ("gpt_neo", lambda _: {"transformer.h.0.attn.attention.bias": MASK}),
        ("gpt_neox", lambda _: {"gpt_neox.layers.0.attention.rotary_emb.inv_freq": torch.ones(1)}),
        ("opt", lambda _: {"model.decoder.version": torch.tensor([3.0])}),
        ("xglm", lambda _: {"model.embed_positions.weights": torch.ones(9, 32)}),
    ],
)  # fmt: skip
def test_what_older_versions_wrote_beside_the_weights_still_loads(saved, tmp_path, family, more):
    expected, found = (
        loading.load(directory).model.state_dict()
        for directory in (saved[family], with_weights(saved, family, tmp_path / "old", more))
    )
    assert all(torch.equal(weight, found[name]) for name, weight in expected.items())


@pytest.mark.parametrize(
    "more", [{"blk.0.attn_q.bias": [1] * 48}, {"rope_freqs.weight": [1, 4, 32, 32]}, {"blk.3.attn_norm.weight": [1]}]
)
def test_tensors_of_a_gguf_file_without_a_place_are_named(saved, tmp_path, more):
    original = loading.load(saved["llama"])
    write_gguf(original, tmp_path / "more.gguf", **more)
    refused(rf"more\.gguf .*has no place \({re.escape(*more)}\)", tmp_path / "more.gguf")
    write_gguf(original, tmp_path / "frequencies.gguf", **{"rope_freqs.weight": [1, 0.1, 0.01, 0.001]})
    loading.load(tmp_path / "frequencies.gguf")
    scaled = {"rope_scaling_type": gguf.RopeScalingType.LINEAR, "rope_scaling_factor": 2.0}
    write_gguf(original, tmp_path / "scaled.gguf", scaled)
    refused(r"scaled\.gguf scales its positions \(linear\)", tmp_path / "scaled.gguf")
    write_gguf(original, tmp_path / "one.gguf", scaled | {"rope_scaling_factor": 1.0})
    loading.load(tmp_path / "one.gguf")


def test_what_is_no_whole_gguf_file_is_named(saved, tmp_path):
    write_gguf(loading.load(saved["llama"]), tmp_path / "model.gguf")
    content = (tmp_path / "model.gguf").read_bytes()
    cuts = [content[: int(share * len(content))] for share in (0.1, 0.9)]
    for damaged in (b"", content[:3], content[:40], *cuts, b"GGUF" + b"\0" * 20):
        (tmp_path / "cut.gguf").write_bytes(damaged)
        refused(r"cut\.gguf is damaged or cut short .* fetch it again", tmp_path / "cut.gguf")
    with tiny_models.gguf_file(tmp_path / "words.gguf", block_count=9**9):
        pass
    with tiny_models.gguf_file(tmp_path / "deep.gguf", block_count=10**5) as writer:
        writer.add_tensor("token_embd.weight", np.ones((4, 4), np.float32))
    with tiny_models.gguf_file(tmp_path / "lora.gguf", type="adapter") as writer:
        writer.add_tensor("blk.0.attn_q.weight.lora_a", np.ones((4, 4), np.float32))
    refused("holds no model, but its adapter", tmp_path / "lora.gguf")
    for read in (loading.load, loading.skeleton):
        refused("says that it has 100000 layers, and holds 1 tensors", tmp_path / "deep.gguf", read)
        refused(r"words\.gguf holds no weights, only a vocabulary or settings", tmp_path / "words.gguf", read)
