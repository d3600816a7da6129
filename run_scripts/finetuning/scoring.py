"""A fine-tuned model and a split of its task, which scores the model again and again."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import re
import time
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf import analysis, data, files, training
from bert_tf.checkpoints.names import MODEL_FILE, resolve
from bert_tf.errors import InputError
from bert_tf.files import absolute, file_size, match_names
from bert_tf.finetuning.model import ModelFlags
from bert_tf.finetuning.run import open_run
from bert_tf.kept import Kept
from bert_tf.tasks import named
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.task import OWN
from bert_tf.tasks.task_flags import SquadFlags, TaskFlags, check_kept, check_only
from bert_tf.training.settings import FineTuneSettings

if TYPE_CHECKING:
    from bert_tf.training.learners.learner import Learner
    from bert_tf.training.trainer import Trainer
    from run_scripts.finetuning.text_scoring import ScoredTextModel, TextSplit


def open_scored(model_dir: str, task_flags: TaskFlags, work_dir: str, batch_size: int = 32,
                splits: Mapping[str, str] = MappingProxyType({})) -> ScoredModel | ScoredTextModel:
    """Opens the model of a folder to be scored again and again, as its task needs. `splits`: {flag
    with its value: a split that it needs}, which InputError names if there is no such split."""
    if SavedTask.require(model_dir, "model_dir").task.kind.name == "text_to_text":
        from run_scripts.finetuning.text_scoring import ScoredTextModel
        return ScoredTextModel(model_dir, task_flags, batch_size, splits)
    return ScoredModel(model_dir, task_flags, work_dir, batch_size, splits=splits)


class ScoredModel:
    """The model of a folder, the --output_dir of a fine-tuning run, and examples of a split. Of
    SQuAD `task_flags` have `train_file` and `dev_file`; `work_dir` is where records are made, and
    `flag` names the folder in messages; `splits` are those of `open_scored`. Raises InputError if
    the folder holds no fine-tuned model, or a model of another task."""

    def __init__(self, model_dir: str, task_flags: TaskFlags, work_dir: str,
                 batch_size: int = 32, flag: str = "model_dir",
                 splits: Mapping[str, str] = MappingProxyType({})) -> None:
        saved = SavedTask.require(model_dir, flag)
        kind = saved.task.kind
        self._files: Any = task_flags
        options: dict = {}
        if kind.name == "span":
            check_only(task_flags, ("train_file", "dev_file"), "SQuAD, whose questions "
                       "--train_file and --dev_file name")
            self._files = SquadFlags(train_file=task_flags.train_file,
                                     predict_file=task_flags.dev_file)
            options = self._files.options
        elif task_flags.task and (known := named.find_task(task_flags.task)).kind.name != kind.name:
            raise InputError(f"--task={task_flags.task} is of the kind {known.kind.name}, but the "
                             f"model was trained for {kind.name}; give the task of the training.")
        elif saved.task.name != OWN and not (
                task_flags.task or task_flags.train_file or task_flags.dev_file):
            raise InputError(f"--task must be given: {model_dir} was trained for "
                             f"{saved.task.name}.")
        check_kept(task_flags, saved.options, "long_text")
        self._settings = FineTuneSettings(output_dir=work_dir, eval_batch_size=batch_size)
        flags = ModelFlags(do_eval=True, init_checkpoint=model_dir, num_workers=1,
                           records_dir=os.path.join(work_dir, "records"))
        try:
            with contextlib.redirect_stdout(io.StringIO()):     # without reports on records
                self._run = open_run(self._files, flags, self._settings, options, check=lambda
                                     member: [self._check(member, *row) for row in splits.items()])
        except InputError as error:     # it names the flags of fine-tuning
            message = re.sub(r"--do_eval: |,? (or give|or leave out|for) --do_eval"
                             "(=False| and --do_predict)?", "", str(error))
            error.args = (message.replace("--init_checkpoint", f"--{flag}").replace(
                "--predict_file", "--dev_file"),)
            raise
        self._member, = self._run.members
        self.task = self._member.task
        self.max_seq_length = saved.max_seq_length
        self.metric = self.task.headline if kind.name != "span" else "f1"
        self.batch_size = batch_size
        self.trainer: Trainer = self._run.tuning.load(model_dir)

    @property
    def learner(self) -> Learner:
        return self.trainer.learner

    def _check(self, member, flag, name):
        """Raises InputError if there is no such split, or its file is not there."""
        known = ["", *member.splits.eval_splits, "train"]
        if name not in known:
            raise InputError(f"{flag}: choose from {', '.join(known[1:])}.")
        if name == "train":
            try:
                self._files.find(member.task, True, True, False)
            except InputError as error:
                error.args = (str(error).replace("--do_train", flag),)
                raise

    def split(self, name: str = "", examples: int = 0) -> ScoredSplit:
        """The examples to score on. `name`: of the split; "": the first one with labels, except
        train. `examples`: how many, the first; 0: all."""
        member = self._member
        name = name or member.splits.eval_splits[0]
        if name != "train":
            examples_set, predictions = member.sets[name], member.predictions[name]
        else:
            source = self._files.find(self.task, True, True, False).sources["train"]
            kind, folder = self.task.kind, member.flags.records_dir
            with contextlib.redirect_stdout(io.StringIO()):
                kind.records(source, *member.of_input, folder).make(1, True)
            examples_set = data.ExampleSet(os.path.join(folder, "train.manifest.json"),
                                           padding=self._run.padding)
            predictions = kind.predictions(source, *member.of_input, is_scored=True)
        if examples and self.task.kind.name == "span":
            raise InputError("--examples is not for SQuAD; give a smaller file.")
        if examples:
            predictions.examples = predictions.examples[:examples]
            examples_set = examples_set.first(int(self.task.kind.count_records(
                predictions.examples, *member.of_input).sum()))
        return ScoredSplit(self, name, examples_set, predictions)

    def trainer_of(self, learner: Learner) -> Trainer:
        """A Trainer of another model for the same task, such as a smaller one."""
        settings = self._settings.resolve(self.task.defaults, 1)
        return training.make_trainer(self.trainer.strategy, settings, lambda dtype: learner)


@dataclasses.dataclass
class ScoredSplit:
    """The examples of a split, an `ExampleSet`, and what decodes and scores answers to them."""

    model: ScoredModel
    name: str
    examples: Any
    predictions: Any

    @property
    def size(self) -> int:
        return self.predictions.size

    @property
    def records(self) -> int:
        """Number of records; a long example has several."""
        return self.examples.size

    def answer(self, trainer: Trainer | None = None) -> Any:
        """The predictions, to be scored, for all examples of the model as it is, or of another."""
        answers = self.predictions.join(self.timed(trainer, 0)[0])
        return self.predictions.against_ties(
            answers, self.predictions.decode(answers, self.examples))

    def timed(self, trainer: Trainer | None = None, runs: int = 3
              ) -> tuple[dict[str, np.ndarray], float]:
        """The arrays that a model answers, and the least CPU seconds an example of some runs."""
        def answer():
            return training.predict(trainer or self.model.trainer, self.examples,
                                    min(self.model.batch_size, self.records), measures=False)[0]

        arrays, seconds = answer(), []       # the first compiles
        for _ in range(runs):
            start = time.process_time()
            answer()
            seconds.append((time.process_time() - start) / self.size)
        return arrays, min(seconds, default=0.0)

    def score(self, predicted: Any) -> float:
        """The headline of predictions, times 100."""
        value = self.predictions.score(predicted)[self.model.metric]
        return float(value) * (1 if self.model.task.kind.name == "span" else 100)

    def chance(self, first: Any, second: Any) -> float | None:
        """The probability that two predictions differ by chance, see `analysis.p_value`; None where
        they are not compared."""
        task = self.model.task
        if not hasattr(task.kind, "compared"):
            return None
        labels, first = task.kind.compared(task, self.predictions.examples, first)
        _, second = task.kind.compared(task, self.predictions.examples, second)
        return analysis.p_value(labels, first, second, self.model.metric)

    def identity(self) -> Any:
        return self.examples.identity()

    def batches(self, size: int) -> Iterator[dict[str, np.ndarray]]:
        """The features of all records with their labels, in order; the last may be smaller."""
        for start in range(0, self.records, size):
            yield self.batch(np.arange(start, min(start + size, self.records)))

    def batch(self, rows: np.ndarray, length: int = 0) -> dict[str, np.ndarray]:
        """The features of some records with their labels. `rows`: int [B]. `length`: S; 0: the
        length that the longest record needs."""
        return self.examples.batch(rows, length or self.examples.batch_length(rows))


def kept_scores(folder: str, model_dir: str, split: ScoredSplit | TextSplit, **more: Any
                ) -> Kept:
    """The scores that `scores.json` in a folder keeps; it forgets scores of other settings."""
    return Kept(os.path.join(folder, "scores.json"), {
        "model": absolute(model_dir), "bytes": weights_bytes(model_dir),
        "split": split.name, "examples": split.records, **more,
        **contents_of(model_dir, split)}, forgets=True)


def contents_of(model_dir: str, split: ScoredSplit | TextSplit, flag: str = "model_dir"
                ) -> dict[str, Any]:
    """Identities of the weights and the examples that results depend on."""
    return {"weights": files.digest(*weights_files(model_dir, flag)), "records": split.identity()}


def weights_files(folder: str, flag: str = "model_dir") -> list[str]:
    """The files of weights of a model's folder; of a task of a model of several, the model's.
    Raises InputError if there are none; it names `flag`."""
    task, shared = resolve(os.path.join(folder, MODEL_FILE))
    if task:
        return [shared]
    paths = sorted(match_names(folder, "*.keras") + match_names(folder, "*.safetensors"))
    if not paths:
        raise InputError(f"--{flag}: there are no weights in {folder}; name the --output_dir of a "
                         "fine-tuning run.")
    return paths


def weights_bytes(folder: str) -> int:
    return sum(map(file_size, weights_files(folder)))
