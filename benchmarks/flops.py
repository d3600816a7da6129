"""Counts the floating-point operations of pre-training, as ELECTRA's paper does.

The command counts the operations of the networks in --models. It also prints the published
pre-trainings that ELECTRA's code lists. A generator is counted with its network.

Example:
    bert-benchmark flops --models=electra:small,bert:base --max_seq_length=128
"""

import dataclasses

from benchmarks.sizes import read_model
from bert_tf import flags
from bert_tf.config import EncoderConfig
from bert_tf.config.flops import PUBLISHED_FLOPS, flops_of
from bert_tf.errors import InputError
from bert_tf.flags import option


@dataclasses.dataclass
class FlopsFlags:
    """Networks, and the size of their pre-training."""

    models: list[str] = option(
        [], "Networks of BERT's kind: a recipe and a size, separated by a colon, or the file of a "
        "configuration.")
    vocab_size: int = option(30522, "Vocabulary size, for networks that are not given as files.")
    max_seq_length: int = option(512, "Length of the sequences.", least=1)
    predicted_share: float = option(0.15625, "Share of the tokens that are predicted.", least=0,
                                    most=1)
    train_batch_size: int = option(256, "Sequences per step.", least=1)
    num_train_steps: int = option(1_000_000, "Number of steps.", least=1)


def operations(config: EncoderConfig, max_seq_length: int, predicted_share: float,
               train_batch_size: int, num_train_steps: int, is_electra: bool) -> float:
    """The operations of a pre-training, of ELECTRA's generator too."""
    from bert_tf.models.electra.learner import Electra
    networks = Electra.configs(config) if is_electra else [config]
    return sum(flops_of(one, max_seq_length, predicted_share).training(
        train_batch_size, num_train_steps, is_electra and one is config) for one in networks)


def count(job: FlopsFlags, name: str) -> float:
    """The operations of the pre-training of an element of --models."""
    config = read_model(name, job.vocab_size)
    if not isinstance(config, EncoderConfig):
        raise InputError(f"--models={name}: a {type(config).__name__} is not counted, only "
                         "encoders of BERT's kind are.")
    return operations(config, job.max_seq_length, job.predicted_share, job.train_batch_size,
                      job.num_train_steps, config.model_type == "electra")


def main(job: FlopsFlags) -> None:
    """Counts one network after the other."""
    flags.check(job)
    counts = {name: count(job, name) for name in job.models}
    for title, rows in (("these", counts), ("published", PUBLISHED_FLOPS)):
        for name, operations in rows.items():
            print(f"{title:<10} {name:<24} {operations:9.3e} operations, "
                  f"{operations / PUBLISHED_FLOPS['bert_base']:8.4f} of BERT-base's", flush=True)
