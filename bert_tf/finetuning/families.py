"""Families of models, which do a task of a suite: a family has the settings that name the task to
`bert_tf.finetune`, the size of the task's files, and the run's scores by split and metric."""

import itertools
import os
import typing
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from bert_tf.errors import InputError
from bert_tf.files import read_json
from bert_tf.finetuning import jobs, paper_defaults
from bert_tf.finetuning.run import FineTuneRun
from bert_tf.models.t5.finetuning import LONGEST_INPUT
from bert_tf.models.t5.tasks import TextTask, read_split, text_task
from bert_tf.opening import Model
from bert_tf.tasks.answer_spans import SpanOptions
from bert_tf.tasks.squad import read_references
from bert_tf.tasks.task import Task
from bert_tf.tasks.task_flags import TaskFlags

_SAMPLE = 256       # examples whose tokens are counted
_PERCENT = 100.0


class Heads:
    """Models that get a head for each kind of task."""

    has_epochs = True       # whether a run's steps may follow from epochs

    def check(self, settings: Collection[str]) -> None:
        """Raises InputError if runs do not have one of the settings."""

    def defaults(self, config: Any, task: str) -> Mapping[str, Any]:
        """The settings of the model's paper."""
        return paper_defaults.find(config, task)

    def named(self, task: Task, data_dir: str) -> dict[str, Any]:
        """The settings that name a task and its files."""
        return {"task": task.name, "data_dir": data_dir}

    def records(self, folder: str) -> dict[str, Any]:
        """The settings that name the folder of records, which the runs of a task share."""
        return {"records_dir": folder}

    def size(self, task: Task, split: str, data_dir: str, length: int,
             model: Model) -> tuple[int, float]:
        """The number of a file's examples, of questions of their spans, and the mean of the first
        ones' tokens, cut to `length`."""
        if task.kind.name == "span":
            first, count = _sample(read_references(task.path(data_dir, split)))
            lengths = _lengths([pair[:2] for pair in first], model)
            spans = np.maximum(lengths[:, 1] / SpanOptions.doc_stride - 1, 1)
            return (round(count * float(spans.mean())),
                    float(np.minimum(lengths.sum(1), length).mean()))
        flags = TaskFlags(task=task.name, data_dir=data_dir, skip_malformed_lines=True)
        source, = flags.find_sources(task, [split])
        first, count = _sample(source.examples())
        features, _ = task.kind.encode(source.task, first, model.tokenizer, length, {})
        return count, float(np.sum(features["input_mask"])) / len(first)

    def scores(self, run: FineTuneRun | None, task: Task, folder: str) -> dict[str, Any]:
        """The `metrics` that a run has left in its folder, and the name of the `headline`."""
        result = read_json(os.path.join(folder, "metrics.json"), {"headline": "", "metrics": {}})
        return {name: result[name] for name in ("headline", "metrics")}


class Texts(Heads):
    """T5, which reads and writes tasks as texts."""

    has_epochs = False

    def check(self, settings):
        known = jobs.settings_of(jobs.JOBS["text_to_text"])
        for name in settings:
            if name.removeprefix("grid_") not in known or name == "early_stopping":
                raise InputError(f"--{name} is not for a suite of T5, whose runs do not have it; "
                                 "leave it out.")

    def defaults(self, config, task):
        return {"max_seq_length": LONGEST_INPUT, **jobs.T5_DEFAULTS}

    def named(self, task, data_dir):
        text = text_task(task.name)
        if not text:
            raise InputError(f"T5 does not do {task.name} in a suite: none of "
                             "T5's --tasks is this one; leave it out.")
        return {"task": [text.name], "data_dir": [data_dir]}

    def records(self, folder):
        return {}

    def size(self, task, split, data_dir, length, model):
        """The tokens are an input's and its target's."""
        first, count = _sample(read_split(text_task(task.name), split, task.path(data_dir, split)))
        pairs = [(example.input, example.target) for example in first]
        return count, float(np.minimum(_lengths(pairs, model), length).sum(1).mean())

    def scores(self, run, task, folder):
        """The scores under the names that a head's have, as fractions."""
        scores = super().scores(run, task, folder)["metrics"]
        text = typing.cast(TextTask, text_task(task.name))
        metrics = dict(zip(text.metrics, task.metrics))
        member, = run.members
        named = {f"{file.official_split}/{metrics[name]}": scores[f"{file.name}/{name}"] / _PERCENT
                 for file in map(member.sets.get, member.splits.eval_splits)
                 for name in text.metrics if scores}
        return {"headline": next(iter(named), ""), "metrics": named}


def _sample(examples):
    """The first examples, and the number of all."""
    first = list(itertools.islice(examples, _SAMPLE))
    return first, len(first) + sum(1 for _ in examples)


def _lengths(pairs, model):
    """The numbers of tokens of pairs of texts, [pairs, 2]."""
    return model.tokenizer.encode_lines([text for pair in pairs for text in pair])[1].reshape(-1, 2)


HEADS, TEXTS = Heads(), Texts()
FAMILIES = {"t5": TEXTS}        # by `model_type`; others have heads
