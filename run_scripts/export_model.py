"""Exports a model for TensorFlow Serving, ONNX or LiteRT.

    bert-export-model --init_checkpoint=mrpc_model --task=classification --labels=no,yes \\
        --vocab_file=mrpc_model/vocab.txt --format=text --output=serving/mrpc

writes `serving/mrpc/1/`, which takes raw strings and runs where only tensorflow and tensorflow_text
are installed. A string that the tokenizer in the graph could read otherwise than Python's (a letter
younger than Unicode 13) is refused with an error. The other formats take `input_ids`, `input_mask`
and `segment_ids`; those of LiteRT are of --max_seq_length.
"""

import dataclasses
import os

from bert_tf import flags
from bert_tf.errors import InputError
from bert_tf.files import make_folder
from bert_tf.flags import REQUIRED, option
from bert_tf.heads import HEADS

TASKS = ("encoder", *(head.name for head in HEADS.values() if head.exportable))
# The tasks whose labels have a probability, or a number, each.
_WITHOUT_NAMES = ("multi_label", "regression")
FORMATS = ("text", "ids", "onnx", "lite", "lite_int8")


@dataclasses.dataclass
class Job:
    """The flags."""

    init_checkpoint: str = option(REQUIRED, "The model: a folder or file of any format that "
                                  "convert_checkpoint reads.")
    output: str = option(REQUIRED, "Of the formats text and ids, the model's folder, in which a "
                         "folder of the version is made; of the others, the file.")
    task: str = option("encoder", "What the model does.", choices=TASKS)
    labels: list[str] = option([], "Names of the labels of classification and tagging, in the "
                               "order of their ids; text models answer with them.")
    num_labels: int = option(0, "How many labels or numbers there are, where they have no names.")
    format: str = option("text", "text and ids: a SavedModel that takes raw strings, or ids; "
                         "onnx; lite; lite_int8 with matrices in 8 bits.", choices=FORMATS)
    version: int = option(1, "Version of a SavedModel.")
    vocab_file: str = option("", "The model's vocab.txt (format text).")
    do_lower_case: bool = option(True, "Lower-case the text and drop accents (format text).")
    max_seq_length: int = option(128, "Most tokens (formats text, lite and lite_int8).")
    max_query_length: int = option(64, "Most tokens of a question (task answer_span).")
    max_answer_length: int = option(30, "Most tokens of an answer (task answer_span).")

    def check(self):
        """Raises InputError for flags that don't go together."""
        if self.format == "text" and not self.vocab_file:
            raise InputError("--vocab_file must be given with --format=text: the model's "
                             "vocab.txt.")
        head = HEADS.get(self.task)
        is_labelled = head is not None and head.is_labelled
        has_labels = is_labelled and self.task not in _WITHOUT_NAMES
        if self.labels and (not has_labels or self.num_labels not in (0, len(self.labels))):
            raise InputError(f"--labels names {len(self.labels)} labels, which don't fit "
                             f"--task={self.task} --num_labels={self.num_labels}.")
        if has_labels and not (self.labels or self.num_labels > 0):
            raise InputError(f"--labels or --num_labels must be given with --task={self.task}.")
        if is_labelled and self.task != "regression" and not (self.labels or self.num_labels > 0):
            raise InputError(f"--num_labels must be given with --task={self.task}.")
        if self.version < 0:
            raise InputError(f"--version is {self.version}; it must be 0 or more.")


def read_model(job):
    """The encoder, or the Learner of the task, with every weight from the checkpoint."""
    import bert_tf  # pylint: disable=import-outside-toplevel
    from bert_tf import checkpoints, networks  # pylint: disable=import-outside-toplevel

    head = HEADS.get(job.task)
    config = checkpoints.read_config(job.init_checkpoint)
    model = networks.build(config)
    if head:
        num_labels = len(job.labels) or job.num_labels
        options = {"num_labels": num_labels} if head.is_labelled and num_labels else {}
        model = bert_tf.Learner(model, [getattr(bert_tf, head.objective)(config, **options)])
    account = checkpoints.load(job.init_checkpoint, model)
    if account.missing:
        raise InputError(f"{account.source} has no {', '.join(account.missing)}; give a model "
                         f"that was trained for --task={job.task}.")
    return model


def make_module(model, job):
    """The tf.Module to export."""
    # pylint: disable=import-outside-toplevel
    from bert_tf.export import ids_model, text_model
    from bert_tf.tokenization.base import open_tokenizer
    from bert_tf.tokenization.vocabulary import check_fits

    if job.format != "text":
        return ids_model.IdsModel(model, job.max_seq_length if "lite" in job.format else None)
    kind = {"tagging": text_model.TaggerModel, "answer_span": text_model.AnswerModel}.get(
        job.task, text_model.TextModel)
    options = {"max_query_length": job.max_query_length,
               "max_answer_length": job.max_answer_length} if job.task == "answer_span" else {}
    tokenizer = open_tokenizer(job.vocab_file, job.do_lower_case)
    if tokenizer.name != "wordpiece":
        raise InputError(f"--format=text: a tokenizer inside the model exists for WordPiece only, "
                         f"{job.vocab_file} is {tokenizer.name}; give --format=ids.")
    check_fits(tokenizer.vocabulary, getattr(model, "encoder", model).config.vocab_size,
               f"--vocab_file={job.vocab_file}")
    return kind(model, tokenizer.vocabulary, do_lower_case=tokenizer.do_lower_case,
                max_seq_length=job.max_seq_length, labels=job.labels, **options)


def main(job):
    """Reads the model and writes the export.

    Raises:
        InputError: a flag, the vocabulary or the checkpoint can't be used.
    """
    job.check()
    is_folder = job.format in ("text", "ids")
    make_folder(job.output if is_folder else os.path.dirname(job.output), "output")
    module = make_module(read_model(job), job)
    from bert_tf.export import saving  # pylint: disable=import-outside-toplevel

    if is_folder:
        print(f"{saving.save_model(module, job.output, job.version)}: signatures "
              f"{', '.join(module.functions)}")
        return
    if job.format == "onnx":
        saving.save_onnx(module, job.output)
    else:
        saving.save_lite(module, job.output, int8=job.format == "lite_int8")
    print(f"{job.output}: {os.path.getsize(job.output):,} bytes")


def run():
    """The command bert-export-model."""
    flags.run(main, Job)


if __name__ == "__main__":
    run()
