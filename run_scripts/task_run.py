"""What run_classifier, run_multiple_choice and run_tagger share: from a task's files to scores."""

import dataclasses
import functools
import math
import os

from bert_tf import metrics
from bert_tf.checkpoints import keras_file
from bert_tf.errors import InputError
from bert_tf.tasks import decoding, predictions
from bert_tf.tasks.own import with_labels
from bert_tf.tasks.records import Options, SplitRecords
from bert_tf.tasks.saved import TASK_FILE
from bert_tf.tasks.submission import write_submission
from data_prep.create_finetuning_data import find_sources, make_records
from run_scripts.model_flags import check_choice, open_model
from run_scripts.opening import open_records
from run_scripts.outputs import check_task, save_task, write_scores

BALANCED = "balanced"


class TaskRun:
    """A task whose files, model and records were found good, ready to train and to predict.

    Args:
        kinds: the kinds of tasks that the script is for.
        task_flags: `TaskFlags`.
        model_flags: `ModelFlags`.
        settings: `FineTuneSettings`.
        make_objective: function (task, class_weights, options) -> function (config, dtype) ->
            objective.
        options: dict of more flags of the input and of the head, by their names, which are kept
            with the model; None where the flag is not given. Without training they are the
            model's. One is `document_context`, see bert_tf.tasks.records.Options.

    Raises:
        InputError: anything is wrong with them.
    """

    def __init__(self, kinds, task_flags, model_flags, settings, make_objective, options=None):
        self._flags, self._settings, self._folder = model_flags, settings, settings.output_dir
        task = task_flags.read_task(kinds[0])
        if task.kind not in kinds:
            raise InputError(f"{task.name} is a task of {task.kind}, which this script does not "
                             f"do; it does {', '.join(kinds)}.")
        if model_flags.do_train and task.model_of:
            raise InputError(f"{task.name} has no training set: train --task={task.model_of} and "
                             "give the model as --init_checkpoint.")
        check_choice(model_flags, settings)
        self.model = open_model(model_flags, self._folder, task.defaults.max_seq_length)
        task = self._with_saved_labels(self._with_saved_kind(task, task_flags, kinds))
        self._options = self._with_saved_options(options or {})
        sources = {source.split: source for source in find_sources(task, task_flags, [])}
        self._sources = self._wanted(task, task_flags, sources)
        self.task = next(iter(self._sources.values())).task     # with its labels
        if self.task.kind in ("classification", "tagging") and not self.task.labels:
            raise InputError(f"there is no {TASK_FILE} beside {self.model.path}, so that its "
                             "labels are not known: name a model that was fine-tuned here, or "
                             "give its --labels in their order.")
        if settings.label_smoothing and self.task.kind == "regression":
            raise InputError("--label_smoothing is for labels, which regression has not; leave it "
                             "out.")
        self._class_weights = class_weights(settings.class_weights, self.task)
        if model_flags.do_train:
            check_task(self._folder, self.task, self.model, **self._options)
        of_records = Options(self.model.max_seq_length, self.model.tokenizer.do_lower_case,
                             bool(self._options.get("document_context")))
        records = [SplitRecords(source, of_records, self.model.tokenizer)
                   for source in self._sources.values()]
        self._open(records, make_objective)

    def _with_saved_kind(self, task, task_flags, kinds):
        """Own files whose kind no flag tells, as of the kind of the fine-tuned model."""
        is_told = task_flags.task or task_flags.task_kind or task_flags.multi_label
        saved = self.model.saved and self.model.saved.task
        if is_told or not saved or saved.kind not in kinds or (
                (saved.kind, saved.multi_label) == (task.kind, task.multi_label)):
            return task
        return dataclasses.replace(task, kind=saved.kind, multi_label=saved.multi_label,
                                   metrics=saved.metrics)

    def _with_saved_labels(self, task):
        """The task with the labels that the fine-tuned model knows."""
        saved = self.model.saved
        if not saved:
            return task
        if (saved.task.kind, saved.task.multi_label) != (task.kind, task.multi_label):
            raise InputError(f"{self.model.path} is a model for {saved.task.kind}"
                             f"{' of several labels' * saved.task.multi_label}, {task.name} is "
                             f"{task.kind}; name another --init_checkpoint.")
        if task.labels and tuple(task.labels) != saved.task.labels:
            raise InputError(f"{self.model.path} knows the labels {', '.join(saved.task.labels)}, "
                             f"{task.name} has {', '.join(task.labels)}; name another "
                             "--init_checkpoint.")
        return with_labels(task, saved.task.labels)

    def _with_saved_options(self, options):
        """The options, where no flag tells them those of the fine-tuned model."""
        saved = self.model.saved.options if self.model.saved else {}
        for name, value in options.items():
            known = saved.get(name)
            if name != "document_context" and None not in (value, known) and value != known:
                raise InputError(f"{self.model.path} was trained with --{name}={known}, not "
                                 f"{value}: leave the flag out.")
        return {name: saved.get(name) if value is None else value
                for name, value in options.items()}

    def _wanted(self, task, task_flags, sources):
        """The sources of the splits that the flags ask for, by split."""
        flags, wanted = self._flags, {}
        if flags.do_train:
            if "train" not in task.splits:
                raise InputError("--do_train: name the file to train on with --train_file.")
            wanted["train"] = sources.get("train") or task.path(task_flags.data_dir, "train")
        labelled = [split for split, layout in task.splits.items()
                    if split != "train" and layout.label is not None]
        tests = [split for split in task.splits if split.startswith("test")]
        self.eval_splits = [split for split in labelled if flags.do_eval and split in sources]
        self.test_splits = [split for split in tests if flags.do_predict and split in sources]
        for found, is_wanted, splits, flag, own in (
                (self.eval_splits, flags.do_eval, labelled, "--do_eval",
                 "a file that has labels with --dev_file"),
                (self.test_splits, flags.do_predict, tests, "--do_predict",
                 "the file to predict with --test_file")):
            if is_wanted and not found:
                names = " or ".join(task.splits[split].files[0] for split in splits)
                raise InputError(f"{flag}: name {own}." if not names else
                                 f"{flag}: there is no {names} in {task_flags.data_dir!r}; put it "
                                 f"there, or leave out {flag}.")
            wanted |= {split: sources[split] for split in found}
        return wanted

    def _open(self, records, make_objective):
        """Devices, and records into memory: all that needs TensorFlow."""
        from bert_tf.training.distribution import is_chief      # pylint: disable=C0415
        from bert_tf.training.finetuning import FineTuning, Goal    # pylint: disable=C0415
        settings, flags, task = self._settings, self._flags, self.task
        strategy, self.sets = open_records(flags, settings, task.defaults, self._sources,
                                           functools.partial(make_records, records))
        self._chief = is_chief(strategy)
        self._examples = {split: list(source.examples()) for split, source in self._sources.items()
                          if split != "train"}
        weights = self._class_weights if flags.do_train else None
        if weights == BALANCED:
            counts = self.sets["train"].manifest["counts"]
            weights = balanced_weights([counts["labels"][label] for label in task.labels],
                                       counts["examples"] if task.multi_label else None)
        headline = f"{self.eval_splits[0]}/{task.headline}" if self.eval_splits else ""
        goal = Goal(make_objective(task, weights, self._options),
                    self.evaluate if self.eval_splits else None, headline, task.defaults,
                    self._options, [self.sets[split].identity() for split in self.eval_splits])
        if flags.do_train:
            goal.make_objective(self.model.config, dtype=None)  # one that can't be is refused here
        self.tuning = FineTuning(settings, strategy, self.model.config, goal,
                                 self.model.path, flags.keep_head)
        if flags.do_train:
            self.tuning.check(self.sets["train"])

    def _decode(self, split, answers):
        is_word = (self.sets[split].padded("label_weights") if self.task.kind == "tagging"
                   else None)
        return decoding.decode(self.task, answers, self._examples[split], is_word)

    def evaluate(self, predict):
        """The metrics of all splits that have labels; see `Goal`."""
        found, degenerate = {}, False
        for split in self.eval_splits:
            answers, losses = predict(self.sets[split])
            predicted = self._decode(split, answers)
            gold = decoding.targets(self.task, self._examples[split])
            found.setdefault("loss", losses["loss"])
            found |= {f"{split}/{name}": value for name, value in
                      metrics.compute(self.task.metrics, gold, predicted).items()}
            degenerate |= decoding.is_degenerate(self.task, predicted, gold)
        return {**found, "degenerate": float(degenerate)}

    def run(self):
        """Trains, scores and predicts as the flags ask for."""
        with self.tuning.sole_writer():
            self._run()

    def _run(self):
        flags = self._flags
        if flags.do_train:
            if self._chief:
                save_task(self._folder, self.task, self.model, **self._options)
            if not self.tuning.train(self.sets["train"]):
                return
        if not (flags.do_eval or flags.do_predict):
            return
        trainer = self.tuning.load(
            os.path.join(self._folder, keras_file.NAME) if flags.do_train else self.model.path)
        predict = functools.cache(functools.partial(self.tuning.predict, trainer))
        scores = self.evaluate(predict)
        splits = dict.fromkeys([*self.eval_splits, *self.test_splits])
        answers = {split: predict(self.sets[split])[0] for split in splits}
        if not self._chief:
            return
        if flags.do_eval:
            if scores.pop("degenerate"):
                print("DEGENERATE: the model gives all examples one answer", flush=True)
            write_scores(self._folder, scores, task=self.task.name,
                         headline=f"{self.eval_splits[0]}/{self.task.headline}")
        for split in splits:
            self._write_predictions(split, answers[split])

    def _write_predictions(self, split, answers):
        """Writes the predictions of a split, and what the task's own server or scorer takes."""
        predicted, examples = self._decode(split, answers), self._examples[split]
        paths = [os.path.join(self._folder, f"{split}_predictions.jsonl")]
        predictions.write_predictions(paths[0], self.task, examples, predicted, answers)
        if self.task.kind == "tagging":
            paths.append(os.path.join(self._folder, f"{split}_predictions.txt"))
            labelled = self._sources[split].task.split(split).label is not None
            gold = decoding.targets(self.task, examples) if labelled else None
            predictions.write_tags(paths[1], examples, gold, predicted)
        elif split in self.test_splits:
            if "probabilities" in answers:
                paths.append(os.path.join(self._folder, f"{split}_results.tsv"))
                predictions.write_probabilities(paths[1], answers["probabilities"])
            paths += filter(None, [self._submit(split, predicted)])
        print("wrote " + ", ".join(paths), flush=True)

    def _submit(self, split, predicted):
        layout = self.task.split(split)
        if layout.submission and len(predicted) != layout.size:
            print(f"no {layout.submission}: the server takes {layout.size:,} predictions, the file "
                  f"has {len(predicted):,} examples", flush=True)
            return None
        return write_submission(self._folder, self.task, split, predicted)


