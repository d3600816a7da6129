"""The flags that say which model is fine-tuned, and the model's parts that are known beforehand."""

import dataclasses
import os

from bert_tf import checkpoints
from bert_tf.checkpoints import keras_file
from bert_tf.checkpoints.rules import VOCABULARY
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.flags import option
from bert_tf.tasks.saved import TASK_FILE, SavedTask
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordpieceTokenizer


@dataclasses.dataclass
class ModelFlags:
    """What to do with which model."""

    do_train: bool = option(False, "Fine-tune, on the training file.")
    do_eval: bool = option(False, "Score the model, on the files that have labels.")
    do_predict: bool = option(False, "Predict the test files.")
    init_checkpoint: str = option(
        "", "Weights to begin with, a folder or file of any format; without --do_train, the "
        "fine-tuned model (default: that of --output_dir).")
    keep_head: bool = option(
        False, "Go on training the head of --init_checkpoint too, instead of a new one.")
    bert_config_file: str = option(
        "", "The bert_config.json of the model; default: that beside --init_checkpoint. Without "
        "--init_checkpoint, training begins with random weights.")
    vocab_file: str = option(
        "", "The WordPiece vocabulary; default: the vocab.txt beside --init_checkpoint.")
    do_lower_case: bool = option(True, "Lower-case the text: True for uncased vocabularies.")
    max_seq_length: int = option(
        0, "Length S of the longest sequence, [CLS] and [SEP]s included; 0: the task's own.")
    records_dir: str = option(
        "", "Folder of the records, which are made there if need be; default: records in "
        "--output_dir.")
    num_workers: int = option(0, "Processes that make records; 0 for one a core.")


@dataclasses.dataclass(frozen=True)
class Model:
    """What is known of a model before it is built.

    Attributes:
        path: where its weights are, "" for random ones.
        config: `EncoderConfig`.
        tokenizer: `WordpieceTokenizer`.
        vocab_file: its file.
        max_seq_length: S.
        saved: the `SavedTask` beside the weights, or None.
    """

    path: str
    config: EncoderConfig
    tokenizer: WordpieceTokenizer
    vocab_file: str
    max_seq_length: int
    saved: SavedTask | None


def open_model(model_flags, output_dir, default_length):
    """The `Model` of the flags.

    Args:
        model_flags: `ModelFlags`.
        output_dir: that of the run; "" if it writes no model.
        default_length: S if neither the flag nor the saved model tells it.

    Raises:
        InputError: there is nothing to do, or the flags, the vocabulary and the model disagree.
    """
    flags = model_flags
    if not (flags.do_train or flags.do_eval or flags.do_predict):
        raise InputError("give --do_train, --do_eval, --do_predict or several of them.")
    path = flags.init_checkpoint
    if flags.keep_head and not path:
        raise InputError("--keep_head keeps the head of --init_checkpoint: name one, or leave it "
                         "out.")
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
    vocab_file = flags.vocab_file or os.path.join(folder, VOCABULARY)
    if not flags.vocab_file and not (path and os.path.isfile(vocab_file)):
        raise InputError(f"--vocab_file must be given: there is no {VOCABULARY} in "
                         f"{folder or 'the place of --init_checkpoint'}.")
    vocabulary = Vocabulary.from_file(vocab_file)
    check_vocabulary(vocabulary, vocab_file, config, folder if path else None)
    lower = saved.do_lower_case if saved else flags.do_lower_case
    check_case(vocabulary, vocab_file, lower)
    length = flags.max_seq_length or (saved.max_seq_length if saved else default_length)
    if not 4 <= length <= config.max_position_embeddings:
        raise InputError(f"--max_seq_length is {length}; it must be from 4 to "
                         f"{config.max_position_embeddings}, the model's "
                         "max_position_embeddings.")
    return Model(path, config, WordpieceTokenizer(vocabulary, lower), vocab_file, length, saved)


def _check_output(path, folder, output_dir):
    """Raises InputError if a new model would take the place of one that is not of its kind."""
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
    config = flags.bert_config_file and EncoderConfig.from_json_file(flags.bert_config_file)
    if not path:
        return config
    return checkpoints.read_for(path, config).config if config else checkpoints.read_config(path)


def check_choice(model_flags, settings):
    """Raises InputError if something is to be chosen by a score that is not wanted, or among what
    does not differ.

    Args:
        model_flags: `ModelFlags`.
        settings: `FineTuneSettings`.
    """
    if model_flags.do_train and not model_flags.do_eval and (
            settings.num_trials > 1 or settings.grid or settings.early_stopping):
        raise InputError("--num_trials, --grid and --early_stopping choose by the score: give "
                         "--do_eval too.")
    settings.trials()


def check_vocabulary(vocabulary, vocab_file, config, folder):
    """Raises InputError if a vocabulary is not that of a model.

    Args:
        vocabulary: `Vocabulary` of `vocab_file`.
        config: `EncoderConfig` of the model.
        folder: where the model's own vocab.txt may stand, or None.
    """
    if vocabulary.size != config.vocab_size:
        raise InputError(f"--vocab_file={vocab_file} has {vocabulary.size:,} tokens, the model "
                         f"{config.vocab_size:,}; name the vocabulary that it was trained with.")
    own = os.path.join(folder, VOCABULARY) if folder else ""
    if os.path.isfile(own) and Vocabulary.from_file(own).tokens != vocabulary.tokens:
        raise InputError(f"--vocab_file={vocab_file} is not the vocabulary of the model, {own}; "
                         "leave the flag out.")


def check_case(vocabulary, vocab_file, do_lower_case):
    """Raises InputError if a vocabulary is of cased text and text is lower-cased, or the other
    way round, as far as its tokens tell."""
    cased = any("A" <= token[:1] <= "Z" for token in vocabulary.tokens)
    if cased and do_lower_case:
        raise InputError(f"{vocab_file} has tokens with capital letters, which lower-cased text "
                         "never meets: give --do_lower_case=False.")
    if not cased and not do_lower_case and "the" in vocabulary.ids:
        raise InputError(f"{vocab_file} has no token with a capital letter, so that every word "
                         "with one would be [UNK]: give --do_lower_case.")
