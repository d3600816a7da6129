"""Fine-tuning by settings: a function for each kind of job opens its run; `finetune` does all."""

import contextlib
import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf.errors import InputError, nearest
from bert_tf.files import exists, fetched, read_json
from bert_tf.finetuning import paper_defaults
from bert_tf.finetuning.head_flags import ClassifierFlags, TaggerFlags
from bert_tf.finetuning.mixture import MixtureFlags
from bert_tf.finetuning.model import ModelFlags, frozen
from bert_tf.finetuning.python_values import plain, typed, written
from bert_tf.finetuning.run import FineTuneRun, open_mixture, open_task
from bert_tf.flags import applicable
from bert_tf.heads import CHOICES
from bert_tf.models.t5.finetuning import TextModelFlags, open_texts
from bert_tf.models.t5.task_flags import TextFlags
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.named import find_task
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.task_flags import SquadFlags, TaskFlags
from bert_tf.training.settings import FineTuneSettings, TrainSettings

# As in the original: the rate is constant up to the end of the warm-up.
T5_DEFAULTS = {"optimizer": "adafactor", "learning_rate": 1e-3, "learning_rate_schedule": "rsqrt",
               "num_warmup_steps": 1 << 30, "train_batch_size": 128, "num_train_steps": 1 << 18,
               "eval_batch_size": 64}
MTDNN_DEFAULTS = {"optimizer": "adamax", "learning_rate": 5e-5, "num_train_epochs": 5.0,
                  "train_batch_size": 32}
# Flags that only the scripts of one kind of task have.
_SQUAD = {"predict_file", "squad_style", "version_2_with_negative"}
_CLASSIFIER = {"text_a_column", "label_column", "multi_label", "tfds_name"}
_FALSE = ("false", "f", "0", "no", "n")


def classify(task_flags: TaskFlags, model_flags: ModelFlags, settings: FineTuneSettings,
             head_flags: ClassifierFlags | None = None) -> FineTuneRun:
    """Opens a run that classifies or rates texts."""
    head_flags = head_flags or ClassifierFlags()
    options = head_flags.options()
    head = CHOICES.get(head_flags.head or "")
    if head and head.choice.freezes and model_flags.do_train:
        settings = frozen(settings, f"head={head_flags.head}")
    return open_task("run_classifier", task_flags, model_flags, settings,
                     {"label_scale": task_flags.label_scale, "label_mean": task_flags.label_mean,
                      "long_text": task_flags.long_text, **options})


def tag(task_flags: TaskFlags, model_flags: ModelFlags, settings: FineTuneSettings,
        head_flags: TaggerFlags | None = None) -> FineTuneRun:
    """Opens a run that gives each word a tag."""
    head_flags = head_flags or TaggerFlags()
    if model_flags.do_train:
        settings = head_flags.frozen(settings)
    return open_task("run_tagger", task_flags, model_flags, settings,
                     dataclasses.asdict(head_flags))


def choose(task_flags: TaskFlags, model_flags: ModelFlags,
           settings: FineTuneSettings) -> FineTuneRun:
    """Opens a run that chooses how a text continues."""
    return open_task("run_multiple_choice", task_flags, model_flags, settings, {
        name: getattr(task_flags, name) for name in (
            "max_qa_length", "carry_choices", "long_text")})


def answer_questions(task_flags: SquadFlags, model_flags: ModelFlags,
                     settings: FineTuneSettings) -> FineTuneRun:
    """Opens a run that finds answers in paragraphs."""
    return open_task("run_squad", task_flags, model_flags, settings, task_flags.options)


_JOBS: dict[str, tuple] = {
    "run_classifier": (classify, TaskFlags, ModelFlags, FineTuneSettings, ClassifierFlags),
    "run_tagger": (tag, TaskFlags, ModelFlags, FineTuneSettings, TaggerFlags),
    "run_multiple_choice": (choose, TaskFlags, ModelFlags, FineTuneSettings),
    "run_squad": (answer_questions, SquadFlags, ModelFlags, FineTuneSettings),
    "run_multitask": (open_mixture, MixtureFlags, ModelFlags, FineTuneSettings),
    "run_text_to_text": (open_texts, TextFlags, TextModelFlags, TrainSettings),
}


