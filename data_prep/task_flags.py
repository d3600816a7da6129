"""The flags that say which task: one that has a name, or the user's own files."""

import dataclasses

from bert_tf.errors import InputError
from bert_tf.flags import option
from bert_tf.tasks.own import own_task
from bert_tf.tasks.named import TASKS, find_task


@dataclasses.dataclass
class TaskFlags:
    """Which task, and where its files stand."""

    task: str = option("", f"One of {', '.join(TASKS)}, in its official files. Without it, the "
                       "flags from --task_kind on describe files of your own.", alias="task_name")
    data_dir: str = option("", "Folder of the task's files; of your own, where their names begin.")
    task_kind: str | None = option(
        None, "What is asked of an example; that which the script is for, if not given.",
        choices=["classification", "regression", "multiple_choice", "tagging"])
    train_file: str = option("", "File to train on, .tsv, .csv or .jsonl; or, of tagged words, a "
                             "word a line and a blank line between sentences.")
    dev_file: str = option("", "File to choose on.")
    test_file: str = option("", "File to predict.")
    labelled_test: bool = option(False, "The test file has the label's column too.")
    text_a_column: str = option("", "Column of the text, by name or number from 0; of the words "
                                "(there 0, if not given).")
    text_b_column: str = option("", "Column of a second text, or of the choices' common beginning.")
    label_column: str = option("", "Column of the label; -1 is the last, which that of the "
                               "words' tags is if not given.")
    choice_columns: list[str] = option([], "Columns of a multiple choice, such as ending*.")
    labels: list[str] = option([], "All labels; those of the training file if not given.")
    multi_label: bool = option(False, "An example has any number of labels, apart by commas.")
    header: bool = option(True, "The first line of a .tsv or .csv file names the columns.")
    tfds_name: str = option("", "Data set of tensorflow_datasets; the files then are names of its "
                            "splits, by default train, validation and test.")
    skip_malformed_lines: bool = option(
        False, "Leave out lines that can't be read, such as the broken ones of QQP; the manifest "
        "counts them. Otherwise the first is an error.")

    def read_task(self, kind="classification"):
        """The `Task`.

        Args:
            kind: that of own files if no flag tells it.

        Raises:
            InputError: there is no such task, or the flags describe none.
        """
        own = [name for name in ("text_a_column", "tfds_name", "train_file", "dev_file",
                                 "test_file", "label_column") if getattr(self, name)]
        if self.task:
            if own:
                raise InputError(f"--task={self.task} is read from its official files; leave out "
                                 f"either --task or --{own[0]}.")
            return find_task(self.task)
        kind = self.task_kind or kind
        first, last = ("0", "-1") if kind == "tagging" else ("", "")
        text_a, label = self.text_a_column or first, self.label_column or last
        if not text_a:
            raise InputError(f"--task must be given (one of {', '.join(TASKS)}), or "
                             "--text_a_column for files of your own.")
        files = {split: getattr(self, f"{split}_file") for split in ("train", "dev", "test")}
        return own_task(
            kind, {split: file for split, file in files.items() if file},
            [column for column in (text_a, self.text_b_column) if column],
            label or None, choices=self.choice_columns, labels=self.labels,
            multi_label=self.multi_label, header=self.header, labelled_test=self.labelled_test,
            tfds_name=self.tfds_name)
