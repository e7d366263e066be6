"""`make bench`: what the book says is fast, measured. A busy machine stretches wall seconds, hardly CPU seconds.

The work is 200 reviews with two candidates each after 32 demonstrations, on the starter checkpoint, one thread, beside
passes of transformers over whole prompts.
"""

import argparse
import multiprocessing
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from explainer.compare import comparison
from explainer.compare.comparison import ComparisonSetting
from explainer.data import tasks
from explainer.data.tasks import Example, Task
from explainer.models import loading, recording, scoring
from explainer.models.loading import Checkpoint
from explainer.theory import momentum

K = 32


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall seconds of one call."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


@dataclass(frozen=True)
class Work:
    """Queries to answer with one of the task's labels after demonstrations."""

    checkpoint: Checkpoint
    task: Task
    demonstrations: tuple[Example, ...]
    prompts: tuple[str, ...]

    @classmethod
    def reviews(cls, checkpoint: Checkpoint, n_queries: int) -> "Work":
        """Reviews after K others."""
        data = tasks.load("reviews")
        prompts = tuple(data.task.prompt(query) for query in tasks.queries(data, n_queries, 0))
        return cls(checkpoint, data.task, tuple(tasks.demonstrations(data, K, 0)), prompts)

    def first(self, n_queries: int) -> "Work":
        """The same with fewer queries."""
        return replace(self, prompts=self.prompts[:n_queries])

    def ids(self) -> list[list[int]]:
        """Token ids of every prompt with the first token and the demonstrations before it."""
        context = "".join(self.task.demonstration(e) + self.task.separator for e in self.demonstrations)
        strings = [context + prompt for prompt in self.prompts]
        return [[self.checkpoint.first_token_id, *ids] for ids in self.checkpoint.tokenize_all(strings)]

    def prefix(self) -> scoring.Prefix:
        """The demonstrations, tokenized and encoded."""
        return scoring.encode(self.checkpoint, scoring.context_ids(self.checkpoint, self.task, self.demonstrations)[0])


# Ways to answer. Each gives log-probabilities, shape (n, c), or numbers of the same order.


def shared_prefix(work: Work) -> np.ndarray:
    """Ours, with tokenization and the demonstrations' forward pass."""
    return scoring.candidate_log_probs(work.checkpoint, work.prefix(), work.prompts, work.task.labels)


@torch.inference_mode()
def whole_prompts(work: Work) -> np.ndarray:
    """One forward pass of the model over every whole prompt, with the logits of its last token."""
    labels = [label for (label,) in work.checkpoint.tokenize_all([f" {label}" for label in work.task.labels])]
    rows = []
    for ids in work.ids():
        logits = work.checkpoint.model(input_ids=torch.tensor([ids]), use_cache=False, logits_to_keep=1).logits[0, -1]
        rows.append(logits.float().log_softmax(-1)[labels])
    return torch.stack(rows).numpy()


# The table.


def _row(name: str, seconds: tuple[float, float], per: int = 1, remark: str = "") -> None:
    print(f"{name:<62}{seconds[0] / per:>9.4f}{seconds[1] / per:>9.4f}  {remark}".rstrip(), flush=True)


def compare(work: Work, n_whole: int) -> None:
    """Seconds per query of ours on all queries and of whole prompts on the first `n_whole`, with the ratio of CPU."""
    answers = []
    ours = timed(lambda: answers.append(shared_prefix(work)))
    n, name = len(work.prompts), str(work.checkpoint.dtype).removeprefix("torch.")
    _row(f"ours, {n} queries, all included, {name}", ours, n)
    whole = timed(lambda: answers.append(whole_prompts(work.first(n_whole))))
    scored, expected = answers[0][:n_whole], answers[1]
    agree = (expected.argmax(1) == scored.argmax(1)).sum()
    remark = f"{whole[0] / n_whole / (ours[0] / n):.1f} x CPU, arg max {agree}/{n_whole}"
    remark += f", log p within {np.abs(expected - scored).max():.1e}"
    _row(f"whole prompts, transformers, {n_whole} queries", whole, n_whole, remark)


def bench_recording(work: Work) -> None:
    """Recording and plain scoring of the same queries, in turns; the least of three each."""
    prefix, seconds = work.prefix(), {}
    for _ in range(3):
        for scorer in (scoring.candidate_log_probs, recording.iter_records):
            took = timed(lambda scorer=scorer: list(scorer(work.checkpoint, prefix, work.prompts, work.task.labels)))
            seconds[scorer] = min(took, seconds.get(scorer, took))
    plain, recorded = seconds.values()
    _row("scoring alone, prefix excluded", plain, len(work.prompts))
    _row("scoring and recording", recorded, len(work.prompts), f"{100 * (recorded[0] / plain[0] - 1):+.0f} %")


