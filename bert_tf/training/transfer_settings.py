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
        "", "Folder of the teacher, of any format, with its masked LM. For MobileBERT a network as "
        "deep, with as many heads, and as wide between its layers; without one, masked tokens and "
        "next sentences are learned alone.")
    teacher_layers: list[str] = option(
        [], "Layers of the teacher, from 0, that the network of distilbert or tinybert begins "
        "with, and its embeddings with them; default: random weights. DistilBERT has "
        "0,2,4,7,9,11.")
    vocab_transform: bool = option(
        False, "With --teacher_layers, begin with the hidden layer of the masked LM, too.")
    restrict_ce_to_mask: bool = option(
        False, "Compare the logits of the tokens that are predicted, not of all.")
    alpha_ce: float | None = option(
        None, "Weight of DistilBERT's divergence of logits (default: 5).")
    alpha_mlm: float | None = option(None, "Weight of DistilBERT's masked LM (default: 2).")
    alpha_cos: float | None = option(
        None, "Weight of the cosine of DistilBERT's vectors (default: 1).")
    layer_wise_warmup: bool = option(
        False, "Progressive knowledge transfer: one layer after the other learns what the "
        "teacher's layers give, and no masked tokens.")
    num_distill_steps: int = option(
        240_000, "With --layer_wise_warmup, steps for all layers together.")
    hidden_distill_factor: float = option(
        100.0, "With --layer_wise_warmup, weight of the normalised outputs of layers.")
    attention_distill_factor: float = option(
        1.0, "With --layer_wise_warmup, weight of the attention maps.")
    beta_distill_factor: float = option(
        5000.0, "With --layer_wise_warmup, weight of the means of layers' outputs.")
    gamma_distill_factor: float = option(
        5.0, "With --layer_wise_warmup, weight of the variances of layers' outputs.")
    statistics_of_all_layers: bool = option(
        True, "With --layer_wise_warmup, means and variances of each layer are compared with those "
        "of all of the teacher's layers, as by the original's code; if not, with those of its own, "
        "as in the paper.")
    distill_ground_truth_ratio: float = option(
        0.5, "With --teacher, share of the true token in the labels of masked tokens; the rest is "
        "the teacher's prediction.")
    distill_temperature: float = option(
        1.0, "With --teacher, factor of the vectors from which it predicts masked tokens; for "
        "distilbert the temperature by which logits are divided (its default: 2).")

    project_up: bool = option(
        False, "For small_vocabulary and dual_training: project the network's weights up to the "
        "teacher's width, not the teacher's down.")
    projection_weight: float | None = option(
        None, "Weight of the squared differences of projected weights (default: 1).")

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
