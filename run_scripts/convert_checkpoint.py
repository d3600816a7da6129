"""Converts a model's weights to another format, and accounts for every tensor.

The command recognises the format of --input by its files: a TensorFlow 1 checkpoint of
google-research/bert, a Hugging Face folder with model.safetensors (or shards), a TensorFlow 2
checkpoint of the Model Garden, a preset of keras-hub, a training checkpoint of
bert-run-pretraining, or model.keras.

Example:
    bert-convert-checkpoint --input=uncased_L-12_H-768_A-12 --output=hf --output_format=huggingface
"""

import dataclasses
import functools
import os
from typing import Any

from bert_tf import checkpoints, flags
from bert_tf.checkpoints import names
from bert_tf.config import ACTIVATIONS
from bert_tf.errors import InputError
from bert_tf.files import absolute, fetched, read_json
from bert_tf.flags import REQUIRED, option
from bert_tf.heads import HEADS
from bert_tf.model_card import write_card
from bert_tf.opening import folder_of, task_of_labels
from bert_tf.tasks.saved_task import SavedTask
from run_scripts import commands

_FORMATS = tuple(name for name, form in checkpoints.FORMATS.items() if form.writable)
_CLASSIFIERS = tuple(head.name for head in HEADS.values() if head.is_classifier)
_HEADS = ("pooler", *HEADS)
_NOT_IN_TRANSFORMERS = ("neobert",)     # whose folders that library opens by the original's code


@dataclasses.dataclass
class ConvertFlags:
    """Model to convert, and its new format."""

    input: str = option(REQUIRED, "The folder of a checkpoint, or the checkpoint in it.")
    output_format: str = option(REQUIRED, "The format to write.", choices=_FORMATS)
    output: str = option("", "The folder to write; it must be absent or empty.")
    dry_run: bool = option(False, "Check everything and list every tensor, but write nothing.")
    vocab_file: str | None = option(
        None, "The vocabulary to write, if the checkpoint has none or words were added "
        "(bert-build-vocab --init_vocab_file). Added words get new rows.")
    do_lower_case: bool | None = option(
        None, "The tokenizer lower-cases text. Default: as in the checkpoint, or as its vocabulary "
        "suggests.")
    max_position_embeddings: int | None = option(
        None, "Number of positions to keep, if the checkpoint has more.")
    vocab_size: int | None = option(
        None, "Number of rows of the vocabulary to keep, to remove padding.")
    hidden_act: str | None = option(None, "The activation to write, instead of the checkpoint's "
                                          "activation.",
                                    choices=ACTIVATIONS)
    dtype: str | None = option(
        None, "Round all tensors to this type. Default: each tensor keeps its type.",
        choices=("float16", "bfloat16", "float32", "float64"))
    task: str | None = option(None, "The task of the head, if the files do not name it.",
                              choices=_CLASSIFIERS)
    generator: bool = option(False, "Convert the generator of a checkpoint of ELECTRA's "
                             "pre-training, not the model.")
    leave_out: list[str] = option([], f"Heads not to write: {', '.join(_HEADS)}.")


def main(job: ConvertFlags) -> None:
    """Converts and prints the account."""
    if not (job.output or job.dry_run):
        raise InputError("give --output (the folder to write), or --dry_run.")
    changes = checkpoints.Changes(**{
        **{field.name: getattr(job, field.name)
           for field in dataclasses.fields(checkpoints.Changes)},
        "leave_out": tuple(job.leave_out)})
    account = checkpoints.convert(job.input, job.output, job.output_format, changes, job.dry_run,
                                  functools.partial(_finish, job, changes))
    if job.dry_run:
        print(account.listing())
    print(account)
    if not job.dry_run:
        print(f"wrote {job.output}")


def _finish(job, changes, folder, account):
    """Writes the flags, the task and the card beside the model, in the `folder` that is to become
    the output."""
    # A folder for the Hub has the command in its card, without the folders of this disk.
    if job.output_format != "huggingface":
        flags.keep(job, folder)
    snippet: str | None = ""
    config: dict[str, Any] = {}
    name = os.path.basename(absolute(job.output))
    source = folder_of(absolute(fetched(job.input)))
    if job.output_format == "keras":
        _keep_task(job, source, account, folder)
        snippet = None
    elif job.output_format == "huggingface":
        config = read_json(os.path.join(folder, "config.json"))
    if config.get("model_type") in _NOT_IN_TRANSFORMERS:
        snippet = None
    elif config:
        kind = (config.get("architectures") or ["AutoModel"])[0]
        snippet = ("import transformers\n\n"
                   f"model = transformers.{kind}.from_pretrained({name!r})\n"
                   f"tokenizer = transformers.AutoTokenizer.from_pretrained({name!r})")
    # Scores and training data describe the whole, unchanged model only.
    write_card(folder, job.input, flags.command_line("bert-convert-checkpoint", job),
               source="" if changes != checkpoints.Changes() else source,
               name=name, snippet=snippet)


def _keep_task(job, source, account, output):
    saved = SavedTask.read(source) or task_of_labels(source)
    if not saved:
        return
    head, _ = saved.task.kind.head(saved.task, saved.options)
    written = {*map(names.head, account.mapped)} & {*HEADS}
    if written != {name for name in [head] if HEADS[name].shapes}:
        return
    lower = saved.do_lower_case if job.do_lower_case is None else job.do_lower_case
    length = min(saved.max_seq_length, job.max_position_embeddings or saved.max_seq_length)
    dataclasses.replace(saved, do_lower_case=lower, max_seq_length=length).write(output)


if __name__ == "__main__":
    commands.start(__name__)
