"""Fine-tuning by settings: the task decides the flags of a run; `finetune` does all."""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bert_tf import checkpoints
from bert_tf.config import Sizes
from bert_tf.errors import InputError, nearest_flag
from bert_tf.files import exists, fetched, read_json
from bert_tf.finetuning import paper_defaults
from bert_tf.finetuning.mixture import MixtureFlags
from bert_tf.finetuning.model import ClassifierFlags, ModelFlags, TaggerFlags
from bert_tf.finetuning.python_values import items, plain, typed
from bert_tf.finetuning.run import FineTuneRun, open_mixture, open_task
from bert_tf.finetuning.suite_flags import SuiteFlags
from bert_tf.flags import applicable
from bert_tf.models.t5.finetuning import TextModelFlags, open_texts
from bert_tf.models.t5.task_files import TextFlags
from bert_tf.models.t5.tasks import TEXT_TASKS
from bert_tf.opening import folder_of
from bert_tf.tasks import task_flags
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.named import OF_SUITES, SQUAD, TASKS, find_questions, find_task
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.training.settings import FineTuneSettings, StepSettings

# As in the original: the rate is constant up to the end of the warm-up.
T5_DEFAULTS = {"optimizer": "adafactor", "learning_rate": 1e-3, "learning_rate_schedule": "rsqrt",
               "num_warmup_steps": 1 << 30, "train_batch_size": 128, "num_train_steps": 1 << 18,
               "eval_batch_size": 64}
MTDNN_DEFAULTS = {"optimizer": "adamax", "learning_rate": 5e-5, "num_train_epochs": 5.0,
                  "train_batch_size": 32}
# Flags that only questions have.
_OF_QUESTIONS = {"predict_file", "squad_style", "version_2_with_negative"}
_TEXTS = "text_to_text"
_OF_TABLES = {"text_a_column", "label_column", "multi_label", "choice_columns"}
_OF_T5 = TEXT_TASKS.keys() - TASKS.keys() - {"sst2", "stsb"}     # which MT-DNN calls sst-2, sts-b
# Flags that set the number of steps in another way; a paper's number of steps is then not used.
_STEPS = ("num_train_steps", "num_train_epochs", "train_batch_size", "grid")
# Options that a model keeps when its head is trained further.
_OF_HEAD = ("max_seq_length", "squad_style", "label_scale", "label_mean", "max_qa_length",
            "carry_choices")
_WARMUP = ("num_warmup_steps", "warmup_proportion")
_FALSE = ("false", "f", "0", "no", "n")


def config_of(given: Mapping[str, Any]) -> Sizes:
    file = given.get("bert_config_file")
    if file:
        return checkpoints.read_config_file(file)
    path = fetched(given.get("init_checkpoint", ""))
    file = path and checkpoints.weights_at(path).get("keras")
    if file:
        return checkpoints.keras_file.read_config(file)
    return checkpoints.read_config(path)


