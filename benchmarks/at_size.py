"""One whole cell of the comparison on a random model of the shape of the paper's: seconds, memory, parity.

    python benchmarks/at_size.py --shape 1.3B
    python benchmarks/at_size.py --shape 2.7B --dtype bfloat16 --device cuda --task mr --data-dir DIR --queries 1000

The shapes are those of the two fairseq models of Dai et al. (2023), in the form that transformers reads, or
LAYERSxWIDTHxHEADS. The numbers of the cell mean nothing; time and memory do.
"""

import argparse
import re
import time
from pathlib import Path

import torch
from transformers import XGLMConfig, XGLMForCausalLM

from explainer.compare import comparison
from explainer.compare.comparison import ComparisonSetting
from explainer.data import tasks
from explainer.models import loading, scoring
from explainer.models.checkpoint import Checkpoint

SHAPES = {"1.3B": (24, 2048, 32), "2.7B": (32, 2560, 32)}
"""Layers, width, heads."""


def config(layers: int, width: int, heads: int, vocabulary: int) -> XGLMConfig:
    """A shape in the proportions of fairseq's models."""
    return XGLMConfig(
        vocab_size=vocabulary, d_model=width, num_layers=layers, attention_heads=heads, ffn_dim=4 * width,
        max_position_embeddings=2048, bos_token_id=0, eos_token_id=0, pad_token_id=1, decoder_start_token_id=0,
    )  # fmt: skip


def random_checkpoint(options: argparse.Namespace) -> Checkpoint:
    """A model with the default random weights, and the tokenizer of the starter checkpoint."""
    torch.manual_seed(0)
    shape = SHAPES.get(options.shape) or map(int, options.shape.split("x"))
    with torch.device(options.device):
        its = config(*shape, vocabulary=options.vocabulary)
        model = XGLMForCausalLM._from_config(its, dtype=getattr(torch, options.dtype)).eval().requires_grad_(False)
    return Checkpoint(model, loading.load(device="cpu").tokenizer, f"random-{options.shape}", None)


def largest_difference(checkpoint: Checkpoint, data: tasks.TaskData) -> float:
    """Of the log-probability of a label behind a shared prefix from that of transformers over the whole prompt."""
    shown, (query,) = tasks.demonstrations(data, 8, 0), tasks.queries(data, 1, 0)
    prompt, labels = data.task.prompt(query), data.task.labels
    prefix = scoring.encode(checkpoint, scoring.context_ids(checkpoint, data.task, shown)[0])
    scores = scoring.candidate_log_probs(checkpoint, prefix, [prompt], labels)[0]
    ids = [*prefix.ids, *checkpoint.tokenize(prompt)]
    differences = []
    for label, score in zip(labels, scores, strict=True):
        answer = checkpoint.tokenize(f" {label}")
        with torch.inference_mode():
            logits = checkpoint.model(input_ids=checkpoint.row([*ids, *answer]), use_cache=False).logits[0]
        log_probs = logits[len(ids) - 1 : -1].float().log_softmax(-1).cpu()
        differences.append(abs(score - log_probs.gather(1, torch.tensor(answer)[:, None]).sum().item()))
    return max(differences)


def peak_bytes(device: torch.device) -> int:
    """The most memory so far: of the tensors on a GPU, of the whole process on a processor."""
    if device.type == "cpu":
        status = Path("/proc/self/status").read_text()  # getrusage counts the process that started this one, too
        return 1024 * int(re.search(r"VmHWM:\s*(\d+)", status)[1])
    return torch.accelerator.max_memory_allocated(device)


def main(options: argparse.Namespace) -> None:
    """Print what one cell takes."""
    checkpoint, data = random_checkpoint(options), tasks.load(options.task, data_dir=options.data_dir)
    weights = sum(p.numel() * p.element_size() for p in checkpoint.model.parameters())
    print(f"{options.shape}, {options.dtype}, {checkpoint.device}, {torch.get_num_threads()} threads", end=", ")
    print(f"weights {weights / 1e9:.2f} GB, peak {peak_bytes(checkpoint.device) / 1e9:.2f} GB")
    print(f"largest difference from transformers {largest_difference(checkpoint, data):.1e} nats")
    cell = ComparisonSetting(
        checkpoint.name, data.task.name, 0, options.k, 1e-3, options.queries, position="first-label"
    )
    wall, cpu = time.perf_counter(), time.process_time()
    baseline = comparison.prepare(checkpoint, data, cell, progress=True)
    zsl_and_icl = time.perf_counter() - wall
    print(f"ZSL and ICL {zsl_and_icl:.0f} s, peak {peak_bytes(checkpoint.device) / 1e9:.2f} GB")
    comparison.run_comparison(baseline, cell, progress=True)
    peak = peak_bytes(checkpoint.device)
    print(f"whole cell {time.perf_counter() - wall:.0f} s, {time.process_time() - cpu:.0f} CPU seconds", end=", ")
    print(f"peak {peak / 1e9:.2f} GB, {(peak - weights) / 1e9:.2f} GB more than the weights")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="1.3B", help="1.3B, 2.7B, or LAYERSxWIDTHxHEADS (default: 1.3B)")
    parser.add_argument("--vocabulary", type=int, default=50264, help="(default: fairseq's 50264)")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--task", default="reviews", help="(default: reviews, which needs no data of your own)")
    parser.add_argument("--data-dir", help="holds <task>/train.jsonl and <task>/validation.jsonl")
    parser.add_argument("--k", type=int, default=32)
    parser.add_argument("--queries", type=int, default=30)
    main(parser.parse_args())
