"""The steps of a run on several tasks: flags and files are checked, records made, one model trained
and scored on all tasks, its predictions written for each.
"""

import dataclasses
import functools
import math
import os
import shutil
from typing import Any

from bert_tf import compression, data, objectives, training
from bert_tf.checkpoints import keras_file
from bert_tf.checkpoints.task_heads import task_folder, tasks_beside
from bert_tf.errors import InputError
from bert_tf.files import make_folder, write_aside, write_json
from bert_tf.heads import HEADS
from bert_tf.tasks.task import TASK_FILE, SavedTask
from run_scripts.finetuning.head_masks import mask, masked_heads
from run_scripts.finetuning.model import check_task, open_encoder, save_task
from run_scripts.finetuning.multitask import (
    DEFAULTS,
    Member,
    find_guests,
    open_members,
    settle_steps,
)
from run_scripts.finetuning.multitask_teaching import described, shared_features, taught_records

_OF_ONE_TASK = {"grid": False, "class_weights": [], "lm_coef": 0.0, "loss_reduction": "mean",
                "label_smoothing": 0.0}


def _score_name(member, split, metric):
    return f"{member.name}_{split}_{metric}"


@dataclasses.dataclass
class MultiTaskRun:
    """A run that is ready to train, to score and to predict.

    Attributes:
        members: the tasks.
        guest: the tasks without a training set that a head of another answers too.
        model: the `bert_tf.models.Model` to begin with.
        sets: the `ExampleSet`s by task and split.
        predictions: what decodes, scores and writes predictions, by task and split.
        job, settings: the flags.
        deciding: names of the tasks whose mean score decides.
        epoch_steps: steps of an epoch.
        tuning: `FineTuning`.
        is_chief: whether this process writes.
    """

    members: list[Member]
    guest: list[Member]
    model: Any
    sets: dict
    predictions: dict
    job: Any
    settings: Any
    deciding: list[str]
    epoch_steps: int = 0
    tuning: Any = None
    is_chief: bool = True

    def _answer(self, predict, member, split):
        """What the model answers to a split: arrays, losses, predictions."""
        examples = self.sets[member.name][split]
        head = next(other for other in self.members if other.number == member.number)
        answers, losses = predict(data.TaskExamples(examples, head.name, member.number),
                                  measures=member.task.kind.measures)
        return answers, losses, self.predictions[member.name][split].decode(answers, examples)

    def evaluate(self, predict) -> dict:
        """The scores of all tasks, of which it prints a table; see `Goal`."""
        scores, losses, degenerate = {}, [], []
        width = max(len(member.name) for member in self.members)
        for member in self.members:
            for split in member.wanted.eval_splits:
                predictions = self.predictions[member.name][split]
                _, measured, predicted = self._answer(predict, member, split)
                losses.append(measured["loss"])
                found = predictions.score(predicted)
                mark = predictions.is_degenerate(predicted)
                degenerate.append(mark)
                scores |= {_score_name(member, split, name): value
                           for name, value in found.items()}
                print(f"  {member.name:{width}}  {split}: " + "  ".join(
                    f"{name} {value:.4f}" for name, value in found.items())
                    + "  DEGENERATE" * mark, flush=True)
        return {"loss": sum(losses) / len(losses), "average": self._average(scores), **scores,
                "degenerate": float(all(degenerate))}

    def _headline(self, member):
        return _score_name(member, member.wanted.eval_splits[0], member.task.headline)

    def _average(self, scores):
        """The mean of the headlines of the tasks that decide."""
        values = [scores[self._headline(member)] for member in self.members
                  if member.name in self.deciding]
        return sum(values) / len(values)

    def carry_out(self) -> None:
        """Trains, scores and predicts as the flags ask for, while no other run writes to the
        output folder."""
        with self.tuning.sole_writer():
            folder = self.settings.output_dir
            if self.job.do_train:
                if self.is_chief:
                    self.model.tokenizer.save(folder)
                    for member in self.members:
                        own = task_folder(folder, member.name)
                        make_folder(own, "output_dir")
                        save_task(own, member.task, self.model, member.options)
                if not self.tuning.train(self.sets["train"]):
                    return
            if self.job.do_eval or self.job.do_predict:
                self._predict(os.path.join(folder, keras_file.NAME) if self.job.do_train
                              else self.model.path)

    def _predict(self, path):
        """Answers all splits with the model at `path`, and writes predictions and scores."""
        trainer = self.tuning.load(path)
        mask(self.job, trainer.learner.encoder)
        predict = functools.partial(self.tuning.predict, trainer)
        folder, scores = self.settings.output_dir, {}
        for member in (*self.members, *self.guest):
            own = task_folder(folder, member.name) if member in self.members else os.path.join(
                folder, "guests", member.name)
            for split in member.splits:
                answers, _, predicted = self._answer(predict, member, split)
                predictions, is_test = self.predictions[member.name][split], (
                    split in member.wanted.test_splits)
                if split in member.wanted.eval_splits:
                    scores |= {_score_name(member, split, name): value
                               for name, value in predictions.score(predicted).items()}
                if self.is_chief:
                    make_folder(own, "output_dir")
                    predictions.write(own, answers, predicted, is_test)
                    self._submit(member, split, own, is_test)
        if scores and self.is_chief:
            self._write(scores)

    def _submit(self, member, split, own, is_test):
        """Puts what the server of GLUE takes into one folder."""
        name = member.task.split(split).submission
        path = os.path.join(own, name or "")
        if is_test and name and os.path.exists(path):
            folder = os.path.join(self.settings.output_dir, "submission")
            make_folder(folder, "output_dir")
            shutil.copyfile(path, os.path.join(folder, name))
            print(f"wrote {os.path.join(folder, name)}", flush=True)

    def _write(self, scores):
        """Writes the scores, and of training the curves and the best epochs."""
        folder = self.settings.output_dir
        if any(member.wanted.eval_splits for member in self.members):
            scores = {"average": self._average(scores), **scores}
        described = {"headlines": {m.name: self._headline(m) for m in self.members},
                     "metrics": scores}
        if self.job.do_train:
            described["best_epochs"] = self._write_curves()
        for name, value in scores.items():
            print(f"{name} = {value:.4f}", flush=True)
        write_json(os.path.join(folder, "metrics.json"), described)
        training.write_eval_results(folder, scores)

    def _write_curves(self):
        """Writes a line an epoch with the headline of each task; returns the best epoch of each."""
        columns = {"average": "average", **{m.name: self._headline(m) for m in self.members}}
        lines = training.read_metrics(self.settings.output_dir, "eval")
        with write_aside(os.path.join(self.settings.output_dir, "dev_curves.tsv")) as file:
            file.write("\t".join(["epoch", "step", *columns]) + "\n")
            file.writelines("\t".join([f"{line['step'] / self.epoch_steps:g}", str(line["step"]), *(
                f"{line[name]:.4f}" for name in columns.values())]) + "\n" for line in lines)
        best = {}
        for name, column in columns.items():
            values = [-math.inf if math.isnan(line[column]) else line[column] for line in lines]
            index = max(range(len(lines)), key=values.__getitem__)
            best[name] = {"epoch": lines[index]["step"] / self.epoch_steps, "score": values[index]}
            print(f"best epoch of {name}: {best[name]['epoch']:g} ({values[index]:.4f})",
                  flush=True)
        return best


