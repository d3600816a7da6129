"""The steps of a fine-tuning run on one task or several, the same for all kinds of tasks: flags and
files are checked, records made, trials trained, models scored, predictions written."""

import dataclasses
import functools
import os
from collections.abc import Callable
from typing import Any

from bert_tf import compression, objectives, training
from bert_tf.checkpoints import keras_file
from bert_tf.data.batches import bucketing
from bert_tf.data.records import manifest
from bert_tf.errors import InputError
from bert_tf.files import exists, make_folder, write_json
from bert_tf.finetuning import mixture
from bert_tf.finetuning.member import Member
from bert_tf.finetuning.model import ModelFlags, check_task, mask, masked_heads, save_task
from bert_tf.finetuning.one_task import BALANCED, plan_task
from bert_tf.heads import HEADS
from bert_tf.model_card import write_card
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.suites import write_archives
from bert_tf.training.settings import FineTuneSettings
from bert_tf.training.trials import DEGENERATE

_NEGATIVE = "version_2_with_negative"


@dataclasses.dataclass
class FineTuneRun:
    """A run that is ready to train, to score and to predict."""

    members: list[Member]       # its tasks; the only one has its files in the output folder
    flags: Any                  # `ModelFlags`; T5's `TextModelFlags`
    settings: Any               # `FineTuneSettings`; T5's `StepSettings`
    # Tasks without a training set that a head of another task answers too.
    guests: list[Member] = dataclasses.field(default_factory=list)
    # Of several tasks, the names of those whose mean score decides.
    deciding: list[str] = dataclasses.field(default_factory=list)
    is_chief: bool = True       # this process writes
    train_set: Any = None       # the records to train on
    epoch_steps: int = 0        # steps of an epoch of several tasks
    tuning: Any = None          # `FineTuning`; T5's `TextTuning`
    # Runs of further models, which answer together with this one's.
    others: list["FineTuneRun"] = dataclasses.field(default_factory=list)
    padding: str = bucketing.BUCKETS    # see `ExampleSet`
    note: str = ""              # a further warning about the model, whose head is then not trained
    is_trained: bool = False    # all trials had ended before the run was opened

    @property
    def model(self) -> Any:
        return self.members[0].model

    def evaluate(self, predict) -> dict:
        """The metrics of all splits to score; prints a table of several tasks. See `FineTuning`."""
        scores, losses, degenerate = {}, [], []
        width = max(len(member.name) for member in self.members)
        for member in self.members:
            split_scores = []
            for split in member.splits.eval_splits:
                answered = member.answer(predict, split)
                if answered[1]:
                    losses.append(_own_loss(answered[1]))
                degenerate.append(member.is_degenerate(split, answered))
                split_scores.append(member.score(split, answered))
                if self.deciding:
                    print(f"  {member.name:{width}}  {split}: " + "  ".join(
                        f"{name.removeprefix(member.score_name(split, ''))} {value:.4f}"
                        for name, value in split_scores[-1].items())
                        + (f"  {DEGENERATE}" if degenerate[-1] else ""), flush=True)
            scores |= member.join_scores(split_scores)
        if not self.deciding:
            return {**dict(zip(["loss"], losses)), **scores,
                    "degenerate": float(any(degenerate))}
        return {"loss": sum(losses) / len(losses), "average": self.average(scores), **scores,
                "degenerate": float(all(degenerate))}

    def average(self, scores: dict) -> float:
        values = [scores[member.headline] for member in self.members
                  if member.name in self.deciding]
        return sum(values) / len(values)

    def carry_out(self, begin: Callable[[], None] = lambda: None) -> None:
        """Trains, scores and predicts as the flags ask for, while no other run writes to the
        output folder. The process that writes calls `begin` first."""
        with self.tuning.sole_writer():
            if self.is_chief:
                begin()
            path = self.model.path
            if self.flags.do_train:
                if self.is_chief:
                    self._save_tasks()
                if not self.tuning.train(self.train_set):
                    return
                path = os.path.join(self.settings.output_dir, keras_file.NAME)
            everyone = [*self.members, *self.guests]
            if self.others:
                _answer_together([self, *self.others])
            elif any(member.predicted_splits for member in everyone):
                self._answer(everyone, self.predict(path), path)
            if self.flags.do_train and self.is_chief:
                folder = self.settings.output_dir
                write_card(folder, self.tuning.init_checkpoint, note=self.note,
                           snippet="" if self.note else None)       # no code for such a head
                if self.note:
                    print(f"{folder}: {self.note}", flush=True)
        if self.others:
            training.wait_for_workers(self.tuning.strategy)

    def _save_tasks(self):
        for member in self.members:
            make_folder(member.folder, "output_dir")
            if self.note:       # no task.json: its head can't predict
                self.model.tokenizer.save(member.folder)
                continue
            saved = self.is_trained and SavedTask.read(member.folder)
            save_task(member.folder, member.task, member.model,
                      {**getattr(saved, "options", {}), **member.options})
        if self.deciding:
            self.model.tokenizer.save(self.settings.output_dir)

    def predict(self, path: str) -> Callable:
        """The function of examples that predicts with the model at `path`."""
        if masked_heads(self.flags, self.model.config):
            self.tuning.last.best = None        # whose answers are those of all heads
        trainer = self.tuning.load(path)
        mask(self.flags, trainer.learner.encoder)
        return functools.partial(self.tuning.predict, trainer)

    def _answer(self, everyone, predict, path):
        scores = {}
        for member in everyone:
            answered = member.answer_all(predict)
            if not self.is_chief:
                continue
            if path == os.path.join(member.folder, keras_file.NAME):
                member.keep_chosen(answered)
            if not self.deciding:
                self.write(answered)
                return
            member.write(answered)
            mixture.copy_submissions(member, answered)
            for split in member.splits.eval_splits:
                scores |= member.score(split, answered[split])
        if scores:
            mixture.write_scores(self, scores)

    def write(self, answered: dict) -> None:
        """Writes the predictions of the only task, and their scores. `answered`: see
        `Member.answer_all`."""
        member, = self.members
        member.write(answered)
        if names := {one.archive_of for one in member.predictions.values()} - {""}:
            write_archives(self.settings.output_dir, names)
        scored = [split for split in answered if member.predictions[split].is_scored(
            split in member.splits.eval_splits)]
        if not scored:
            return
        measured = [answered[split][1] for split in scored if answered[split][1]]
        scores = {**dict(zip(["loss"], map(_own_loss, measured))),
                  **member.join_scores([member.score(split, answered[split]) for split in scored])}
        if any(member.is_degenerate(split, answered[split]) for split in scored):
            print(training.trials.ONE_ANSWER, *member.advice(), flush=True)
            if self.flags.do_train and self.flags.keep_head:
                print(f"The training began with the head of {self.model.path}; bert-finetune "
                      "--keep_head=False begins with a new one.", flush=True)
        member.tell_missed({split: answered[split] for split in scored})
        for name, value in scores.items():
            print(f"{name} = {value:.4f}", flush=True)
        task = member.task
        write_json(os.path.join(self.settings.output_dir, "metrics.json"), {
            "task": task.name, "headline": task.kind.headline(task, scored),
            **member.predictions[scored[0]].describe_scores(), "metrics": scores})
        training.write_eval_results(self.settings.output_dir, scores)

    def check_training(self) -> None:
        """Raises InputError if a head is impossible, or trials cannot be trained."""
        if self.flags.do_train:
            self.tuning.make_objective(self.model.config, dtype=None)
            settings, results = self.tuning.check(self.train_set)
            self.is_trained = settings.keys() == results.keys()

    def records_folder(self, member: Member) -> str:
        folder = self.flags.records_dir or os.path.join(self.settings.output_dir, "records")
        return os.path.join(folder, member.name) if member.head_name else folder

    def make_records(self, strategy, planned: list[dict]) -> None:
        """Makes the records of all tasks, `Member.plan_records` of each, and opens them, while no
        other run writes to the output folder."""
        everyone = [*self.members, *self.guests]
        if self.flags.do_train:
            for member in self.members:
                _check_segments(member)
        self.padding = _padding(self, strategy)
        self.is_chief = training.is_chief(strategy)
        with training.sole_writer(self.settings.output_dir, strategy):
            if self.is_chief:
                for member, records in zip(everyone, planned):
                    folder = self.records_folder(member)
                    keeps = ("train",) * has_learned_from(self, folder)
                    member.make_records(folder, records, keeps)
            training.wait_for_workers(strategy)
            for member in everyone:
                member.open_records(self.records_folder(member), self.padding)


