"""Compares how many examples of a new task BERT and MT-DNN need.

This repeats the curve of domain adaptation in arXiv:1901.11504, figure 2 and table 5. BERT
(--init_checkpoint) and MT-DNN (--mtdnn_checkpoint, the --output_dir of bert-finetune) are
fine-tuned by bert-finetune with a new linear head on shares of the training file. With
one seed, a smaller share is a part of a larger one; BERT and MT-DNN use the same random draws for
the same seed. The best epoch of each run counts. The table has mean and standard deviation over the
seeds, and published figures; curve.png shows both.

results.json keeps each result, and table.md has the table. Run the same command again to resume.

Example:
    bert-benchmark adaptation --task=snli --data_dir=. --init_checkpoint=uncased_L-12_H-768_A-12 \\
        --mtdnn_checkpoint=mtdnn --output_dir=/tmp/adaptation
"""

import dataclasses
import functools
import statistics
from collections.abc import Mapping, Sequence
from typing import ClassVar

from benchmarks.kept_comparison import KeptComparison
from benchmarks.task_trials import cut_files, percent, run_trial, write_table
from bert_tf import flags
from bert_tf.errors import InputError
from bert_tf.files import make_folder, write_json
from bert_tf.finetuning.mixture import MixtureFlags
from bert_tf.finetuning.model import ModelFlags
from bert_tf.flags import REQUIRED, option
from bert_tf.tasks.named import find_task
from bert_tf.tasks.reading import read_examples
from bert_tf.tasks.task import Task
from bert_tf.training.optimizers import OPTIMIZERS
from bert_tf.training.settings import FineTuneSettings
from run_scripts import finetune

BERT, MTDNN = STARTS = "BERT", "MT-DNN"
# Accuracy of base models on development sets by the number of examples: table 5.
PUBLISHED = {
    "snli": {BERT: {549: 52.5, 5493: 78.1, 54936: 86.7, 549367: 91.0},
             MTDNN: {549: 82.1, 5493: 85.2, 54936: 88.4, 549367: 91.5}},
    "scitail": {BERT: {23: 51.2, 235: 82.2, 2359: 90.5, 23596: 94.3},
                MTDNN: {23: 81.9, 235: 88.3, 2359: 91.1, 23596: 95.7}},
}


@dataclasses.dataclass
class AdaptationFlags(KeptComparison):
    """The task, the two starting points, and how they are trained."""

    data_dir: str = option(REQUIRED, "Folder with a subfolder for the task's official files.")
    init_checkpoint: str = option(REQUIRED, "Checkpoint of BERT, of any format.")
    mtdnn_checkpoint: str = option(
        REQUIRED, "Checkpoint of MT-DNN: a model of several tasks, made from that BERT.")
    output_dir: str = option(REQUIRED, "Folder for results.")
    task: str = option("snli", "The new task.", choices=tuple(PUBLISHED))
    vocab_file: str = option("", "Vocabulary of both models; default: the file beside each model.")
    do_lower_case: bool = option(True, "Lower-case the text: True for uncased vocabularies.")
    train_fractions: list[str] = option(["0.001", "0.01", "0.1", "1"],
                                        "Shares of the training file.")
    num_trials: int = option(3, "Number of runs at each share, with seeds from 1 on.", least=1)
    max_eval_examples: int = option(
        0, "Maximum number of examples to score on, drawn at random; 0: all.", least=0)
    max_seq_length: int = option(128, "Length of the longest sequence.")
    train_batch_size: int = option(32, "Examples per step.", least=1)
    learning_rate: float = option(5e-5, "Peak of the learning rate.")
    optimizer: str = option("adamax", "Optimizer; see bert-finetune.",
                            choices=tuple(OPTIMIZERS))
    num_train_epochs: float = option(5.0, "Number of epochs.", above=0)
    save_checkpoints_steps: int = option(500, "Steps between checkpoints.")

    free: ClassVar = ("num_trials", "train_fractions", "save_checkpoints_steps")

    def check(self) -> None:
        """Raises InputError for values that can't work."""
        super().check()
        if not self.fractions:
            raise InputError("--train_fractions must be given: shares above 0, at most 1.")

    @property
    def fractions(self) -> list[float]:
        """Returns the shares, the least first."""
        try:
            found = sorted({float(value) for value in self.train_fractions})
        except ValueError:
            found = [0.0]
        if not all(0 < value <= 1 for value in found):
            raise InputError(f"--train_fractions is {','.join(self.train_fractions)}; give shares "
                             "above 0, at most 1.")
        return found


