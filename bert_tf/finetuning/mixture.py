"""The tasks of a model of several: their flags and rows, files, heads, teachers and reports."""

import dataclasses
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bert_tf import compression, objectives, training
from bert_tf.checkpoints.names import task_folder, tasks_beside
from bert_tf.errors import InputError, naming
from bert_tf.files import copy_file, exists, make_folder, read_json, write_aside, write_json
from bert_tf.finetuning.member import Member
from bert_tf.finetuning.model import ModelFlags, open_encoder
from bert_tf.finetuning.one_task import with_begun
from bert_tf.finetuning.python_values import typed
from bert_tf.flags import check, check_used, only, option
from bert_tf.heads import HEADS
from bert_tf.models.mtdnn.order import SAMPLINGS, WHOLE_EPOCHS, TaskOrder
from bert_tf.opening import Model
from bert_tf.recipes.distillation import DISTILLATIONS, find_distillation
from bert_tf.tasks.named import TASKS, find_folder, find_task
from bert_tf.tasks.saved_task import TASK_FILE, SavedTask
from bert_tf.tasks.task import Defaults
from bert_tf.tasks.task_flags import OF_KINDS, TaskFlags
from bert_tf.training.optimizers.table import SCHEDULES
from bert_tf.training.settings import FineTuneSettings

KINDS = ("classification", "regression", "multiple_choice", "ranking", "tagging")
# namisan/mt-dnn config/tasks_config.json; all others have 0.1.
_DROPOUT = {"mnli": 0.3, "cola": 0.05}
_TURNS = 5      # of a stochastic answer network
DEFAULTS = Defaults(512, 32, 5e-5, 5.0)
_OF_ONE_TASK = ("grid", "class_weights", "lm_coef", "loss_reduction", "label_smoothing",
                "bilstm_size")
_ROW_FOLDER = "name their folder as data_dir in --task_config_path"
_FILES = tuple(field.name for field in dataclasses.fields(TaskFlags) if field.name != "task")
# How tasks learn unless their row names another way.
MTDNN = DISTILLATIONS["mtdnn_kd"]
_NO_FOLDERS = ("", ".", "..")
_of_epochs = only("task_sampling", *WHOLE_EPOCHS)


