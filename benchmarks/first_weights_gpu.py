"""Measures on a GPU what first weights that look at neighbours gain.

    bert-benchmark first-weights-gpu --input_file=r.tfrecord --eval_file=e.tfrecord --output_dir=gpu

As bert-benchmark first-weights, but on JAX, without TensorFlow, and of larger models: both first
weights and all seeds are trained side by side, as one computation. The records hold masks
(--masking=static); the manifest beside them tells the recipe. Needs jax, keras and absl-py.

Run the same command again to measure only what is missing. Writes results.json,
first-weights-gpu.md, a table, and first-weights-gpu.png, the curves.
"""

import dataclasses
import json
import os
import statistics
import subprocess
from typing import ClassVar

from benchmarks.kept_comparison import KeptComparison
from benchmarks.peers.running import FOLDER, OURS_ON_JAX, PACKAGES, chosen_pythons
from benchmarks.programs import check_width
from benchmarks.tables.report import draw
from benchmarks.tables.table import Column, Table
from bert_tf import flags
from bert_tf.data.records.manifest import manifest_path
from bert_tf.errors import InputError
from bert_tf.files import exists, read_json, write_aside
from bert_tf.flags import REQUIRED, option

ROWS = ("original", "neighbours")
_SCORE = "masked_lm_accuracy"


@dataclasses.dataclass(kw_only=True)
class FirstWeightsGpuFlags(KeptComparison):
    """The records, the sizes of the network, and how long to train."""

    input_file: str = option(REQUIRED, "Records to learn from, one file.")
    eval_file: str = option(REQUIRED, "Held-out records, one file.")
    output_dir: str = option(REQUIRED, "The folder to write into.")
    num_hidden_layers: int = option(4, "Layers.", least=1)
    hidden_size: int = option(512, "Width; heads are 64 wide.", least=64)
    dropout: float = option(0.0, "Dropout of the network.", least=0, below=1)
    learning_rate: float = option(1e-3, "Peak of the learning rate, after a tenth of the steps.",
                                  above=0)
    train_batch_size: int = option(32, "Records per step.", least=1)
    num_train_steps: int = option(2000, "Steps of training.", least=1)
    points: int = option(5, "Evaluations, at equal distances.", least=1)
    seeds: int = option(3, "Number of seeds.", least=1)
    dtype: str = option("float32", "Type of the computation.", choices=("float32", "bfloat16"))
    peer_python: list[str] = option([], "Another interpreter, such as "
                                    "bert_tf_jax=/envs/a/bin/python.")

    free: ClassVar = ("peer_python",)

    def __post_init__(self) -> None:
        check_width(self.hidden_size)
        if self.num_train_steps % self.points:
            raise InputError(f"--num_train_steps is {self.num_train_steps}; it must be a multiple "
                             f"of --points={self.points}.")

    def check(self) -> None:
        super().check()
        for name in ("input_file", "eval_file"):
            path = getattr(self, name)
            manifest = manifest_path(path)
            if not exists(manifest):
                raise InputError(f"--{name}={path}: there is no manifest {manifest}, which names "
                                 "the recipe; make the records with bert-create-pretraining-data.")
            if read_json(manifest)["recipe"].get("corruption", {}).get("dynamic"):
                raise InputError(f"--{name}={path}: the records hold no masks; make them with "
                                 "--masking=static.")


def train(job: FirstWeightsGpuFlags, python: str) -> list[dict]:
    """Trains all models; returns the points that first_weights_on_jax.py writes."""
    rows = [(row, seed) for row in ROWS for seed in range(1, job.seeds + 1)]
    given = {**dataclasses.asdict(job), "rows": rows, "manifest": manifest_path(job.input_file)}
    root = os.path.dirname(os.path.dirname(FOLDER))
    found = []
    with subprocess.Popen(
            [python, os.path.join(FOLDER, "first_weights_on_jax.py"), json.dumps(given)],
            stdout=subprocess.PIPE, text=True, env={
                **os.environ, "KERAS_BACKEND": "jax", "PYTHONPATH": os.pathsep.join(
                    filter(None, (root, os.environ.get("PYTHONPATH"))))}) as process:
        assert process.stdout
        for line in process.stdout:
            point = json.loads(line)
            found.append(point)
            print(f"step {point['step']:,}  {point['seconds']:,.1f} s  accuracy "
                  + ", ".join(f"{100 * value:.1f}" for value in point[_SCORE]), flush=True)
    if process.returncode:
        raise InputError("training on JAX failed; see its message above.")
    return found


def scores(points: list[dict], seeds: int) -> dict[str, dict[str, dict]]:
    """Returns the mean share of masked words, in percent, and its deviation over the seeds, by the
    kind of first weights and the step."""
    found: dict[str, dict[str, dict]] = {row: {} for row in ROWS}
    for point in points:
        for number, row in enumerate(ROWS):
            values = [100 * value for value in point[_SCORE][number * seeds:][:seeds]]
            found[row][str(point["step"])] = {
                "mean": statistics.mean(values),
                "stdev": statistics.stdev(values) if seeds > 1 else None}
    return found


def table(found: dict[str, dict[str, dict]]) -> list[str]:
    """The lines of a table in Markdown: a row for each kind of first weights."""
    steps = list(found[ROWS[0]])
    lines = [f"| step | {' | '.join(f'{int(step):,}' for step in steps)} |",
             "|---" * (len(steps) + 1) + "|"]
    for row, places in found.items():
        cells = [f"{place['mean']:.1f}" + (
            "" if place["stdev"] is None else f" ± {place['stdev']:.1f}")
            for place in places.values()]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return lines


def main(job: FirstWeightsGpuFlags) -> None:
    """Measures unless it is done, and writes the table."""
    job.check()
    pythons = chosen_pythons((OURS_ON_JAX,), job.peer_python)
    if not pythons:
        raise InputError(f"{OURS_ON_JAX} needs {PACKAGES[OURS_ON_JAX]}; install them, or name an "
                         "interpreter that has them with --peer_python.")
    kept = job.open_results()
    found = scores(kept.get("points", measure=lambda: train(job, pythons[OURS_ON_JAX])), job.seeds)
    lines = table(found)
    draw(job.path("first-weights-gpu.png"), Table(
        "first-weights-gpu", "accuracy on held-out masked words (%) after so many steps", "",
        ROWS, [Column(step, "") for step in found[ROWS[0]]], lambda *place: None, {},
        over="steps of pre-training"), found)
    with write_aside(job.path("first-weights-gpu.md")) as file:
        file.write("\n".join(lines) + "\n")
    print("\n".join(lines), flush=True)


def run() -> None:
    flags.run(main, FirstWeightsGpuFlags)


if __name__ == "__main__":
    run()
