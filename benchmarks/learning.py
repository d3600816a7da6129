"""Compares pre-training with transformers' BertForPreTraining.

Both train a model of the same size and function on the same batches in the same order, with the
same optimizer, learning rates and number of steps, once for each seed (of initial weights, order of
records and dropout). Both start from the same initial weights, and are evaluated on all masked
positions and pairs of the same held-out records. The verdict compares the held-out masked LM loss,
mean over the seeds: ours may exceed the peer's by at most what chance explains, t * sqrt((s_ours^2
+ s_peer^2) / n), with s the sample standard deviations over the n seeds, and t the 97.5th
percentile of Student's t with n - 1 degrees of freedom. The exit status is 1 if it is above that.

The initial weights are the peer's. With --initial_weights=own each draws its own: ours, as the
original's, from a normal distribution cut off at two standard deviations, which makes it 12%
narrower than the peer's. In so short a run this changes the loss.

Both run as programs on the CPU. Seconds count the whole program, start-up and evaluation included.
The peer runs under --peer_python. Each result is saved; run the same command again to resume.

Example:
    bert-benchmark learning --input_file=text.txt --vocab_file=vocab.txt \\
        --output_dir=/tmp/compare --peer_python=/envs/peer/bin/python
"""

import dataclasses
import functools
import math
import shutil
import sys
from typing import ClassVar

import numpy as np

from benchmarks import chance, programs
from benchmarks.kept_comparison import KeptComparison
from benchmarks.programs import OURS, PEER
from bert_tf import data, flags, training
from bert_tf.config import PRESETS, EncoderConfig
from bert_tf.data.text import corpus
from bert_tf.errors import InputError
from bert_tf.files import find_files, make_folder, read_json, write_aside
from bert_tf.flags import REQUIRED, option
from bert_tf.metrics import perplexity
from bert_tf.tokenization.vocabulary import Vocabulary
from data_prep import create_pretraining_data

LOSS = "masked_lm/loss"
PERPLEXITY = "masked_lm/perplexity"
METRICS = (LOSS, PERPLEXITY, "masked_lm/accuracy", "next_sentence/accuracy", "cpu_seconds",
           "seconds")
WEIGHT_DECAY = 0.01


@dataclasses.dataclass
class LearningComparisonFlags(KeptComparison):
    """Material of both sides, and their training."""

    input_file: list[str] = option(REQUIRED, "Text, one sentence per line, a blank line between "
                                   "documents: files, globs or folders, plain or .gz.")
    vocab_file: str = option(REQUIRED, "The WordPiece vocabulary.")
    output_dir: str = option(REQUIRED, "Folder for records, batches and results.")
    peer_python: str = option(sys.executable, "The interpreter that has torch and transformers.")
    num_seeds: int = option(3, "Number of seeds, at least 2.", least=2)
    model_size: str = option("tiny", "Size of both models.", choices=tuple(PRESETS))
    initial_weights: str = option(
        "shared", "shared: both start from the weights that the peer draws; own: each draws its "
        "own.",
        choices=("shared", "own"))
    num_train_steps: int = option(
        800, "Steps of each run; the learning rate falls to 0 at the last one.", least=1)
    num_warmup_steps: int = option(80, "Steps in which the learning rate rises.")
    train_batch_size: int = option(16, "Records per step.", least=1)
    learning_rate: float = option(1e-3, "Peak of the learning rate.")
    do_lower_case: bool = option(True, "Lower-case the text: True for uncased vocabularies.")
    max_seq_length: int = option(128, "Length of the sequences.")
    max_predictions_per_seq: int = option(20, "Maximum number of masked positions in a sequence.")
    dupe_factor: int = option(2, "Number of passes over the training text, each with other masks.")
    held_out_every: int = option(
        20, "Hold out the first of this many documents, and so on.", least=2)
    num_threads: int = option(1, "Threads of each program.", least=1)

    free: ClassVar = ("peer_python", "num_seeds")

    def check(self):
        """Raises InputError for values that can't work, or a peer that can't be run."""
        super().check()
        programs.check_peer(self.peer_python)


def split_documents(paths, held_out_every, training, held_out):
    """Writes the documents of a text to two files; of `held_out_every` the first is held out."""
    with write_aside(training, "wb") as rest, write_aside(held_out, "wb") as first:
        # A piece of at most one byte is one document, or blank lines between two.
        documents = filter(bytes.strip, corpus.read_pieces(paths, piece_bytes=1))
        for index, document in enumerate(documents):
            (rest if index % held_out_every else first).write(document)


def prepare(job):
    """Makes the files for all seeds: the configuration, the records and the held-out features."""
    vocab_size = Vocabulary.from_file(job.vocab_file).size
    EncoderConfig.preset(job.model_size, vocab_size=vocab_size).to_json_file(
        job.path("bert_config.json"))
    texts = {"training": job.dupe_factor, "held_out": 1}
    split_documents(find_files(job.input_file, "input_file"), job.held_out_every,
                    *(job.path(f"{name}.txt") for name in texts))
    for name, dupe_factor in texts.items():
        create_pretraining_data.main(create_pretraining_data.PretrainingDataFlags(
            input_file=[job.path(f"{name}.txt")], output_file=[job.path(f"{name}.tfrecord")],
            vocab_file=job.vocab_file, do_lower_case=job.do_lower_case, dupe_factor=dupe_factor,
            max_seq_length=job.max_seq_length,
            max_predictions_per_seq=job.max_predictions_per_seq))
    records = open_records(job, "held_out")
    everything = next(records.evaluation_batches(records.size, 0, 1).as_numpy_iterator())
    _save(job.path("held_out.npz"), everything)


