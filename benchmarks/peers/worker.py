"""Runs the steps of one system on command: the program that bert-benchmark all starts.

    PYTHON worker.py SYSTEM JOB

SYSTEM is a module in this folder, with a function for each kind of job: `train` and `predict` get
the JSON object JOB and return a function that takes a number of steps. The worker writes a line of
JSON when the first step is done, and after each line that it reads, a number of steps, another one:
seconds, of the CPU or, where the job's device is a GPU, of the clock; and the process's peak memory
in bytes.
"""

import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

# Share of the tokens that are predicted.
_MASKED = 0.15
_RESERVED = 1000        # ids below this are not drawn


def draw(job: dict, count: int) -> list:
    """Returns `count` batches, dicts of NumPy arrays under BERT's names; `padding` of all their
    tokens is padding."""
    import numpy as np
    rng = np.random.default_rng(job["seed"])
    rows, length = job["batch_size"], job["length"]
    slots = job.get("slots") or max(1, round(_MASKED * length))
    low = min(_RESERVED, job["vocab_size"] // 2)
    batches = [{
        "input_ids": rng.integers(low, job["vocab_size"], (rows, length), np.int32),
        "input_mask": np.ones((rows, length), np.int32),
        "segment_ids": np.repeat([[0] * (length // 2) + [1] * (length - length // 2)], rows,
                                 0).astype(np.int32),
        "masked_lm_positions": np.sort(np.stack([
            rng.permutation(length)[:slots] for _ in range(rows)]), 1).astype(np.int32),
        "masked_lm_ids": rng.integers(low, job["vocab_size"], (rows, slots), np.int32),
        "masked_lm_weights": np.ones((rows, slots), np.float32),
        "next_sentence_labels": rng.integers(0, 2, (rows, 1), np.int32),
    } for _ in range(count)]
    if padding := job.get("padding", 0):        # the lengths are spread evenly
        for batch in batches:
            ends = rng.permutation(np.linspace(1 - 2 * padding, 1, rows) * length)[:, None]
            batch["input_mask"] *= np.arange(length) < ends
            batch["masked_lm_weights"] *= batch["masked_lm_positions"] < ends
    return batches


def sizes(job: dict) -> dict[str, int]:
    """Returns the sizes of a job's network, as the configurations of BERT name them."""
    width = job["hidden_size"]
    found = {"vocab_size": job["vocab_size"], "hidden_size": width,
             "num_hidden_layers": job["layers"], "num_attention_heads": width // 64}
    if job["model"] == "modernbert":
        return {**found, "intermediate_size": width * 3 // 2}
    return {**found, "intermediate_size": 4 * width,
            "max_position_embeddings": max(512, job["length"])}


def repeated(step: Callable[[], Any]) -> Callable[[int], None]:
    """Returns the function that takes a number of steps, one call of `step` each."""
    def steps(count):
        for _ in range(count):
            step()
    return steps


def main(system: str, job: dict) -> None:
    """Answers until its input ends."""
    # Libraries may print: the answers have a stream of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)     # the process is killed at its end
    module = importlib.import_module(system)
    steps = getattr(module, job["kind"])(job)
    clock = time.perf_counter if job.get("device") == "gpu" else time.process_time
    steps(1)
    print(json.dumps({"version": module.version()}), file=answers, flush=True)
    for line in sys.stdin:
        begin = clock()
        steps(int(line))
        print(json.dumps({
            "seconds": clock() - begin,
            "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}),
            file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
