"""Writes the records of a fine-tuning task: TFRecords, a manifest for each split.

The files are the official ones of a named task, or your own. A file of records is complete or
absent, and it is the same for any number of workers. Run the same command again to resume a killed
job.

Example:
    bert-finetune --records_only --task=mrpc --data_dir=glue/MRPC --vocab_file=vocab.txt \\
        --max_seq_length=128 --output_dir=/tmp/mrpc
    bert-finetune --records_only --train_file=mail.csv --text_a_column=body \\
        --label_column=folder --vocab_file=vocab.txt --output_dir=/tmp/mail
"""

import dataclasses

from bert_tf import flags
from bert_tf.data.records.shards import Unfinished
from bert_tf.errors import InputError
from bert_tf.files import make_folder
from bert_tf.flags import REQUIRED, option
from bert_tf.tasks.named import find_questions
from bert_tf.tasks.split_records import RecordOptions, SplitRecords
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.tokenization import default_case, open_tokenizer
from data_prep.runners import RunnerFlags

# Flags of a task that say how texts are cut.
_CUTTING = ("max_qa_length", "carry_choices", "long_text")


@dataclasses.dataclass
class FinetuningDataFlags:
    """Records that are made of the task's files."""

    output_dir: str = option(REQUIRED, "Folder of the records: train.tfrecord, dev.tfrecord ...")
    vocab_file: str = option(REQUIRED, "The vocabulary of the tokenizer.")
    records_only: bool = option(True, "Make only the records; nothing is trained.")
    do_lower_case: bool | None = option(
        None, "Lower-case the text. Default: as in fine-tuning, as the vocabulary's tokens show, "
        "else as its tokenizer_config.json says.")
    splits: list[str] = option([], "Splits to make. Default: all splits whose files exist.")
    max_seq_length: int | None = option(
        None, "Maximum tokens of a sequence, special tokens included. Default: the task's default.",
        least=4, most=1 << 14)
    document_context: bool = option(
        False, "Fill sequences of tagged words up with neighbouring sentences of the document.")
    num_workers: int = option(0, "Number of processes; 0: one per core.", least=0, most=4096)

    def options(self, task, task_flags: TaskFlags, tokenizer) -> RecordOptions:
        """Returns the `RecordOptions` for a task; InputError if they do not go together."""
        flags.check(self)
        if self.document_context and task.kind.name != "tagging":
            raise InputError("--document_context is for tagging; leave the flag out.")
        size = self.max_seq_length
        if size is None:
            size = task.defaults.max_seq_length
        cutting = {name: value for name in _CUTTING
                   if (value := getattr(task_flags, name)) is not None}
        if cutting:
            task.kind.options(cutting, {}, False, "")
            task.kind.check_options(cutting, size, tokenizer)
        return RecordOptions(size, tokenizer.do_lower_case, self.document_context, **cutting)


def main(task_flags: TaskFlags, job: FinetuningDataFlags, runner: RunnerFlags | None = None
         ) -> list[dict]:
    """Makes the records of all splits and returns the manifests of those that are finished; nothing
    is written if any file is bad."""
    _check_task(dataclasses.asdict(task_flags))
    made_by = (runner or RunnerFlags()).open()
    task = task_flags.read_task()
    lower = default_case(job.vocab_file) if job.do_lower_case is None else job.do_lower_case
    tokenizer = open_tokenizer(job.vocab_file, lower)
    options = job.options(task, task_flags, tokenizer)
    splits = [SplitRecords(source, options, tokenizer, job.output_dir)
              for source in task_flags.find_sources(task, job.splits)]
    make_folder(job.output_dir, "output_dir")
    flags.keep(job, job.output_dir, without=RunnerFlags)
    manifests = []
    for split in splits:
        try:
            record, was_there = split.make(job.num_workers, runner=made_by)
        except Unfinished as found:
            print(f"{split.name}: {found}")
            continue
        split.report(record, was_there)
        manifests.append(record)
    return manifests


def _check_task(given):
    if find_questions(given.get("task", "")):
        raise InputError(f"--task={given['task']}: --records_only is not for questions, whose "
                         "records bert-finetune makes before it trains; leave out --records_only.")
    return ()


def run():
    flags.run(main, TaskFlags, FinetuningDataFlags, RunnerFlags, adds=_check_task)


if __name__ == "__main__":
    run()