def _check_segments(member):
    """Raises InputError if a head finds the second text by its segment, which is 0 too."""
    model, task = member.model, member.task
    if not model.tokenizer.vocabulary.layout.one_segment or task.kind.num_texts(task) == 1:
        return
    name, arguments = member.head()
    # The class tells, or the argument: a head of LSTMs takes seconds to make.
    kind = getattr(objectives, HEADS[name].objective)
    if "segment_ids" in kind.sequences or arguments.get("pairs"):
        raise InputError(f"The head of {task.name} finds the second text by its segment, and the "
                         f"tokenizer of {model.path} gives both texts the segment 0; choose "
                         "another with --head, --squad_style or --answer_opt.")


def _answer_together(runs):
    first, answered = runs[0], {}
    answers = [run.members[0].answer_all(run.predict(run.model.path)) for run in runs]
    for split in first.members[0].predicted_splits:
        combined, predicted = first.members[0].predictions[split].combine(
            [(run.members[0].predictions[split], one[split][0], run.members[0].sets[split])
             for run, one in zip(runs, answers)])
        answered[split] = combined, {}, predicted
    if first.is_chief:
        first.write(answered)


def _padding(run, strategy):
    """Returns the padding of batches. A resumed run keeps it, since dropout depends on it."""
    is_padded = run.settings.pad_to_max_length
    begun = run.flags.do_train and training.trials.begun(run.settings)
    if is_padded or not begun:
        return padding_of(is_padded, run.settings, strategy)
    padding = begun.get("padding")
    if padding not in bucketing.PADDINGS:
        raise InputError(f"{run.settings.output_dir} holds a trial whose padding is {padding!r}, "
                         f"but it must be one of {', '.join(bucketing.PADDINGS)}; correct it in "
                         f"{training.trials.TRIAL}, or name another --output_dir.")
    return padding


