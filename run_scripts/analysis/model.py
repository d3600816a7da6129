"""The flags that all commands of this folder share, and the model and text that they name."""

import dataclasses
import os

from bert_tf import checkpoints, networks
from bert_tf.errors import InputError
from bert_tf.files import make_folder
from bert_tf.flags import REQUIRED, option
from bert_tf.tokenization import Tokenizer
from run_scripts.extract_features import read_model


@dataclasses.dataclass
class ModelFlags:
    """The model."""

    init_checkpoint: str = option(REQUIRED, "The model: a folder or file of any format that "
                                  "convert_checkpoint reads.")
    output_dir: str = option(REQUIRED, "The folder to write into.")
    bert_config_file: str | None = option(
        None, "The bert_config.json of the model, if it isn't beside the checkpoint.")
    vocab_file: str | None = option(None, "The model's vocabulary, if it isn't beside the "
                                    "checkpoint.")
    do_lower_case: bool | None = option(None, "Whether to lower-case the text and drop accents. By "
                                        "default as in the checkpoint, or as its vocabulary "
                                        "suggests.")
    max_seq_length: int = option(128, "Most tokens of a text.")
    batch_size: int = option(8, "Texts that the model reads at a time.")

    def __post_init__(self):
        for name, least in (("max_seq_length", 8), ("batch_size", 1)):
            if getattr(self, name) < least:
                raise InputError(f"--{name} is {getattr(self, name)}; it must be at least {least}.")


def open_model(job: ModelFlags) -> tuple["networks.BertEncoder", Tokenizer]:
    """The encoder with its weights, and its `Tokenizer`; makes --output_dir.

    Raises:
        InputError: they can't be used, or the folder can't be made.
    """
    config, tokenizer = read_model(job)
    make_folder(job.output_dir, "output_dir")
    encoder = networks.build(config)
    account = checkpoints.load(job.init_checkpoint, encoder)
    if account.missing and account.missing != ["the pooler"]:
        print(account, flush=True)
    return encoder, tokenizer


def batches(features: dict, size: int):
    """Yields the rows of features [N, S] in batches of `size`."""
    for start in range(0, len(features["input_ids"]), size):
        yield {name: rows[start:start + size] for name, rows in features.items()}


def check_file(path: str, flag: str) -> None:
    """Raises InputError if there is no file `path`."""
    if not os.path.isfile(path):
        raise InputError(f"--{flag}: there is no file {path}.")


def name_of(job: ModelFlags) -> str:
    """What to call the model in titles: the last two parts of its path."""
    return os.sep.join(os.path.normpath(job.init_checkpoint).split(os.sep)[-2:])

