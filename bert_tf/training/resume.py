"""Training checkpoints, and the rule that says which settings a resumed run may change.

A checkpoint is a safetensors file, whole or absent, verified when read. It holds a checksum,
every variable of the Learner and of its optimizer by its path, the state of the Trainer, and JSON
values of the caller.

`FREE` settings (devices and reports) may always differ. The network may not. All other settings are
the recipe of a run. Pre-training may change it from phase to phase in one folder: the change is
reported. A fine-tuning trial may not: its result is compared with other trials'.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from bert_tf.checkpoints import checksummed, names
from bert_tf.errors import DivergedError, InputError
from bert_tf.files import is_file, match_names, remove_file, remove_leftovers, unfinished
from bert_tf.kept import as_json, differing, phrase
from bert_tf.training.settings import SharedSettings

_CARRIED = "trainer/carried/"
_NAME = "checkpoint-{:09d}.safetensors"
# The folder of a stage that is not the last, see growth.py.
STAGE = "stage_{}_of_{}_layers"
_PATTERN = re.compile(r"checkpoint-(\d+)\.safetensors$")
# Settings that may always differ. Evaluations change no weight, unless one of them ends training.
FREE = ("output_dir", "eval_batch_size", "save_checkpoints_steps", "keep_checkpoint_max",
        "iterations_per_loop", "distribution_strategy", "use_tpu", "tpu", "tpu_zone",
        "gcp_project", "master", "num_tpu_cores", "cluster", "cluster_hosts", "cluster_timeout",
        "file_shares", "rematerialize", "num_trials", "grid", "stop_at_step",
        "grid_train_batch_size", "grid_learning_rate", "grid_num_train_epochs", "jit_compile")
_EVALUATION = ("eval_steps", "max_eval_steps")
# Where the network's own values are; `_RECIPE_OF_CONFIG` belongs to the recipe all the same.
_CONFIGS, _TERMS = ("bert_config_file", "generator_config"), "terms"
# What a trial keeps for later starts to follow, and no flag gives.
FIRST_WEIGHTS = "digest_of_first_weights"
_FOLLOWED = ("padding", FIRST_WEIGHTS)
_RECIPE_OF_CONFIG = ("hidden_dropout_prob", "attention_probs_dropout_prob", "initializer_range",
                     "dropout", "dropatt", "dropout_rate", "initializer_factor")
# What a further training may change: lengths of a network's memory, on which no weight depends, and
# what other lengths of text need. Where a table of positions has another shape, this is found, too.
_OF_LENGTH = ("mem_len", "reuse_len", "clamp_len", "max_position_embeddings", "rope_theta",
              "global_rope_theta", "local_rope_theta")


def describe(settings: SharedSettings) -> dict:
    """Returns all settings by flag but the `FREE` ones: JSON values."""
    return {name: value for name, value in dataclasses.asdict(settings).items() if name not in FREE}


def fingerprint(value: Any) -> int:
    """Returns a whole number that differs between JSON values that differ."""
    # So few bits that sums over workers are exact in float64.
    return int(hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8], 16)


def compare(own: dict, saved: dict, settings: SharedSettings | None = None,
            free: Collection[str] = ()) -> tuple[list[str], list[str]]:
    """Returns the differences of two descriptions, first of the network, then of the recipe:
    phrases such as "--learning_rate (0.0001, now 5e-05)".

    Args:
        own: description of the run that is to be resumed.
        saved: the description on disk.
        free: further names that may differ, also of values of a network's configuration.
    """
    network: list[str] = []
    recipe: list[str] = []
    unlike = {*FREE, *_FOLLOWED, *free}
    if not getattr(settings, "early_stopping", 0):
        unlike.update(_EVALUATION)
    for name in differing(own, saved):
        old, new = saved.get(name), own.get(name)
        if name in (*_CONFIGS, _TERMS) and isinstance(old, dict) and isinstance(new, dict):
            for inner in differing(new, old):
                values = old.get(inner), new.get(inner)
                is_recipe = None not in values
                if name in _CONFIGS:
                    is_recipe = inner in _RECIPE_OF_CONFIG
                if inner not in unlike:
                    (recipe if is_recipe else network).append(phrase(name, *values, f"{inner} "))
        elif name not in unlike:
            recipe.append(phrase(name, old, new))
    return network, recipe


def variables(trainer) -> dict:
    """dict of every variable that training changes, by a name that is the same in every run."""
    # Not the state of seed generators, which the loop does not use.
    named = {f"learner/{v.path}": v for v in trainer.learner.weights}
    named |= {f"optimizer/{v.path}": v for v in trainer.optimizer.variables}
    named |= {f"trainer/{name}": getattr(trainer, name)
              for name in ("step", "tokens", "loss_scale", "finite_steps")}
    return named


def is_checkpoint(path: str) -> bool:
    """Returns whether a file has the name of a training checkpoint."""
    return is_file(path) and _PATTERN.search(path) is not None


def checkpoints(folder: str) -> list[str]:
    """Lists the checkpoint files of a folder, oldest first."""
    paths = match_names(folder, "checkpoint-*.safetensors")
    paths = sorted((p for p in paths if _PATTERN.search(p)), key=_step_of)
    for path in paths:
        if not is_file(path):
            raise InputError(f"{path} has the name of a checkpoint but is not a file; remove it.")
    return paths


def _step_of(path):
    return int(_PATTERN.search(path).group(1))


def newest(folder: str) -> dict:
    """Returns the `extra` of the newest intact checkpoint in a folder; {} without any."""
    for path in reversed(checkpoints(folder)):
        with contextlib.suppress(checksummed.DamagedError):     # resuming will say so
            return checksummed.read_extra(path)
    return {}


def newest_stage(stages: Sequence[Any]) -> int:
    """Returns the number of the last `growth.Stage` that has a checkpoint; 0 if none has.
    InputError if none has, but the output folder holds stages of another --stack_layers."""
    begun = [number for number, stage in enumerate(stages)
             if checkpoints(stage.settings.output_dir)]
    if begun:
        return begun[-1]
    output = stages[-1].settings.output_dir
    for other in match_names(output, STAGE.format("*", "*")):
        if checkpoints(other):
            raise InputError(f"--output_dir: {output} holds stages of another --stack_layers "
                             f"({os.path.basename(other)}); give the same value as before, or name "
                             "another folder.")
    return 0


def read_value(variable) -> np.ndarray:
    """Returns the value that a variable has now, which later steps do not change.

    On a CPU nothing is copied: the array is the variable's memory, and as long as it is read
    TensorFlow writes new values elsewhere.
    """
    held = variable if hasattr(variable, "read_value") else variable.value  # of a keras.Variable
    return np.asarray(held.read_value())


def copy_state(trainer) -> dict[str, np.ndarray]:
    """Returns all that a checkpoint keeps of a trainer as it is now, by name; see `read_value`."""
    tensors = {name: read_value(variable) for name, variable in variables(trainer).items()}
    carried = trainer.state.tensors() if trainer.state else {}
    return tensors | {_CARRIED + name: value for name, value in carried.items()}


def check_finite(state: dict[str, np.ndarray]) -> None:
    """Raises DivergedError, which names the weight, if a number of `copy_state` is not finite."""
    for name, value in state.items():
        if not np.isfinite(value).all():
            step = int(state["trainer/step"])
            raise DivergedError(
                f"{name} is not finite after step {step}, so this step is not saved; lower "
                "--learning_rate and run the command again.", step)


def write_checkpoint(folder: str, state: dict[str, np.ndarray], extra: dict, keep: int) -> str:
    """Writes a checkpoint, removes all but the last `keep` up to it, and returns its path.

    Args:
        state: result of `copy_state`.
        extra: JSON object to be kept with it; its `run` is a result of `describe`.

    Raises:
        DivergedError: a weight is not a finite number; names it.
    """
    check_finite(state)
    step = int(state["trainer/step"])
    path = os.path.join(folder, _NAME.format(step))
    checksummed.write(path, state, extra)
    # Checkpoints of later steps are damaged: else the run would have resumed from one.
    earlier = [old for old in checkpoints(folder) if _step_of(old) <= step]
    for old in earlier[:-keep]:
        remove_file(old)
    # What a kill left, also of a step at which a signal came, and which is not saved again.
    begun = {match[0] for name in unfinished(path) if (match := _PATTERN.search(name))}
    remove_leftovers(*(os.path.join(folder, name) for name in begun))
    return path


def _check_fits(path, tensors, named):
    for name in dict.fromkeys([*named, *tensors]):
        if (name in named) != (name in tensors):
            odd = f"holds {name}, which the model does not have"
            if name in named:
                odd = f"has no {name}"
            raise InputError(f"{path} {odd}, so it belongs to another model or optimizer; name "
                             "another folder.")
        if tuple(tensors[name].shape) != tuple(named[name].shape):
            raise InputError(f"{path}: {name} has shape {tensors[name].shape}, the model's has "
                             f"{tuple(named[name].shape)}: check --bert_config_file.")


def restore(path: str, trainer, weights_only: bool = False, averaged: bool = False) -> dict:
    """Gives the trainer the state of a checkpoint, all of it or, after an error, nothing; returns
    the `extra` of `write_checkpoint`.

    Args:
        weights_only: take the Learner's weights and leave optimizer and step as they are; the
            network may have another memory.
        averaged: with `weights_only`, take the averages of the weights if the run's optimizer kept
            averages: the run evaluates and saves these.

    Raises:
        DamagedError: the checkpoint is not as it was written.
        InputError: it does not fit the model; names the tensor, or the part that differs.
    """
    tensors, extra = checksummed.read(path)
    descriptions = trainer.learner.describe(), extra.get("run", {})
    own, saved = ({name: each[name] for name in (*_CONFIGS, _TERMS)
                   if all(name in each for each in descriptions)} for each in descriptions)
    others, _ = compare(own, saved, free=_OF_LENGTH if weights_only else ())
    if others:
        raise InputError(f"{path} belongs to another network, with another {', '.join(others)}; "
                         "train with the same values as before, or name another folder.")
    named = variables(trainer)
    if averaged and int(tensors["trainer/step"]):       # of no step, else
        tensors = {**tensors, **{name: tensors[average] for name, average in
                                 names.averages(tensors).items()}}
    if weights_only:
        named, tensors = ({name: value for name, value in values.items()
                           if name.startswith("learner/")} for values in (named, tensors))
    carried = {name.removeprefix(_CARRIED): tensors.pop(name) for name in list(tensors)
               if name.startswith(_CARRIED)}
    _check_fits(path, tensors, named)
    for name, variable in named.items():
        variable.assign(tensors[name])
    if trainer.state and not weights_only:
        trainer.state.assign(carried)
    trainer.scaling.reset_if_changed()
    return extra


class Place:
    """A run's place in the records: the number that it has `taken`, and their order.

    Records are identified by their `identity()`, a JSON value.
    """

    taken = 0

    def __init__(self, records: Any, settings: SharedSettings) -> None:
        self._order = {"records": records and records.identity(), "seed": settings.random_seed}
        self.divide(getattr(records, "shares", 1))

    def divide(self, shares: int) -> None:
        """Notes the number of shares into which the files are divided."""
        self._order["shares"] = shares

    def describe(self) -> dict:
        return {"order": dict(self._order), "taken": self.taken}

    def restore(self, saved: dict) -> bool:
        """Continues at a checkpoint's place, and returns whether it does; other records, or another
        order, begin at 0."""
        is_same = as_json(self._order) == saved["order"]
        self.taken = saved["taken"]
        if self.taken and not is_same:
            print("the records or their order changed, so reading starts at the first record",
                  flush=True)
            self.taken = 0
        return is_same
