"""Measures the cost of a step of pre-training for networks of several sizes.

Each network is trained for a few steps on random tokens with BERT's two objectives. The command
prints the number of its weights, with and without the heads, and the CPU seconds per step. They are
the fewest of all steps after the first, so that other programs on the machine count little.

Example:
    bert-benchmark sizes --models=bert:mini,albert:mini,mine.json --train_batch_size=16
"""

import dataclasses
import os
import time

import lazy_loader

from benchmarks.peers.worker import draw
from bert_tf import flags, networks, objectives, recipes, training
from bert_tf.config import Sizes, published, read_config
from bert_tf.errors import InputError, naming
from bert_tf.files import make_folder, write_json
from bert_tf.flags import REQUIRED, option
from bert_tf.training.settings import POLICIES

tf = lazy_loader.load("tensorflow")


@dataclasses.dataclass
class SizesFlags:
    """Networks, and the size of a step."""

    models: list[str] = option(
        REQUIRED, "Networks: a recipe and a size, separated by a colon, or the file of a "
        "configuration.")
    vocab_size: int = option(30000, "Vocabulary size, for networks that are not given as files.")
    max_seq_length: int = option(128, "Length of the sequences.", least=1)
    max_predictions_per_seq: int = option(20, "Masked positions of a sequence.", least=1)
    train_batch_size: int = option(16, "Sequences per step.", least=1)
    num_train_steps: int = option(8, "Number of steps that are measured.", least=1)
    dtype: str = option("float32", "Type of the computation.", choices=tuple(POLICIES))
    output_dir: str = option("", "Folder for metrics.json, the figures of a single network; "
                                 "default: none is written.")


def read_model(name: str, vocab_size: int) -> Sizes:
    """Returns the configuration that an element of --models names."""
    recipe_name, colon, size = name.partition(":")
    if not colon:
        return read_config(name)
    recipe = recipes.find(recipe_name)
    with naming(f"--models={name}"):
        return published(size, recipe.sizes, recipe.presets, vocab_size=vocab_size)


def measure(job: SizesFlags, config: Sizes) -> tuple[int, int, float]:
    """Measures the weights of the network, of the network with its heads, and the CPU seconds a
    step."""
    dtype = POLICIES[job.dtype]
    learner = training.Learner(networks.build(config, dtype=dtype), [
        objectives.MaskedLM(config, dtype=dtype),
        objectives.SentencePrediction(config, dtype=dtype)])
    trainer = training.Trainer(learner, training.make_optimizer("bert_adamw", 1e-4),
                               tf.distribute.get_strategy(), batch_size=job.train_batch_size)
    batch, = draw({"seed": 0, "batch_size": job.train_batch_size, "length": job.max_seq_length,
                   "slots": job.max_predictions_per_seq, "vocab_size": config.vocab_size}, 1)
    batch["segment_ids"][:] = 0         # some networks know one segment
    feed = iter(tf.data.Dataset.from_tensors(batch).repeat())
    seconds = []
    for _ in range(job.num_train_steps + 1):
        start = time.process_time()
        trainer.train(feed, 1)
        seconds.append(time.process_time() - start)
    return learner.encoder.count_params(), learner.count_params(), min(seconds[1:])


def main(job: SizesFlags) -> None:
    """Measures one network after the other."""
    flags.check(job)
    if job.output_dir and len(job.models) != 1:
        raise InputError("--output_dir: metrics.json holds one network; name one in --models.")
    configs = {name: read_model(name, job.vocab_size) for name in job.models}
    for name, config in configs.items():
        encoder, everything, seconds = measure(job, config)
        print(f"{name:<24} {encoder:13,} weights, {everything:13,} with the heads  "
              f"{seconds:8.3f} CPU s a step", flush=True)
        if job.output_dir:
            make_folder(job.output_dir, "output_dir")
            write_json(os.path.join(job.output_dir, "metrics.json"), {"metrics": {
                "weights": encoder, "weights_with_heads": everything, "cpu_seconds": seconds}})
