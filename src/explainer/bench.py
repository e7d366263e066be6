"""`make bench`: time what the book says is fast. A busy machine stretches wall seconds, hardly CPU seconds."""

import platform
import time
from collections.abc import Callable

import torch

from explainer import checkpoints, scoring, tasks
from explainer.checkpoints import Checkpoint

N_QUERIES = 16
N_NAIVE = 4
K = 32


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall seconds of one call."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def _row(name: str, seconds: tuple[float, float], per: int = 1) -> None:
    print(f"{name:<58}{seconds[0] / per:>10.3f}{seconds[1] / per:>10.3f}", flush=True)


def bench_scoring(checkpoint: Checkpoint) -> None:
    """Seconds for one review after 32 demonstrations: whole prompts, and a prefix that all queries share."""
    data = tasks.load("reviews")
    ids, ends = scoring.context_ids(checkpoint, data.task, tasks.demonstrations(data, K, 0))
    queries = tasks.queries(data, N_QUERIES, 0)

    @torch.inference_mode()
    def naive() -> None:
        for query in queries[:N_NAIVE]:
            prompt = torch.tensor([ids + checkpoint.tokenize(data.task.prompt(query))])
            checkpoint.logits(checkpoint.hidden(input_ids=prompt)[0, -1])

    def shared() -> None:
        scoring.answer(checkpoint, data.task, prefix, queries)

    name = str(checkpoint.dtype).removeprefix("torch.")
    whole = timed(naive)
    _row(f"one query, whole prompt of {ends[-1]} tokens, {name}", whole, N_NAIVE)
    prefix = scoring.encode(checkpoint, ids)
    _row(f"the demonstrations once, {name}", timed(lambda: scoring.encode(checkpoint, ids)))
    batch = timed(shared)
    _row(f"one query after the shared prefix, {name}", batch, N_QUERIES)
    ratio = whole[0] / N_NAIVE / (batch[0] / N_QUERIES)
    print(f"{'ratio of CPU seconds per query':<58}{ratio:>10.1f}")


def main() -> None:
    """Print the table."""
    print(f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}")
    print(f"{'seconds':<58}{'CPU':>10}{'wall':>10}")
    _row("load the starter checkpoint", timed(checkpoints.load))
    for dtype in (torch.float32, torch.bfloat16):
        bench_scoring(checkpoints.load(dtype=dtype))


if __name__ == "__main__":
    main()
