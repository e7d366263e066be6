"""One whole cell of the comparison on a random model of the shape of fairseq's 1.3B: seconds, memory, parity.

    python benchmarks/at_size.py DATA_DIR [QUERIES]

DATA_DIR holds `mr/train.jsonl` and `mr/validation.jsonl`. The numbers of the cell mean nothing; time and memory do.
"""

import resource
import sys
import time

import torch
from transformers import XGLMConfig, XGLMForCausalLM

from explainer.compare import comparison
from explainer.compare.comparison import Cell
from explainer.data import assets, tasks
from explainer.models import checkpoints, scoring
from explainer.models.checkpoint import Checkpoint

SHAPE = {
    "d_model": 2048, "num_layers": 24, "attention_heads": 32, "ffn_dim": 8192, "max_position_embeddings": 2048,
    "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 1, "decoder_start_token_id": 0,
}  # fmt: skip


def random_checkpoint() -> Checkpoint:
    """A model with the default random weights, and the tokenizer of the starter checkpoint."""
    torch.manual_seed(0)
    tokenizer = checkpoints.load(device="cpu").tokenizer
    model = XGLMForCausalLM(XGLMConfig(vocab_size=len(tokenizer), **SHAPE)).eval().requires_grad_(False)
    return Checkpoint(model, tokenizer, "random-1.3B", None, (assets.checkpoint_path() / "model.safetensors",))


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
            logits = checkpoint.model(input_ids=torch.tensor([[*ids, *answer]]), use_cache=False).logits[0]
        log_probs = logits[len(ids) - 1 : -1].log_softmax(-1)
        differences.append(abs(score - log_probs.gather(1, torch.tensor(answer)[:, None]).sum().item()))
    return max(differences)


def main(data_dir: str, queries: str = "30") -> None:
    """Print what one cell takes."""
    checkpoint, data = random_checkpoint(), tasks.load("mr", data_dir=data_dir)
    weights = sum(p.numel() * p.element_size() for p in checkpoint.model.parameters())
    print(f"weights {weights / 1e9:.1f} GB, {torch.get_num_threads()} threads")
    print(f"largest difference from transformers {largest_difference(checkpoint, data):.1e} nats")
    cell = Cell("random-1.3B", "mr", seed=0, k=32, lr=1e-3, n_queries=int(queries), position="first-label")
    wall, cpu = time.perf_counter(), time.process_time()
    baseline = comparison.prepare(checkpoint, data, cell, progress=True)
    zsl_and_icl = time.perf_counter() - wall
    comparison.run_cell(baseline, cell, progress=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"ZSL and ICL {zsl_and_icl:.0f} s, whole cell {time.perf_counter() - wall:.0f} s", end=", ")
    print(f"{time.process_time() - cpu:.0f} CPU seconds, peak memory {peak / 1e9:.1f} GB")


if __name__ == "__main__":
    main(*sys.argv[1:])
