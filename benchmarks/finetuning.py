"""Compares fine-tuning with transformers: scores and CPU seconds.

Both train on the same features of the same examples with the same recipe: AdamW with bias
correction, linear warm-up and decay, the model's dropout, batches of similar length. Each seed sets
the new head, the order of examples and dropout. Both predict the same dev file, and one scorer
scores both. The table has the mean and the standard deviation over the seeds of each metric, and of
the CPU seconds of the whole program, start-up and prediction included.

A task may be any task of bert-finetune classifier or bert-finetune tagger. The peer runs under
--peer_python. results.json keeps each result. Run the same command again, also with more tasks or
trials, to measure only the missing ones.

Example:
    bert-benchmark finetuning --task=mrpc,sts-b --data_dir=glue \\
        --init_checkpoint=all-MiniLM-L6-v2 --output_dir=/tmp/compare \\
        --peer_python=/envs/peer/bin/python
"""

import dataclasses
import functools
import os
import shutil
import sys
import types
from typing import ClassVar

import numpy as np

from benchmarks import programs
from benchmarks.kept_comparison import KeptComparison
from benchmarks.programs import OURS, PEER
from benchmarks.task_trials import cut_files
from bert_tf import flags, metrics
from bert_tf.errors import InputError
from bert_tf.files import make_folder, read_json, write_aside
from bert_tf.finetuning.model import ModelFlags, open_encoder
from bert_tf.flags import REQUIRED, option
from bert_tf.tasks.named import find_task
from bert_tf.tasks.reading import read_examples

WEIGHT_DECAY = 0.01


@dataclasses.dataclass
class FinetuningComparisonFlags(KeptComparison):
    """Material of both sides, and their training."""

    task: list[str] = option(REQUIRED, "Names of tasks.")
    data_dir: str = option(REQUIRED, "Folder with a subfolder for each task's official files.")
    init_checkpoint: str = option(REQUIRED, "The model to fine-tune: a Hugging Face folder of a "
                                  "BERT, with its vocab.txt.")
    output_dir: str = option(REQUIRED, "Folder for features, models and results.")
    peer_python: str = option(sys.executable, "The interpreter that has torch and transformers.")
    num_trials: int = option(3, "Number of runs of each task, with seeds from 1 on.", least=1)
    do_lower_case: bool = option(True, "Lower-case the text: True for uncased vocabularies.")
    max_seq_length: int = option(128, "Length of the longest sequence.")
    train_batch_size: int = option(16, "Examples per training step.", least=1)
    eval_batch_size: int = option(32, "Examples per prediction step.", least=1)
    learning_rate: float = option(5e-5, "Peak of the learning rate.")
    num_train_epochs: float = option(3.0, "Number of epochs.")
    warmup_proportion: float = option(0.1, "Share of the steps in which the learning rate rises.")
    num_threads: int = option(1, "Threads of each program.", least=1)

    free: ClassVar = ("task", "peer_python", "num_trials")

    def check(self):
        """Raises InputError for values that can't work, or a peer that can't be run."""
        super().check()
        if not os.path.isfile(os.path.join(self.init_checkpoint, "config.json")):
            raise InputError(f"--init_checkpoint: there is no config.json in "
                             f"{self.init_checkpoint!r}; give a Hugging Face folder, which the "
                             "peer can read.")
        programs.check_peer(self.peer_python)


