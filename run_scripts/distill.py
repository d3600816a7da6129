"""Trains a small model, the student, on the answers of fine-tuned teachers.

The teachers label the task's training file and further texts once; the records in --output_dir keep
their answers. The student learns from these answers, and from gold labels where there are any.
--recipe names a published method; flags change its loss weights, temperature and form of the loss.
--output_dir gets the same files as from bert-finetune: the student is a model like any other. Run
the same command again to resume.

--student is a configuration, such as {"vocab_size": 30522, "hidden_size": 256, "num_hidden_layers":
4, "num_attention_heads": 4, "intermediate_size": 1024}, which starts from random weights; or the
folder of a model, from which --student_layers takes some layers.

With --recipe=theseus the layers of a fine-tuned model are replaced instead, and other flags apply:
bert-distill --recipe=theseus --help.

Example:
    bert-distill --teacher=/tmp/mrpc --student=uncased_L-12_H-768_A-12 --student_layers=0,1,2 \\
        --recipe=pkd --task=MRPC --data_dir=glue/MRPC --output_dir=/tmp/mrpc_small
    bert-distill --teacher=/tmp/a,/tmp/b,/tmp/c --student=small.json --task=STS-B \\
        --data_dir=glue/STS-B --transfer_file=sentences.txt --output_dir=/tmp/sts_small
"""

import contextlib
import dataclasses
import functools
import os
from typing import Any

from bert_tf import checkpoints, flags
from bert_tf.config import PRESETS
from bert_tf.errors import InputError
from bert_tf.files import check_input, exists, is_file, is_folder, is_library_name
from bert_tf.finetuning.model import ModelFlags
from bert_tf.flags import only, option
from bert_tf.recipes.distillation import (
    AUGMENTATIONS,
    DISTILLATIONS,
    FORMS,
    Distillation,
    find_distillation,
)
from bert_tf.tasks.kinds.span import THRESHOLD
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.task_flags import SquadFlags, TaskFlags, check_kept, check_long_text
from bert_tf.tokenization import find_vocabulary
from bert_tf.training.settings import FineTuneSettings
from run_scripts import commands

# The options for reading texts that student and teacher share.
_SHARED = ("hypothesis_first", "document_context", "max_qa_length", "carry_choices", "label_scale",
           "label_mean")


# An `option` for the recipes with terms of an objective, or with an option.
_of_logits, _of_patience, _of_phases = (only("recipe", *(
    row.name for row in DISTILLATIONS.values()
    if any(key in (term.objective, *term.options) for term in row.terms)))
    for key in ("SoftTargets", "Patience", "stacked"))


