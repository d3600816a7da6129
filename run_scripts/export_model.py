"""Exports a model for TensorFlow Serving, ONNX or LiteRT.

    bert-export-model --init_checkpoint=mrpc_model --format=text --output=serving/mrpc

writes `serving/mrpc/1/`, which takes raw strings and runs where only tensorflow and tensorflow_text
are installed. A string with a letter newer than Unicode 13 is an error, because the exported
tokenizer could split it differently from Python's. The formats ids and lite take `input_ids`,
`input_mask` and `segment_ids`; in LiteRT these have the length --max_seq_length. ONNX has Hugging
Face's names and folders, as optimum, transformers.js and fastembed read them.

The task, its labels, the vocabulary and the lengths of a fine-tuned model are read from the files
next to it; for other models, flags give them. --verbosity=1 shows what TensorFlow and the
converters log.
"""

import contextlib
import dataclasses
import json
import os
import re
from typing import Any

from absl import logging

import bert_tf
from bert_tf import checkpoints, export, flags, model_card, training
from bert_tf.checkpoints import names
from bert_tf.checkpoints.conversion import write_around
from bert_tf.checkpoints.names import task_folder, tasks_beside
from bert_tf.checkpoints.weights import variables
from bert_tf.config import T5Config
from bert_tf.errors import InputError, counted
from bert_tf.files import check_file, file_size, make_folder
from bert_tf.flags import REQUIRED, option
from bert_tf.heads import HEADS
from bert_tf.tasks.kinds.span import THRESHOLD
from bert_tf.tasks.kinds.text_to_text import GENERATION
from bert_tf.tasks.named import layout_of
from bert_tf.tasks.task import settle
from bert_tf.tokenization.base import ADDED
from bert_tf.tokenization.encoding import LONG_TEXTS, TRUNCATE
from run_scripts import commands

TASKS = ("encoder", *(head.name for head in HEADS.values() if head.exportable))
FORMATS = ("text", "ids", "onnx", "onnx_int8", "lite", "lite_int8")
# The tasks whose labels have a probability, or a number, each.
_WITHOUT_NAMES = ("multi_label", "regression")
_COUNTED = {name for name, head in HEADS.items() if head.is_labelled} - {"regression"}
_NAMED = _COUNTED - {*_WITHOUT_NAMES}
_OF_WINDOWS = {name for name, head in HEADS.items() if head.reads_windows}
_OF_CHOICES = {name for name, head in HEADS.items() if "C" in head.inputs}
_DEFAULTS = {"max_seq_length": 128, "long_text": TRUNCATE,
             "max_query_length": 64, "max_answer_length": 30, "doc_stride": 128, **GENERATION}
_RUNTIMES = {"text": "TensorFlow Serving", "ids": "TensorFlow Serving", "onnx": "ONNX",
             "lite": "LiteRT"}
# Classes of text models, by the name of the model's head; `TextModel` for all others.
_TEXT_MODELS = {"multiple_choice": "ChoiceModel", "tagging": "TaggerModel",
                "answer_span": "AnswerModel", "masked_lm": "MaskModel"}
# Of text models, by the number of texts that an example has.
_SIGNATURES = {1: "serving_default", 2: "pair"}
# Both runtimes' files are protocol buffers or flatbuffers, which are no larger.
_MOST_BYTES = 1 << 31
# Options of a training that pack texts as no text model does.
_UNLIKE = ("hypothesis_first", "max_qa_length")