def named_defaults(given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The defaults for the task that --task names, or for files of a user: what they follow, and
    the values by flag. `given` are the flags on the command line; `flags.run` calls this."""
    return _defaults(given, lambda: find_task(given["task"]).name if given.get("task") else "")


def squad_defaults(given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    has_negatives = (given.get("version_2_with_negative")
                     or find_questions(given.get("task", "")) is SQUAD[True])
    return _defaults(given, lambda: SQUAD[bool(has_negatives)].name)


def _may_keep(given, name):
    """Whether the model was fine-tuned for a task with the labels of the task `name`, or, if it is
    a task of the user, for any."""
    path = given.get("init_checkpoint")
    saved = path and SavedTask.read(folder_of(path))
    if not saved or not name:
        return bool(saved)
    task, trained = OF_SUITES[name], saved.task
    return (task.labels, task.label_names or trained.label_names) == (
        trained.labels, trained.label_names or task.label_names)


def _defaults(given, task_of):
    # The papers train the encoder, but with --feature_layers it is not trained.
    if not given.get("do_train") or given.get("feature_layers"):
        return "", {}
    values: dict[str, Any] = {}
    with contextlib.suppress(InputError):       # `main` reports it, after the other flags
        config = config_of(given)
        if config.model_type not in paper_defaults.DEFAULTS:
            return "", {}
        values = dict(paper_defaults.find(config, task_of()))
        # 0 steps mean that a flag is not given; a warm-up of 0 is one.
        has_steps = any(given.get(name) for name in _STEPS)
        if has_steps:
            values.pop("num_train_steps", None)
        if has_steps or any(given.get(name) is not None for name in _WARMUP):
            values.pop("num_warmup_steps", None)
        if given.get("keep_head", _may_keep(given, task_of())):
            for name in _OF_HEAD:
                values.pop(name, None)
    if not values:
        return "", {}
    return f"fine-tuning of {config.model_type}", values


class Job(NamedTuple):
    """What fine-tunes some kinds of tasks: `open` takes filled `classes` of flags, checks them, and
    opens the run; for `defaults` see `flags.run`."""

    classes: tuple[type, ...]
    open: Callable[..., FineTuneRun] = open_task
    defaults: Callable[[Mapping[str, Any]], tuple[str, dict]] = named_defaults


JOBS = {
    "classifier": Job((task_flags.TextTaskFlags, ModelFlags, FineTuneSettings, ClassifierFlags)),
    "tagger": Job((task_flags.WordTaskFlags, ModelFlags, FineTuneSettings, TaggerFlags)),
    "multiple_choice": Job((task_flags.ChoiceTaskFlags, ModelFlags, FineTuneSettings)),
    "squad": Job((task_flags.SquadFlags, ModelFlags, FineTuneSettings), defaults=squad_defaults),
    "multitask": Job((MixtureFlags, ModelFlags, FineTuneSettings), open_mixture,
                     lambda given: ("MT-DNN", MTDNN_DEFAULTS)),
    _TEXTS: Job((TextFlags, TextModelFlags, StepSettings), open_texts,
                        lambda given: ("T5", T5_DEFAULTS)),
    "suite": Job((SuiteFlags,), defaults=lambda given: ("", {})),     # which `suite_run` opens
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

    `bert-finetune` does the same work and writes the same files. The same call continues a run that
    was stopped. `bert_tf.Predictor` opens `output_dir`.

    Args:
        task: the name of a task; names of tasks that one model learns together, or that T5 learns;
            or the flags that describe files of your own; `predict_file` is SQuAD's.
        init_checkpoint: the model to begin with, of any format; hf://OWNER/NAME is one of the Hub.
        output_dir: where the model, its scores and its predictions go.
        settings: further flags of `bert-finetune`, by name; None is the default. By default the
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
    if task is None or not output_dir:
        raise InputError(f"the task is {task!r}, and output_dir {output_dir!r}; give both.")
    if isinstance(task, str):
        task = {"task": task}
    elif not isinstance(task, Mapping):
        task = {"tasks": list(task)}
    asked = {**task, **settings}
    flags = {**{name: plain(value) for name, value in asked.items() if value is not None},
             "init_checkpoint": fetched(init_checkpoint), "output_dir": os.fspath(output_dir)}
    if tables := [name for name, value in flags.items() if hasattr(value, "columns")
                  or name.endswith("_file") and not isinstance(value, str)]:
        raise InputError(f"{tables[0]} is a {type(flags[tables[0]]).__name__}; write it to a file "
                         "and give its name, or use bert_tf.TextModel.")
    flags.setdefault("do_train", True)
    files = [name for name in ("train_file", "dev_file", "predict_file") if flags.get(name)]
    flags.setdefault("do_eval", not files or files[-1] != "train_file")
    job = JOBS[job_of({name: value for name, value in flags.items() if value not in ("", [])})]
    known = settings_of(job)
    if unknown := sorted(asked.keys() - known):
        meant = nearest_flag(unknown[0], known)
        raise InputError(f"this task has no setting {', '.join(unknown)}; "
                         f"{meant and f'did you mean {meant}? '}bert-finetune --helpfull with the "
                         "task lists its settings.")
    values = {**job.defaults(flags)[1], **flags}
    names = {*flags, *applicable(job.classes, values)}
    values = {name: value for name, value in values.items() if name in names}
    return job.open(*(kind(**typed(kind, values)) for kind in job.classes))


def settings_of(job: Job) -> set[str]:
    return {field.name for kind in job.classes for field in dataclasses.fields(kind)}


def job_of(given: Mapping[str, Any]) -> str:
    """The key in `JOBS` of what does a task, from the flags that were given, by name. Raises
    InputError if there is no such task, T5 is to read a table, or the description of a fine-tuned
    task is damaged."""
    if "suite" in given:
        return "suite"
    if given.get("task") and given.get("tasks"):
        raise InputError("--task names one task, and --tasks several; leave one of them out.")
    if given.get("task_kind", _writes_texts(given) and _TEXTS) == _TEXTS:
        if columns := given.keys() & _OF_TABLES:
            raise InputError(f"--{min(columns)} is for tables, and T5 reads no columns: write an "
                             "input, a tab and a target on each line of --train_file, or start "
                             "from an encoder.")
        return _TEXTS
    if given.get("tasks") or "task_config_path" in given:
        return "multitask"
    # The command refuses a misspelt --task_kind.
    return getattr(KINDS.get(_kind_of(given)), "job", "classifier")


def _kind_of(given):
    if name := given.get("task") or given.get("task_name"):
        return (find_questions(name) or find_task(name)).kind.name
    if given.get("task_kind"):
        return given["task_kind"]
    if given.keys() & _OF_QUESTIONS:
        return "span"
    if str(given.get("do_train", "false")).lower() in _FALSE and (kind := _saved_kind(given)):
        return kind
    return task_flags.kind_of_files(given)


def _saved_kind(given):
    models = given.get("ensemble") and items(given["ensemble"])
    folder = given.get("init_checkpoint") or next(iter(models or ()), given.get("output_dir"))
    saved = folder and SavedTask.read(folder)
    return saved and saved.task.kind.name


def _writes_texts(given):
    if given.get("tasks") and not _OF_T5.isdisjoint(items(given["tasks"])):
        return True
    with contextlib.suppress(InputError):       # the command reports it
        return _saved_kind(given) == _TEXTS or config_of(given).model_type == "t5"
    return False
