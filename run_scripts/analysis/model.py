"""The model that reads texts: the flags that name it, its configuration and its tokenizer."""

import dataclasses
import os
from typing import Any

import bert_tf
from bert_tf import flags
from bert_tf.config import EncoderConfig, EuroBertConfig, ModernBertConfig, T5Config, XLNetConfig
from bert_tf.errors import InputError
from bert_tf.files import make_folder, normal_path
from bert_tf.flags import REQUIRED, check, option

# The networks whose attention is shown: each layer begins with it, one map of a text a head.
SHOWN = EncoderConfig, EuroBertConfig, ModernBertConfig, T5Config, XLNetConfig


@dataclasses.dataclass
class EncoderFlags:
    """The model that reads texts."""

    init_checkpoint: str = option(REQUIRED, "The model: a folder or file of any format that "
                                  "bert-convert-checkpoint reads.")
    bert_config_file: str | None = option(
        None, "The bert_config.json of the model, if it isn't beside the checkpoint.")
    vocab_file: str | None = option(None, "The model's vocabulary, if it isn't beside the "
                                    "checkpoint.")
    do_lower_case: bool | None = option(
        None, "Lower-case the text and drop accents. Default: as in the checkpoint, or as its "
        "vocabulary suggests.")
    max_seq_length: int = option(
        128, "Maximum tokens of a text; longer texts are cut at their end.", least=3)
    batch_size: int = option(32, "Most texts per batch.", least=1)

    __post_init__ = check

    def open(self) -> Any:
        """Opens the `bert_tf.opening.Model` of the flags, which must have a vocabulary."""
        model = bert_tf.open_model(self.init_checkpoint, self.bert_config_file, self.vocab_file,
                                  self.do_lower_case)
        config = model.config
        config.check_reads_texts(model.weights.source)
        if self.max_seq_length > config.max_position_embeddings:
            raise InputError(f"--max_seq_length is {self.max_seq_length}, but the model reads at "
                             f"most {config.max_position_embeddings} tokens "
                             "(max_position_embeddings); give fewer.")
        return model


@dataclasses.dataclass(kw_only=True)
class ModelFlags(EncoderFlags):
    """The model, and where the results go."""

    output_dir: str = option(REQUIRED, "The folder to write into.")
    max_seq_length: int = option(
        128, "Maximum tokens of a text; longer texts are cut at their end.", least=8)
    batch_size: int = option(8, "Texts per batch.", least=1)


def open_encoder(job: ModelFlags) -> Any:
    """Opens the `bert_tf.opening.Model`, which must be one of `SHOWN`; makes --output_dir."""
    model = job.open()
    config = model.config
    if not isinstance(config, SHOWN):
        raise InputError(f"--init_checkpoint: {job.init_checkpoint} has the type "
                         f"{config.model_type}, but this analysis is for the encoders of BERT, "
                         "ModernBERT, EuroBERT, XLNet and T5; name one of these.")
    if config.is_cut:
        raise InputError(f"--init_checkpoint: {job.init_checkpoint} was pruned, so its layers "
                         "differ in heads or units; name the model before pruning.")
    make_folder(job.output_dir, "output_dir")
    flags.keep(job, job.output_dir, trains=False)
    return model


def batches(features: dict, size: int):
    """Yields the rows of features [N, S] in batches of `size`."""
    for start in range(0, len(features["input_ids"]), size):
        yield {name: rows[start:start + size] for name, rows in features.items()}


def name_of(job: ModelFlags) -> str:
    """Returns the model's name for titles: the last two parts of its path."""
    return os.sep.join(normal_path(job.init_checkpoint).split(os.sep)[-2:])