@dataclasses.dataclass
class ExportFlags:
    """Model to export, and its form."""

    init_checkpoint: str = option(REQUIRED, "The model: a folder or file of any format that "
                                  "bert-convert-checkpoint reads.")
    output: str = option(
        REQUIRED, "For formats text and ids: the model's folder, which gets a subfolder for the "
        "version. For onnx: a folder in the layout of Hugging Face, or a file .onnx. For lite: the "
        "file.")
    task: str | None = option(
        None, "The model's task. Default: the task that it was fine-tuned for, if a task.json is "
        "beside it, else encoder.", choices=TASKS)
    labels: list[str] = option(
        [], "Names of the labels of classification and tagging, in the order of their ids; models "
        "of the format text return these names. Default: the names in the task.json beside the "
        "model.")
    num_labels: int = option(0, "Number of labels or predicted numbers, if they have no names.",
                             least=0)
    format: str = option(
        "text", "text: a SavedModel that takes raw strings. ids: a SavedModel that takes ids. onnx "
        "and lite: files that take ids. onnx_int8 and lite_int8: the same, "
        "with 8-bit matrices.", choices=FORMATS)
    version: int = option(1, "Version of a SavedModel.", least=0)
    vocab_file: str | None = option(None, "The model's vocab.txt (format text), if it isn't beside "
                                    "the model.")
    do_lower_case: bool | None = option(
        None, "Lower-case the text and drop accents (format text). Default: as the files beside "
        "the model say, else as the vocabulary shows.")
    max_seq_length: int | None = option(
        None, "Maximum tokens (formats text, lite and lite_int8). Default: as in the task.json "
        "beside the model, else 128 or, if that is less, the maximum that the model reads.")
    long_text: str | None = option(
        None, "How the model reads texts longer than --max_seq_length; bert-finetune --helpfull "
        "explains the values. Only for format text, and for classification, regression and "
        "multiple choice. Default: as in the task.json beside the model, else truncate.",
        choices=LONG_TEXTS)
    max_query_length: int | None = option(
        None, "Maximum tokens of a question (task answer_span). Default: as in the task.json, "
        "else 64.", least=1)
    max_answer_length: int | None = option(
        None, "Maximum tokens of an answer (task answer_span). Default: as in the task.json, else "
        "30.", least=1)
    doc_stride: int | None = option(
        None, "Tokens between the starts of two successive windows of a long passage (task "
        "answer_span). Default: as in the task.json, else 128.", least=1)
    max_target_length: int | None = option(
        None, "Maximum tokens of a text that a text-to-text model writes (format ids). Default: as "
        "in the task.json beside the model, else 128.", least=1)
    beams: int | None = option(
        None, "Number of beams in the beam search of a text-to-text model. Default: as in the "
        "task.json, else 1, greedy search.", least=1)

    def check(self, asked: "ExportFlags", generates: bool) -> None:
        """Raises InputError for flags that don't go together, or a flag of `asked`, as the user
        gave them, that changes nothing in this export. `generates`: whether the model writes
        texts."""
        if self.format == "text" and not self.vocab_file:
            raise InputError("--vocab_file, the model's vocabulary, must be given with "
                             "--format=text.")
        if self.labels and (self.task not in _NAMED
                            or self.num_labels not in (0, len(self.labels))):
            raise InputError(f"--labels={','.join(self.labels)} doesn't fit "
                             f"--task={self.task} --num_labels={self.num_labels}.")
        if self.task in _COUNTED and not (self.labels or self.num_labels > 0):
            names = "--labels or " if self.task in _NAMED else ""
            raise InputError(f"{names}--num_labels must be given with --task={self.task}.")
        if self.long_text != TRUNCATE and not (self.format == "text" and self.task in _OF_WINDOWS):
            raise InputError(f"--long_text={self.long_text} is for --format=text and models of "
                             f"classification, regression or multiple choice, not for "
                             f"--format={self.format} --task={self.task}; leave out --long_text.")
        if self.task in _OF_CHOICES and "lite" in self.format:
            raise InputError(f"--format={self.format} takes one sequence per example; export a "
                             f"model of --task={self.task} as text, ids or onnx.")
        flags.check(self)
        head = HEADS.get(self.task)
        answers = self.format == "text" and self.task == "answer_span"
        flags.check_used(
            asked,
            ("version", self.format in ("text", "ids"), "SavedModels"),
            ("num_labels", head and head.is_labelled, "labels and numbers"),
            *((name, answers, "--format=text and models that answer questions")
              for name in ("max_query_length", "max_answer_length", "doc_stride")),
            *((name, generates and self.format == "ids", "--format=ids and models that write texts")
              for name in ("max_target_length", "beams")))


