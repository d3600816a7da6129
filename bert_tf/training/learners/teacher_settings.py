"""Settings of pre-training with a teacher."""

import dataclasses

from bert_tf.flags import check, only, option


@dataclasses.dataclass(frozen=True)
class TeacherSettings:
    """The teacher, and how the network learns from it."""

    teacher: str = option("", "Folder of the teacher, of any format, with its masked LM.")

    __post_init__ = check


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
class ProjectionSettings(DistillerSettings):
    """Projected weights."""

    project_up: bool = option(
        False, "Project the network's weights up to the teacher's width. If false, project the "
        "teacher's down.")
    projection_weight: float | None = option(
        None, "Weight of the loss on projected weights: their squared differences (default: 1).",
        least=0)
    alpha_mlm: float | None = option(
        None, "Weight of the masked LM loss (default: 1).", least=0)


@dataclasses.dataclass(frozen=True)
class DualTrainingSettings(ProjectionSettings):
    """A teacher that learns, too."""

    teacher_input_file: list[str] = option(
        [], "Records of the text in both vocabularies (made with --second_vocab_file), from which "
        "the teacher learns.")
