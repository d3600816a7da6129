"""Writes the records of a fine-tuning task once: TFRecords and a manifest for each split.

The files are the official ones of a task that has a name, or your own. Records are whole or absent,
the same for any number of workers; the same command started again goes on where it was killed, and
makes nothing that is there.

Example:
    bert-create-finetuning-data --task=mrpc --data_dir=glue/MRPC --vocab_file=vocab.txt \\
        --max_seq_length=128 --output_dir=/tmp/mrpc
    bert-create-finetuning-data --train_file=mail.csv --text_a_column=body --label_column=folder \\
        --vocab_file=vocab.txt --output_dir=/tmp/mail
"""

import dataclasses

from bert_tf import flags
from bert_tf.errors import InputError
from bert_tf.files import make_folder
from bert_tf.flags import REQUIRED, option
from bert_tf.tasks.reading import discover_labels
from bert_tf.tasks.records import Options, Source, SplitRecords
from bert_tf.tasks.rows import Omissions
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordpieceTokenizer
from data_prep.task_flags import TaskFlags

_MOST_LABELS = 12       # that the report counts one by one


@dataclasses.dataclass
class Job:
    """What is made of the task's files."""

    output_dir: str = option(REQUIRED, "Folder of the records: train.tfrecord, dev.tfrecord ...")
    vocab_file: str = option(REQUIRED, "The WordPiece vocabulary, one token a line.")
    do_lower_case: bool = option(True, "Lower-case the text: True for uncased vocabularies.")
    splits: list[str] = option([], "Splits to make; all whose files are there, if not given.")
    max_seq_length: int = option(
        0, "Length S of a sequence, [CLS] and [SEP]s included; 0 for the task's own.")
    document_context: bool = option(
        False, "Fill sequences of tagged words with the sentences around, from one document.")
    num_workers: int = option(0, "Processes; 0 for one a core.")

    def options(self, task):
        """The `Options` of the records.

        Raises:
            InputError: a value that cannot work.
        """
        length = self.max_seq_length or task.defaults.max_seq_length
        for name, value, least, most in (("max_seq_length", length, 4, 1 << 14),
                                         ("num_workers", self.num_workers, 0, 4096)):
            if not least <= value <= most:
                raise InputError(f"--{name} is {value}, which is not between {least} and {most}.")
        return Options(length, self.do_lower_case, self.document_context)


def find_sources(task, task_flags, splits):
    """The `Source`s of the splits, or of all whose files are there; labels are found if not given.

    Raises:
        InputError: a file is not there, or none is.
    """
    found, problem = {}, None
    for split in dict.fromkeys([*splits, *task.splits]):
        try:
            found[split] = task.path(task_flags.data_dir, split)
        except InputError as error:
            problem = problem or error
            if split in splits or not task_flags.task:      # a flag names the file
                raise
    if not found:
        raise problem
    skip = task_flags.skip_malformed_lines
    for split in task.splits:       # the first that has labels: train, where it is there
        if split in found and task.split(split).label is not None:
            task = discover_labels(task, split, found[split], Omissions(skip))
            break
    return [Source(task, split, found[split], skip) for split in splits or found]


def report(record, was_there):
    """Prints what a manifest says."""
    counts = record["counts"]
    print(f"{record['task']['split']}: {counts['examples']:,} examples, {counts['records']:,} "
          f"records, {counts['cut_to_fit']:,} cut to fit{', there already' * was_there}",
          flush=True)
    labels = counts.get("labels", {})
    if 0 < len(labels) <= _MOST_LABELS:
        print("  labels: " + ", ".join(f"{label} {n:,}" for label, n in labels.items()))
    for note in record["notes"]:
        print(f"  note: {note}")


def make_records(splits, output_dir, num_workers, may_replace=True):
    """Makes the records of all `SplitRecords`; returns the manifests."""
    manifests = []
    for split in splits:
        record, was_there = split.make(output_dir, num_workers, may_replace)
        report(record, was_there)
        manifests.append(record)
    return manifests


def main(task_flags, job):
    """Makes the records of all splits; nothing is written if any of their files is bad.

    Returns:
        list of the manifests.
    """
    task = task_flags.read_task()
    options = job.options(task)
    tokenizer = WordpieceTokenizer(Vocabulary.from_file(job.vocab_file), job.do_lower_case)
    splits = [SplitRecords(source, options, tokenizer)
              for source in find_sources(task, task_flags, job.splits)]
    make_folder(job.output_dir, "output_dir")
    return make_records(splits, job.output_dir, job.num_workers)


def run():
    """The console entry point."""
    flags.run(main, TaskFlags, Job)


if __name__ == "__main__":
    run()