def resolve(job: ExportFlags, model: Any) -> ExportFlags:
    """The flags, completed from the files of a `bert_tf.opening.Model`, else with defaults."""
    most = _DEFAULTS["max_seq_length"]
    longest = getattr(model.config, "max_position_embeddings", None) or most
    known = {"task": "encoder", **_DEFAULTS, "max_seq_length": min(most, longest)}
    if model.saved:
        known |= _of_saved_task(job, model)
    elif job.task is None:
        _name_heads(model)
    known["vocab_file"] = model.weights and model.weights.vocab_file
    values = {**vars(job), **{name: getattr(job, name) or None
                              for name in ("labels", "num_labels", "vocab_file")}}
    return ExportFlags(**settle(values, known, {"labels": [], "num_labels": 0}))


def _of_saved_task(job, model):
    saved, is_text = model.saved, job.format == "text"
    name, head = saved.task.kind.head(saved.task, saved.options)
    is_wanted = job.task in (None, name)
    if HEADS[name].task and name not in TASKS and job.task is None:
        print(f"note: only the encoder is exported; the head of {model.folder}, {name}, can't "
              "be exported.", flush=True)
    elif is_text and is_wanted:
        _check_texts(saved, head, model.folder)
    values = {**saved.options, "max_seq_length": saved.max_seq_length,
              "do_lower_case": saved.do_lower_case}
    is_task = name in TASKS and is_wanted
    if not (is_task and is_text):
        values["long_text"] = TRUNCATE
    if is_task:
        values["task"] = name
        if name in _NAMED and not (job.labels or job.num_labels):
            values["labels"] = list(saved.task.labels)
        if not job.labels:
            values["num_labels"] = head.get("num_labels")
    return values


def _name_heads(model):
    weights = model.weights
    if tasks := tasks_beside(model.folder):
        print("note: only the encoder is exported. To export a task, name its folder: "
              f"{', '.join(task_folder(model.folder, task) for task in tasks)}.", flush=True)
        return
    for name in getattr(weights, "heads", ()):
        if name in TASKS and name != "masked_lm":
            labels = ""
            if name in _NAMED and weights.labels:
                labels = f" --labels={','.join(weights.labels)}"
            elif name in _COUNTED:
                labels = f" --num_labels={len(weights.labels) or 'NUMBER'}"
            print(f"note: only the encoder is exported; {weights.source} has a head too: "
                  f"--task={name}{labels}", flush=True)


def _check_texts(saved, head, folder):
    if head.get("orders", 1) > 1:
        raise InputError(f"--format=text: {folder} reads each pair of texts in both orders, and an "
                         "exported text model reads one; give --format=ids.")
    unlike = [f"--{name}" for name in _UNLIKE if saved.options.get(name)
              and (name != "hypothesis_first" or saved.task.kind.may_turn_pairs)]
    unlike += ["--squad_style=cmrc"] * (saved.options.get("squad_style") == "cmrc")
    if unlike:
        raise InputError(f"--format=text: {folder} was trained with {unlike[0]}, and an exported "
                         "text model reads texts without it; give --format=ids.")
    if saved.num_texts in _SIGNATURES:
        texts = counted(saved.num_texts, "text")
        print(f"note: the model was trained on examples of {texts}; call its signature "
              f"{_SIGNATURES[saved.num_texts]}", flush=True)


def build(job: ExportFlags, model: Any):
    """Builds the encoder, or the Learner of the task, with every weight from the checkpoint."""
    head, saved = HEADS.get(job.task), model.saved
    if job.task == "masked_lm":
        learner = bert_tf.fill_mask.build(model)
        return training.Learner(learner.encoder, learner.objectives[:1])
    if not head:
        return model.learner(heads=()).encoder
    if saved:
        name, options = saved.task.kind.head(saved.task, saved.options)
    else:       # as a file of ours has them; its head may have the name of one of several tasks
        name, options = job.task, dict(model.heads).get(head.objective, {})
    if name != job.task:
        options = {}
    options = {**options, "name": job.task}
    if head.is_labelled and (job.labels or job.num_labels):
        options["num_labels"] = len(job.labels) or job.num_labels
    return model.learner(heads=[(head.objective, options)])