@dataclasses.dataclass
class MixtureFlags:
    """Tasks, their mixture, and their heads."""

    tasks: list[str] = option(
        [], f"Names of tasks: any of {', '.join(TASKS)}, in their official files, or your own "
        "tasks from --task_config_path. Default: all tasks in --task_config_path.")
    data_dir: str = option(
        "", "Folder with a subfolder for each named task, such as CoLA; files of your own tasks "
        "are relative to it.")
    task_config_path: str = option(
        "", "JSON file that describes your own tasks, and changes settings of other tasks, by "
        'name: {"mail": {"train_file": "mail.csv", "dev_file": "mail_dev.csv", "text_a_column": '
        '"body", "label_column": "folder"}, "mnli": {"loss_weight": 2}}. Its keys are the flags of '
        "bert-finetune that describe files; long_text; label_scale and label_mean; "
        "max_qa_length and carry_choices; dropout_p, before the head's last layer (default: mnli "
        "0.3, cola 0.05, others 0.1); loss_weight; answer_opt; teachers, a list of folders of "
        "models of the task, whose mean probabilities are also learned (arXiv:1904.09482); "
        "distillation, a --recipe of bert-distill that compares only logits, such as minibert for "
        "tags (default: mtdnn_kd).")
    task_sampling: str = option(
        "batches", "How batches are drawn. batches: each batch of each task once per epoch, in "
        "random order. consecutive: the same, with batches of successive rows. proportional: a "
        "task is drawn with its share of the examples as the probability. temperature: the same, "
        "with a power of the share. round_robin: the tasks take turns.", choices=SAMPLINGS)
    temperature: float = only("task_sampling", "temperature")(
        2.0, "With --task_sampling=temperature, raise the shares to the power 1 / temperature.",
        above=0)
    examples_cap: int = only("task_sampling", "proportional", "temperature")(
        0, "Count at most this many examples of a task for its share; 0: all.", least=0)
    mix_opt: int = _of_epochs(
        0, "1: in each epoch, the batches of the first task come last.", least=0, most=1)
    ratio: float = _of_epochs(
        0.0, "Batches of the other tasks in an epoch, for each batch of the first task; 0: all.",
        least=0)
    answer_opt: int = option(
        1, "1: a stochastic answer network classifies pairs of texts. 0: each head is one layer.")
    answer_num_turn: int | None = option(
        None, "Number of steps of a stochastic answer network. "
        f"Default: as in training, else {_TURNS}.", least=1)
    hypothesis_first: bool | None = option(
        None, "Put the second text of a pair before the first, as MT-DNN does. Default: as in "
        "training, else true.")
    best_of: list[str] = option(
        [], "Keep the epoch with the best mean score of these tasks (default: all).")

    __post_init__ = check

    def rows(self) -> dict[str, dict[str, Any]]:
        """The row of each task, by its name, in the order of the tasks. Raises InputError if a task
        comes twice or is not known, or a row is wrong; see `check_row`."""
        described = read_json(self.task_config_path) if self.task_config_path else {}
        names = [_name(task, described) for task in self.tasks or described]
        if not names:
            raise InputError("--tasks or --task_config_path must be given: name the tasks to train "
                             "on.")
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"--tasks names {name} {names.count(name)} times; name it once; "
                                 "loss_weight in --task_config_path sets the weight of its loss.")
        rows = {_name(name, described): row for name, row in described.items()}
        rows = {name: check_row(name, row, self.task_config_path) for name, row in rows.items()}
        return {name: rows.get(name, {}) for name in names}

    def deciding(self, names: list[str]) -> list[str]:
        """Tasks whose mean score decides."""
        known = {_plain(name): name for name in names} | {name: name for name in names}
        deciding = [known.get(name, known.get(_plain(name))) for name in self.best_of]
        if None in deciding:
            raise InputError(f"--best_of names {self.best_of[deciding.index(None)]}, but the tasks "
                             f"are {', '.join(names)}.")
        return deciding or list(names)


def _plain(name):
    return name.lower().replace("-", "")


def _name(given, described):
    """Returns a task's name: the given name of a user's own task, or the name of a named task."""
    if given in described and _plain(given) not in map(_plain, TASKS):
        return given
    return find_task(given).name


def _find(flags, name, row, job):
    files = {"data_dir": flags.data_dir,
             **{key: value for key, value in row.items() if key in _FILES}}
    if name in TASKS:
        files["task"] = name
        files["data_dir"] = row.get("data_dir") or find_folder(flags.data_dir, name, _ROW_FOLDER)
    own = TaskFlags(**files)
    task = dataclasses.replace(own.read_task(), name=name)
    if task.kind.name not in KINDS:
        raise InputError(f"{name} is a task of {task.kind.title}, which can't be trained together "
                         f"with others; the kinds that can are {', '.join(KINDS)}.")
    if job.do_train and task.model_of:
        raise InputError(f"{name} has no training set; name {task.model_of} in its place: its "
                         f"model also answers {name}.")
    has_test = any(split.startswith("test") and task.has_file(own.data_dir, split)
                   for split in task.splits)
    with naming(f"task {name}"):
        splits = own.find(task, job.do_train, job.do_eval, job.do_predict and has_test)
    sources = {split: dataclasses.replace(source, task=dataclasses.replace(source.task, name=name))
               for split, source in splits.sources.items()}
    return splits._replace(sources=sources)


