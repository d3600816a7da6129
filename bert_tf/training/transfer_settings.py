"""The settings of pre-training beside a teacher, under the flag names of google-research's
mobilebert/run_pretraining.py and of transformers' examples/research_projects/distillation."""

import dataclasses

from bert_tf.errors import InputError
from bert_tf.flags import option


@dataclasses.dataclass(frozen=True)
class TransferSettings:
    """What is learned of a teacher; for recipes distilbert, tinybert, small_vocabulary,
    dual_training and mobilebert."""

    teacher: str = option(
        "", "Folder of the teacher, of any format, with its masked LM. MobileBERT's teacher has "
        "the same number of layers and heads, and the same width between layers; without a "
        "teacher, MobileBERT learns masked tokens and next sentences alone.")
    teacher_layers: list[str] = option(
        [], "For distilbert and tinybert: layers of the teacher, from 0, whose weights the "
        "network begins with, as it does with the teacher's embeddings; default: random weights. "
        "DistilBERT has 0,2,4,7,9,11.")
    vocab_transform: bool = option(
        False, "With --teacher_layers, copy the hidden layer of the masked LM, too.")
    restrict_ce_to_mask: bool = option(
        False, "Compare logits at the predicted tokens alone, not at all tokens.")
    alpha_ce: float | None = option(
        None, "Weight of DistilBERT's divergence from the teacher's logits (default: 5).")
    alpha_mlm: float | None = option(None, "Weight of DistilBERT's masked LM loss (default: 2).")
    alpha_cos: float | None = option(
        None, "Weight of DistilBERT's cosine loss between hidden vectors (default: 1).")
    layer_wise_warmup: bool = option(
        False, "Progressive knowledge transfer: one layer after the other learns the outputs of "
        "the teacher's layers; masked tokens are not learned.")
    num_distill_steps: int = option(
        240_000, "With --layer_wise_warmup, number of steps for all layers together.")
    hidden_distill_factor: float = option(
        100.0, "With --layer_wise_warmup, weight of the loss on normalised outputs of layers.")
    attention_distill_factor: float = option(
        1.0, "With --layer_wise_warmup, weight of the loss on attention maps.")
    beta_distill_factor: float = option(
        5000.0, "With --layer_wise_warmup, weight of the loss on the means of layers' outputs.")
    gamma_distill_factor: float = option(
        5.0, "With --layer_wise_warmup, weight of the loss on the variances of layers' outputs.")
    statistics_of_all_layers: bool = option(
        True, "With --layer_wise_warmup, compare the mean and variance of each layer with those "
        "of all of the teacher's layers, as the original's code does. If false, compare them with "
        "those of the teacher's same layer, as in the paper.")
    distill_ground_truth_ratio: float = option(
        0.5, "With --teacher, share of the true token in the labels of masked tokens; the "
        "teacher's prediction makes up the rest.")
    distill_temperature: float = option(
        1.0, "With --teacher, factor of the teacher's vectors from which masked tokens are "
        "predicted. For distilbert: the temperature by which logits are divided (default there: "
        "2).")

    project_up: bool = option(
        False, "For small_vocabulary and dual_training: project the network's weights up to the "
        "teacher's width. If false, project the teacher's down.")
    projection_weight: float | None = option(
        None, "Weight of the loss on projected weights: their squared differences (default: 1).")

    def layer_numbers(self) -> list[int]:
        """--teacher_layers as numbers.

        Raises:
            InputError: they are none.
        """
        try:
            return [int(layer) for layer in self.teacher_layers]
        except ValueError:
            raise InputError(f"--teacher_layers={','.join(self.teacher_layers)}: give numbers from "
                             "0, with commas between.") from None

    def __post_init__(self):
        if self.layer_wise_warmup and not self.teacher:
            raise InputError("--layer_wise_warmup needs a teacher; give its folder as --teacher.")
        for name in ("alpha_ce", "alpha_mlm", "alpha_cos", "projection_weight"):
            if not 0 <= (getattr(self, name) or 0) < float("inf"):
                raise InputError(f"--{name} is {getattr(self, name)}; it must be at least 0.")
        for name, most in (("distill_ground_truth_ratio", 1.0), ("distill_temperature", 1e6),
                           *((f"{kind}_distill_factor", 1e9)
                             for kind in ("hidden", "attention", "beta", "gamma"))):
            if not 0 <= getattr(self, name) <= most:
                raise InputError(f"--{name} is {getattr(self, name)}; it must be from 0 to "
                                 f"{most:g}.")
        if self.num_distill_steps < 1:
            raise InputError(f"--num_distill_steps is {self.num_distill_steps}; it must be at "
                             "least 1.")