def bench_sweep(work: Work) -> None:
    """Prefixes of 1, 2, 4 ... K demonstrations: each encoded, and the last one cut."""
    ids, ends = scoring.context_ids(work.checkpoint, work.task, work.demonstrations)
    ks = [2**i for i in range(K.bit_length())]
    each = timed(lambda: [scoring.encode(work.checkpoint, ids[: ends[k]]) for k in ks])
    once = timed(lambda: [scoring.encode(work.checkpoint, ids).first(ends[k]) for k in ks[-1:]])
    _row(f"prefixes of k = {', '.join(map(str, ks))}, each encoded", each)
    _row("the same, cut from one", once, 1, f"{each[0] / once[0]:.1f} x CPU")


def flops(work: Work) -> int:
    """2 per multiplied weight and token, 4 H d per layer and pair of a token and one it sees, and the logits."""
    model = work.checkpoint.model
    weights = sum(m.weight.numel() for m in model.base_model.modules() if isinstance(m, nn.Linear))
    width = model.config.num_attention_heads * model.base_model.layers[0].self_attn.head_dim
    P = len(scoring.context_ids(work.checkpoint, work.task, work.demonstrations)[0])
    lengths = [len(ids) - P for ids in work.ids()]
    pairs = P * (P + 1) // 2 + sum(n * P + n * (n + 1) // 2 for n in lengths)
    logits = 2 * model.get_output_embeddings().weight.numel() * len(lengths)
    return 2 * weights * (P + sum(lengths)) + 4 * width * model.config.num_hidden_layers * pairs + logits


@torch.inference_mode()
def products_per_second(checkpoint: Checkpoint, seconds: float = 0.5) -> float:
    """FLOPs per second of CPU of the matrix products of one layer, as scoring computes them, on a full pack."""
    layer = [m for m in checkpoint.model.base_model.layers[0].modules() if isinstance(m, nn.Linear)]
    inputs = [torch.randn(scoring.PACK_TOKENS, m.in_features).to(checkpoint.dtype) for m in layer]

    def products() -> None:
        for module, x in zip(layer, inputs, strict=True):
            module(x)

    products()
    each = timed(products)[0]
    count = max(int(seconds / each), 1)
    total = timed(lambda: [products() for _ in range(count)])[0]
    return 2 * scoring.PACK_TOKENS * sum(m.weight.numel() for m in layer) * count / total


def bench_bound(work: Work) -> None:
    """The part of the time in which the products would be done if nothing else were."""
    rate, count = products_per_second(work.checkpoint), flops(work)
    took = timed(lambda: shared_prefix(work))
    share = f"{100 * count / rate / took[0]:.0f} % of {rate / 1e9:.0f} GFLOP/s, {count / 1e9:.0f} GFLOP"
    _row("the arithmetic bound", (count / rate, count / rate), len(work.prompts), share)


def bench_cell(checkpoint: Checkpoint, n_queries: int) -> None:
    """One complete cell of a study: ZSL, ICL and FT of K reviews with five labels, and every measure."""
    data = tasks.load("reviews5")
    cell = ComparisonSetting(checkpoint.name, data.task.name, seed=0, k=K, lr=1e-3, n_queries=n_queries)
    took = timed(lambda: comparison.run_comparison(comparison.prepare(checkpoint, data, cell), cell))
    name = str(checkpoint.dtype).removeprefix("torch.")
    _row(f"a complete cell, {n_queries} queries, {name}, in seconds", took)


def bench_busy(work: Work) -> None:
    """Ours beside two processes that do nothing but spin."""
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        _row("ours, beside two busy processes", timed(lambda: shared_prefix(work)), len(work.prompts))
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def _resident(field: str) -> float:
    """MB of memory of this process, now (VmRSS) or at most (VmHWM); NaN where the system does not say."""
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="ascii").splitlines() if status.is_file() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(field)), np.nan)


def _peak(way: Callable[[Work], object], n_queries: int) -> tuple[float, float]:
    """MB with the checkpoint loaded, and at most while the queries are answered."""
    torch.set_num_threads(1)
    work = Work.reviews(loading.load(), n_queries)
    loaded = _resident("VmRSS")
    way(work)
    return loaded, _resident("VmHWM")


def _naive_logits(work: Work) -> None:
    """What a plain call of the model does, with the logits of all tokens."""
    with torch.inference_mode():
        work.checkpoint.model(input_ids=torch.tensor(work.ids()[:1]))