def open_members(flags: MixtureFlags, job: ModelFlags, model: Model,
                 settings: FineTuneSettings) -> list[Member]:
    """The tasks, whose files were found good. InputError: see `MixtureFlags.rows`; a file is absent
    or cannot be read, or the model was not trained for a task."""
    members = []
    for name, row in flags.rows().items():
        splits = _find(flags, name, row, job)
        if not splits.sources:
            continue
        task = next(iter(splits.sources.values())).task
        saved = None
        if not job.do_train or job.keep_head:
            saved = SavedTask.read(task_folder(model.folder, name))
            if saved is None or task.labels not in ((), saved.task.labels):
                raise InputError(f"{model.path} was not trained for the task {name} with these "
                                 "labels; leave the task out, or train it.")
        options = task.kind.options(_options_of(flags, row, task, saved),
                                    getattr(saved, "options", {}), job.do_train, model.path)
        with naming(f"task {name}"):
            task.kind.check_options(options, model.max_seq_length, model.tokenizer)
        if job.do_train and not saved:
            options = with_begun(task, options, splits.sources["train"], SavedTask.read(
                task_folder(settings.output_dir, name)))
        teachers = tuple(row.get("teachers", ())) * job.do_train
        if teachers and any(feature.axis == "C*S" for feature in task.kind.features):
            raise InputError(f"teachers of {name}: give folders of classification or regression "
                             "models.")
        distillation = find_distillation(row.get("distillation", MTDNN.name))
        if [term.objective for term in distillation.terms] != ["SoftTargets"]:
            raise InputError(f"distillation of {name}: {distillation.name} compares more than "
                             "logits; give one that compares only logits, such as mtdnn_kd or "
                             "minibert.")
        rate = row.get("dropout_p", job.classifier_dropout)
        if rate is None:
            rate = _DROPOUT.get(name, 0.1)
        members.append(Member(
            task, model, options, splits, job, settings, head_name=name, number=len(members),
            loss_weight=float(row.get("loss_weight", 1.0)),
            dropout_rate=float(rate), teachers=teachers, distillation=distillation))
    if not members:
        raise InputError("--do_predict: none of the tasks has a test file; put one into a task's "
                         "folder, or name one as test_file in --task_config_path.")
    if flags.answer_num_turn is not None and not any(
            member.options.get("answer_turns") for member in members):
        raise InputError("--answer_num_turn is for stochastic answer networks, and no task has "
                         "one; leave the flag out.")
    return members


def _options_of(flags, row, task, saved):
    """The options of a task that the flags and its row give. The turns of a stochastic answer
    network are None for another head, and the head of a `SavedTask` stays as it was trained."""
    # A model keeps the options of its kind.
    turned, own, turns = flags.hypothesis_first, (), None
    if saved:
        turns = saved.options.get("answer_turns")
    else:       # true by default; tasks have no such option where it is false
        turned = turned is not False or None
        own = tuple(name for name, kind in OF_KINDS.items() if kind == task.kind.name)
        is_pair = task.kind.name == "classification" and task.kind.num_texts(
            task, next(iter(task.splits))) == 2
        if is_pair and row.get("answer_opt", flags.answer_opt):
            turns = _TURNS
        elif row.get("answer_opt"):
            raise InputError(f"{flags.task_config_path}: the row of {task.name} has answer_opt, "
                             "which is for pairs of texts to classify; leave it out.")
    if turns and flags.answer_num_turn is not None:
        turns = flags.answer_num_turn
    return {"answer_turns": turns, "hypothesis_first": turned,
            **{key: row[key] for key in ("long_text", *own)
               if row.get(key) or (key == "label_mean" and key in row)}}


def settle_steps(flags: MixtureFlags, settings: FineTuneSettings, sizes: list[int],
                 does_evaluate: bool) -> tuple[FineTuneSettings, TaskOrder]:
    """The settings with the steps of the order, and the order."""
    batch, epochs = settings.train_batch_size or 32, settings.num_train_epochs
    if epochs is None:
        epochs = DEFAULTS.num_train_epochs
    order = TaskOrder(tuple(sizes), batch, epochs, 0, flags.task_sampling, flags.mix_opt,
                      flags.ratio, flags.temperature, flags.examples_cap)
    if settings.num_train_steps:
        epochs = settings.num_train_steps / order.steps_of_epoch
        order = dataclasses.replace(order, epochs=epochs, count=settings.num_train_steps)
    steps = settings.num_train_steps or len(order.steps())
    # With a ratio, the rate is scheduled for more steps than there are, as in the original.
    scheduled = settings.schedule_steps or settings.num_train_steps or max(order.total_steps, steps)
    ends_later = scheduled != steps and SCHEDULES[settings.learning_rate_schedule].ends
    warmup = settings.num_warmup_steps
    if warmup is None:      # not rounded, as in the original
        warmup = scheduled * settings.warmup_proportion
    return dataclasses.replace(
        settings, num_train_steps=steps, train_batch_size=batch, num_train_epochs=epochs,
        schedule_steps=scheduled * ends_later, num_warmup_steps=warmup,
        eval_steps=settings.eval_steps or order.steps_of_epoch,
        early_stopping=(settings.early_stopping or math.ceil(epochs) + 1) * does_evaluate), order


