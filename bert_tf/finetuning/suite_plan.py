"""The plan of a suite's run: the models that will be trained, and the estimated time."""

import dataclasses
import itertools
import statistics
import time
from typing import Any

import numpy as np

from bert_tf.errors import counted
from bert_tf.finetuning.suite import MAJORITY, Cell, SuiteRun
from bert_tf.opening import Model, open_model
from bert_tf.tasks.named import OF_SUITES, placed
from bert_tf.training.reporting import duration
from bert_tf.training.settings import FineTuneSettings
from bert_tf.training.trials import DIVERGED, RESULT, descriptions

_TRAINED, _READ = 3, 1      # passes forward that a step of training, and of prediction, costs
# Share of the speed of one large matrix product that a step of a small encoder reaches.
_EFFICIENCY = 0.35
_START_SECONDS = 10.0       # of a run: a model is built and traced
_sizes: dict[tuple, tuple[int, float]] = {}     # of files


@dataclasses.dataclass
class Load:
    """The work of one cell: examples of the training file, steps of training, and all tokens that
    are read, each as often as one pass forward costs."""

    examples: int
    steps: int
    tokens: float


def describe(run: SuiteRun) -> list[str]:
    """The lines of the plan: each task's runs, examples, steps and time, less finished runs."""
    model = open_model(run.model.get("init_checkpoint", ""), run.model.get("bert_config_file"),
                       run.model.get("vocab_file"))
    rows, total = [], 0.0
    loads = {row.task: [(cell, _load(run, cell, model)) for cell in run.cells
                        if cell.row.task == row.task] for row in run.rows}
    # The time of a token, from finished runs, else from a matrix product.
    known = [result["seconds"] / load.tokens
             for cell, load in itertools.chain.from_iterable(loads.values())
             if load.tokens and cell.trains for result in descriptions(cell.folder, RESULT)
             if result["seconds"] and not result.get(DIVERGED)]
    start, source = 0.0, f"estimated from {counted(len(known), 'finished run')}"
    if known:
        of_token = statistics.median(known)
    else:
        start, of_token = _START_SECONDS, _token_seconds(model.config)
        source = "estimated from one matrix product; the first finished run will correct it"
    for task, cells in loads.items():
        left = [load for cell, load in cells if not run.result(cell)]
        seconds = sum(start + load.tokens * of_token for load in left if load.tokens)
        total += seconds
        first, load = cells[0]
        begins = {MAJORITY: "no model: " + MAJORITY.replace("_", " ")}.get(
            first.point, first.begins_with and f"the model of {first.begins_with}")
        steps = sorted({load.steps for _, load in cells})
        rows.append((task, begins or "the model", str(len(cells)), str(len(left)),
                     f"{load.examples:,}", f"{steps[0]:,}" + f"-{steps[-1]:,}" * (len(steps) > 1),
                     f"about {duration(seconds)}" if left else "done"))
    heading = ("task", "begins with", "runs", "left", "examples", "steps a run", "time left")
    widths = [max(map(len, column)) for column in zip(heading, *rows)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
            for row in (heading, *rows)] + [
        f"together about {duration(total)} in one process, {source}"]


def _load(run, cell: Cell, model: Model) -> Load:
    data_dir = run.folder(cell.row)
    task = placed(OF_SUITES[cell.row.task], data_dir)
    if cell.point == MAJORITY:
        return Load(0, 0, 0.0)
    defaults = run.family.defaults(model.config, task.name)
    values = {**defaults, **cell.settings}
    if run.family.has_epochs and {"train_batch_size", "num_train_epochs"} & cell.settings.keys():
        values = {name: value for name, value in values.items()
                  if name != "num_train_steps" or name in cell.settings}
    length = int(min(values.get("max_seq_length") or task.defaults.max_seq_length,
                     model.config.max_position_embeddings))
    sizes = {}
    for split in task.splits:
        if task.has_file(data_dir, split):
            key = run.family, task.path(data_dir, split), length
            if key not in _sizes:       # counted once
                _sizes[key] = run.family.size(task, split, data_dir, length, model)
            sizes[split] = _sizes[key]
    examples, tokens = sizes.get("train", (0, 0.0))
    read = sum(count * mean for split, (count, mean) in sizes.items() if split != "train")
    if not cell.trains:
        return Load(0, 0, read)
    known = {field.name for field in dataclasses.fields(FineTuneSettings)}
    settings = FineTuneSettings(output_dir=cell.folder, **{
        name: value for name, value in values.items() if name in known}).resolve(
        task.defaults, examples)
    seen = settings.num_train_steps * settings.train_batch_size
    return Load(examples, settings.num_train_steps, _TRAINED * seen * tokens + _READ * read)


def _token_seconds(config: Any) -> float:
    """The seconds of one token's pass forward, from the speed of a matrix product here."""
    import keras
    width = config.hidden_size
    layers = getattr(config, "num_hidden_layers", 12)
    inner = getattr(config, "intermediate_size", 4 * width)
    left = keras.ops.ones((1024, width), "float32")
    right = keras.ops.ones((width, 4 * width), "float32")
    seconds = []
    for _ in range(5):      # the first is slower
        start = time.perf_counter()
        np.asarray(keras.ops.matmul(left, right))[0, 0]
        seconds.append(time.perf_counter() - start)
    speed = 2 * 1024 * width * 4 * width / min(seconds)
    return layers * 2 * (4 * width * width + 2 * width * inner) / (speed * _EFFICIENCY)