def open_run(flags, job, settings) -> MultiTaskRun:
    """Checks all that can be known, opens devices, and makes and reads records.

    Args:
        flags: `MixtureFlags`.
        job: `ModelFlags`.
        settings: `FineTuneSettings`.

    Raises:
        InputError: anything is wrong with them, or devices or folders cannot be used.
    """
    model = _open_model(flags, job, settings)
    masked_heads(job, model.config)
    members = open_members(flags, job, model)
    deciding = flags.deciding([member.name for member in members])
    if job.do_train:
        for member in members:
            check_task(task_folder(settings.output_dir, member.name), member.task, model,
                       member.options)
    guest = find_guests(flags, job, members)
    run = MultiTaskRun(members, guest, model, {}, {}, job, settings, deciding)
    strategy = training.open_strategy(settings.resolve(DEFAULTS, 1), trains=job.do_train)
    if training.needs_static_shapes(strategy):
        raise InputError("several tasks are not trained together on TPUs, where all batches must "
                         "have one shape; give another --distribution_strategy.")
    run.is_chief = training.is_chief(strategy)
    make_folder(settings.output_dir, "output_dir")
    _make_records(run, strategy)
    goal = _make_goal(run)
    if job.do_train:
        goal.make_objective(model.config, dtype=None)   # an impossible head is refused here
        sets = {member.name: run.sets[member.name]["train"] for member in members}
        settings, order = settle_steps(flags, settings, [one.size for one in sets.values()],
                                       job.do_eval)
        run.epoch_steps, run.settings = order.steps_of_epoch, settings
        run.sets["train"] = data.TaskBatches(sets, order, settings.gradient_accumulation_steps,
                                             shared=shared_features(members))
    run.tuning = training.FineTuning(settings, strategy, model.config, goal, model.path,
                                     job.keep_head)
    if job.do_train:
        run.tuning.check(run.sets["train"])
    return run


