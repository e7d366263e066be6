"""bench on tiny models: the ways to answer agree, and what is counted is right."""

from dataclasses import replace

import numpy as np
import pytest
import tiny_models
import torch
from torch.utils.flop_counter import FlopCounterMode

import bench
from explainer.data import tasks
from explainer.data.tasks import Example
from explainer.models import loading


@pytest.fixture
def work(tmp_path):
    """Three short reviews after two others, on a tiny Llama whose labels are single tokens."""
    checkpoint = loading.load(tiny_models.save("llama", tmp_path / "llama"))
    task = replace(tasks.TASKS["reviews"], labels=("cats", "Positive"))
    shown = tuple(Example({"text": f"film {i}"}, task.labels[i], i) for i in (0, 1))
    return bench.Work(checkpoint, task, shown, tuple(f"Review: {text}\nSentiment:" for text in ("a", "bb", "ccc dd")))


def test_the_ways_to_answer_agree(work):
    ours, naive = bench.shared_prefix(work), bench.whole_prompts(work)
    assert ours.shape == (3, 2)
    np.testing.assert_allclose(ours, naive, atol=1e-4, rtol=0)
    assert np.abs(np.diff(naive)).max() > 0.1


def test_flops_are_those_that_pytorch_counts_in_the_matrix_products(work):
    """One query after the first token alone: linear layers, attention without what a mask hides, one row of logits."""
    alone = bench.Work(work.checkpoint, work.task, (), work.prompts[:1])
    ids = torch.tensor(alone.ids())
    n, config = ids.shape[1], work.checkpoint.model.config
    with FlopCounterMode(display=False) as counted, torch.no_grad():
        work.checkpoint.model(input_ids=ids)
    products = counted.get_flop_counts()["Global"]
    linear = sum(count for op, count in products.items() if "mm" in str(op) and "bmm" not in str(op))
    width = config.num_attention_heads * config.head_dim
    attention = 4 * width * config.num_hidden_layers * n * (n + 1) // 2
    unneeded = 2 * config.vocab_size * config.hidden_size * (n - 1)
    assert bench.flops(alone) == linear - unneeded + attention