class Comparison:
    """One task: its features for the peer, and the runs of both sides.

    Args:
        most: by "train" and "dev": the most examples that are read; 0 for all.

    Attributes:
        kinds: kinds of tasks that the peer trains.
    """

    kinds: ClassVar[tuple[str, ...]] = ("classification", "regression", "tagging")

    def __init__(self, job, task, most=types.MappingProxyType({"train": 0, "dev": 0})):
        if task.kind.name not in self.kinds or "train" not in task.splits:
            raise InputError(f"--task: {task.name} has no peer to be compared with.")
        self._job, self.task = job, task
        # Of several dev files (MNLI) the first.
        self._dev = next(name for name in task.splits if name.startswith("dev"))
        self._folder = os.path.join(job.output_dir, task.name)
        self.data_dir = os.path.join(self._folder, "data")
        make_folder(self.data_dir, "output_dir")
        # Ours evaluates every file with labels that it finds; here these two are all.
        cut_files(dataclasses.replace(task, splits={
            split: task.splits[split] for split in ("train", self._dev)}), job.data_dir,
            self.data_dir, most)
        self.examples = {split: list(read_examples(task, split, task.path(self.data_dir, split)))
                         for split in ("train", self._dev)}
        tokenizer = open_encoder(ModelFlags(
            do_train=True, init_checkpoint=job.init_checkpoint, do_lower_case=job.do_lower_case,
            max_seq_length=job.max_seq_length), "", job.max_seq_length).tokenizer
        for split, rows in self.examples.items():
            features, _ = task.kind.encode(task, rows, tokenizer, job.max_seq_length)
            with write_aside(self._features(split), "wb") as file:
                np.savez(file, **features)

    def _features(self, split):
        return os.path.join(self._folder, f"{split}.npz")

    def path(self, name, seed):
        """A path in the folder of a seed."""
        return os.path.join(self._folder, f"seed{seed}", name)

    def our_flags(self, seed):
        """The flags of our script, as a dict."""
        shared = ("init_checkpoint", "do_lower_case", "max_seq_length", "train_batch_size",
                  "eval_batch_size", "learning_rate", "num_train_epochs", "warmup_proportion")
        return {"task": self.task.name, "data_dir": self.data_dir, "do_train": True,
                "do_eval": True, "output_dir": self.path(OURS, seed), "random_seed": seed,
                "num_workers": 1, "optimizer": "adamw", "weight_decay": WEIGHT_DECAY,
                **{name: getattr(self._job, name) for name in shared}}

    def run_ours(self, seed):
        """Trains and evaluates with our script; returns metrics and seconds."""
        make_folder(self.path("", seed), "output_dir")
        # A run that was stopped would go on, and only the seconds of its rest would be measured.
        shutil.rmtree(self.path(OURS, seed), ignore_errors=True)
        seconds = programs.run_own_program(self.task.kind.script, self.our_flags(seed),
                                           self.path(f"{OURS}.log", seed), self._job.num_threads)
        found = read_json(os.path.join(self.path(OURS, seed), "metrics.json"))["metrics"]
        return {**{name: found[f"{self._dev}/{name}"] for name in self.task.metrics}, **seconds}

    def peer_arguments(self, seed):
        """The arguments of the peer, as a dict."""
        job, task = self._job, self.task
        return {"model_dir": os.path.abspath(job.init_checkpoint), "kind": task.kind.name,
                "num_labels": len(task.labels) or 1, "seed": seed,
                "training": self._features("train"), "dev": self._features(self._dev),
                "logits": self.path(f"{PEER}.npz", seed),
                "metrics": self.path(f"{PEER}.json", seed),
                "batch_size": job.train_batch_size, "predict_batch_size": job.eval_batch_size,
                "learning_rate": job.learning_rate, "num_train_epochs": job.num_train_epochs,
                "warmup_proportion": job.warmup_proportion, "weight_decay": WEIGHT_DECAY,
                "threads": job.num_threads}

    def run_peer(self, seed):
        """Trains the peer and scores its predictions; returns metrics and seconds."""
        make_folder(self.path("", seed), "output_dir")
        arguments = self.peer_arguments(seed)
        seconds = programs.run_peer_program(self._job.peer_python, "finetune", arguments,
                                            self.path(f"{PEER}.log", seed),
                                            self._job.num_threads)
        return {**self.score(arguments["logits"]), **seconds}

    def score(self, path):
        """The metrics of the peer's logits in a file."""
        with np.load(path) as arrays:
            logits = arrays["logits"]
        kind = self.task.kind
        with np.load(self._features(self._dev)) as features:
            predicted = kind.decode(self.task, {"logits": logits, "values": logits},
                                    self.examples[self._dev], features)
        return metrics.compute(self.task.metrics,
                               kind.targets(self.task, self.examples[self._dev]), predicted)


def _mean(values):
    """Mean and, of several values, the deviation of a sample."""
    spread = f" ± {np.std(values, ddof=1):.4f}" if len(values) > 1 else ""
    return f"{np.mean(values):.4f}{spread}"


def print_table(table):
    """Prints a line for each metric of each task, and one for the seconds; each seed has a dict of
    metrics in task -> program -> list."""
    print(f"{'task':<12}{'':<18}{OURS:>24}{PEER:>24}")
    for task, runs in table.items():
        for name in runs[OURS][0]:
            cells = [_mean([run[name] for run in runs[program]]) for program in (OURS, PEER)]
            print(f"{task:<12}{name:<18}" + "".join(f"{cell:>24}" for cell in cells))


def compare(job, kind=Comparison):
    """Makes the missing runs; returns the results by task and program, a list by seed.

    Args:
        kind: class of the comparison of a task.
    """
    job.check()
    results = job.open_results()
    comparisons = [kind(job, find_task(name)) for name in job.task]
    table = {c.task.name: {OURS: [], PEER: []} for c in comparisons}
    for seed in range(1, job.num_trials + 1):
        for comparison in comparisons:
            task = comparison.task
            for name, measure in ((PEER, comparison.run_peer), (OURS, comparison.run_ours)):
                run = results.get("tasks", task.name, str(seed), name,
                                  measure=functools.partial(measure, seed))
                table[task.name][name].append(run)
                print(f"{task.name} seed {seed} {name}: {task.headline} {run[task.headline]:.4f}, "
                      f"{run['cpu_seconds']:.1f} CPU seconds", flush=True)
    return table


def main(job):
    """Makes the missing runs, and prints the table."""
    print_table(compare(job))


def run():
    flags.run(main, FinetuningComparisonFlags)


if __name__ == "__main__":
    run()
