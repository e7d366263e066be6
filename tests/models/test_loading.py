"""explainer.models.loading on tiny random models saved to disk: what loads, and what is refused."""

import json
import pickle
import shutil
from dataclasses import replace
from unittest.mock import Mock

import huggingface_hub
import pytest
import tiny_models
import torch
from huggingface_hub import errors as hub_errors
from safetensors.torch import load_file, save_file
from tokenizers.processors import TemplateProcessing
from transformers import (
    BertConfig,
    BertLMHeadModel,
    BloomConfig,
    BloomForCausalLM,
    CohereConfig,
    CohereForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPTNeoConfig,
    GPTNeoForCausalLM,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from explainer.data import assets
from explainer.errors import CheckpointError
from explainer.models import loading, scoring


@pytest.fixture
def copy(saved, tmp_path):
    """A copy of the tiny Llama that a test may damage."""
    return shutil.copytree(saved["llama"], tmp_path / "copy")


@pytest.fixture(autouse=True)
def nothing_is_remembered():
    loading._download.cache_clear()


def refused(message, name, read=loading.load, **options):
    with pytest.raises(CheckpointError, match=message) as raised:
        read(name, **options)
    assert "\n" not in str(raised.value)


def edit_config(directory, name="config.json", **changes):
    path = directory / name
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def with_weights(directory, more):
    weights = load_file(directory / "model.safetensors")
    save_file(weights | more, directory / "model.safetensors", metadata={"format": "pt"})


# --- loading ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", tiny_models.CONFIGS)
def test_every_family_loads_ready_for_inference_and_its_logits_are_the_models(saved, family):
    checkpoint = loading.load(saved[family])
    assert checkpoint.model.config.model_type == family
    assert not checkpoint.model.training
    assert not any(p.requires_grad for p in checkpoint.model.parameters())
    assert (checkpoint.dtype, checkpoint.device.type) == (torch.float32, "cpu")
    assert checkpoint.context_length == tiny_models.LENGTH
    assert (checkpoint.name, checkpoint.revision) == (str(saved[family]), None)
    ids = torch.randint(tiny_models.VOCAB, (2, 30), generator=torch.Generator().manual_seed(0))
    expected = checkpoint.model(input_ids=ids).logits
    torch.testing.assert_close(checkpoint.logits(checkpoint.hidden(input_ids=ids)), expected, rtol=1e-5, atol=1e-5)


def test_dtype_and_device_can_be_set(saved):
    checkpoint = loading.load(saved["gpt2"], dtype=torch.bfloat16, device="cpu")
    assert {p.dtype for p in checkpoint.model.parameters()} == {torch.bfloat16}
    hidden = checkpoint.hidden(input_ids=torch.tensor([[4, 5]]))
    assert hidden.dtype == torch.bfloat16
    assert checkpoint.logits(hidden).dtype == torch.float32
    refused("cuda|CUDA", saved["gpt2"], device="cuda:99")


def test_a_tokenizer_that_would_take_spaces_away_keeps_them(copy):
    """As the starter checkpoint has it where an older transformers converted it."""
    edit_config(copy, "tokenizer_config.json", clean_up_tokenization_spaces=True)
    assert loading.load(copy).tokenizer.clean_up_tokenization_spaces is False


def test_environment_names_the_default_and_the_starter_comes_last(saved, monkeypatch):
    monkeypatch.setenv("EXPLAINER_MODEL", str(saved["opt"]))
    assert loading.load().model.config.model_type == "opt"
    assert loading.load(saved["gpt2"]).model.config.model_type == "gpt2"
    monkeypatch.delenv("EXPLAINER_MODEL")
    monkeypatch.setattr(assets, "checkpoint_path", lambda: saved["llama"])
    assert loading.load().name == loading.STARTER
    assert loading.digest(loading.STARTER) == assets.CHECKPOINT.sha256


def test_digest_is_that_of_what_is_read(copy, tmp_path):
    same = loading.digest(copy)
    for beside in ("README.md", "eval_results.json", "pytorch_model.bin"):
        (copy / beside).write_text("not read")
    assert loading.digest(copy) == same
    digests = {same, loading.digest(tiny_models.save("llama", tmp_path / "weights", seed=1))}
    edit_config(copy, rms_norm_eps=1e-5)
    digests.add(loading.digest(copy))
    edit_config(copy, "tokenizer.json", normalizer={"type": "Lowercase"})
    digests.add(loading.digest(copy))
    assert len(digests) == 4


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


# --- tokens ----------------------------------------------------------------------------------------------------


def test_tokenize_adds_no_special_token(saved):
    checkpoint = loading.load(saved["llama"])
    assert checkpoint.tokenizer.decode(checkpoint.tokenize("cat -> cats\n")) == "cat -> cats\n"
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


def test_the_tokenizers_own_first_token_comes_first_and_one_without_any_is_refused(saved, monkeypatch):
    checkpoint = loading.load(saved["xglm"])
    checkpoint.tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="</s> $A", special_tokens=[("</s>", 2)]
    )
    assert replace(checkpoint).first_token_id == 2
    assert checkpoint.tokenize("cat")[0] != 2
    bare = PreTrainedTokenizerFast(tokenizer_object=tiny_models.tokenizer().backend_tokenizer)
    monkeypatch.setattr(checkpoint.model.config, "bos_token_id", None)
    with pytest.raises(CheckpointError, match=r"no <\|endoftext\|> and no bos_token_id"):
        _ = replace(checkpoint, tokenizer=bare).first_token_id