def make_module(network, job: ExportFlags, model: Any):
    """Makes the tf.Module to export."""
    encoder = getattr(network, "encoder", network)
    if job.format == "ids" and hasattr(encoder, "generate"):
        options = getattr(model.saved, "options", {})
        return export.GenerationModel(network, job.max_target_length, job.beams,
                                      options.get("alpha", GENERATION["alpha"]))
    left_out = ()       # outputs of an encoder whose weights its checkpoint lacks
    if model.weights and "pooler" not in model.weights.heads and not hasattr(
            network, "objectives") and "pooler" in map(names.head, variables(network)):
        print(f"note: pooled_output is left out, since {model.weights.source} has no pooler",
              flush=True)
        left_out = ("pooled_output",)
    if job.format != "text":
        return export.IdsModel(network, job.max_seq_length if "lite" in job.format else None,
                               left_out)
    if job.task == "conditional_span":
        raise InputError("--format=text: the exported model can't search answers in beams; give "
                         "--format=ids, or use bert_tf.Predictor.")
    options, layout, own = {}, None, {}
    if model.saved:
        own = model.saved.options
        if job.task != "encoder":
            layout = layout_of(model.saved.task.name)
    if job.task == "answer_span":
        options = {name: getattr(job, name)
                   for name in ("max_query_length", "max_answer_length", "doc_stride")}
        if "n_best_size" in own:
            options["n_best_size"] = own["n_best_size"]
        if own.get("version_2_with_negative"):
            options[THRESHOLD] = own.get(THRESHOLD, 0.0)
    tokenizer = dataclasses.replace(model, vocab_file=job.vocab_file,
                                    do_lower_case=job.do_lower_case).tokenizer
    if tokenizer.name != "wordpiece":
        raise InputError(f"--format=text can only hold a WordPiece tokenizer, but {job.vocab_file} "
                         f"is {tokenizer.name}; give --format=ids.")
    if ADDED in tokenizer.settings:
        raise InputError(f"--format=text can't find the tokens that were added to {job.vocab_file} "
                         "in texts; give --format=ids, or use bert_tf.Predictor.")
    model.config.check_reads_texts(job.init_checkpoint)
    kind = getattr(export, _TEXT_MODELS.get(job.task, "TextModel"))
    return kind(network, tokenizer.vocabulary, do_lower_case=tokenizer.do_lower_case,
                max_seq_length=job.max_seq_length, labels=job.labels,
                tokenizer_settings=tokenizer.settings, long_text=job.long_text,
                line_break=getattr(layout, "line_break", ""), left_out=left_out, **options)


def write(asked: ExportFlags, job: ExportFlags, model: Any) -> str:
    """Builds the model, writes the export, the flags of the user and the card, and returns a line
    that reports it."""
    module = make_module(build(job, model), job, model)
    path = _file(job)
    make_folder(job.output if path is None else os.path.dirname(path), "output")
    if path is None:
        def finish(folder):       # the model's own folder may hold another model
            flags.keep(asked, folder)
            _write_card(asked, job, model, folder)

        version = export.save_model(module, job.output, job.version, finish)
        return f"{version}: signatures {', '.join(module.functions)}"
    if "onnx" in job.format:
        export.save_onnx(module, path, job.format == "onnx_int8", _metadata(job, model))
        if path != job.output:
            changes = checkpoints.Changes(vocab_file=job.vocab_file,
                                          do_lower_case=job.do_lower_case)
            try:
                write_around(job.output, job.init_checkpoint, changes, job.labels)
            except InputError as error:
                print(f"note: {job.output} gets no configuration and no tokenizer: {error}",
                      flush=True)
    else:
        export.save_lite(module, path, int8=job.format == "lite_int8")
        if not path.endswith(".tflite"):
            print(f"note: most tools expect the extension .tflite; rename {path}", flush=True)
    flags.keep(asked, os.path.dirname(path), f"{os.path.basename(path)}.")
    _write_card(asked, job, model, job.output)
    return f"{path}: {file_size(path):,} bytes"


def _file(job):
    """The file that an export writes; None for a SavedModel. The names in a folder of ONNX are
    those of transformers.js."""
    if job.format in ("text", "ids"):
        return None
    if "lite" in job.format or job.output.endswith(".onnx"):
        return job.output
    return os.path.join(job.output, "onnx", {
        "onnx": "model.onnx", "onnx_int8": "model_quantized.onnx"}[job.format])


