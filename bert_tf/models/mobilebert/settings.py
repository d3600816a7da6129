"""Settings of pre-training with a teacher, under the flag names of google-research's
mobilebert/run_pretraining.py and of transformers' examples/research_projects/distillation."""

import dataclasses

from bert_tf.errors import InputError
from bert_tf.flags import check, only, option

_of_layers = only("layer_wise_warmup")


@dataclasses.dataclass(frozen=True)
class TeacherSettings:
    """The teacher, and how the network learns from it."""

    teacher: str = option("", "Folder of the teacher, of any format, with its masked LM.")

    def __post_init__(self):
        check(self)


@dataclasses.dataclass(frozen=True)
class DistillerSettings(TeacherSettings):
    """Layers that the network takes from the teacher."""

    teacher_layers: list[str] = option(
        [], "Layers of the teacher, from 0, whose weights the network begins with, as it does with "
        "the teacher's embeddings; default: random weights. DistilBERT has 0,2,4,7,9,11.",
        items=int)
    vocab_transform: bool = only("teacher_layers")(
        False, "Also copy the hidden layer of the masked LM.")


@dataclasses.dataclass(frozen=True)
class DistilBertSettings(DistillerSettings):
    """What is compared with the teacher (DistilBERT)."""

    restrict_ce_to_mask: bool = option(
        False, "Compare logits at the predicted tokens alone, not at all tokens.", rare=True)
    alpha_ce: float | None = option(
        None, "Weight of the divergence from the teacher's logits (default: 5).", least=0,
        below=float("inf"))
    alpha_mse: float = option(
        0.0, "Weight of the squared difference of the logits from the teacher's.", least=0,
        below=float("inf"), rare=True)
    alpha_mlm: float | None = option(
        None, "Weight of the masked LM loss (default: 2).", least=0, below=float("inf"))
    alpha_cos: float | None = option(
        None, "Weight of the cosine loss between hidden vectors (default: 1).", least=0,
        below=float("inf"))
    distill_temperature: float = option(
        1.0, "Temperature by which logits are divided (default of the recipe: 2).", least=0,
        most=10**6)


@dataclasses.dataclass(frozen=True)
class ProjectionSettings(DistillerSettings):
    """Projected weights."""

    project_up: bool = option(
        False, "Project the network's weights up to the teacher's width. If false, project the "
        "teacher's down.", rare=True)
    projection_weight: float | None = option(
        None, "Weight of the loss on projected weights: their squared differences (default: 1).",
        least=0, below=float("inf"), rare=True)
    alpha_mlm: float | None = option(
        None, "Weight of the masked LM loss (default: 1).", least=0, below=float("inf"))


@dataclasses.dataclass(frozen=True)
class DualTrainingSettings(ProjectionSettings):
    """A teacher that learns, too."""

    teacher_input_file: list[str] = option(
        [], "Records of the text in both vocabularies (made with --second_vocab_file), from which "
        "the teacher learns.")


@dataclasses.dataclass(frozen=True)
class MobileBertSettings(TeacherSettings):
    """Knowledge transfer (MobileBERT). The teacher has the network's number of layers and heads,
    and its width between layers; without a teacher, the network learns masked tokens and next
    sentences alone."""

    layer_wise_warmup: bool = option(
        False, "Progressive knowledge transfer: one layer after the other learns the outputs of "
        "the teacher's layers; masked tokens are not learned.")
    num_distill_steps: int = _of_layers(
        240_000, "Number of steps for all layers together.", least=1)
    hidden_distill_factor: float = _of_layers(
        100.0, "Weight of the loss on normalised outputs of layers.", least=0, most=10**9)
    attention_distill_factor: float = _of_layers(
        1.0, "Weight of the loss on attention maps.", least=0, most=10**9)
    beta_distill_factor: float = _of_layers(
        5000.0, "Weight of the loss on the means of layers' outputs.", least=0, most=10**9)
    gamma_distill_factor: float = _of_layers(
        5.0, "Weight of the loss on the variances of layers' outputs.", least=0, most=10**9)
    statistics_of_all_layers: bool = _of_layers(
        True, "Compare the mean and variance of each layer with the mean and variance of all of "
        "the teacher's layers, as the original's code does. If false, compare them with the "
        "teacher's same layer, as in the paper.")
    distill_ground_truth_ratio: float = only("teacher")(
        0.5, "Share of the true token in the labels of masked tokens; the teacher's prediction "
        "makes up the rest.", least=0, most=1)
    distill_temperature: float = only("teacher")(
        1.0, "Factor of the teacher's vectors from which masked tokens are predicted.", least=0,
        most=10**6)

    def __post_init__(self):
        super().__post_init__()
        if self.layer_wise_warmup and not self.teacher:
            raise InputError("--layer_wise_warmup needs a teacher; give the teacher's folder as "
                             "--teacher.")
