"""Writes the records of a fine-tuning task once: TFRecords and a manifest for each split.

The files are the official ones of a named task, or your own. A file of records is complete or
absent, and it is the same for any number of workers. The same command, started again, continues
where it was killed, and makes nothing twice.

Example:
    bert-create-finetuning-data --task=mrpc --data_dir=glue/MRPC --vocab_file=vocab.txt \\
        --max_seq_length=128 --output_dir=/tmp/mrpc
    bert-create-finetuning-data --train_file=mail.csv --text_a_column=body --label_column=folder \\
        --vocab_file=vocab.txt --output_dir=/tmp/mail
"""

import dataclasses

from bert_tf import flags
from bert_tf.files import make_folder
from bert_tf.flags import REQUIRED, option
from bert_tf.tasks.split_records import RecordOptions, SplitRecords
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.tokenization import open_tokenizer


@dataclasses.dataclass
class FinetuningDataFlags:
    """Records that are made of the task's files."""

    output_dir: str = option(REQUIRED, "Folder of the records: train.tfrecord, dev.tfrecord ...")
    vocab_file: str = option(REQUIRED, "The vocabulary of the tokenizer.", alias="tokenizer_file")
    do_lower_case: bool = option(True, "Lower-case the text: True for uncased vocabularies.")
    splits: list[str] = option([], "Splits to make; default: all whose files exist.")
    max_seq_length: int | None = option(
        None, "Length S of a sequence, special tokens included; default: the task's own.", least=4,
        most=1 << 14)
    document_context: bool = option(
        False, "Fill up sequences of tagged words with the neighbouring sentences of the document.")
    num_workers: int = option(0, "Processes; 0 for one per core.", least=0, most=4096)

    def options(self, task, long_text: str | None = None) -> RecordOptions:
        """Returns the `RecordOptions` for a task; see them for `long_text`."""
        flags.check(self)
        return RecordOptions(task.defaults.max_seq_length if self.max_seq_length is None else
                             self.max_seq_length, self.do_lower_case, self.document_context,
                             long_text=long_text)


def main(task_flags: TaskFlags, job: FinetuningDataFlags) -> list[dict]:
    """Makes the records of all splits and returns their manifests; nothing is written if any file
    is bad."""
    task = task_flags.read_task()
    options = job.options(task, task_flags.long_text)
    tokenizer = open_tokenizer(job.vocab_file, job.do_lower_case)
    if options.long_text:
        task.kind.check_options({"long_text": options.long_text}, options.max_seq_length, tokenizer)
    splits = [SplitRecords(source, options, tokenizer, job.output_dir)
              for source in task_flags.find_sources(task, job.splits)]
    make_folder(job.output_dir, "output_dir")
    flags.keep(job, job.output_dir)
    manifests = []
    for split in splits:
        record, was_there = split.make(job.num_workers)
        split.report(record, was_there)
        manifests.append(record)
    return manifests


def run():
    flags.run(main, TaskFlags, FinetuningDataFlags)


if __name__ == "__main__":
    run()
