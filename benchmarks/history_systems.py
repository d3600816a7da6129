"""The systems of the table of history: their sizes, and the flags that make and train them."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

from benchmarks.kept_comparison import KeptComparison
from benchmarks.programs import check_width
from bert_tf.errors import InputError
from bert_tf.flags import REQUIRED, option


@dataclasses.dataclass
class HistoryFlags(KeptComparison):
    """The material, the sizes, and how long to train."""

    input_file: list[str] = option(REQUIRED, "Text to pre-train on, in the format of "
                                             "bert-create-pretraining-data.")
    snli_dir: str = option(REQUIRED, "Folder of SNLI's official files.")
    conll2003_dir: str = option(REQUIRED, "Folder of CoNLL-2003's official files.")
    output_dir: str = option(REQUIRED, "Folder for all files.")
    systems: list[str] = option([], "Rows of the table; default: all.")
    vocab_size: int = option(
        8000, "Maximum size of each vocabulary, which is learned from the text.")
    num_hidden_layers: int = option(
        2, "Number of layers; T5 has as many in its encoder and in its decoder.", least=1)
    hidden_size: int = option(128, "Width; heads are 64 wide, and an LSTM has twice as many cells.")
    max_seq_length: int = option(128, "Length of all sequences.")
    cpu_seconds: float = option(600.0, "CPU seconds for the steps of each pre-training.")
    train_batch_size: int = option(16, "Sequences per step of pre-training.", least=1)
    max_examples: int = option(
        20_000, "Maximum examples of a task to train on, from the start of its file.", least=1)
    num_train_epochs: float = option(3.0, "Number of epochs on each task.")
    num_trials: int = option(
        1, "Number of seeds of each fine-tuning; the table shows the mean.", least=1)

    free: ClassVar = ("num_trials", "systems")

    def check(self) -> None:
        """Raises InputError for values that can't work."""
        super().check()
        check_width(self.hidden_size)
        for name in self.systems:
            if name not in SYSTEMS:
                raise InputError(f"--systems: there is no {name!r}; choose from "
                                 f"{', '.join(SYSTEMS)}.")


@dataclasses.dataclass(frozen=True)
class System:
    """A row of the table.

    Attributes:
        sizes: function of `HistoryFlags` that returns {key of the configuration: value}.
        published: scores that its paper reports.
        vocabulary: {flag of `bert-build-vocab`: value}.
        records: the same of `bert-create-pretraining-data`.
        pretraining: the same of `bert-run-pretraining`.
        tuning: the same of the fine-tuning commands.
        classifier, tagger: the same of these kinds of `bert-finetune` alone.
    """

    recipe: str
    config: str
    sizes: Callable[[HistoryFlags], dict[str, Any]]
    published: str
    vocabulary: dict[str, Any] = dataclasses.field(default_factory=dict)
    records: dict[str, Any] = dataclasses.field(default_factory=dict)
    pretraining: dict[str, Any] = dataclasses.field(default_factory=dict)
    tuning: dict[str, Any] = dataclasses.field(default_factory=dict)
    classifier: dict[str, Any] = dataclasses.field(default_factory=dict)
    tagger: dict[str, Any] = dataclasses.field(default_factory=dict)
    is_pretrained: bool = True


def _lstm(job):
    return {"embedding_size": job.hidden_size, "hidden_size": 2 * job.hidden_size,
            "num_hidden_layers": 1}


def _elmo(job):
    return {"projection_dim": job.hidden_size // 2, "dim": 2 * job.hidden_size,
            "n_layers": job.num_hidden_layers, "n_highway": 1, "max_characters_per_token": 24,
            "filters": [[width, job.hidden_size // 4] for width in range(1, 6)]}


def _bert(job):
    return {"hidden_size": job.hidden_size, "num_hidden_layers": job.num_hidden_layers,
            "num_attention_heads": job.hidden_size // 64, "intermediate_size": 4 * job.hidden_size,
            "max_position_embeddings": job.max_seq_length, "type_vocab_size": 2}


def _left_to_right(job):
    return {**_bert(job), "directionality": "left_to_right"}


def _xlnet(job):
    return {"d_model": job.hidden_size, "n_layer": job.num_hidden_layers,
            "n_head": job.hidden_size // 64, "d_head": 64, "d_inner": 4 * job.hidden_size,
            "mem_len": job.max_seq_length // 2}


def _t5(job):
    return {"d_model": job.hidden_size, "num_layers": job.num_hidden_layers, "d_kv": 64,
            "num_heads": job.hidden_size // 64, "d_ff": 4 * job.hidden_size}


_SENTENCEPIECE = {"tokenizer": "sentencepiece"}
_WORDS = {"vocabulary": {"tokenizer": "sequence_words"}, "tuning": {"learning_rate": 1e-3}}
_ADAM = {"learning_rate": 1e-3, "optimizer": "adamw"}
_TUNED = {"learning_rate": 3e-4}
# The figures are from arXiv:1511.01432, 1810.04805 (tables 1 and 7), 1906.08237 (table 3) and
# 1910.10683 (table 1).
SYSTEMS = {
    "LSTM": System("lm_lstm", "SequenceLstmConfig", _lstm, "IMDB: 13.50% wrong",
                   is_pretrained=False, **_WORDS),
    "LM-LSTM": System("lm_lstm", "SequenceLstmConfig", _lstm, "IMDB: 7.64% wrong", **_WORDS),
    "ELMo": System("elmo", "ElmoConfig", _elmo, "GLUE 71.0, CoNLL-2003 92.2",
                   vocabulary={"tokenizer": "elmo_words"},
                   tuning={"feature_layers": "elmo", "lstm_size": 128, "lstm_layers": 1},
                   classifier={"head": "attentive", "head_size": 128}),
    "left to right": System("ltr", "EncoderConfig", _left_to_right, "GLUE 75.1 (GPT)",
                            records={"masking": "dynamic"}, pretraining=_ADAM, tuning=_TUNED),
    "BERT": System("bert", "EncoderConfig", _bert, "GLUE 79.6, CoNLL-2003 92.4 (base)",
                   records={"masking": "dynamic"}, pretraining=_ADAM, tuning=_TUNED),
    "XLNet": System("xlnet", "XLNetConfig", _xlnet, "IMDB: 3.20% wrong (large; BERT 4.51)",
                    vocabulary={**_SENTENCEPIECE, "sentencepiece_style": "xlnet"},
                    records={"do_lower_case": True}, pretraining=_ADAM,
                    tuning={**_TUNED, "do_lower_case": True}),
    "T5": System("t5", "T5Config", _t5, "GLUE 83.3 (dev, base)",
                 vocabulary={**_SENTENCEPIECE, "sentencepiece_style": "t5"}),
}
