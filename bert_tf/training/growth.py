"""Progressive stacking: a shallow network is trained, then a deeper one that is made of its layers
(Gong et al., ICML 2019; gonglinyuan/StackingBERT, double.py, quadruple.py, identity.py).
A stage is a run of its own, with its steps and its optimizer's counted from 0. The last stage is in
the output folder, the others are in folders below it and stay there.
"""

import collections
import dataclasses
import os
import re
from collections.abc import Callable, Iterable

import numpy as np

from bert_tf.checkpoints import checksummed
from bert_tf.config import EncoderConfig, Sizes
from bert_tf.errors import InputError, counted
from bert_tf.flags import check, only, option
from bert_tf.training import resume
from bert_tf.training.settings import TrainSettings

# A variable of a layer; optimizers name theirs after a variable's path, with other separators.
_OF_LAYER = re.compile(r"(.*encoder[/_]layer_)(\d+)([/_].*)")
# A layer adds zero to its input where these weights are zero.
_ADDED = "/output/dense/"
NEW_LAYERS = ("copied", "identity", "random")
_of_stages = only("stack_layers")


@dataclasses.dataclass(frozen=True)
class StackSettings:
    """Training in stages: a shallow network is trained first, then a deeper one made of it."""

    stack_layers: list[str] = option(
        [], "Number of layers in each stage, such as 3,6,12. Each number must be a multiple of the "
        "number before it, and the last must equal the configuration's. Default: all layers from "
        "the start.", items=int, least=1, rare=True)
    stack_steps: list[str] = _of_stages(
        [], "Steps of each stage but the last. The last stage ends when all stages together have "
        "--num_train_steps.", items=int, least=1)
    stack_learning_rates: list[str] = _of_stages(
        [], "Learning rate at the start of each stage, after its warm-up, and at the end of the "
        "last stage. In each stage the rate goes from its own value to the next. Default: "
        "--learning_rate for all stages, --end_learning_rate at the end.", items=float, least=0)
    stack_warmup_steps: list[str] = _of_stages(
        [], "Warm-up steps of each stage. Default: --num_warmup_steps in each.", items=int, least=0)
    stack_new_layers: str = _of_stages(
        "copied", "Initial weights of the layers that are added above the L trained ones. copied: "
        "layer i has the weights of layer i mod L. identity: weights with which the new layers "
        "change nothing at first. random: the usual random weights.", choices=NEW_LAYERS)
    stack_optimizer: str = _of_stages(
        "reset", "State of the optimizer in a new stage. reset: its moments begin at 0. copied: "
        "they are copied with the layers. Its step count begins at 0 in both cases.",
        choices=("reset", "copied"))

    __post_init__ = check


@dataclasses.dataclass(frozen=True)
class Stage:
    """One stage.

    Attributes:
        config: configuration of its network.
        settings: its `output_dir` is the stage's folder.
        name: a line for reports; empty where there is one stage.
        below: folder of the stage whose layers it begins with, or None.
        is_reached: whether this invocation takes any of its steps.
    """

    config: Sizes
    settings: TrainSettings
    name: str = ""
    below: str | None = None
    is_reached: bool = True


def _numbers(stacking, name, kind, count):
    """Returns the numbers of a flag of `StackSettings`, None if it is not given."""
    values = getattr(stacking, name)
    if values and len(values) != count:
        raise InputError(f"--{name} is {','.join(values)}; with "
                         f"--stack_layers={','.join(stacking.stack_layers)} give "
                         f"{counted(count, 'number')}, separated by commas.")
    return [kind(value) for value in values] or None


def plan(settings: TrainSettings, stacking: StackSettings, config: Sizes,
         networks: Callable[[Sizes], list[Sizes]] = lambda config: [config]) -> list[Stage]:
    """Returns the stages of a run: one where --stack_layers is not given.

    Args:
        settings: settings of all stages together; steps are counted over all of them.
        networks: function (config) -> configurations of all networks that a learner trains.
    """
    if not stacking.stack_layers:
        return [Stage(config, settings)]
    depths = _check_depths(stacking, config, networks)
    stages: list[Stage] = []
    count, begin, folder = len(depths), 0, None
    for number, (depth, changes) in enumerate(zip(depths, _changes(settings, stacking, count))):
        steps, stop = changes["num_train_steps"], settings.stop_at_step - begin
        below, folder = folder, settings.output_dir
        if number < count - 1:
            folder = os.path.join(folder, resume.STAGE.format(number + 1, depth))
        stages.append(Stage(
            dataclasses.replace(config, num_hidden_layers=depth), dataclasses.replace(
                settings, **changes, output_dir=folder, random_seed=settings.random_seed + number,
                stop_at_step=min(max(stop, 0), steps)),
            f"stage {number + 1} of {count}: {counted(depth, 'layer')}, {counted(steps, 'step')}",
            below, stop > 0 or not settings.stop_at_step))
        begin += steps
    return stages


