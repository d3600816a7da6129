"""The model that reads texts: the flags that name it, its configuration and its tokenizer."""

import dataclasses
from typing import Any

import bert_tf
from bert_tf.errors import InputError
from bert_tf.flags import REQUIRED, check, option


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
