"""Measures how the cost of a training step grows with each size: exponents.

    bert-benchmark growth --output_dir=growth

One size varies at a time; the other sizes stay as in --model_size, --length and --batch_size. The
exponent of an interval is log(cost ratio) / log(size ratio): 1 means that the cost doubles with the
size. A step is the same as in bert-benchmark all. Writes results.json and growth.png. Run the same
command again to measure only missing sizes.
"""

import dataclasses
import math
import statistics
from typing import ClassVar

from benchmarks.kept_comparison import KeptComparison
from benchmarks.peers import running
from benchmarks.peers.running import OURS
from bert_tf import flags
from bert_tf.config import PRESETS
from bert_tf.flags import REQUIRED, option

# By flag: the setting of a job, and its name in the picture.
_AXES = {"lengths": ("length", "tokens of a sequence"), "batch_sizes": ("batch_size", "sequences"),
         "layers": ("layers", "layers"), "hidden_sizes": ("hidden_size", "width"),
         "vocab_sizes": ("vocab_size", "tokens of the vocabulary")}


@dataclasses.dataclass(kw_only=True)
class GrowthFlags(KeptComparison):
    """The sizes that are varied."""

    output_dir: str = option(REQUIRED, "The folder to write into.")
    model_size: str = option("mini", "The network.", choices=tuple(PRESETS))
    length: int = option(128, "Tokens of a sequence.", least=8)
    batch_size: int = option(16, "Sequences of a batch.", least=1)
    vocab_size: int = option(30522, "Tokens of the vocabulary.", least=2000)
    lengths: list[str] = option(["64", "128", "256", "512", "1024"], "Lengths.", items=int, least=8)
    batch_sizes: list[str] = option(["4", "8", "16", "32", "64"], "Batch sizes.", items=int,
                                    least=1)
    layers: list[str] = option(["1", "2", "4", "8", "16"], "Numbers of layers.", items=int, least=1)
    hidden_sizes: list[str] = option(["128", "256", "512", "1024"], "Widths, multiples of 64.",
                                     items=int, least=64)
    vocab_sizes: list[str] = option(["4000", "8000", "16000", "32000", "64000"], "Vocabularies.",
                                    items=int, least=2000)
    rounds: int = option(3, "Times that each step is measured.", least=1)
    round_seconds: float = option(1.0, "Minimum CPU seconds of each measurement.", above=0)
    num_threads: int = option(1, "Threads.", least=1)

    free: ClassVar = tuple(_AXES)


def exponents(sizes: list[int], costs: list[float]) -> list[float]:
    """Returns the exponent of each interval between two successive sizes."""
    return [math.log(costs[i + 1] / costs[i]) / math.log(sizes[i + 1] / sizes[i])
            for i in range(len(sizes) - 1)]


def measure(job: GrowthFlags, setting: str, size: int) -> float:
    """Returns the CPU seconds of a step with one setting changed, the median of the rounds."""
    layers, width = PRESETS[job.model_size]
    settings = {"kind": "train", "hidden_size": width, "layers": layers, "length": job.length,
                "batch_size": job.batch_size, "vocab_size": job.vocab_size, "dtype": "float32",
                "threads": job.num_threads, "seed": 1, setting: size}
    found = running.in_turns({OURS: running.default_pythons()[OURS]}, settings, job.rounds,
                             job.round_seconds, job.output_dir)
    return statistics.median(found[OURS]["cpu_seconds"])


def draw(path: str, results: dict[str, dict[int, float]]) -> None:
    """Draws the costs over each size on logarithmic axes, as PNG."""
    from bert_tf.analysis.pictures import picture
    with picture(path, 1, len(results), (3.2, 3.2), sharey=True) as (_, axes):
        for axis, (flag, costs) in zip(axes[0], results.items()):
            sizes, seconds = list(costs), list(costs.values())
            axis.loglog(sizes, seconds, "o-")
            axis.loglog(sizes, [seconds[0] * size / sizes[0] for size in sizes], "--",
                        color="gray", label="proportional")
            axis.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=7)
            axis.set_xticks([], minor=True)
            axis.set_xlabel(_AXES[flag][1])
            axis.grid(alpha=0.3, which="both")
        axes[0, 0].set_ylabel("CPU seconds a step")
        axes[0, 0].legend(fontsize=8)


def main(job: GrowthFlags) -> None:
    """Measures the missing sizes, prints the exponents and draws the costs."""
    job.check()
    kept, results = job.open_results(), {}
    for flag, (setting, title) in _AXES.items():
        sizes = sorted(set(map(int, getattr(job, flag))))
        costs = {size: kept.get(flag, str(size), measure=lambda setting=setting, size=size: measure(
            job, setting, size)) for size in sizes}
        results[flag] = costs
        fitted = exponents(sizes, list(costs.values()))
        print(f"{title:<26}" + "  ".join(
            f"{size:,}: {cost:.3g} s" for size, cost in costs.items())
            + "   exponents " + ", ".join(f"{one:.2f}" for one in fitted), flush=True)
    draw(job.path("growth.png"), results)
    print(f"picture: {job.path('growth.png')}", flush=True)


def run() -> None:
    flags.run(main, GrowthFlags)


if __name__ == "__main__":
    run()