def finetune(task: str | Sequence[str] | Mapping[str, Any], init_checkpoint: str | os.PathLike,
             output_dir: str | os.PathLike, **settings: Any) -> dict[str, float]:
    """Fine-tunes a model for a task, or for several, and returns the scores.

        bert_tf.finetune("mrpc", "uncased_L-12_H-768_A-12", "mrpc", data_dir="glue/MRPC")
        bert_tf.finetune({"train_file": "mail.csv", "dev_file": "mail_dev.csv",
                          "text_a_column": "body", "label_column": "folder"},
                         "uncased_L-12_H-768_A-12", "mail", num_trials=3)
        bert_tf.finetune({"train_file": "train-v1.1.json", "predict_file": "dev-v1.1.json"},
                         "uncased_L-12_H-768_A-12", "squad")
        bert_tf.finetune(["mnli", "rte"], "uncased_L-12_H-768_A-12", "mtdnn", data_dir="glue")
        bert_tf.finetune(["cola"], "t5-small", "t5", data_dir=["glue"], num_train_steps=2000)

    The command of the task does the same work and writes the same files. The same call continues a
    run that was stopped. `bert_tf.Predictor` opens `output_dir`.

    Args:
        task: the name of a task; names of tasks that one model learns together, or that T5 learns;
            or the flags that describe files of your own; `predict_file` is SQuAD's.
        init_checkpoint: the model to begin with, of any format; hf://OWNER/NAME is one of the Hub.
        output_dir: where the model, its scores and its predictions go.
        settings: further flags of the task's command, by name; None is the default. By default the
            model is trained (`do_train`), and scored (`do_eval`) where no files or a file to score
            on are named.

    Raises:
        InputError: a setting, a file or the model can't be used.
    """
    run = open_job(task, init_checkpoint, output_dir, **settings)
    run.carry_out()
    path = os.path.join(output_dir, "metrics.json")
    return read_json(path)["metrics"] if run.flags.do_eval and exists(path) else {}


def open_job(task: str | Sequence[str] | Mapping[str, Any], init_checkpoint: str | os.PathLike,
             output_dir: str | os.PathLike, **settings: Any) -> FineTuneRun:
    """Opens the run that `finetune` carries out; arguments and errors are `finetune`'s."""
    asked = {**_named(task), **settings}
    given = {**{name: plain(value) for name, value in asked.items() if value is not None},
             "init_checkpoint": fetched(init_checkpoint),
             "output_dir": os.fspath(output_dir)}
    given.setdefault("do_train", True)
    files = [name for name in ("train_file", "dev_file", "predict_file") if given.get(name)]
    given.setdefault("do_eval", not files or files[-1] != "train_file")
    script = script_of({name: written(value) for name, value in given.items()
                        if value not in ("", [])}) or "run_classifier"
    open_run, *classes = _JOBS[script]
    if unknown := sorted(asked.keys() - settings_of(script)):
        command = f"bert-finetune {script.removeprefix('run_').replace('_', '-')}"
        meant = nearest(unknown[0], settings_of(script))
        raise InputError(f"{command} has no setting {', '.join(unknown)}; "
                         f"{meant and f'did you mean {meant}? '}{command} --helpfull lists its "
                         "settings.")
    values = {**_defaults(script, given), **given}
    names = {*given, *applicable(classes, values)}
    given = {name: value for name, value in values.items() if name in names}
    return open_run(*(kind(**typed(kind, given)) for kind in classes))


def settings_of(script: str) -> set[str]:
    """The names of a script's settings."""
    return {field.name for kind in _JOBS[script][1:] for field in dataclasses.fields(kind)}


def _named(task):
    if isinstance(task, Mapping):
        return dict(task)
    return {"task": task} if isinstance(task, str) else {"tasks": list(task)}


def script_of(given: Mapping[str, str]) -> str | None:
    """Returns the script that does the job of flags, a dict of values by name; None if they do not
    decide.

    Raises:
        InputError: there is no such task, or the description of a fine-tuned task is damaged.
    """
    if given.get("tasks") or "task_config_path" in given:
        return "run_text_to_text" if _writes_texts(given) else "run_multitask"
    kind = _kind_of(given)
    # A misspelt --task_kind is refused by the script.
    return KINDS[kind].script if kind in KINDS else kind and "run_classifier"


def _kind_of(given):
    """The kind of task that flags name or imply, else the model's; None if unknown."""
    if name := given.get("task") or given.get("task_name"):
        return find_task(name).kind.name
    if given.get("task_kind"):
        return given["task_kind"]
    if given.keys() & _SQUAD:
        return "span"
    if given.get("do_train", "false").lower() in _FALSE and (kind := _saved_kind(given)):
        return kind
    if "choice_columns" in given:
        return "multiple_choice"
    if given.keys() & _CLASSIFIER:
        return "classification"
    return "text_to_text" if _writes_texts(given) else None


def _saved_kind(given):
    """The kind of the task that the model was fine-tuned on, or None."""
    folder = (given.get("init_checkpoint") or given.get("ensemble", "").partition(",")[0]
              or given.get("output_dir"))
    saved = SavedTask.read(folder) if folder else None
    return saved.task.kind.name if saved else None


def _writes_texts(given):
    """Returns whether the model is T5."""
    if _saved_kind(given) == "text_to_text":
        return True
    with contextlib.suppress(InputError):       # the script reports it
        return paper_defaults.config_of(given).model_type == "t5"
    return False


def _defaults(script, given):
    """The defaults of the model's paper."""
    if script == "run_text_to_text":
        return T5_DEFAULTS
    if script == "run_multitask":
        return MTDNN_DEFAULTS
    find = paper_defaults.squad_defaults if script == "run_squad" else paper_defaults.named_defaults
    return find(given)[1]