def find_guests(flags: MixtureFlags, job, members: list[Member]) -> list[Member]:
    """The named tasks without a training set that heads of others answer, such as AX, and whose
    files are there to be predicted."""
    guests = []
    for member in members:
        for name in (name for name, task in TASKS.items() if task.model_of == member.name):
            try:
                splits = _find(flags, name, {}, dataclasses.replace(job, do_train=False,
                                                                    do_eval=False))
            except InputError:      # its folder is not there
                continue
            for source in list(splits.sources.values())[:1]:     # all have one task
                guests.append(dataclasses.replace(member, task=source.task, splits=splits,
                                                  is_guest=True, sets={}, predictions={}))
    return guests


def open_model(flags: MixtureFlags, job, settings) -> Any:
    """The `bert_tf.opening.Model` to begin with; the flags are checked. Raises InputError if a flag
    is for one task, or the output folder holds another model."""
    flags.rows()
    job.check(settings)
    for group in (settings, job):
        check_used(group, *((name, False, "one task") for name in _OF_ONE_TASK
                            if hasattr(group, name)))
    if job.ensemble:
        raise InputError("--ensemble is for one task: give the folders of one task, such as "
                         "mtdnn/tasks/mrpc, to the command for that task.")
    folder = settings.output_dir
    tasks = tasks_beside(folder)
    if job.do_train and not tasks and exists(os.path.join(folder, TASK_FILE)):
        raise InputError(f"--output_dir: {folder} holds a model of one task, and it would be "
                         "overwritten; name another folder.")
    # A run that was begun keeps its length and its tokens, whatever the defaults are now.
    trained = (job.keep_head or not job.do_train) and job.init_checkpoint or folder
    saved = (SavedTask.read(task_folder(trained, name)) for name in tasks_beside(trained))
    length = next((task.max_seq_length for task in saved if task), DEFAULTS.max_seq_length)
    task_dir = next((task_folder(folder, name) for name in tasks), "")
    return open_encoder(job, folder, length, task_dir)


def objectives_of(members: list[Member]) -> Callable:
    """The function (config, dtype) that makes the heads of tasks and what learns from teachers."""
    def make(config, dtype):
        made = [getattr(objectives, HEADS[name].objective)(config, dtype=dtype, **arguments)
                for name, arguments in (member.head() for member in members)]
        for member, head in zip(members, list(made)):
            if member.teachers:
                row = member.distillation
                soft, = compression.make_terms(row, config, head, dtype, f"{head.name}_soft")
                soft.loss_weight *= head.loss_weight
                head.loss_weight *= row.gold_weight
                made.append(soft)
        return made

    return make


def taught_records(member, folder: str) -> "compression.TaughtRecords":
    """The training records of a task, a `Member`, that its teachers answer, for a folder."""
    source = member.splits.sources["train"]
    teachers = compression.Teachers(tuple(map(compression.Teacher, member.teachers)))
    teachers.check(member.task)
    own = {field.name: getattr(source, field.name) for field in dataclasses.fields(source)}
    return compression.TaughtRecords(
        compression.TransferSource(**own), member.task.kind.record_options(*member.of_input),
        member.model.tokenizer, folder, teachers)


def shared_features(members: Sequence) -> Any:
    of_words = {member.name for member in members if member.task.kind.name == "tagging"}
    soft = {is_word: max((len(member.task.labels) or 1 for member in members if member.teachers
                          and (member.name in of_words) == is_word), default=0)
            for is_word in (False, True)}
    from bert_tf.models.mtdnn.batches import SharedFeatures
    return SharedFeatures(bool(of_words), soft[False], soft[True])