def padding_of(is_padded: bool, settings: Any, strategy: Any) -> str:
    """Returns the padding of a new run's batches; with `is_padded` all have the maximum length."""
    if is_padded:
        return bucketing.MAX_LENGTH
    is_slow = training.compiles_each_shape(settings, strategy)
    return bucketing.BUCKETS if is_slow else bucketing.LONGEST


def has_learned_from(run: FineTuneRun, folder: str) -> bool:
    """Returns whether a trial has begun with the training records in a folder."""
    begun = run.flags.do_train and training.trials.begun(run.settings)
    path = os.path.join(folder, f"train{manifest.SUFFIX}")
    if not (begun and exists(path)):
        return False
    known = [begun.get("train_file")]       # of one task or of several
    if isinstance(known[0], dict) and isinstance(known[0].get("tasks"), dict):
        known = list(known[0]["tasks"].values())
    return manifest.identity(manifest.load_manifest(path)) in [
        one[1] for one in known if isinstance(one, list) and len(one) == 2]


def _own_loss(means):
    """The loss of the task's head, whose objective comes first: without its weight, and without the
    other terms of a training, which the saved model does not have."""
    return next(value for name, value in means.items() if name.endswith("/loss"))


def open_run(task_flags, model_flags, settings, options: dict | None = None, teaching=None,
             strategy=None, check: Callable[[Member], Any] | None = None) -> FineTuneRun:
    """Checks the flags of a run on one task, opens devices, and makes and reads records. Errors and
    other arguments are `plan_task`'s; InputError too if devices or folders cannot be used.

    Args:
        teaching: what teaches a student: `records(member, folder)` are the records to train on,
            `goal(tuning, member)` is a `FineTuning` that learns from them; `note` is the run's, and
            `task` the teacher's.
        strategy: the devices; None: the devices of the settings.
        check: raises InputError for a member, before records are made.
    """
    if settings.num_train_steps:        # in place of the epochs, also of those of a paper
        settings = dataclasses.replace(settings, num_train_epochs=None)
    member = plan_task(task_flags, model_flags, settings, options or {},
                       getattr(teaching, "task", None))
    if check:
        check(member)
    if model_flags.do_train:    # before the records of another run are replaced
        training.trials.check_output(member.settings.output_dir, list(member.settings.trials()))
    run = FineTuneRun([member], member.flags, settings, note=getattr(teaching, "note", ""))
    folder = run.records_folder(member)
    planned = member.plan_records(folder, teaching and (lambda: teaching.records(member, folder)))
    strategy = strategy or training.open_strategy(
        settings.resolve(member.task.defaults, 1), trains=model_flags.do_train,
        others=(task_flags, model_flags))
    run.make_records(strategy, [planned])
    run.tuning = _tuning(run, member, strategy)
    if teaching:
        run.tuning = teaching.goal(run.tuning, member)
    run.train_set = member.sets.get("train")
    run.check_training()
    return run