def adapt(job: AdaptationFlags, start: str, fraction: float, seed: int) -> float:
    """Returns the accuracy of a starting point after training on a share of the examples."""
    name = f"{start.lower()}-{fraction:g}-seed{seed}"
    folder, rows = job.path(name), job.path("rows", f"{name}.json")
    make_folder(job.path("rows"), "output_dir")
    write_json(rows, {job.task: {"data_dir": job.path("data"), "train_fraction": fraction,
                                 "train_fraction_seed": seed}})
    path = {BERT: job.init_checkpoint, MTDNN: job.mtdnn_checkpoint}[start]
    found = run_trial(
        finetune.main, job.path("logs", f"{name}.txt"), folder,
        MixtureFlags(tasks=[job.task], task_config_path=rows, answer_opt=0),
        ModelFlags(do_train=True, do_eval=True, init_checkpoint=path, num_workers=1,
                   vocab_file=job.vocab_file, do_lower_case=job.do_lower_case,
                   max_seq_length=job.max_seq_length),
        FineTuneSettings(
            output_dir=folder, random_seed=seed, train_batch_size=job.train_batch_size,
            eval_batch_size=64, learning_rate=job.learning_rate, optimizer=job.optimizer,
            num_train_epochs=job.num_train_epochs,
            save_checkpoints_steps=job.save_checkpoints_steps))
    return found[f"{job.task}_dev_{find_task(job.task).headline}"]


def tabulate(task: Task, found: Mapping[tuple[str, int], Sequence[float]]) -> list[list[str]]:
    """Returns the rows of the table, the heading first, from the accuracy of each seed by (start,
    number of examples)."""
    published = PUBLISHED[task.name]
    sizes = sorted({size for _, size in found} | published[BERT].keys())
    return [["examples", *STARTS, "difference", "published: BERT", "MT-DNN"], *(
        [f"{size:,}", *(_cell(found, start, size) for start in STARTS), _difference(found, size),
         *(f"{published[start].get(size, '')}" for start in STARTS)] for size in sizes)]


def _cell(found, start, size):
    return percent(found[start, size]) if (start, size) in found else ""


def _difference(found, size):
    """MT-DNN's lead over BERT in points, seed by seed."""
    if (BERT, size) not in found:
        return ""
    values = [100 * (two - one) for one, two in zip(*(found[start, size] for start in STARTS))]
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):+.1f}{spread}"


def draw(path: str, task: Task, found: Mapping[tuple[str, int], Sequence[float]]) -> None:
    """Draws accuracy over the number of examples, with published values, as PNG."""
    from bert_tf.analysis.pictures import picture
    with picture(path, 1, 1, (6, 4)) as (_, axes):
        axis = axes[0, 0]
        for start, color in zip(STARTS, ("C0", "C1")):
            sizes = [size for name, size in found if name == start]
            values = [[100 * value for value in found[start, size]] for size in sizes]
            axis.errorbar(sizes, list(map(statistics.fmean, values)), color=color, marker="o",
                          yerr=[statistics.stdev(v) if len(v) > 1 else 0 for v in values],
                          capsize=3, label=start)
            axis.plot(*zip(*PUBLISHED[task.name][start].items()), "--", color=color, alpha=0.5,
                      marker="x", label=f"{start}, published (base)")
        axis.axhline(100 / len(task.labels), color="gray", linestyle=":", label="chance")
        axis.set(xscale="log", xlabel="training examples", ylabel="accuracy (%)",
                 title=f"adaptation to {task.name}")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)


def main(job: AdaptationFlags) -> None:
    """Makes the missing runs, prints the table and draws the curve."""
    fractions, task = job.fractions, find_task(job.task)
    job.check()
    results = job.open_results()
    cut_files(task, job.data_dir, job.path("data"), {"train": 0, "dev": job.max_eval_examples})
    count = sum(1 for _ in read_examples(task, "train", task.path(job.path("data"), "train")))
    found: dict[tuple[str, int], list[float]] = {}
    for fraction in fractions:
        size = int(count * fraction + 1e-9)
        for seed in range(1, job.num_trials + 1):
            for start in STARTS:
                score = results.get(start, f"{fraction:g}", str(seed), measure=functools.partial(
                    adapt, job, start, fraction, seed))
                found.setdefault((start, size), []).append(score)
                print(f"{size:,} examples, seed {seed}, {start}: {100 * score:.1f}", flush=True)
    write_table(job.path("table.md"), tabulate(task, found))
    draw(job.path("curve.png"), task, found)


def run() -> None:
    flags.run(main, AdaptationFlags)


if __name__ == "__main__":
    run()