def open_records(job, name):
    """The RecordSet of the training or the held-out documents."""
    return data.RecordSet.open([job.path(f"{name}.tfrecord*")], "output_dir")


def _save(path, arrays):
    with write_aside(path, "wb") as file:
        np.savez(file, **arrays)


def dump_training(job, seed):
    """Writes the batches that run_pretraining takes, and the learning rates of its steps."""
    batches = list(open_records(job, "training").training_batches(
        seed, 0, job.train_batch_size, 1).take(job.num_train_steps).as_numpy_iterator())
    schedule = training.WarmupLinearDecay(job.learning_rate, job.num_train_steps,
                                          job.num_warmup_steps)
    rates = np.asarray(schedule(np.arange(job.num_train_steps)))
    _save(job.path(f"seed{seed}", "training.npz"), {
        "learning_rates": rates,
        **{name: np.stack([batch[name] for batch in batches]) for name in batches[0]}})


def training_flags(job, seed):
    """The flags of run_pretraining, as a dict."""
    shared = ("max_seq_length", "max_predictions_per_seq", "train_batch_size", "learning_rate",
              "num_train_steps", "num_warmup_steps")
    return {"bert_config_file": job.path("bert_config.json"),
            "input_file": job.path("training.tfrecord*"),
            "eval_input_file": job.path("held_out.tfrecord*"),
            "output_dir": job.path(f"seed{seed}", OURS), "do_train": True, "do_eval": True,
            "eval_batch_size": job.train_batch_size, "max_eval_steps": 0, "random_seed": seed,
            "optimizer": "adamw", "weight_decay": WEIGHT_DECAY, "iterations_per_loop": 50,
            **({"init_checkpoint": job.path(f"seed{seed}", "initial")}
               if job.initial_weights == "shared" else {}),
            **{name: getattr(job, name) for name in shared}}


def run_ours(job, seed):
    """Trains and evaluates with run_pretraining; returns metrics and seconds."""
    # A run that was stopped would go on, and only the seconds of its rest would be measured.
    shutil.rmtree(job.path(f"seed{seed}", OURS), ignore_errors=True)
    if job.initial_weights == "shared":
        _run_peer_program(job, seed, "save_initial", initial=job.path(f"seed{seed}", "initial"))
    seconds = programs.run_own_program("run_pretraining", training_flags(job, seed),
                                       job.path(f"seed{seed}", f"{OURS}.log"), job.num_threads)
    return {**training.read_metrics(job.path(f"seed{seed}", OURS), "eval")[-1], **seconds}


def run_peer(job, seed):
    """Trains and evaluates the peer on the same batches; returns metrics and seconds."""
    dump_training(job, seed)
    metrics = job.path(f"seed{seed}", f"{PEER}.json")
    seconds = _run_peer_program(
        job, seed, "pretrain", weight_decay=WEIGHT_DECAY, batch_size=job.train_batch_size,
        metrics=metrics, training=job.path(f"seed{seed}", "training.npz"),
        held_out=job.path("held_out.npz"))
    return {**read_json(metrics), **seconds}


def _run_peer_program(job, seed, function, **arguments):
    """Runs a function of transformers_peer.py; returns the seconds that it took."""
    arguments |= {"config_file": job.path("bert_config.json"), "seed": seed}
    return programs.run_peer_program(job.peer_python, function, arguments,
                                     job.path(f"seed{seed}", f"{PEER}.log"), job.num_threads)


def _print_row(seed, name, cells):
    print(f"{seed:<6}{name:<14}" + "".join(f"{cell:>24}" for cell in cells), flush=True)


def judge(losses):
    """Returns (ours - peer, its upper bound) from a dict of the losses of each program."""
    spread = sum(np.var(values, ddof=1) / len(values) for values in losses.values())
    return np.mean(losses[OURS]) - np.mean(losses[PEER]), chance.interval(
        math.sqrt(spread), len(losses[OURS]))


def main(job):
    """Makes the missing runs, and prints the table and the verdict."""
    job.check()
    results = job.open_results()
    prepare(job)
    seeds = [str(seed) for seed in range(1, job.num_seeds + 1)]
    _print_row("seed", "", METRICS)
    found = {}
    for seed in seeds:
        make_folder(job.path(f"seed{seed}"), "output_dir")
        for name, measure in ((OURS, run_ours), (PEER, run_peer)):
            kept = results.get("seeds", seed, name, measure=functools.partial(
                measure, job, int(seed)))
            found[name, seed] = {**kept, PERPLEXITY: perplexity(kept[LOSS])}
            _print_row(seed, name, [f"{found[name, seed][metric]:.4f}" for metric in METRICS])

    columns = {name: {metric: [found[name, seed][metric] for seed in seeds]
                      for metric in METRICS} for name in (OURS, PEER)}
    for name, column in columns.items():
        _print_row("mean", name, [f"{np.mean(values):.4f} ± {np.std(values, ddof=1):.4f}"
                                  for values in column.values()])
    difference, most = judge({name: column[LOSS] for name, column in columns.items()})
    print(f"held-out masked LM loss: {OURS} - {PEER} = {difference:+.4f}, may be at most "
          f"{most:.4f} (its 95% interval, by Student's t)")
    if difference <= most:      # not so if a loss is NaN
        print(f"{OURS} learns at least as well as {PEER}")
        return
    raise InputError(f"{OURS} learned less than {PEER} in the same steps.")


def run():
    flags.run(main, LearningComparisonFlags)


if __name__ == "__main__":
    run()
