"""The steps of a fine-tuning run, the same for all kinds of tasks: flags and files are checked,
records made, trials trained, models scored, predictions written.
"""

import dataclasses
import functools
import os
from typing import Any

from bert_tf import data, flags, objectives, training
from bert_tf.checkpoints import keras_file
from bert_tf.checkpoints.task_heads import with_head_of
from bert_tf.errors import InputError
from bert_tf.files import make_folder, write_json
from bert_tf.heads import HEADS
from bert_tf.tasks.task import KINDS, TASK_FILE, SavedTask, Task
from bert_tf.tasks.task_flags import Wanted
from run_scripts.finetuning.head_masks import mask, masked_heads
from run_scripts.finetuning.model import (
    BALANCED,
    check_directions,
    check_smoothing,
    check_task,
    class_weights,
    open_encoder,
    reader_options,
    save_task,
)


@dataclasses.dataclass(frozen=True)
class Plan:
    """A run whose flags and files were found good; nothing is written yet.

    Attributes:
        task: `Task` with its labels.
        model: the `bert_tf.models.Model` to begin with.
        options: of input and head, see `Kind.options`.
        wanted: the splits that the run needs.
        class_weights: see `finetuning.model.class_weights`.
        flags: `ModelFlags`.
        settings: `FineTuneSettings`.
    """

    task: Task
    model: Any
    options: dict
    wanted: Wanted
    class_weights: str | list[float] | None
    flags: object
    settings: object

    @property
    def predicted_splits(self) -> list[str]:
        """The splits that the model answers, each once."""
        return list(dict.fromkeys([*self.wanted.eval_splits, *self.wanted.test_splits]))


def make_plan(script: str, task_flags, model_flags, settings, options: dict) -> Plan:
    """Checks all that can be known before work starts.

    Args:
        script: its name; it is for the kinds that name it.
        task_flags: `TaskFlags` or `SquadFlags`.
        model_flags: `ModelFlags`.
        settings: `FineTuneSettings`.
        options: dict of more flags of the input and of the head, by their names, which are kept
            with the model; None where a flag is not given.

    Raises:
        InputError: anything is wrong with them.
    """
    kinds = [name for name, kind in KINDS.items() if kind.script == script]
    task = task_flags.read_task(kinds[0])
    if task.kind.name not in kinds:
        raise InputError(f"{task.name} is a task of {task.kind}, which this script does not "
                         f"do; it does {', '.join(kinds)}.")
    if model_flags.do_train and task.model_of:
        raise InputError(f"{task.name} has no training set: train --task={task.model_of} and "
                         "give the model as --init_checkpoint.")
    model_flags.check(settings)
    if model_flags.keep_head or not model_flags.do_train:
        model_flags = dataclasses.replace(model_flags, init_checkpoint=with_head_of(
            model_flags.init_checkpoint, task.name))
    model = open_encoder(model_flags, settings.output_dir, task.defaults.max_seq_length)
    task = _as_trained(task, model, kinds, task_flags.names_kind)
    options = task.kind.options(options, model.saved.options if model.saved else {},
                                model_flags.do_train, model.path)
    options |= reader_options(model_flags, model)
    masked_heads(model_flags, model.config)
    check_directions(model, options)
    task.kind.check_options(options, model.max_seq_length, model.tokenizer)
    wanted = task_flags.find(task_flags.settle(task, options), model_flags.do_train,
                             model_flags.do_eval, model_flags.do_predict)
    task = next(iter(wanted.sources.values())).task     # with its labels
    if task.kind.has_labels and not task.labels:
        raise InputError(f"there is no {TASK_FILE} beside {model.path}, so that its labels are not "
                         "known: name a model that was fine-tuned here, or give its --labels in "
                         "their order.")
    check_smoothing(settings, task)
    weights = class_weights(settings.class_weights, task)
    if model_flags.do_train:
        check_task(settings.output_dir, task, model, fixed_options(task, options))
    plan = Plan(task, model, options, wanted, weights, model_flags, settings)
    if model.saved and not model_flags.do_train:
        for split in plan.predicted_splits:
            model.saved.check_texts(task.kind.num_texts(task, split), wanted.sources[split].path)
    return plan


def fixed_options(task, options: dict) -> dict:
    """The options of input and head that must be equal for a run to continue."""
    return {**task.kind.fixed_options(options),
            **{name: options[name] for name in ("bilstm_size",) if name in options}}