# --- refusals --------------------------------------------------------------------------------------------------


def _http_error(kind):
    import httpx  # noqa: PLC0415

    return kind("no such\nmodel", response=httpx.Response(404, request=httpx.Request("GET", "https://huggingface.co")))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (_http_error(hub_errors.RepositoryNotFoundError), "RepositoryNotFoundError: no such model"),
        (_http_error(hub_errors.RevisionNotFoundError), "RevisionNotFoundError"),
        (hub_errors.HFValidationError("bad"), "HFValidationError: bad"),
        (OSError(28, "No space left on device"), "No space left on device"),
    ],
)
def test_what_the_hub_or_the_disk_says_is_shown_in_one_line(monkeypatch, error, message):
    monkeypatch.setattr(huggingface_hub, "snapshot_download", Mock(side_effect=error))
    refused(rf"'a/b@r' is no directory here, and .* \(.*{message}.*\)\. Names look like 'gpt2'", "a/b@r")


def test_no_network(monkeypatch, tmp_path):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    refused(r"'nobody/nothing' is no directory here.*checkpoint SmolLM2", "nobody/nothing")


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/model"])
def test_missing_path(name):
    refused("is no directory; give one", name)


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("the pickle was opened",))


def pickled(directory):
    (directory / "model.safetensors").unlink()
    (directory / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb()))


def evil(directory):
    (directory / "evil.py").write_text("import pytest; pytest.fail('ran')")
    classes = {"AutoConfig": "evil.C", "AutoModelForCausalLM": "evil.M"}
    edit_config(directory, model_type="evil", architectures=["Evil"], auto_map=classes)


def other(kind, config, **more):
    """Another model in place of the Llama."""

    def save(directory):
        torch.manual_seed(0)
        kind(config(vocab_size=400, **more)).save_pretrained(directory)

    return save


def damaged_weight(directory):
    model = loading.load(directory).model
    model.get_input_embeddings().weight.data[3] = float("nan")
    model.save_pretrained(directory)


SMALL = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
BIAS = {f"model.layers.{i}.self_attn.{part}_proj.bias": torch.ones(48) for i in range(3) for part in "qo"}
PACKED = "a prompt behind a prefix is not scored as the whole prompt"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda copy: (copy / "config.json").unlink(), r"config\.json"),
        (lambda copy: (copy / "model.safetensors").write_bytes(b"cut"), "HeaderTooSmall|[Hh]eader"),
        (pickled, r"no file named model\.safetensors"),
        (evil, "contains custom code"),
        (lambda copy: [path.unlink() for path in copy.glob("tokenizer*")], "cannot be used"),
        (
            lambda copy: edit_config(copy, num_hidden_layers=4),
            r"lacks weights that the model needs, .* model\.layers\.3",
        ),
        (lambda copy: edit_config(copy, intermediate_size=65), "cannot be used .*(size|shape)"),
        (
            lambda copy: with_weights(copy, BIAS),
            r"has no place, such as model\.layers\.0\.self_attn\.o_proj\.bias",
        ),
        (
            lambda copy: with_weights(copy, {"base_model.model.norm.weight": torch.ones(1)}),
            r"has no place, such as base_model\.model\.norm\.weight",
        ),
        (damaged_weight, PACKED),
        (other(T5ForConditionalGeneration, T5Config, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2), "T5"),
        (other(BertLMHeadModel, BertConfig, is_decoder=False, **SMALL), PACKED),
        (other(CohereForCausalLM, CohereConfig, logit_scale=8.0, initializer_range=0.5, **SMALL), PACKED),
        (other(BloomForCausalLM, BloomConfig, hidden_size=16, n_layer=1, n_head=2), "cannot be used as a causal"),
    ],
)
def test_what_is_damaged_unsuitable_or_would_run_code_is_refused_in_one_line(copy, damage, message):
    damage(copy)
    refused(message, copy)