def class_weights(flag, task):
    """What a flag says of the weights of labels: None, a number for each label, or BALANCED.

    Raises:
        InputError: they are not as many as the labels.
    """
    if not flag or flag == [BALANCED] and task.labels:
        return flag[0] if flag else None
    if not task.labels:
        raise InputError(f"--class_weights is for labels, which {task.name} has not; leave it out.")
    try:
        weights = [float(value) for value in flag]
    except ValueError:
        weights = []
    if len(weights) != len(task.labels) or not (
            any(weights) and all(0 <= weight < math.inf for weight in weights)):
        raise InputError(f"--class_weights={','.join(flag)}: give {BALANCED}, or for each of the "
                         f"labels {', '.join(task.labels)} a number of at least 0, not 0 for all.")
    return weights


def balanced_weights(counts, examples=None):
    """Weights by which each label counts alike: N / (labels * examples of the label), as
    scikit-learn has it; where an example may have several, (N - those of the label) / those, by
    which it counts as much as its absence.

    Args:
        counts: examples of each label, a list.
        examples: how many there are, where an example may have several labels.
    """
    counts = [max(count, 1) for count in counts]
    if examples:
        return [max(examples - count, 1) / count for count in counts]
    return [sum(counts) / (len(counts) * count) for count in counts]
