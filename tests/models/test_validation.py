"""What a checkpoint must do is tried when it is loaded: each fault is named, and none comes later as a wrong number."""

import json

import pytest
import tiny_models
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoConfig, AutoModelForCausalLM, GPT2Tokenizer, PreTrainedTokenizerFast

from explainer.data.tasks import Example, Task
from explainer.errors import CheckpointError
from explainer.models import loading, scoring, validation


def saved(tmp_path, family="llama"):
    return tiny_models.save(family, tmp_path / "model")


def config_with(directory, **values):
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def drop_spaces(directory):
    words = Tokenizer(models.WordLevel({"<s>": 0, "a": 3, "b": 4, "1": 5, "?": 6}, unk_token="?"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    for path in directory.glob("*token*"):
        path.unlink()
    PreTrainedTokenizerFast(tokenizer_object=words, bos_token="<s>", eos_token="<s>").save_pretrained(directory)


def fewer_rows(directory):
    model = AutoModelForCausalLM.from_pretrained(directory)
    model.resize_token_embeddings(100)
    model.save_pretrained(directory)


FAULTS = {
    "quantised": (
        lambda d: config_with(d, quantization_config={"quant_method": "gptq"}),
        r"quantised weights \(gptq\)",
    ),
    "quantised, as bitsandbytes wrote it once": (
        lambda d: config_with(d, quantization_config={"load_in_4bit": True}),
        r"quantised weights \(unknown\)",
    ),
    "tokenizer of a larger model": (fewer_rows, r"its tokenizer gives token \d+, and the model has 100;"),
    "tokenizer of another version": (
        lambda d: (d / "tokenizer.json").write_text('{"version": "9.0", "model": {"type": "Unheard"}}'),
        "no tokenizer that can be read",
    ),
    "spaces lost": (drop_spaces, "its tokenizer reads .* back as"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_when_the_model_is_loaded(tmp_path, fault):
    directory, (make, message) = saved(tmp_path), FAULTS[fault]
    make(directory)
    with pytest.raises(CheckpointError, match=message):
        loading.load(directory)


def test_a_rare_token_that_the_model_does_not_have_is_named_where_it_occurs():
    checkpoint = tiny_models.random_checkpoint(tiny_models.CONFIGS["llama"])
    rare = max(checkpoint.tokenize("Sentiment: Positive"))
    checkpoint.model.resize_token_embeddings(rare)
    task = Task("rare", "{text}", labels=None)
    with pytest.raises(CheckpointError, match=f"gives token {rare}, and the model has {rare};"):
        scoring.context_ids(checkpoint, task, [Example({"text": "Sentiment:"}, "Positive")])


def test_a_family_that_keeps_no_keys_and_values_is_refused_by_name(tmp_path):
    few = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
    experts = {"num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 16, "intermediate_size": 32}
    heads = dict.fromkeys(("linear_num_key_heads", "linear_num_value_heads"), 2)
    sizes = dict.fromkeys(("linear_key_head_dim", "linear_value_head_dim"), 8)
    kinds = {"layer_types": ["linear_attention", "full_attention"], "vocab_size": tiny_models.VOCAB}
    config = AutoConfig.for_model("qwen3_next", **few, **experts, **heads, **sizes, **kinds)
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    tiny_models.tokenizer().save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="'qwen3_next'"):
        loading.load(tmp_path)


def test_the_first_token_is_the_declared_one_not_one_that_the_class_adds(tmp_path):
    directory = saved(tmp_path, "gpt2")
    tokenizer = GPT2Tokenizer.from_pretrained(directory, bos_token="<s>", eos_token="</s>")
    assert "<|endoftext|>" in tokenizer.get_vocab(), "the class adds its own"
    assert loading.load(directory).first_token_id == 0
    config_with_class = json.loads((directory / "tokenizer_config.json").read_text())
    config_with_class["tokenizer_class"] = "GPT2Tokenizer"
    (directory / "tokenizer_config.json").write_text(json.dumps(config_with_class))
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


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_no_fault_and_other_logits_are_one_in_it(monkeypatch, dtype):
    checkpoint = loading.load(dtype=dtype, device="cpu")
    row_logits = scoring.row_logits
    swapped = lambda *given: ((i, logits.flip(-1)) for i, logits in row_logits(*given))  # noqa: E731
    monkeypatch.setattr(scoring, "row_logits", swapped)
    with pytest.raises(CheckpointError, match="score a prompt behind a prefix otherwise"):
        validation.require_usable(checkpoint)