@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, *(pytest.param(of, marks=pytest.mark.weekly) for of in (torch.float32, torch.float16))]
)
def test_half_precision_is_no_fault_and_other_logits_are_one_in_it(monkeypatch, dtype):
    checkpoint = loading.load(dtype=dtype, device="cpu")
    row_logits = scoring.row_logits
    swapped = lambda *given: ((i, logits.flip(-1)) for i, logits in row_logits(*given))  # noqa: E731
    monkeypatch.setattr(scoring, "row_logits", swapped)
    with pytest.raises(CheckpointError, match=PACKED):
        loading._require_packed_as_whole(checkpoint)


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        (
            GPTNeoForCausalLM,
            GPTNeoConfig(
                max_position_embeddings=256, hidden_size=32, num_layers=2, num_heads=4, window_size=16, vocab_size=400,
                attention_types=[[["global", "local"], 1]], bos_token_id=0, eos_token_id=2,
            ),
        ),
        (Gemma3ForCausalLM, Gemma3TextConfig(**tiny_models.FURTHER["gemma3_text"])),
    ],
)  # fmt: skip
def test_prompts_longer_than_a_window_are_scored_as_whole_ones(tmp_path, kind, config):
    """Windows are counted in places of the row, where packed queries would stand too far behind."""
    tiny_models.with_large_weights(kind(config)).save_pretrained(tmp_path)
    tiny_models.tokenizer().save_pretrained(tmp_path)
    checkpoint = loading.load(tmp_path)
    ids = torch.randint(3, 300, (60,), generator=torch.Generator().manual_seed(0)).tolist()
    rows = [(ids[30:45], []), (ids[45:], [])]
    for i, logits in scoring.row_logits(checkpoint, scoring.encode(checkpoint, ids[:30]), rows):
        whole = checkpoint.model(input_ids=torch.tensor([[*ids[:30], *rows[i][0]]]), use_cache=False).logits[0, -1]
        torch.testing.assert_close(logits[0], whole, rtol=1e-3, atol=1e-3)


MASK = torch.ones(1, 1, tiny_models.LENGTH, tiny_models.LENGTH).tril().bool()


@pytest.mark.parametrize(
    ("family", "more"),
    [
        ("llama", {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)}),
        ("gpt2", {"transformer.h.0.attn.bias": MASK, "transformer.h.0.attn.masked_bias": torch.tensor(-1e4)}),
        ("gpt_neox", {"gpt_neox.layers.0.attention.bias": MASK}),
        ("opt", {"model.decoder.version": torch.tensor([3.0])}),
        ("xglm", {"model.embed_positions.weights": torch.ones(9, 32)}),
    ],
)
def test_what_older_versions_wrote_beside_the_weights_still_loads(saved, tmp_path, family, more):
    old = shutil.copytree(saved[family], tmp_path / "old")
    with_weights(old, more)
    expected, found = (loading.load(directory).model.state_dict() for directory in (saved[family], old))
    assert all(torch.equal(weight, found[name]) for name, weight in expected.items())


def test_a_model_is_saved_whole_or_not_at_all(saved, tmp_path, monkeypatch):
    checkpoint = loading.load(saved["llama"])
    loading.save(checkpoint.model, checkpoint.tokenizer, tmp_path / "kept")
    before = loading.digest(tmp_path / "kept")

    full = Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr(type(checkpoint.tokenizer), "save_pretrained", full)
    with pytest.raises(CheckpointError, match=r"cannot be kept in .*No space left"):
        loading.save(checkpoint.model, checkpoint.tokenizer, tmp_path / "kept")
    assert loading.digest(tmp_path / "kept") == before and [path.name for path in tmp_path.iterdir()] == ["kept"]