def _metadata(job, model):
    if model.saved:
        length = model.saved.max_seq_length
    else:
        length = getattr(model.config, "max_position_embeddings", None)
    labels = job.labels
    if job.task == "multi_label":       # no flag names them
        labels = getattr(model.saved, "task", model.weights).labels
    values = {"task": job.task, "labels": labels and json.dumps(list(labels)),
              "max_seq_length": length and str(length)}
    return {name: value for name, value in values.items() if value}


_TEXTS = {"answer_span": 'question=["Who wrote it?"], passage=["Jane Austen wrote Emma."]',
          "multiple_choice": 'context=["It rains."], choices=[["I am wet.", "I am dry."]]',
          "masked_lm": 'text=["The [MASK] is open."]'}


def _write_card(asked, job, model, version):
    """Writes the card of an export: README.md in the folder of a SavedModel, or in `version`, the
    folder of its version, where the folder holds another model; NAME.md for a file."""
    folder, file = job.output, model_card.NAME
    if _file(job) == job.output:
        folder = os.path.dirname(job.output) or os.curdir
        file = f"{os.path.basename(job.output)}.md"
    if file == model_card.NAME and checkpoints.weights_at(folder):
        folder = version
    name = os.path.basename(job.output.rstrip("/"))
    code = ""
    if job.format == "text":
        signature, texts = "serving_default", _TEXTS.get(job.task, 'text=["A text."]')
        if model.saved and model.saved.num_texts == 2 and job.task not in _TEXTS:
            signature, texts = "pair", 'text_a=["A text."], text_b=["Another."]'
        tensors = re.sub(r"=(\[.*?\])(?=, \w+=|$)", r"=tf.constant(\1)", texts)
        code = ("import tensorflow as tf, tensorflow_text\n\n"
                f'served = tf.saved_model.load("{name}/{job.version}").signatures["{signature}"]\n'
                f"print(served({tensors}))")
    saved = model.saved
    scored: str | None = "Measured with the model before it was exported."
    if saved:
        task, options, length = saved.task, dict(saved.options), saved.max_seq_length
        is_other = task.kind.head(task, options)[0] != job.task
        if is_other or job.labels not in ([], list(task.labels)):
            task = dataclasses.replace(task, labels=tuple(job.labels), label_names=())
        if job.format == "text" or "lite" in job.format:
            length = job.max_seq_length
        if job.format == "text" and job.long_text != options.get("long_text", TRUNCATE):
            options["long_text"] = job.long_text
        saved = dataclasses.replace(saved, task=task, options=options, max_seq_length=length)
        if is_other:
            scored = None
    model_card.write_card(
        folder, job.init_checkpoint, flags.command_line("bert-export-model", asked),
        source=model.folder or job.init_checkpoint, name=name, snippet=code, file=file,
        note=f"It is exported for {_RUNTIMES[job.format.partition('_')[0]]}: task `{job.task}`, "
        f"format `{job.format}`.", saved=saved, scored=scored)


def main(job: ExportFlags) -> None:
    """Checks the flags, then reads the model and writes the export."""
    asked, path = job, _file(job)
    if path is None:
        export.check_version(job.output, job.version)
    elif path == job.output:
        check_file(job.output, "output")
    elif "onnx" in job.format and checkpoints.weights_at(job.output):
        raise InputError(f"--output: {job.output} holds a model; give another folder.")
    if "onnx" in job.format:
        export.check_onnx(int8=job.format == "onnx_int8")
    open_model = bert_tf.open_model
    if job.task == "masked_lm":
        open_model = bert_tf.fill_mask.open_masked_lm
    model = open_model(job.init_checkpoint)
    job = resolve(job, model)
    job.check(asked, isinstance(model.config, T5Config))
    size = 4 * model.config.num_weights
    if path is not None and size >= _MOST_BYTES:
        raise InputError(f"--format={job.format} holds at most 2 GB of float32 weights, and "
                         f"{job.init_checkpoint} has {size / 1e9:.1f} GB; give --format=ids.")
    is_verbose = logging.get_verbosity() >= logging.DEBUG
    with contextlib.nullcontext() if is_verbose else export.quiet():
        line = write(asked, job, model)
    print(line)


if __name__ == "__main__":
    commands.start(__name__)
