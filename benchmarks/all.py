r"""Measures training and prediction with bert_tf and the installed peers, in turns.

    bash run_scripts/test_peers.sh          # installs the peers; once
    bert-benchmark all --output_dir=speed

A job is one kind of work at one size, length, batch and type. For each job all systems are started;
then they take steps in turns, for --rounds rounds. In each round, the peer's CPU seconds are
divided by bert_tf's; the ratio in the table is the median over the rounds. Above 1, bert_tf is
faster. Training is a whole step of pre-training: dropout, loss, gradients, clipping, AdamW. All
sequences are full unless --padding is given; then bert_tf lays them into fewer rows. CPU seconds
are counted, since other programs may be running.

With --device=gpu --jobs=train, bert_tf runs on JAX and transformers is compiled; seconds of the
clock are counted. For example:

    bert-benchmark all --device=gpu --jobs=train --sizes=base,large --dtypes=bfloat16 \
        --train_tokens=131072 --output_dir=gpu
    bert-benchmark all --device=gpu --jobs=train --sizes=base --dtypes=bfloat16 --lengths=128 \
        --train_tokens=131072 --padding=0.45 --output_dir=packed
    bert-benchmark all --device=gpu --jobs=train --sizes=base,large --dtypes=bfloat16 \
        --train_tokens=131072 --optimizer=muon --output_dir=muon

Writes results.json; speed.md, the tables; speed.png, a chart. Run the same command again to measure
only missing jobs.
"""

import dataclasses
import functools
import itertools
import operator
import os
import statistics
from collections.abc import Sequence

from benchmarks.peers import running
from benchmarks.peers.running import OURS
from bert_tf.config import PRESETS
from bert_tf.errors import InputError
from bert_tf.files import write_aside
from bert_tf.flags import REQUIRED, check, option
from bert_tf.training.optimizers.table import OPTIMIZERS
from run_scripts.kept_results import open_results

_JOBS = ("train", "predict")
_DTYPES = ("float32", "bfloat16")
# Another network than BERT, and its depths where they are not BERT's.
_MODERNBERT = "modernbert"
_MODERNBERT_LAYERS = {"base": 22, "large": 28}
# Flags that may change when a command resumes.
_FREE = ("jobs", "sizes", "lengths", "dtypes", "predict_batch_sizes", "peer_python")
_MATRIX = {"cpu": 2048, "gpu": 8192}    # rows of the matrices whose product gives the peak


@dataclasses.dataclass(kw_only=True)
class AllFlags:
    """The jobs, and the interpreters of the peers."""

    output_dir: str = option(REQUIRED, "The folder to write into.")
    jobs: list[str] = option(list(_JOBS), "Kinds of work.", choices=_JOBS)
    model: str = option("bert", "The network; of the peers, transformers alone has modernbert.",
                        choices=("bert", _MODERNBERT))
    num_layers: int = option(0, "Layers of each network; 0: as many as its size has.", least=0)
    sizes: list[str] = option(["tiny", "mini", "small", "base"], "Sizes of the network.",
                              choices=tuple(PRESETS))
    lengths: list[str] = option(["128", "512"], "Tokens of a sequence.", items=int, least=8)
    dtypes: list[str] = option(list(_DTYPES), "Types of the computation.", choices=_DTYPES)
    train_tokens: int = option(
        4096, "Tokens of a training batch; a quarter of this for networks of at "
        "least 12 layers.", least=512)
    predict_batch_sizes: list[str] = option(["1", "8", "32"], "Batch sizes of prediction.",
                                            items=int, least=1)
    vocab_size: int = option(30522, "Tokens of the vocabulary.", least=2000)
    rounds: int = option(5, "Rounds of each job.", least=1)
    round_seconds: float = option(2.0, "Minimum CPU seconds of a system in a round.",
                                  above=0)
    num_threads: int = option(1, "Threads of each system.", least=1)
    device: str = option("cpu", "The device of all systems.", choices=tuple(_MATRIX))
    padding: float = option(0.0, "Share of padding in a training batch; the quickstart's records "
                            "have 0.45.", least=0, below=0.5)
    optimizer: str = option("adamw", "The optimizer of bert_tf; peers have AdamW.",
                            choices=tuple(OPTIMIZERS))
    peer_python: list[str] = option(
        [], "Interpreters of peers, such as transformers=/envs/a/bin/python. Default: the "
        "interpreters of run_scripts/test_peers.sh, and the interpreter of this command. A peer "
        "that is not installed is left out.")