@dataclasses.dataclass
class DistillFlags:
    """Teachers, student, and the way of distillation."""

    teacher: list[str] = option(
        flags.REQUIRED, "Folder of a fine-tuned model; or several folders, whose predictions are "
        "averaged.")
    student: str = option(
        flags.REQUIRED, "JSON of the student's sizes, or the folder of a model whose weights the "
        "student starts from.")
    student_layers: list[str] = option(
        [], "Layers that the student takes from the model in --student, from 0; default: all.",
        items=int, least=0, rare=True)
    recipe: str = option(
        "soft_labels", "What the student learns from the teacher. " + " ".join(
            f"{row.name}: {row.paper}." for row in DISTILLATIONS.values()),
        choices=tuple(DISTILLATIONS))
    soft_loss: str | None = _of_logits(
        None, "How logits are compared. kl: the divergence from the teacher's distribution. "
        "cross_entropy: the cross-entropy of both distributions. mse: mean squared difference of "
        "the logits. log_mse: the form of nlp-architect, which contains a mistake. ns_kl, sym_kl, "
        "ns_sym_kl, js, hl: MT-DNN's NsKl, SymKl, NsSymKl, JS and HL criteria. Default: as in "
        "--recipe. In regression, always mse.", choices=FORMS, rare=True)
    distill_temperature: float | None = _of_logits(
        None, "Divide the logits by this temperature before they are compared (default: as in "
        "--recipe).", above=0)
    soft_weight: float | None = _of_logits(
        None, "Weight of the loss on soft targets (default: as in --recipe).", least=0, rare=True)
    gold_weight: float | None = option(
        None, "Weight of the loss on gold labels (default: as in --recipe).", least=0, rare=True)
    patience_weight: float | None = _of_patience(
        None, "Weight of the loss on the layers' [CLS] vectors (default: 100).", least=0)
    patience_layers: str | None = _of_patience(
        None, "Teacher layers with which the student's layers, except its top layer, are compared. "
        "skip: evenly spaced. last: the last layers below the top layer. Or numbers from 0, "
        "separated by commas. Default: skip.")
    phase_steps: int = _of_phases(
        0, "Steps after which the next layer starts to learn; 0: all layers learn at all steps.",
        least=0)
    normalize_patience: bool = _of_patience(
        True, "Scale the [CLS] vectors to the length 1 before they are compared.")
    transfer_file: list[str] = option(
        [], "Texts without labels, for the teachers to label: tables with the columns of the "
        "training file, or text with one sentence per line. For pairs, each line is paired with "
        "the next.")
    augmentation: str | None = option(
        None, "Further texts, made from the training file. random_words: copies in which words are "
        "masked, or replaced by words of the same part of speech (arXiv:1903.12136). masked_words: "
        "copies in which words are replaced by predictions of --masked_lm (arXiv:1909.10351). "
        "Default: as in --recipe.", choices=AUGMENTATIONS)
    masked_lm: str = only("augmentation", "masked_words")(
        "", "Folder of a pre-trained model with its masked LM.")
    word_vectors: str = option(
        "", "File of word vectors in the text format of word2vec or GloVe, to initialise the "
        "embeddings of a BiLSTM student, which are trained further. Tokens that the file lacks, "
        "such as pieces with ##, start from random vectors.", rare=True)
    glove_embs: str = only("augmentation", "masked_words")(
        "", "A file of word vectors, such as GloVe's, to replace words of several pieces; without "
        "it, such words stay.")
    augmentation_copies: int = only("augmentation", "random_words", "masked_words")(
        0, "Copies of each example. 0: with random_words 20 for a text and 10 for a pair, as in "
        "arXiv:1903.12136; with masked_words 30 for each text.", least=0)
    ngram_prob: float = only("augmentation", "random_words")(
        0.25, "Probability of cutting a copy to a window of 1 to 5 words; 0 in the code of "
        "arXiv:1903.12136.", least=0, most=1)
    pos_tagger: str = only("augmentation", "random_words")(
        "", "Folder of a part-of-speech model from bert-finetune, which tells --augmentation which "
        "words can replace a word; without it, any word can replace any other.")
    train_examples: bool = option(True, "Also learn from the task's training file.", rare=True)
    do_eval: bool = option(True, "Score the student, on the files that have labels.")
    do_predict: bool = option(False, "Predict the test files.")
    vocab_file: str = option(
        "", "The student's vocabulary; default: the file beside --student, else the teacher's.")
    do_lower_case: bool | None = option(
        None, "Lower-case the student's text. Default: as for the teacher.", rare=True)
    max_seq_length: int = option(
        0, "Maximum tokens of the student's sequences; 0: as in the teacher.")
    records_dir: str = option(
        "", "Folder of the labelled records; default: records in --output_dir. Students with the "
        "same tokenizer may share it.", rare=True)

    def row(self) -> Distillation:
        """Returns the way of distillation, with the weights of the flags."""
        row = find_distillation(self.recipe).with_soft(
            self.soft_weight, self.gold_weight, form=self.soft_loss,
            temperature=self.distill_temperature).with_phases(self.phase_steps)
        way = self.augmentation or row.augmentation
        flags.check(dataclasses.replace(self, augmentation=way))
        return dataclasses.replace(row, augmentation=way, terms=tuple(map(self._term, row.terms)))

    def _term(self, term):
        if term.objective != "Patience":
            return term
        if self.patience_weight is not None:
            term = dataclasses.replace(term, weight=self.patience_weight)
        return dataclasses.replace(term, options={
            "layers": self.patience_layers or term.options["layers"],
            "normalizes": self.normalize_patience})


def _long_text(task_flags: TaskFlags, saved: SavedTask, begun: SavedTask | None) -> str | None:
    """How the student reads long texts: as the flag says, the run that was begun, or the
    teacher."""
    return task_flags.long_text or (begun or saved).options.get("long_text")


def _task_flags(task_flags: TaskFlags, saved: SavedTask) -> TaskFlags | SquadFlags:
    kind = saved.task.kind
    if kind.name == "span":
        if others := [name for name in flags.changed(task_flags)
                      if name not in ("data_dir", "train_file", "dev_file", "test_file")]:
            raise InputError(f"--{others[0]} is not for question answering, which --teacher was "
                             "trained for; leave it out.")
        if task_flags.dev_file and task_flags.test_file:
            raise InputError("--test_file: a student that answers questions has one file to score "
                             "and to predict, which --dev_file names; leave out one of the two.")
        path = functools.partial(os.path.join, task_flags.data_dir)
        train, dev = (name and path(name) for name in (
            task_flags.train_file, task_flags.dev_file or task_flags.test_file))
        return SquadFlags(train_file=train, predict_file=dev)
    if task_flags.task:
        return task_flags
    return dataclasses.replace(
        task_flags, task_kind=task_flags.task_kind or kind.name,
        labels=task_flags.labels or list(saved.task.labels) * kind.has_labels)