def _changes(settings, stacking, count):
    steps = _numbers(stacking, "stack_steps", int, count - 1) or []
    steps.append(settings.num_train_steps - sum(steps))
    if len(steps) != count or steps[-1] < 1:
        raise InputError(
            f"--stack_steps is {','.join(stacking.stack_steps) or 'not given'}; give the steps of "
            f"all {count} stages but the last, together fewer than --num_train_steps "
            f"({settings.num_train_steps}).")
    rates = (_numbers(stacking, "stack_learning_rates", float, count + 1)
             or [settings.learning_rate] * count + [settings.end_learning_rate])
    warmups = (_numbers(stacking, "stack_warmup_steps", int, count)
               or [settings.num_warmup_steps] * count)
    for number, (warmup, its) in enumerate(zip(warmups, steps)):
        if warmup > its:
            raise InputError(f"stage {number + 1} has {its} steps (--stack_steps), but a warm-up "
                             f"of {warmup} (--stack_warmup_steps, --num_warmup_steps); give a "
                             "shorter one.")
    return [{"num_train_steps": its, "num_warmup_steps": warmup, "learning_rate": rate,
             "end_learning_rate": end}
            for its, warmup, rate, end in zip(steps, warmups, rates, rates[1:])]


def _check_depths(stacking, config, networks):
    """Returns the depths of the stages; each must be a multiple of the one before."""
    if not isinstance(config, EncoderConfig) or config.shares_layers:
        raise InputError("--stack_layers is for layers like BERT's that share no weights, not for "
                         f"this network ({config.model_type}); leave the flag out.")
    depths = [int(depth) for depth in stacking.stack_layers]
    if depths[-1] != config.num_hidden_layers:
        raise InputError(f"--stack_layers ends with {depths[-1]}, but the configuration has "
                         f"{config.num_hidden_layers} layers (num_hidden_layers); make them equal.")
    sizes = [networks(dataclasses.replace(config, num_hidden_layers=depth)) for depth in depths]
    for number, network in enumerate(zip(*sizes)):
        deep = [its.num_hidden_layers for its in network]
        for low, high in zip(deep, deep[1:]):
            if high % low or (high <= low and not number):
                raise InputError(
                    f"--stack_layers={','.join(stacking.stack_layers)}: a network of {high} layers "
                    f"can't be made from whole copies of {low} layers"
                    f"{', which the generator would need (--generator_layers)' if number else ''}"
                    "; each number must be a multiple of the one before.")
    return depths


def sources(names: Iterable[str], held: Iterable[str]) -> dict[str, str]:
    """Returns {wanted name: held name} for the variables of a deeper network: layer i comes from
    layer i mod L, where the shallower network `held` has L layers, all else from the same name.

    Variables without a source are left out.
    """
    held = set(held)
    layers: dict[str, set[int]] = collections.defaultdict(set)
    for name in held:
        if match := _OF_LAYER.fullmatch(name):
            layers[match[1]].add(int(match[2]))
    origin = {}
    for name in names:
        source, match = name, _OF_LAYER.fullmatch(name)
        if match and layers[match[1]]:
            source = f"{match[1]}{int(match[2]) % len(layers[match[1]])}{match[3]}"
        if source in held:
            origin[name] = source
    return origin


def grow(folder: str, trainer, stacking: StackSettings) -> str:
    """Gives a new trainer the weights of a shallower network's last checkpoint in `folder`; returns
    a sentence that reports it."""
    path = resume.checkpoints(folder)[-1]
    tensors, _ = checksummed.read(path)
    variables = resume.variables(trainer)
    parts = ("learner/", "optimizer/") if stacking.stack_optimizer == "copied" else ("learner/",)
    names = [name for name in variables if name.startswith(parts)
             and not name.endswith(("/iteration", "/learning_rate"))]
    origin = sources(names, tensors)
    for name in names:
        if name not in origin or tensors[origin[name]].shape != tuple(variables[name].shape):
            raise InputError(f"{path} has no weights for {name}, so it belongs to another model; "
                             "name another --output_dir.")
    values = {name: tensors[source] for name, source in origin.items()
              if name == source or stacking.stack_new_layers == "copied"}
    if stacking.stack_new_layers == "identity":
        values |= _identity(values, variables, origin)
    for name, value in values.items():
        variables[name].assign(value)
    copies = sum(name != source for name, source in origin.items() if name.startswith("learner/"))
    return (f"weights from {path}; {copies} variables of new layers are {stacking.stack_new_layers}"
            f"; the optimizer's moments are {stacking.stack_optimizer}")


def _identity(values, variables, origin):
    """Weights of new layers with which the network computes the same outputs."""
    # A layer that adds nothing normalises its input twice. So the highest new layer gets the gain
    # and the bias of the highest trained layer's last norm, and the layers between have neither: a
    # normalised vector that is normalised again stays as it is.
    changed = {}
    highest: dict[str, int] = collections.defaultdict(int)
    trained: dict[str, int] = collections.defaultdict(int)
    for name, source in origin.items():
        if name.startswith("learner/") and (match := _OF_LAYER.fullmatch(name)):
            highest[match[1]] = max(highest[match[1]], int(match[2]))
            number = int(_OF_LAYER.fullmatch(source)[2])
            trained[match[1]] = max(trained[match[1]], number)
            if name != source and _ADDED in name:
                changed[name] = np.zeros(tuple(variables[name].shape), "float32")
    for prefix, top in highest.items():
        for part, plain in (("gamma", np.ones), ("beta", np.zeros)):
            old, new = (f"{prefix}{number}/output/LayerNorm/{part}"
                        for number in (trained[prefix], top))
            if old != new:
                changed[new] = values[old]
                changed[old] = plain(tuple(variables[old].shape), "float32")
    return changed