def _open_model(flags, job, settings):
    """The model to begin with; the flags are checked."""
    flags.rows()
    job.check(settings)
    for name, default in _OF_ONE_TASK.items():
        if getattr(settings, name) != default:
            raise InputError(f"--{name} is for one task; leave it out.")
    if job.bilstm_size:
        raise InputError("--bilstm_size is for one task; leave it out.")
    if job.ensemble:
        raise InputError("--ensemble is for one task: give the folders of their tasks, such as "
                         "mtdnn/tasks/mrpc, to the script of that task.")
    folder = settings.output_dir
    has_tasks = bool(tasks_beside(folder))
    if job.do_train and not has_tasks and os.path.exists(os.path.join(folder, TASK_FILE)):
        raise InputError(f"--output_dir: {folder} holds a model of one task, which would be "
                         "overwritten; name another folder.")
    if job.do_train and job.init_checkpoint and os.path.realpath(
            job.init_checkpoint) == os.path.realpath(folder):
        raise InputError(f"--output_dir is the folder of --init_checkpoint={folder}, whose files "
                         "would be overwritten; name another.")
    # A run that was begun keeps its length, whatever the default is now.
    trained = (job.keep_head or not job.do_train) and job.init_checkpoint or folder
    saved = [SavedTask.read(task_folder(trained, name)) for name in tasks_beside(trained)]
    length = next((one.max_seq_length for one in saved if one), DEFAULTS.max_seq_length)
    return open_encoder(job, "" if job.do_train and has_tasks else folder, length)


def _make_records(run, strategy):
    """Makes the records of all tasks, in a folder each, and reads them."""
    settings, job = run.settings, run.job
    folder = job.records_dir or os.path.join(settings.output_dir, "records")
    made = {}
    for member in (*run.members, *run.guest):
        kind, sources = member.task.kind, member.wanted.sources
        of_input = run.model.tokenizer, run.model.max_seq_length, member.options
        own = os.path.join(folder, member.name)
        made[member.name] = {
            split: taught_records(member, source, of_input, own)
            if split == "train" and member.teachers else kind.records(source, *of_input, own)
            for split, source in sources.items()}
        run.predictions[member.name] = {
            split: kind.predictions(sources[split], *of_input,
                                    is_scored=split in member.wanted.eval_splits)
            for split in member.splits}
    for name, records in made.items() if run.is_chief else ():
        make_folder(os.path.join(folder, name), "records_dir")
        print(f"{name}:", flush=True)
        for one in records.values():
            one.report(*one.make(job.num_workers, not job.records_dir))
    training.wait_for_workers(strategy)
    for name, records in made.items():
        run.sets[name] = {
            split: data.ExampleSet(os.path.join(folder, name, f"{split}.manifest.json"),
                                   settings.pad_to_max_length) for split in records}


def _make_goal(run):
    """The `Goal` of a run."""
    heads = {member.name: member.head() for member in run.members}

    taught = {member.name: member.distillation for member in run.members if member.teachers}

    def make_objectives(config, dtype):
        made = [getattr(objectives, HEADS[head].objective)(config, dtype=dtype, **arguments)
                for head, arguments in heads.values()]
        for head in [one for one in made if one.name in taught]:
            row = taught[head.name]
            soft, = compression.make_terms(row, config, head, dtype, f"{head.name}_soft")
            soft.loss_weight *= head.loss_weight
            head.loss_weight *= row.gold_weight
            made.append(soft)
        return made

    scored_on = {member.name: [run.sets[member.name][split].identity()
                               for split in member.wanted.eval_splits] for member in run.members}
    return training.Goal(
        make_objectives, run.evaluate if run.job.do_eval else None, "average", DEFAULTS,
        {"tasks": {name: list(head) for name, head in heads.items()},
         "input": {member.name: member.options for member in run.members},
         "best_of": run.deciding, **described(taught)}, scored_on,
        compression.MultiTaskStudent if taught else training.MultiTaskLearner)
