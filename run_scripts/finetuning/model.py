"""The model of a fine-tuning run before it is built: what is read of it, and what is written beside
it."""

import dataclasses
import os

from bert_tf import checkpoints
from bert_tf.checkpoints import keras_file
from bert_tf.config import EncoderConfig, read_config, settle
from bert_tf.errors import InputError
from bert_tf.tasks.task import TASK_FILE, SavedTask
from bert_tf.tokenization import (
    Tokenizer,
    check_case,
    check_fits,
    find_vocabulary,
    open_tokenizer,
)


@dataclasses.dataclass(frozen=True)
class Model:
    """What is known of a model before it is built.

    Attributes:
        path: where its weights are, "" for random ones.
        config: `EncoderConfig`.
        tokenizer: the tokenizer.
        max_seq_length: S.
        saved: the `SavedTask` beside the weights, or None.
    """

    path: str
    config: EncoderConfig
    tokenizer: Tokenizer
    max_seq_length: int
    saved: SavedTask | None


def open_model(flags, output_dir: str, default_length: int) -> Model:
    """The `Model` that flags name.

    Args:
        flags: `ModelFlags`.
        output_dir: that of the run; "" if it writes no model.
        default_length: S if neither the flag nor the saved model gives it.

    Raises:
        InputError: there is no such model, or the flags, the vocabulary and the model disagree.
    """
    path = flags.init_checkpoint
    if not flags.do_train and not path:
        path = os.path.join(output_dir, keras_file.NAME)
        if not os.path.exists(path):
            raise InputError(f"there is no {keras_file.NAME} in {output_dir}: train first, with "
                             "--do_train, or name a fine-tuned model with --init_checkpoint.")
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    if flags.do_train and output_dir:
        _check_output(path, folder, output_dir)
    saved = SavedTask.read(folder) if path and (flags.keep_head or not flags.do_train) else None
    config = _config(flags, path)
    tokenizer = _open_tokenizer(flags, folder if path else None, config, saved)
    length = settle({"max_seq_length": flags.max_seq_length or None}, vars(saved) if saved else {},
                    {"max_seq_length": default_length})["max_seq_length"]
    if not 4 <= length <= config.max_position_embeddings:
        raise InputError(f"--max_seq_length is {length}; it must be from 4 to "
                         f"{config.max_position_embeddings}, the model's "
                         "max_position_embeddings.")
    return Model(path, config, tokenizer, length, saved)


def _check_output(path, folder, output_dir):
    """Raises InputError if a new model would replace files that are not of its kind."""
    if path and os.path.realpath(folder or ".") == os.path.realpath(output_dir):
        raise InputError(f"--output_dir is the folder of --init_checkpoint={path}, whose files "
                         "would be overwritten; name another.")
    model = os.path.join(output_dir, keras_file.NAME)
    if os.path.exists(model) and not os.path.exists(os.path.join(output_dir, TASK_FILE)):
        raise InputError(f"--output_dir: {model} is not a fine-tuned model and would be "
                         "overwritten; name another folder.")


def _config(flags, path):
    if not (path or flags.bert_config_file):
        raise InputError("--init_checkpoint must be given, or --bert_config_file to begin with "
                         "random weights.")
    config = flags.bert_config_file and read_config(flags.bert_config_file)
    if not path:
        return config
    return checkpoints.read_for(path, config).config if config else checkpoints.read_config(path)


def _open_tokenizer(flags, folder, config, saved):
    """The tokenizer; `folder` is the model's, or None."""
    own = find_vocabulary(folder) if folder is not None else None
    path = flags.vocab_file or own
    if not path:
        raise InputError("--vocab_file must be given: there is no vocabulary in "
                         f"{folder or 'the place of --init_checkpoint'}.")
    tokenizer = open_tokenizer(path, saved.do_lower_case if saved else flags.do_lower_case)
    check_fits(tokenizer.vocabulary, config.vocab_size, f"--vocab_file={path}")
    if own and open_tokenizer(own).vocabulary.tokens != tokenizer.vocabulary.tokens:
        raise InputError(f"--vocab_file={path} is not the vocabulary of the model, {own}; "
                         "leave the flag out.")
    check_case(tokenizer.vocabulary, path, tokenizer.do_lower_case)
    return tokenizer


def check_task(folder: str, task, model: Model, options: dict) -> None:
    """Raises InputError if a folder holds a model of another task.

    Args:
        folder: where the model will be.
        task: its `Task`.
        model: the `Model` that training begins with.
        options: those that must not differ.
    """
    saved = SavedTask.read(folder)
    if saved and not (options.items() <= saved.options.items() and saved.is_of(
            task, model.max_seq_length, model.tokenizer.do_lower_case)):
        others = " or ".join(f"--{name}" for name in ("max_seq_length", "do_lower_case", *options))
        raise InputError(f"--output_dir: {os.path.join(folder, TASK_FILE)} is of another task, "
                         f"other labels, another {others}; name another folder, or remove it.")


def save_task(folder: str, task, model: Model, options: dict) -> None:
    """Writes what a model must be used with, `task.json` and the vocabulary.

    Args:
        folder, task, model: see `check_task`.
        options: all options that are kept with the model.
    """
    SavedTask(task, model.max_seq_length, model.tokenizer.do_lower_case, options,
              task.kind.num_texts(task)).write(folder)
    model.tokenizer.save(folder)