def _as_trained(task, model, kinds, is_named):
    """The task with the kind and the labels of the fine-tuned model.

    Args:
        task: the `Task` of the flags.
        model: the `bert_tf.models.Model`.
        kinds: names of the kinds that the script is for.
        is_named: whether a flag decides the kind.

    Raises:
        InputError: the model is of another kind, or has other labels.
    """
    if not model.saved:
        return task
    saved = model.saved.task
    if not is_named and saved.kind.name in kinds and saved.kind != task.kind:
        task = dataclasses.replace(task, kind=saved.kind, metrics=saved.metrics)
    if saved.kind != task.kind:
        raise InputError(f"{model.path} is a model for {saved.kind.title}, not for "
                         f"{task.kind.title}; name another --init_checkpoint.")
    if task.labels and tuple(task.labels) != saved.labels:
        raise InputError(f"{model.path} knows the labels {', '.join(saved.labels)}, "
                         f"{task.name} has {', '.join(task.labels)}; name another "
                         "--init_checkpoint.")
    return task.kind.with_labels(task, saved.labels)


@dataclasses.dataclass
class Run:
    """A run that is ready to train, to score and to predict.

    Attributes:
        plan: its `Plan`.
        predictions: dict of split -> what decodes, scores and writes its predictions.
        sets: dict of split -> `ExampleSet`.
        is_chief: whether this process writes.
        tuning: `FineTuning`.
    """

    plan: Plan
    predictions: dict
    sets: dict
    is_chief: bool
    tuning: object = None

    def _answer(self, predict, splits):
        """What the model answers to splits: dict of split -> (arrays, losses, predictions)."""
        found = {}
        for split in splits:
            examples = self.sets[split]
            answers, losses = predict(examples, measures=self.plan.task.kind.measures)
            found[split] = answers, losses, self.predictions[split].decode(answers, examples)
        return found

    def _score(self, found):
        """The metrics of splits, and whether the predictions of one are degenerate."""
        scores, degenerate = {}, False
        for split, (_, losses, predicted) in found.items():
            predictions = self.predictions[split]
            if losses:
                scores.setdefault("loss", losses["loss"])
            scores |= {f"{predictions.prefix}/{name}": value
                       for name, value in predictions.score(predicted).items()}
            degenerate |= predictions.is_degenerate(predicted)
        return scores, degenerate

    def evaluate(self, predict) -> dict:
        """The metrics of all splits to score; see `Goal`."""
        scores, degenerate = self._score(self._answer(predict, self.plan.wanted.eval_splits))
        return {**scores, "degenerate": float(degenerate)}

    def carry_out(self) -> None:
        """Trains, scores and predicts as the flags ask for, while no other run writes to the
        output folder."""
        with self.tuning.sole_writer():
            self._carry_out()

    def _carry_out(self):
        plan = self.plan
        folder, does_train = plan.settings.output_dir, plan.flags.do_train
        if does_train:
            if self.is_chief:
                save_task(folder, plan.task, plan.model, plan.options)
            if not self.tuning.train(self.sets["train"]):
                return
        if not plan.predicted_splits:
            return
        own = os.path.join(folder, keras_file.NAME)
        path = own if does_train else plan.model.path
        found = self.answer_all(path)
        if not self.is_chief:
            return
        if path == own and SavedTask.read(folder):
            self._keep_chosen(found)
        self.write(found)

    def answer_all(self, path: str) -> dict:
        """What the model at `path` answers to all splits to score and to predict: dict of split ->
        (arrays, losses, predictions)."""
        trainer = self.tuning.load(path)
        mask(self.plan.flags, trainer.learner.encoder)
        return self._answer(functools.partial(self.tuning.predict, trainer),
                            self.plan.predicted_splits)

    def _keep_chosen(self, found):
        """Keeps the options that are best for the splits to score with the model."""
        folder = self.plan.settings.output_dir
        for split in self.plan.wanted.eval_splits:
            chosen = self.predictions[split].choose(found[split][2])
            if chosen:
                saved = SavedTask.read(folder)
                dataclasses.replace(saved, options={**saved.options, **chosen}).write(folder)

    def write(self, found: dict) -> None:
        """Writes predictions and their scores.

        Args:
            found: see `answer_all`.
        """
        plan = self.plan
        for split, (answers, _, predicted) in found.items():
            paths = self.predictions[split].write(
                plan.settings.output_dir, answers, predicted, split in plan.wanted.test_splits)
            print("wrote " + ", ".join(paths), flush=True)
        scored = [split for split in found
                  if self.predictions[split].is_scored(split in plan.wanted.eval_splits)]
        if not scored:
            return
        scores, degenerate = self._score({split: found[split] for split in scored})
        if degenerate:
            print("DEGENERATE: the model gives all examples one answer", flush=True)
        for name, value in scores.items():
            print(f"{name} = {value:.4f}", flush=True)
        described = {"task": plan.task.name, "headline": plan.task.kind.headline(plan.task, scored),
                     **self.predictions[scored[0]].describe_scores(), "metrics": scores}
        write_json(os.path.join(plan.settings.output_dir, "metrics.json"), described)
        training.write_eval_results(plan.settings.output_dir, scores)


