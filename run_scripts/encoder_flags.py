"""The model that reads texts: the flags that name it, its configuration and its tokenizer."""

import dataclasses
from typing import ClassVar

from bert_tf import checkpoints, tokenization
from bert_tf.config import EncoderConfig, read_config
from bert_tf.errors import InputError
from bert_tf.flags import REQUIRED, option
from bert_tf.options import settle
from bert_tf.tokenization import Tokenizer


@dataclasses.dataclass
class EncoderFlags:
    """The model that reads texts.

    Attributes:
        shortest: the least `max_seq_length`.
    """

    shortest: ClassVar[int] = 3

    init_checkpoint: str = option(REQUIRED, "The model: a folder or file of any format that "
                                  "convert_checkpoint reads.")
    bert_config_file: str | None = option(
        None, "The bert_config.json of the model, if it isn't beside the checkpoint.")
    vocab_file: str | None = option(None, "The model's vocabulary, if it isn't beside the "
                                    "checkpoint.")
    do_lower_case: bool | None = option(
        None, "Whether to lower-case the text and drop accents. Default: as in the checkpoint, or "
        "as its vocabulary suggests.")
    max_seq_length: int = option(
        128, "Maximum tokens of a text; longer texts lose their last tokens.")
    batch_size: int = option(32, "Texts per batch.")

    def __post_init__(self):
        for name, least in (("max_seq_length", self.shortest), ("batch_size", 1)):
            if getattr(self, name) < least:
                raise InputError(f"--{name} is {getattr(self, name)}; it must be at least {least}.")


def read_model(job: EncoderFlags) -> tuple[EncoderConfig, Tokenizer]:
    """The configuration and the tokenizer of the model.

    Raises:
        InputError: there is no checkpoint or no vocabulary, or they and the flags don't fit.
    """
    source = checkpoints.read_source(job.init_checkpoint)
    config = (read_config(job.bert_config_file) if job.bert_config_file
              else checkpoints.config_of(source))
    config.check_reads_texts(source.file)
    if job.max_seq_length > config.max_position_embeddings:
        raise InputError(f"--max_seq_length is {job.max_seq_length}, but the model reads at most "
                         f"{config.max_position_embeddings} tokens (max_position_embeddings); give "
                         "fewer.")
    path = job.vocab_file or source.vocab_file
    if not path:
        raise InputError("--vocab_file must be given: there is no vocabulary beside "
                         f"{source.file}.")
    lower = settle({"do_lower_case": job.do_lower_case}, vars(source))["do_lower_case"]
    tokenizer = tokenization.open_tokenizer(path, lower)
    vocabulary = tokenizer.vocabulary
    if (source.vocab_file and vocabulary.tokens
            != tokenization.open_tokenizer(source.vocab_file).vocabulary.tokens):
        raise InputError(f"--vocab_file: {path} isn't {source.vocab_file}, with which the model "
                         "came; leave the flag out.")
    tokenization.check_fits(vocabulary, config.vocab_size, f"--vocab_file={path}")
    return config, tokenizer