def bench_memory(n_queries: int) -> None:
    """Peak memory of scoring, and of the model's own call on one whole prompt, each in a process of its own."""
    peaks = []
    for title, way, n in (
        ("one whole prompt", whole_prompts, 1),
        ("one whole prompt, all logits", _naive_logits, 1),
        (f"ours, {n_queries} queries", shared_prefix, n_queries),
    ):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            loaded, peak = pool.apply(_peak, (way, n))
        peaks.append(peak)
        print(f"peak memory, {title:<46}{peak:>7.0f} MB, {peak - loaded:.0f} MB of it above the loaded checkpoint")
    over = [f"{peaks[-1] / peak:.2f}" for peak in peaks[:-1]]
    print(f"ours over whole prompt: {over[0]}; over one with all logits: {over[1]}")


# Momentum attention: forward and backward of one layer, B = 4, H = 8, d = 64.

ETA = 0.9
AT_MOST = {1024: 1.10, 2048: 1.06}
"""CPU time of momentum attention over that of plain attention, by length."""
Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


def plain_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Causal attention by PyTorch's fused kernel."""
    return scaled_dot_product_attention(query, key, value, is_causal=True)


def momentum_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Ours."""
    return momentum.momentum_attention(query, key, value, ETA)


def eager_momentum_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """The formula with T x T matrices: (softmax(q k^T / sqrt d) + decay) v."""
    lag = torch.arange(query.shape[-2])[:, None] - torch.arange(query.shape[-2])
    decay = torch.where(lag > 0, ETA ** lag.clamp(min=0), 0.0)
    logits = (query @ key.mT * query.shape[-1] ** -0.5).masked_fill(lag < 0, -torch.inf)
    return (logits.softmax(-1) + decay) @ value


def _attention_inputs(T: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(4, 8, T, 64, generator=generator).requires_grad_() for _ in range(3)]


def _forward_and_backward(attention: Attention, inputs: list[Tensor]) -> None:
    output = attention(*inputs)
    torch.autograd.grad(output, inputs, torch.ones_like(output))


def _attention_peak(attention: Attention, T: int) -> float:
    """MB at most over two passes."""
    torch.set_num_threads(1)
    inputs = _attention_inputs(T)
    for _ in range(2):
        _forward_and_backward(attention, inputs)
    return _resident("VmHWM")


def bench_momentum(T: int, repeats: int, others: Sequence[Attention] = (momentum_attention,)) -> float:
    """Momentum attention and others beside plain attention, in turns; the least of the repeats, and peak memory.

    Ratios of CPU time are medians over the turns, because a busy machine slows both ways of one turn. Returns that of
    momentum attention.
    """
    inputs, ways = _attention_inputs(T), (plain_attention, *others)
    turns = [{way: timed(lambda way=way: _forward_and_backward(way, inputs)) for way in ways} for _ in range(repeats)]
    ratios = {way: float(np.median([turn[way][0] / turn[plain_attention][0] for turn in turns])) for way in ways}
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        peaks = pool.starmap(_attention_peak, [(way, T) for way in ways], chunksize=1)
    for way, peak in zip(ways, peaks, strict=True):
        remark = f"{ratios[way]:.3f} x CPU, peak memory {peak:.0f} MB, {peak / peaks[0]:.2f} x"
        least = min(turn[way] for turn in turns)
        _row(f"{way.__name__}, forward and backward, T = {T}, in seconds", least, 1, remark)
    return ratios[momentum_attention]


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python benchmarks/bench.py", description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=200, help="queries that we answer (default: 200)")
    parser.add_argument("--whole", type=int, default=16, help="queries that transformers answers (default: 16)")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    print(f"one thread, torch {torch.__version__}, {K} demonstrations; seconds per query where not said otherwise")
    print(f"{'':<62}{'CPU':>9}{'wall':>9}")
    for dtype in (torch.float32, torch.bfloat16):
        work = Work.reviews(loading.load(dtype=dtype), options.queries)
        compare(work, min(options.whole, options.queries))
        bench_bound(work)
        bench_recording(work.first(64))
        bench_cell(work.checkpoint, min(150, options.queries))
    work = Work.reviews(loading.load(), options.queries)
    bench_sweep(work)
    bench_busy(work)
    bench_memory(options.queries)
    ratios = {T: bench_momentum(T, 12) for T in AT_MOST}
    bench_momentum(2048, 2, (momentum_attention, eager_momentum_attention))
    for T, most in AT_MOST.items():
        if ratios[T] > most:
            sys.exit(f"momentum attention took {ratios[T]:.3f} x plain attention at T = {T}; {most:.2f} x is asked.")


if __name__ == "__main__":
    main()