def list_jobs(job: AllFlags) -> dict[str, dict]:
    """Returns the settings of each job, by its name."""
    jobs = {}
    for kind, size, length, dtype in itertools.product(job.jobs, job.sizes, map(int, job.lengths),
                                                       job.dtypes):
        layers, width = PRESETS[size]
        if job.model == _MODERNBERT:
            layers = _MODERNBERT_LAYERS.get(size, layers)
        layers = job.num_layers or layers
        tokens = job.train_tokens // (4 if layers >= 12 else 1)
        batches = [max(1, tokens // length)] if kind == "train" else map(
            int, job.predict_batch_sizes)
        for batch_size in batches:
            jobs[f"{kind}, {size}, S={length}, B={batch_size}, {dtype}"] = {
                "kind": kind, "model": job.model, "hidden_size": width, "layers": layers,
                "length": length, "batch_size": batch_size,
                "dtype": dtype, "vocab_size": job.vocab_size, "threads": job.num_threads,
                "device": job.device, "padding": job.padding, "optimizer": job.optimizer, "seed": 1}
    return jobs


def operations(job: dict) -> float:
    """Returns the floating-point operations of a step's matrix products: 2 for each product and
    sum; three times as many where gradients are taken."""
    width, length, rows = job["hidden_size"], job["length"], job["batch_size"]
    matrices, seen = 12, float(length)      # in squares of the width; tokens that a token sees
    if job["model"] == _MODERNBERT:         # two layers of three are local
        matrices, seen = 8.5, (length + 2 * min(length, 129)) / 3
    layer = 2 * length * matrices * width * width + 4 * length * seen * width
    forward = job["layers"] * layer + 2 * width * width
    if job["kind"] == "train":
        slots = max(1, round(0.15 * length))
        return 3 * rows * (forward + 2 * slots * width * (width + job["vocab_size"]))
    return rows * forward


def summarize(by_system: dict[str, dict], settings: dict, peak: float) -> dict:
    """Returns medians and ratios of one job.

    Args:
        by_system: result of `running.in_turns`.
        peak: operations a second of a large matrix product.
    """
    rows = {}
    for system, measured in by_system.items():
        seconds = statistics.median(measured["seconds"])
        rows[system] = {
            "sequences_per_second": settings["batch_size"] / seconds,
            "spread": (max(measured["seconds"]) - min(measured["seconds"])) / seconds,
            "share_of_peak": (1 - settings["padding"]) * operations(settings) / seconds / peak,
            "peak_megabytes": measured["peak"] / 1e6, "version": measured["version"]}
    ratios = {system: statistics.median(map(operator.truediv, measured["seconds"],
                                            by_system[OURS]["seconds"]))
              for system, measured in by_system.items() if system != OURS}
    return {"systems": rows, "ratios": ratios}


def matrix_peak(job: AllFlags, dtype: str) -> float:
    """Returns the operations a second of a large matrix product in TensorFlow, or JAX."""
    rows = _MATRIX[job.device]
    settings = {"kind": "multiply", "rows": rows, "dtype": dtype, "threads": job.num_threads,
                "device": job.device}
    results = running.in_turns({OURS: running.default_pythons()[OURS]}, settings, 3,
                             job.round_seconds, job.output_dir)
    return 2 * rows**3 / min(results[OURS]["seconds"])


def table(results: dict[str, dict]) -> list[str]:
    """Returns the lines of a Markdown table: a row for each job."""
    lines = ["| job | bert_tf, sequences a second | share of peak | memory, MB | "
             "times the peer's rate |", "|---|---|---|---|---|"]
    for name, result in results.items():
        ours = result["systems"][OURS]
        peers = "; ".join(
            f"{system} {ratio:.2f} (memory {result['systems'][system]['peak_megabytes']:,.0f})"
            for system, ratio in result["ratios"].items()) or "no peer is installed"
        lines.append(f"| {name} | {ours['sequences_per_second']:.3g} | "
                     f"{ours['share_of_peak']:.0%} | {ours['peak_megabytes']:,.0f} | {peers} |")
    return lines


def verdict(results: dict[str, dict], kind: str) -> str:
    """Returns a sentence on the best peer of each job of a kind."""
    best = [min(result["ratios"].values()) for name, result in results.items()
            if name.startswith(f"{kind},") and result["ratios"]]
    if not best:
        return f"{kind}: there is no peer to compare with."
    return (f"{kind}: {statistics.geometric_mean(best):.2f} times the best peer's rate, the "
            f"geometric mean over {len(best)} jobs; from {min(best):.2f} to {max(best):.2f}.")


def draw(path: str, results: dict[str, dict], peers: list[str]) -> None:
    """Draws the ratio to each peer, a bar for each job, as PNG."""
    from bert_tf.analysis.pictures import picture
    height = 0.8 / len(peers)
    with picture(path, 1, 1, (8, 1 + 0.4 * len(results))) as (_, axes):
        axis = axes[0, 0]
        for number, peer in enumerate(peers):
            axis.barh([place + number * height for place in range(len(results))],
                      [result["ratios"].get(peer, 0) for result in results.values()], height,
                      label=peer)
        axis.set_yticks([place + 0.4 - height / 2 for place in range(len(results))], list(results))
        axis.axvline(1, color="gray", linestyle="--")
        axis.margins(y=0.01)
        axis.invert_yaxis()
        axis.set_xlabel("times the peer's sequences a second")
        axis.legend(fontsize=8)


def main(job: AllFlags) -> None:
    """Measures the missing jobs, and writes the tables and the chart."""
    check(job)
    if job.device == "gpu" and job.jobs != ["train"]:
        raise InputError("--device=gpu measures training alone; give --jobs=train.")
    systems: Sequence[str] = running.SYSTEMS
    if job.device == "gpu" or job.model == _MODERNBERT:
        systems = (OURS, "transformers")
    pythons = running.chosen_pythons(systems, job.peer_python)
    kept_file = open_results(job, _FREE)
    missing = [system for system in systems if system not in pythons]
    if missing:
        print(f"left out, as they are not installed: {', '.join(missing)}; run_scripts/"
              "test_peers.sh installs them", flush=True)
    results = {}
    for name, settings in list_jobs(job).items():
        peak = kept_file.get("matrix_peak", settings["dtype"],
                             measure=lambda dtype=settings["dtype"]: matrix_peak(job, dtype))
        by_system = kept_file.get(
            "jobs", ", ".join(pythons), name, measure=lambda settings=settings: running.in_turns(
                pythons, settings, job.rounds, job.round_seconds, job.output_dir))
        results[name] = summarize(by_system, settings, peak)
        print(table({name: results[name]})[-1], flush=True)
    verdicts = [verdict(results, kind) for kind in job.jobs]
    kept_file.put("summary", results)
    path = functools.partial(os.path.join, job.output_dir)
    with write_aside(path("speed.md")) as file:
        file.write("\n".join([*table(results), "", *verdicts]) + "\n")
    print("\n" + "\n".join(verdicts) + f"\ntables: {path('speed.md')}", flush=True)
    if peers := [system for system in pythons if system != OURS]:
        draw(path("speed.png"), results, peers)
        print(f"chart: {path('speed.png')}", flush=True)
