"""Settings of MobileBERT's pre-training, under the flag names of its run_pretraining.py."""

import dataclasses

from bert_tf.errors import InputError
from bert_tf.flags import only, option
from bert_tf.training.learners.teacher_settings import TeacherSettings

_of_layers = only("layer_wise_warmup")


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
