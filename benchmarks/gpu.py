"""Measures pre-training on a GPU: JAX, and transformers on PyTorch, in turns.

    bert-benchmark gpu --output_dir=gpu

transformers is compiled and attends with PyTorch's scaled dot products. A step is the same as in
bert-benchmark all. Where a job has padding, bert_tf lays its records into fewer rows; a sequence
is a record. Seconds are counted from the first kernel to the last. The peak is the speed of a large
matrix product in JAX.

Both systems run under this interpreter, or under others that --peer_python names; neither needs
TensorFlow. Writes results.json, and gpu.md, a table. Run the same command again to measure only
missing jobs.
"""

import dataclasses
import itertools
import statistics
from typing import ClassVar

from benchmarks.all import operations
from benchmarks.kept_comparison import KeptComparison
from benchmarks.peers import running
from benchmarks.peers.running import OURS_ON_JAX
from bert_tf import flags
from bert_tf.config import PRESETS
from bert_tf.errors import InputError
from bert_tf.files import write_aside
from bert_tf.flags import REQUIRED, option

_PEER = "transformers"
_MATRIX = {"gpu": 8192, "cpu": 1024}        # rows of the matrices whose product gives the peak


@dataclasses.dataclass(kw_only=True)
class GpuFlags(KeptComparison):
    """The jobs, and the interpreters of both systems."""

    output_dir: str = option(REQUIRED, "The folder to write into.")
    device: str = option("gpu", "Device of both systems; cpu tries the command out.",
                         choices=("gpu", "cpu"))
    sizes: list[str] = option(["base", "large"], "Sizes of the network.", choices=tuple(PRESETS))
    lengths: list[str] = option(["128", "512"], "Tokens of a sequence.", items=int, least=8)
    dtypes: list[str] = option(["bfloat16"], "Types of the computation.",
                               choices=("float32", "bfloat16"))
    padding: list[str] = option(["0", "0.45"], "Shares of padding; the quickstart's records have "
                                "0.45.", items=float, least=0, below=0.5)
    train_tokens: int = option(32768, "Tokens of a training batch, padding included.", least=64)
    vocab_size: int = option(30522, "Tokens of the vocabulary.", least=2000)
    rounds: int = option(5, "Rounds of each job.", least=1)
    round_seconds: float = option(2.0, "Minimum seconds of a system in a round.", above=0)
    num_threads: int = option(4, "CPU threads of each system.", least=1)
    peer_python: list[str] = option([], "Interpreters, such as transformers=/envs/a/bin/python.")

    free: ClassVar = ("sizes", "lengths", "dtypes", "padding", "peer_python")


def list_jobs(job: GpuFlags) -> dict[str, dict]:
    """Returns the settings of each job, by its name."""
    found = {}
    for size, length, dtype, padding in itertools.product(
            job.sizes, map(int, job.lengths), job.dtypes, map(float, job.padding)):
        layers, width = PRESETS[size]
        batch_size = max(1, job.train_tokens // length)
        found[f"{size}, S={length}, B={batch_size}, {dtype}, {padding:.0%} padding"] = {
            "kind": "train", "hidden_size": width, "layers": layers, "length": length,
            "batch_size": batch_size, "dtype": dtype, "vocab_size": job.vocab_size,
            "padding": padding, "device": job.device, "threads": job.num_threads, "seed": 1}
    return found


def matrix_peak(job: GpuFlags, python: str, dtype: str) -> float:
    """Returns the operations a second of a large matrix product in JAX."""
    rows = _MATRIX[job.device]
    found = running.in_turns({OURS_ON_JAX: python}, {
        "kind": "multiply", "rows": rows, "dtype": dtype, "device": job.device,
        "threads": job.num_threads}, 3, job.round_seconds, job.output_dir, "seconds")
    return 2 * rows**3 / min(found[OURS_ON_JAX]["seconds"])


def row(name: str, settings: dict, found: dict[str, dict], peak: float) -> str:
    """Returns the line of a Markdown table for one job.

    Args:
        found: result of `running.in_turns`.
        peak: operations a second of a large matrix product.
    """
    ours = found[OURS_ON_JAX]
    seconds = statistics.median(ours["seconds"])
    share = (1 - settings["padding"]) * operations(settings) / seconds / peak
    cells = [name, f"{settings['batch_size'] / seconds:,.3g}", f"{share:.0%}",
             f"{ours['peak'] / 1e6:,.0f}", "not installed", ""]
    if theirs := found.get(_PEER):
        ratio = running.median_ratio(ours["seconds"], theirs["seconds"])
        cells[4:] = [f"{ratio:.2f}", f"{theirs['peak'] / 1e6:,.0f}"]
    return f"| {' | '.join(cells)} |"


def main(job: GpuFlags) -> None:
    """Measures the missing jobs, and writes the table."""
    job.check()
    pythons = running.chosen_pythons((OURS_ON_JAX, _PEER), job.peer_python)
    if OURS_ON_JAX not in pythons:
        raise InputError(f"{OURS_ON_JAX} needs {running.PACKAGES[OURS_ON_JAX]}; install them, or "
                         "name an interpreter that has them with --peer_python.")
    kept = job.open_results()
    lines = [f"| job | {OURS_ON_JAX}, sequences a second | share of peak | memory, MB | "
             f"times {_PEER}'s rate | its memory, MB |", "|---|---|---|---|---|---|"]
    for name, settings in list_jobs(job).items():
        peak = kept.get("matrix_peak", settings["dtype"], measure=lambda settings=settings:
                        matrix_peak(job, pythons[OURS_ON_JAX], settings["dtype"]))
        found = kept.get("jobs", ", ".join(pythons), name, measure=lambda settings=settings:
                         running.in_turns(pythons, settings, job.rounds, job.round_seconds,
                                          job.output_dir, "seconds"))
        lines.append(row(name, settings, found, peak))
        print(lines[-1], flush=True)
    with write_aside(job.path("gpu.md")) as file:
        file.write("\n".join(lines) + "\n")
    print(f"table: {job.path('gpu.md')}", flush=True)


def run() -> None:
    flags.run(main, GpuFlags)


if __name__ == "__main__":
    run()