def open_run(script: str, task_flags, model_flags, settings, options: dict | None = None,
             teaching=None, strategy=None) -> Run:
    """Makes a `Plan`, opens devices, and makes and reads records; the arguments are those of
    `make_plan`.

    Args:
        teaching: what teaches a student: `records(plan, folder)` are those to train on, and
            `goal(goal, plan)` is what to learn from them. None for gold labels alone.
        strategy: the devices; those of the settings if None.

    Raises:
        InputError: see `make_plan`; or devices or folders cannot be used.
    """
    plan = make_plan(script, task_flags, model_flags, settings, options or {})
    kind, sources = plan.task.kind, plan.wanted.sources
    of_input = plan.model.tokenizer, plan.model.max_seq_length, plan.options
    predictions = {split: kind.predictions(sources[split], *of_input,
                                           is_scored=split in plan.wanted.eval_splits)
                   for split in plan.predicted_splits}
    folder = model_flags.records_dir or os.path.join(settings.output_dir, "records")
    records = {split: teaching.records(plan, folder) if teaching and split == "train" else
               kind.records(source, *of_input, folder) for split, source in sources.items()}
    strategy = strategy or training.open_strategy(
        settings.resolve(plan.task.defaults, 1), trains=model_flags.do_train)
    is_chief = training.is_chief(strategy)
    make_folder(settings.output_dir, "output_dir")
    if is_chief:
        make_folder(folder, "records_dir")
        for one in records.values():
            one.report(*one.make(model_flags.num_workers, not model_flags.records_dir))
    training.wait_for_workers(strategy)
    sets = {split: data.ExampleSet(os.path.join(folder, f"{split}.manifest.json"),
                                   settings.pad_to_max_length) for split in records}
    run = Run(plan, predictions, sets, is_chief)
    goal = make_goal(plan, sets, run.evaluate)
    if teaching:
        goal = teaching.goal(goal, plan)
    if model_flags.do_train:
        goal.make_objective(plan.model.config, dtype=None)  # an impossible head is refused here
    run.tuning = training.FineTuning(settings, strategy, plan.model.config, goal, plan.model.path,
                                     model_flags.keep_head)
    if model_flags.do_train:
        run.tuning.check(sets["train"])
    if is_chief:
        flags.keep(task_flags, settings.output_dir)
    return run


def make_goal(plan: Plan, sets: dict, evaluate):
    """The `Goal` of a plan.

    Args:
        plan: the `Plan`.
        sets: dict of split -> `ExampleSet`.
        evaluate: see `Goal`.
    """
    task, eval_splits = plan.task, plan.wanted.eval_splits
    head, arguments = task.kind.head(task, plan.options)
    weights = plan.class_weights if plan.flags.do_train else None
    if weights == BALANCED:
        weights = task.kind.balanced_weights(sets["train"].manifest["counts"])
    if task.kind.smooths:
        arguments = {**arguments, "label_smoothing": plan.settings.label_smoothing}
    if weights:
        arguments = {**arguments, "class_weights": weights}
    rate, options = plan.flags.classifier_dropout, fixed_options(task, plan.options)
    if plan.flags.do_train and rate is not None:
        arguments = {**arguments, "dropout_rate": rate}
        options = {**options, "classifier_dropout": rate}
    return training.Goal(
        lambda config, dtype: getattr(objectives, HEADS[head].objective)(
            config, dtype=dtype, **arguments),
        evaluate if eval_splits else None, task.kind.headline(task, eval_splits), task.defaults,
        options,
        task.kind.scored_on([sets[split].identity() for split in eval_splits], plan.options))
