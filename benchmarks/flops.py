"""Counts the floating-point operations of pre-training, as ELECTRA's paper does.

The command counts the operations of the networks in --models. It also prints the published
pre-trainings that ELECTRA's code lists. A generator is counted with its network.

An operation is a mathematical one, so that a product of matrices [m, n] and [n, p] takes 2 m n p.
The backward pass takes as many as the forward pass. Embeddings are looked up by products with
one-hot vectors (arXiv:2003.10555; google-research/electra, flops_computation.py).

Example:
    bert-benchmark flops --models=electra:small,bert:base --max_seq_length=128
"""

import dataclasses
from typing import Any

from benchmarks.sizes import read_model
from bert_tf import flags
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.flags import option

_DROPOUT, _NORM, _ACTIVATION, _SOFTMAX = 4, 5, 8, 5       # for each number


@dataclasses.dataclass(frozen=True)
class TransformerFlops:
    """Counts the operations of a Transformer.

    Attributes:
        max_seq_length: S, the tokens of a sequence; all are counted.
        embedding_size: None: the hidden size.
        intermediate_size: None: four times the hidden size.
        num_attention_heads: None: one for each 64 of the hidden size.
        head_size: of queries, keys and values; None: their share of the hidden size.
        predicted_share: share of the tokens that are predicted.
        is_decoder: whether each layer also attends to an encoder's output.
    """

    hidden_size: int
    num_hidden_layers: int
    max_seq_length: int = 512
    vocab_size: int = 30522
    embedding_size: int | None = None
    intermediate_size: int | None = None
    num_attention_heads: int | None = None
    head_size: int | None = None
    predicted_share: float = 0.15625
    is_decoder: bool = False

    def layer(self) -> int:
        """Returns the operations of a layer's forward pass on a sequence."""
        hidden, length = self.hidden_size, self.max_seq_length
        inner = self.intermediate_size or 4 * hidden
        heads = self.num_attention_heads or max(hidden // 64, 1)
        width = heads * self.head_size if self.head_size else hidden
        attention = (
            3 * width * (2 * hidden + 1)                            # queries, keys, values
            + 2 * width * length                                    # scores
            + (_SOFTMAX + _DROPOUT + 1) * length * heads            # 1: their scale
            + 2 * hidden * length                                   # mean of the values
            + 2 * hidden * hidden + (1 + _DROPOUT + 1) * hidden     # output, bias, residual
            + _NORM)        # the original counts one number of this norm, not all
        feed_forward = (
            4 * hidden * inner + (_ACTIVATION + 1) * inner + (1 + _DROPOUT + 1 + _NORM) * hidden)
        return (attention * (2 if self.is_decoder else 1) + feed_forward) * length

    def embeddings(self) -> int:
        """Returns the operations of a sequence's embeddings."""
        size, hidden = self.embedding_size or self.hidden_size, self.hidden_size
        count = 2 * size * (self.vocab_size + self.max_seq_length + 2 + 1)
        count += (_NORM + _DROPOUT) * size
        if size != hidden:
            count += 2 * hidden * size + hidden
        return count * self.max_seq_length

    def predictions(self) -> float:
        """Returns the operations that predict a share of a sequence's tokens."""
        size, words = self.embedding_size or self.hidden_size, self.vocab_size
        count = (2 * size * words + 2 * self.hidden_size * size
                 + (1 + _ACTIVATION + _NORM) * size + (_SOFTMAX + 2) * words)
        return self.predicted_share * count * self.max_seq_length

    def classification(self) -> int:
        """Returns the operations of a decision for each of a sequence's tokens."""
        return (2 * self.hidden_size + 1 + _ACTIVATION + 2) * self.hidden_size * self.max_seq_length

    def forward(self, is_discriminator: bool = False) -> float:
        """Returns the operations of a sequence's forward pass. A discriminator decides on each
        token, other networks predict tokens."""
        return (self.num_hidden_layers * self.layer() + self.embeddings()
                + (self.classification() if is_discriminator else self.predictions()))

    def training(self, train_batch_size: int, num_train_steps: float,
                 is_discriminator: bool = False) -> float:
        """Returns the operations of a pre-training run."""
        return 2 * train_batch_size * num_train_steps * self.forward(is_discriminator)


def flops_of(config: EncoderConfig, max_seq_length: int, predicted_share: float = 0.15625
             ) -> TransformerFlops:
    """Returns the `TransformerFlops` of a BERT or of one of its relatives."""
    return TransformerFlops(
        config.hidden_size, config.num_hidden_layers, max_seq_length, config.vocab_size,
        config.embedding_width, config.intermediate_size, config.num_attention_heads,
        config.head_size, predicted_share)


def _electra(sizes, generator_size, max_seq_length, *schedule):
    """The operations of a network [H, L, E] and of its generator, which has another width."""
    hidden, layers, embedding = sizes
    return sum(TransformerFlops(width, layers, max_seq_length, embedding_size=embedding).training(
        *schedule, is_discriminator=width == hidden) for width in (hidden, generator_size))


_T5: dict[str, Any] = {"vocab_size": 32000, "intermediate_size": 65536,
                       "num_attention_heads": 128, "head_size": 128}
# The operations of the published pre-trainings that flops_computation.py lists. ELMo's and XLNet's
# are not counted by it: they are TensorFlow's counts of one pass times the number of passes.
PUBLISHED_FLOPS = {
    "elmo": 2 * 10 * 768648884 * 568093262680 / (20.0 * 128),
    "xlnet": 2 * 500000 * 8192 * 15064773691518 / 32.0,
    "gpt": TransformerFlops(768, 12, vocab_size=40000, predicted_share=1.0).training(128, 960800),
    "bert_small": TransformerFlops(256, 12, 128, embedding_size=128).training(128, 1.45e6),
    "bert_base": TransformerFlops(768, 12).training(256, 1e6),
    "bert_large": TransformerFlops(1024, 24).training(256, 1e6),
    "electra_small": _electra((256, 12, 128), 64, 128, 128, 1e6),
    "electra_base": _electra((768, 12, 768), 256, 512, 256, 766000),
    "electra_400k": _electra((1024, 24, 1024), 256, 512, 2048, 400000),
    "electra_1.75M": _electra((1024, 24, 1024), 256, 512, 2048, 1750000),
    "roberta": TransformerFlops(1024, 24, vocab_size=50265).training(8000, 500000),
    "albert": TransformerFlops(4096, 12, vocab_size=30000, embedding_size=128).training(
        4096, 1.5e6),
    "t5_11b": (TransformerFlops(1024, 24, predicted_share=0.0, **_T5).training(2048, 1e6)
               + TransformerFlops(1024, 24, predicted_share=1.0, is_decoder=True, **_T5).training(
                   2048, 1e6))}


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
