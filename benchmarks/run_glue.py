"""Compares bert-finetune with transformers' run_glue: scores and CPU seconds.

The peer works as the example script run_glue.py (run_glue_peer.py): its own tokenizer reads the
texts, and Trainer trains with its defaults. Both sides begin with the same checkpoint and have
the same examples, length, batch size, learning rate and its linear decay, epochs, warm-up and
weight decay. Each has its own head, order, batches, Adam's epsilon (1e-6; the peer's 1e-8) and way
to cut long pairs. One scorer scores both on the development set by GLUE's metrics.

The table has the mean and the standard deviation over the seeds, the difference with its standard
error, and the CPU seconds of the whole programs: start-up, training, saving and prediction. Results
are kept in results.json as they arrive; run the same command again to resume.

Example:
    bert-benchmark run-glue --data_dir=glue --init_checkpoint=all-MiniLM-L6-v2 \\
        --output_dir=/tmp/compare --peer_python=/envs/peer/bin/python
"""

import dataclasses
import json
import os
import shutil
import statistics
from typing import Any, ClassVar

from benchmarks import chance, programs
from benchmarks.finetuning import Comparison, FinetuningComparisonFlags, compare
from benchmarks.programs import OURS, PEER
from benchmarks.task_trials import percent, train_limits, write_table
from bert_tf import flags
from bert_tf.files import make_folder, write_aside
from bert_tf.flags import option
from bert_tf.tasks.named import find_task

_TASKS = ["cola", "mrpc", "sts-b", "wnli"]
_SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run_glue_peer.py")


@dataclasses.dataclass(kw_only=True)
class RunGlueFlags(FinetuningComparisonFlags):
    """Material of both sides, and their training.

    Attributes:
        little: values under --smoke of flags that are not given.
    """

    little: ClassVar[dict[str, Any]] = {
        "max_train_examples": ["32"], "max_eval_examples": 32, "num_trials": 1,
        "num_train_epochs": 1.0}

    task: list[str] = option(_TASKS, "Names of tasks.")
    max_train_examples: list[str] = option(
        ["3000", "cola=4000"], "Maximum training examples of each task, drawn at random and the "
        "same for both sides and all seeds, such as 3000,cola=4000; 0: all.")
    max_eval_examples: int = option(0, "Maximum examples of the development set.", least=0)
    smoke: bool = option(False, "Use one seed and 32 examples, to test that everything works; this "
                                "takes a minute per task.")

    def __post_init__(self) -> None:
        if self.smoke:
            programs.take_little(self)


class GlueComparison(Comparison):
    """One task: its texts for the peer, and the runs of both sides."""

    kinds = ("classification", "regression")

    def __init__(self, job, task):
        # The default names a task that --task may leave out.
        limit = train_limits(job.max_train_examples,
                             [*_TASKS, *(find_task(name).name for name in job.task)])
        super().__init__(job, task, {"train": limit[task.name], "dev": job.max_eval_examples})
        for split, examples in self.examples.items():
            with write_aside(self._texts(split)) as file:
                for example in examples:
                    texts = {f"sentence{number}": text
                             for number, text in enumerate(example.texts, 1)}
                    file.write(json.dumps({**texts, "label": example.label}) + "\n")

    def _texts(self, split):
        return os.path.join(self._folder, f"{split}.json")

    def our_flags(self, seed):
        """The flags of our script, as a dict."""
        return {**super().our_flags(seed), "weight_decay": 0.0}     # Trainer's default

    def peer_arguments(self, seed):
        """The arguments of the peer, as a dict."""
        job = self._job
        shared = ("learning_rate", "num_train_epochs", "warmup_proportion")
        return {"model_dir": os.path.abspath(job.init_checkpoint), "training": self._texts("train"),
                "dev": self._texts(self._dev), "num_labels": len(self.task.labels) or 1,
                "length": job.max_seq_length, "logits": self.path(f"{PEER}.npz", seed),
                "output_dir": self.path(PEER, seed), "threads": job.num_threads, "seed": seed,
                "batch_size": job.train_batch_size, "predict_batch_size": job.eval_batch_size,
                **{name: getattr(job, name) for name in shared}}

    def run_peer(self, seed):
        """Trains the peer and scores its predictions; returns metrics and seconds."""
        make_folder(self.path("", seed), "output_dir")
        arguments = self.peer_arguments(seed)
        seconds = programs.run_program(
            [self._job.peer_python, _SCRIPT, json.dumps(arguments)],
            self.path(f"{PEER}.log", seed), self._job.num_threads)
        shutil.rmtree(arguments["output_dir"], ignore_errors=True)
        return {**self.score(arguments["logits"]), **seconds}


def tabulate(table: dict[str, dict[str, list[dict]]]) -> list[list[str]]:
    """Returns the rows of the table, the heading first, from task -> program -> runs by seed."""
    rows = [["development set", OURS, PEER, "difference ± standard error",
             f"CPU seconds, {OURS}", f"CPU seconds, {PEER}"]]
    for task, runs in table.items():
        ours, theirs = runs[OURS], runs[PEER]
        seconds = [f"{statistics.fmean(run['cpu_seconds'] for run in side):.0f}"
                   for side in (ours, theirs)]
        for metric in find_task(task).metrics:
            sides = [[run[metric] for run in side] for side in (ours, theirs)]
            rows.append([f"{task}, {metric}", *map(percent, sides), _difference(*sides), *seconds])
            seconds = ["", ""]
    return rows


def _difference(ours, theirs):
    """The difference of the means in percent, and whether it is noise."""
    difference = 100 * (statistics.fmean(ours) - statistics.fmean(theirs))
    text = f"{difference:+.1f}"
    if len(ours) < 2:
        return text
    error = 100 * ((statistics.variance(ours) + statistics.variance(theirs)) / len(ours)) ** 0.5
    return (f"{text} ± {error:.1f}: "
            + ("within noise" if abs(difference) <= chance.interval(error, len(ours))
               else "more than noise"))


def main(job: RunGlueFlags) -> None:
    """Makes the missing runs, and prints the table."""
    write_table(job.path("run-glue.md"), tabulate(compare(job, GlueComparison)))


def run() -> None:
    flags.run(main, RunGlueFlags)


if __name__ == "__main__":
    run()