def _model_flags(job: DistillFlags, saved: SavedTask, settings: FineTuneSettings) -> ModelFlags:
    path, config_file = job.student, ""
    if is_file(job.student) and job.student.endswith(".json"):
        path, config_file = "", job.student
    if job.student_layers:
        if job.student.endswith(".json"):
            raise InputError("--student_layers takes layers from a model; name the model's folder "
                             "as --student, or leave the flag out.")
        from bert_tf.compression import students
        from bert_tf.training import trials
        path = students.write_start(job.student, job.student_layers,
                                    os.path.join(settings.output_dir, "student"),
                                    has_begun=trials.begun(settings) is not None)
    vocabulary = job.vocab_file
    if not vocabulary and not (path and find_vocabulary(path)):
        vocabulary = find_vocabulary(job.teacher[0]) or ""
    lower = saved.do_lower_case if job.do_lower_case is None else job.do_lower_case
    return ModelFlags(
        do_train=True, do_eval=job.do_eval and job.row().trains_head,
        do_predict=job.do_predict, init_checkpoint=path,
        bert_config_file=config_file, vocab_file=vocabulary,
        do_lower_case=lower, max_seq_length=job.max_seq_length or saved.max_seq_length,
        records_dir=job.records_dir, keep_head=False)


def main(job: DistillFlags, task_flags: TaskFlags, settings: FineTuneSettings) -> None:
    """Checks everything, then labels, trains, scores and predicts."""
    row, saved = job.row(), SavedTask.require(job.teacher[0], "teacher")
    if saved.task.kind.name == "text_to_text":
        raise InputError(f"--teacher: {job.teacher[0]} is a model for {saved.task.kind.title}, "
                         "which can't be distilled; name another model.")
    if job.student in PRESETS and not exists(job.student):
        raise InputError(f"--student={job.student} names a size, not a file; write a JSON file of "
                         "sizes, as bert-distill --help shows one, and name this file.")
    if job.do_predict and not row.trains_head:
        raise InputError(f"--recipe={row.name} trains layers, but not the head that predicts; "
                         "leave out --do_predict, and give the result as --student to a recipe "
                         "that learns answers, such as tinybert.")
    from bert_tf.finetuning.run import open_run
    from bert_tf.opening import check_apart, open_model
    from bert_tf.training import adversarial
    from run_scripts.finetune import carry_out
    from run_scripts.finetuning import alone
    from run_scripts.finetuning.teaching import Teaching

    for path in job.teacher:
        check_apart("teacher", path, settings.output_dir)
    if job.student_layers:
        check_apart("student", job.student, settings.output_dir)
    adversarial.check_gold(settings, [row])
    teaching = Teaching(job, row, saved.task)
    if any(term.objective == "Patience" for term in row.terms):     # before a student is written
        if job.student.endswith(".json"):
            config = checkpoints.read_config_file(job.student)
        else:
            config = open_model(job.student).config
        teaching.compared_layers(config, len(job.student_layers) or config.depth)
    check_long_text(task_flags.long_text, saved.task)
    if settings.label_smoothing and not row.gold_weight:
        raise InputError("--label_smoothing is for gold labels, from which this student does not "
                         "learn; give --gold_weight too, or leave the flag out.")
    files = _task_flags(task_flags, saved)
    check_kept(task_flags, saved.options)
    for path in job.transfer_file:
        if not (is_folder(path) or is_library_name(path)):      # which taggers read, too
            check_input(path, "transfer_file")
    if job.student_layers:      # before the student is written
        files.find(files.read_task(), True, False, False)
    options = {name: saved.options[name] for name in _SHARED if name in saved.options}
    if way := _long_text(task_flags, saved, SavedTask.read(settings.output_dir)):
        options["long_text"] = way
    options |= {name: saved.options.get(name) for name in getattr(files, "options", {})
                if name != THRESHOLD}
    with alone(settings) if job.student_layers else contextlib.nullcontext():
        carry_out(open_run(files, _model_flags(job, saved, settings),
                           settings, options, teaching), job)


def _defaults(typed: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    row = find_distillation(typed.get("recipe", DistillFlags.recipe))
    defaults = dict(row.defaults)
    if row.augmentation != "none":
        defaults["augmentation"] = row.augmentation
    return row.paper, defaults


def run() -> None:
    flags.run(main, DistillFlags, TaskFlags, FineTuneSettings, defaults=_defaults)


if __name__ == "__main__":
    commands.run("bert-distill")