def _tuning(run, member, strategy):
    task, eval_splits, flags = member.task, member.splits.eval_splits, member.flags
    head, arguments = task.kind.head(task, member.options)
    weights = flags.do_train and member.class_weights
    if weights == BALANCED:
        weights = task.kind.balanced_weights(member.sets["train"].manifest["counts"])
    if task.kind.smooths:
        arguments = {**arguments, "label_smoothing": member.settings.label_smoothing}
    if weights:
        arguments = {**arguments, "class_weights": weights}
    rate, options = flags.classifier_dropout, task.kind.fixed_options(member.options)
    if flags.do_train and rate is not None:
        arguments = {**arguments, "dropout_rate": rate}
        options = {**options, "classifier_dropout": rate}
    return training.FineTuning(
        member.settings, strategy, member.model.config,
        lambda config, dtype: getattr(objectives, HEADS[head].objective)(
            config, dtype=dtype, **arguments),
        run.evaluate if eval_splits else None, member.headline, task.defaults,
        {**options, "padding": run.padding},
        task.kind.scored_on([member.sets[split].identity() for split in eval_splits],
                            member.options),
        init_checkpoint=member.model.path, keep_head=bool(flags.keep_head) or task.kind.keeps_head,
        weights=member.model.take_weights())


def open_mixture(flags: mixture.MixtureFlags, model_flags: ModelFlags,
                 settings: FineTuneSettings) -> FineTuneRun:
    """Checks the flags of a run on several tasks, opens devices, and makes and reads records.
    Raises InputError if anything is wrong with them, or devices or folders cannot be used."""
    model = mixture.open_model(flags, model_flags, settings)
    masked_heads(model_flags, model.config)
    members = mixture.open_members(flags, model_flags, model, settings)
    run = FineTuneRun(members, model_flags, settings,
                      deciding=flags.deciding([member.name for member in members]))
    if model_flags.do_train:
        training.adversarial.check_gold(settings, [
            member.distillation if member.teachers else None for member in members])
        for member in members:
            check_task(member.folder, member.task, model, member.options)
    if model_flags.do_predict:
        run.guests = mixture.find_guests(flags, model_flags, members)
    strategy = training.open_strategy(settings.resolve(mixture.DEFAULTS, 1),
                                      trains=model_flags.do_train, others=(flags, model_flags))
    if training.needs_static_shapes(strategy):
        raise InputError("several tasks can't be trained together on a TPU, where all batches must "
                         "have one shape; give another --distribution_strategy.")
    plans = []
    for member in (*members, *run.guests):
        folder, taught = run.records_folder(member), None
        if member.teachers:
            taught = functools.partial(mixture.taught_records, member, folder)
        plans.append(member.plan_records(folder, taught))
    run.make_records(strategy, plans)
    if model_flags.do_train:
        sets = {member.name: member.sets["train"] for member in members}
        run.settings, order = mixture.settle_steps(
            flags, settings, [one.size for one in sets.values()], model_flags.do_eval)
        run.epoch_steps = order.steps_of_epoch
        from bert_tf.models.mtdnn.batches import TaskBatches
        run.train_set = TaskBatches(sets, order, settings.gradient_accumulation_steps,
                                    shared=mixture.shared_features(members))
    run.tuning = _mixture_tuning(run, strategy)
    run.check_training()
    return run


