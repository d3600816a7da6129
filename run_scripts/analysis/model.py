"""The flags that all commands of this folder share, and the model and text that they name."""

import dataclasses
import os
from typing import ClassVar

from bert_tf import checkpoints, networks
from bert_tf.errors import InputError
from bert_tf.files import make_folder
from bert_tf.flags import REQUIRED, option
from bert_tf.tokenization import Tokenizer
from run_scripts.extract_features import EncoderFlags, read_model


@dataclasses.dataclass(kw_only=True)
class ModelFlags(EncoderFlags):
    """The model, and where the results go."""

    shortest: ClassVar[int] = 8

    output_dir: str = option(REQUIRED, "The folder to write into.")
    batch_size: int = option(8, "Texts that the model reads at a time.")


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