@dataclasses.dataclass
class TaskRow(TaskFlags):
    """The keys of a row, except `task`."""

    teachers: list[str] = option([], "Folders of models whose mean probabilities are learned.")
    distillation: str | None = only("teachers")(
        None, "How they are learned, a --recipe of bert-distill.")
    dropout_p: float | None = option(None, "Dropout before the head's last layer.", least=0,
                                     below=1)
    loss_weight: float | None = option(None, "Factor of the loss.", above=0)
    answer_opt: int | None = option(None, "1: a stochastic answer network.", choices=(0, 1))

    __post_init__ = check


KEYS = tuple(field.name for field in dataclasses.fields(TaskRow) if field.name != "task")


def check_row(name: str, row: Any, path: str) -> dict[str, Any]:
    """Returns the given values of a task's row, with the types of `TaskRow`. `path`: the file with
    the row. Raises InputError if the task's name can't name a folder, or the row has other keys or
    values."""
    if name in _NO_FOLDERS or not name.isprintable() or set(name) & set("/\\"):
        raise InputError(f"{path}: a task is called {name!r}, but each task has a folder of its "
                         "name; give it another name.")
    wrong = {repr(row)}
    if isinstance(row, Mapping):
        wrong = set(row) - set(KEYS)
    if wrong:
        raise InputError(f"{path}: the row of {name} has {', '.join(sorted(wrong))}; its keys may "
                         f"be {', '.join(KEYS)}.")
    values = {key: value for key, value in row.items() if value is not None}
    if isinstance(values.get("teachers"), str):
        values["teachers"] = [values["teachers"]]
    with naming(f"{path}: the row of {name}"):
        values = typed(TaskRow, values)
        TaskRow(**values)
    return values


def copy_submissions(member: Member, splits: Iterable[str]) -> None:
    """Copies to one folder the files that GLUE's server takes of a task's splits."""
    for split in splits:
        name = member.task.split(split).submission
        path = os.path.join(member.folder, name or "")
        if split in member.splits.test_splits and name and exists(path):
            folder = os.path.join(member.settings.output_dir, "submission")
            make_folder(folder, "output_dir")
            copy_file(path, os.path.join(folder, name))
            print(f"wrote {os.path.join(folder, name)}", flush=True)


def write_scores(run, scores: dict[str, float]) -> None:
    """Writes scores of a `FineTuneRun`'s tasks, and of training the curves and best epochs."""
    folder = run.settings.output_dir
    if any(member.splits.eval_splits for member in run.members):
        scores = {"average": run.average(scores), **scores}
    described = {"headlines": {m.name: m.headline for m in run.members}, "metrics": scores}
    if run.flags.do_train:
        described["best_epochs"] = _write_curves(run)
    for name, value in scores.items():
        print(f"{name} = {value:.4f}", flush=True)
    write_json(os.path.join(folder, "metrics.json"), described)
    training.write_eval_results(folder, scores)


def _write_curves(run):
    columns = {"average": "average", **{m.name: m.headline for m in run.members}}
    lines = training.read_metrics(run.settings.output_dir, "eval")
    with write_aside(os.path.join(run.settings.output_dir, "dev_curves.tsv")) as file:
        file.write("\t".join(["epoch", "step", *columns]) + "\n")
        file.writelines("\t".join([f"{line['step'] / run.epoch_steps:g}", str(line["step"]), *(
            f"{line[name]:.4f}" for name in columns.values())]) + "\n" for line in lines)
    best = {}
    for name, column in columns.items():
        values = [max(-math.inf, line[column]) for line in lines]      # -inf of NaN, too
        index = max(range(len(lines)), key=values.__getitem__)
        best[name] = {"epoch": lines[index]["step"] / run.epoch_steps, "score": values[index]}
        print(f"best epoch of {name}: {best[name]['epoch']:g} ({values[index]:.4f})", flush=True)
    return best