def _mixture_tuning(run, strategy):
    from bert_tf.models.mtdnn.learner import MultiTaskLearner
    members, model, flags = run.members, run.model, run.flags
    taught = {member.name: member.distillation for member in members if member.teachers}
    options = {"tasks": {member.name: list(member.head()) for member in members},
               "input": {member.name: member.options for member in members},
               "best_of": run.deciding, "padding": run.padding}
    if ways := {name: row.describe() for name, row in taught.items() if row != mixture.MTDNN}:
        options["distillation"] = ways
    return training.FineTuning(
        run.settings, strategy, model.config, mixture.objectives_of(members),
        run.evaluate if flags.do_eval else None, "average", mixture.DEFAULTS, options,
        {member.name: [member.sets[split].identity() for split in member.splits.eval_splits]
         for member in members},
        compression.MultiTaskStudent if taught else MultiTaskLearner,
        model.path, bool(flags.keep_head), model.take_weights())


def open_task(task_flags, model_flags, settings, head_flags=None) -> FineTuneRun:
    """Opens a run on one task, or a run where the models of --ensemble answer it together.
    `head_flags`: `ClassifierFlags` or `TaggerFlags`; None for other heads, and for defaults.
    InputError: see `open_run`; or the models do not go together."""
    options = dict(getattr(task_flags, "options", {}))
    if head_flags:
        options |= head_flags.options()
        if model_flags.do_train:
            settings = head_flags.frozen(settings)
    if not model_flags.ensemble:
        return open_run(task_flags, model_flags, settings, options)
    model_flags.check(settings)
    records = model_flags.records_dir or os.path.join(settings.output_dir, "records")
    runs: list[FineTuneRun] = []
    strategy = None
    for number, folder in enumerate(model_flags.ensemble):
        own = dataclasses.replace(model_flags, ensemble=[], init_checkpoint=folder,
                                  records_dir=os.path.join(records, str(number)))
        runs.append(open_run(task_flags, own, settings, options, strategy=strategy))
        strategy = runs[0].tuning.strategy
    first = runs[0].members[0]
    for run in runs[1:]:
        other = run.members[0]
        if (first.task.kind, first.task.labels) != (other.task.kind, other.task.labels):
            raise InputError(f"--ensemble: {first.model.path} and {other.model.path} have "
                             "different tasks or labels; name models of one task.")
        if first.options.get(_NEGATIVE) != other.options.get(_NEGATIVE):
            raise InputError(f"--ensemble: only one of {first.model.path} and {other.model.path} "
                             f"was trained with --{_NEGATIVE}; name models of one kind.")
    runs[0].others = runs[1:]
    return runs[0]
