"""The stages of a run, of which each continues the one before with a deeper network.

A stage is a run of its own, with its steps and its optimizer's counted from 0. The last stage is in
the output folder, the others are in folders below it and stay there.
"""

import dataclasses
import os

from bert_tf.config import Sizes
from bert_tf.errors import InputError
from bert_tf.files import match_names
from bert_tf.flags import check, only, option
from bert_tf.training import resume
from bert_tf.training.settings import TrainSettings

FOLDER = "stage_{}_of_{}_layers"
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
        "--learning_rate for all stages, --end_learning_rate at the end.", items=float, least=0,
        below=float("inf"))
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


def newest(stages: list[Stage]) -> int:
    """Returns the number of the last stage that has a checkpoint; 0 if none has.

    Raises:
        InputError: none has, but the output folder holds stages of another --stack_layers.
    """
    begun = [number for number, stage in enumerate(stages)
             if resume.checkpoints(stage.settings.output_dir)]
    output = stages[-1].settings.output_dir
    for other in () if begun else match_names(output, FOLDER.format("*", "*")):
        if resume.checkpoints(other):
            raise InputError(f"--output_dir: {output} holds stages of another --stack_layers "
                             f"({os.path.basename(other)}); give the same value as before, or name "
                             "another folder.")
    return max(begun, default=0)
