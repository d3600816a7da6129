"""The flags of a fine-tuning run, and what can be refused by the flags alone."""

import dataclasses
import math

from bert_tf.errors import InputError
from bert_tf.flags import option

BALANCED = "balanced"


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
        False, "Train the head of --init_checkpoint further, instead of a new one.")
    bert_config_file: str = option(
        "", "The bert_config.json of the model; default: that beside --init_checkpoint. Without "
        "--init_checkpoint, training begins with random weights.")
    vocab_file: str = option(
        "", "The vocabulary of the tokenizer; default: that beside --init_checkpoint.",
        alias="tokenizer_file")
    do_lower_case: bool = option(True, "Lower-case the text: True for uncased vocabularies.")
    max_seq_length: int | None = option(
        None, "Length S of the longest sequence, special tokens included; default: that of a "
        "fine-tuned model, else the task's own.")
    records_dir: str = option(
        "", "Folder of the records, which are made there if need be; default: records in "
        "--output_dir.")
    num_workers: int = option(0, "Processes that make records; 0 for one a core.")

    def check(self, settings) -> None:
        """Raises InputError if there is nothing to do, or if trials would be compared by a score
        that no flag asks for.

        Args:
            settings: `FineTuneSettings`.
        """
        if self.do_train and not self.do_eval and (
                settings.num_trials > 1 or settings.grid or settings.early_stopping):
            raise InputError("--num_trials, --grid and --early_stopping choose by the score: give "
                             "--do_eval too.")
        settings.trials()
        if not (self.do_train or self.do_eval or self.do_predict):
            raise InputError("give --do_train, --do_eval, --do_predict or several of them.")
        if self.keep_head and not self.init_checkpoint:
            raise InputError("--keep_head keeps the head of --init_checkpoint: name one, or leave "
                             "it out.")


def check_smoothing(settings, task) -> None:
    """Raises InputError if labels are to be smoothed in a task that has none.

    Args:
        settings: `FineTuneSettings`.
        task: `Task`.
    """
    if settings.label_smoothing and not task.kind.smooths:
        raise InputError(f"--label_smoothing is for labels, which the task {task.name} does not "
                         "have; leave it out.")


def class_weights(flag: list, task) -> str | list[float] | None:
    """The weights of labels that a flag gives: None, a number for each label, or BALANCED.

    Args:
        flag: --class_weights.
        task: `Task`.

    Raises:
        InputError: there are more or fewer than labels, or they are no weights.
    """
    if not flag or flag == [BALANCED] and task.labels:
        return flag[0] if flag else None
    if not task.labels:
        raise InputError(f"--class_weights is for labels, which the task {task.name} does not "
                         "have; leave it out.")
    try:
        weights = [float(value) for value in flag]
    except ValueError:
        weights = []
    if len(weights) != len(task.labels) or not (
            any(weights) and all(0 <= weight < math.inf for weight in weights)):
        raise InputError(f"--class_weights={','.join(flag)}: give {BALANCED}, or for each of the "
                         f"labels {', '.join(task.labels)} a number of at least 0, not 0 for all.")
    return weights
