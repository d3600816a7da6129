"""All optimizers, and all schedules of the learning rate, a row each; flags, help and
`make_optimizer` are derived from the rows. No class is imported here."""

import dataclasses
from collections.abc import Mapping
from typing import Any

# As in google-research/bert: these are neither decayed nor, by LAMB, rescaled. A path begins with
# the name of a network or with the name that a user gives a task, which do not count; the second
# pattern is for a layer that is trained by itself.
NOT_DECAYED = ("/.*(LayerNorm|layer_norm|bias)", "^((LayerNorm|layer_norm)/[^/]*|bias)$")
# What Muon takes for matrices: the kernels in numbered layers, and the one between the layers and
# the output of a masked LM. Not embeddings, poolers, other heads and LSTMs.
MATRICES = (r"layer_\d+/(.*/)?kernel$", "(^|/)transform/dense/kernel$")
# The optimizer that trains one layer after the other.
PROGRESSIVE = "progressive_lamb"


@dataclasses.dataclass(frozen=True)
class Optimizer:
    """A row of `OPTIMIZERS`: a class with its module of this package, the help of the flag's value,
    options, and whether it decays weights."""

    kind: str
    help: str
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    decays: bool = True


_ADAM, _LAMB = "adam.AdamWeightDecay", "adam.LayerwiseAdaptiveMoments"
OPTIMIZERS = {
    "adamw": Optimizer(_ADAM, "Adam with decoupled weight decay."),
    "bert_adamw": Optimizer(_ADAM, "the optimizer of google-research/bert, without bias "
                            "correction.", {"bias_correction": False}),
    "lamb": Optimizer(_LAMB, "adamw with steps scaled to the norm of the weights."),
    # google-research/albert lamb_optimizer.py; its AdamW is BERT's.
    "albert_lamb": Optimizer(_LAMB, "lamb without bias correction.", {"bias_correction": False}),
    # fairseq optim/adam.py, with the settings of RoBERTa.
    "fairseq_adam": Optimizer(
        _ADAM, "RoBERTa's; it also decays LayerNorm and biases, and clips no gradient.",
        {"beta_2": 0.98, "epsilon_hat": True, "clip_norm": 0.0, "not_decayed": ()}),
    # The fairseq 0.6 of SpanBERT.
    "spanbert_adam": Optimizer(
        _ADAM, "SpanBERT's; it also decays LayerNorm and biases, and divides gradients by the "
        "number of predictions.",
        {"epsilon": 1e-8, "epsilon_hat": True, "per_prediction": True, "not_decayed": ()}),
    # PaddlePaddle/ERNIE optimization.py.
    "ernie_adam": Optimizer(_ADAM, "ERNIE's; it also applies the bias correction to epsilon.",
                            {"epsilon": 1e-8, "epsilon_hat": True}),
    # zihangdai/xlnet model_utils.py without decay, with the epsilon of its paper and of its scripts
    # for SQuAD and RACE; with decay its optimizer is BERT's.
    "xlnet_adam": Optimizer(
        _ADAM, "XLNet's for --weight_decay=0: ernie_adam with another epsilon.",
        {"epsilon_hat": True}),
    # openai/finetune-transformer-lm opt.py.
    "gpt_adam": Optimizer(_ADAM, "ernie_adam that also corrects the decay.",
                          {"epsilon": 1e-8, "epsilon_hat": True, "corrects_decay": True}),
    "adafactor": Optimizer("variants.Adafactor", "T5's, with steps proportional to the weights and "
                           "no decay.", decays=False),
    # allenai/bilm-tf training.py.
    "elmo_adagrad": Optimizer("variants.Adagrad", "ELMo's Adagrad, without decay.",
                              {"clip_norm": 10.0}, decays=False),
    # tensorflow/models research/adversarial_text layers.py, with Adam of TensorFlow 1.
    "averaged_adam": Optimizer(
        "variants.AveragedAdam", "Adam without decay; the result is the average of the weights.",
        {"epsilon": 1e-8, "epsilon_hat": True, "not_decayed": ("",),
         "not_clipped": ("word_embeddings",)}, decays=False),
    "pytorch_bert_adam": Optimizer(
        "variants.BertAdam", "bert_adamw that clips the gradient of each variable separately."),
    # transformers examples/research_projects/distillation.
    "distilbert_adam": Optimizer(_ADAM, "adamw with other constants.",
                                 {"beta_2": 0.98, "clip_norm": 5.0}),
    # castorini/d-bert, whose bound of 30000 clips nothing.
    "adadelta": Optimizer("variants.Adadelta", "without decay.", {"clip_norm": 0.0}, decays=False),
    "adamax": Optimizer(
        "variants.Adamax", "MT-DNN's; it decays all weights, and counts the steps of each weight "
        "from its first gradient."),
    "adamaxw": Optimizer("variants.AdamaxWeightDecay", "the optimizer of MT-DNN's later code."),
    "huggingface_adamw": Optimizer(
        "variants.CountedAdam", "adamw with another epsilon; it counts the steps of each weight "
        "from its first gradient."),
    # LiyuanLucasLiu/RAdam, which MT-DNN's later code has too.
    "radam": Optimizer("variants.RectifiedAdam",
                       "R-Adam: adamw that starts with short steps and needs no warm-up."),
    # AnswerDotAI/ModernBERT optimizer.py, decoupled_stableadamw.
    "stable_adamw": Optimizer(
        "variants.StableAdamW", "ModernBERT's; it does not clip gradients, but shortens the steps "
        "of a weight whose gradient suddenly grows; --weight_decay is the share that a step at the "
        "peak rate takes off the weights."),
    "muon": Optimizer("muon.Muon", "orthogonal steps for the kernels in the layers, which learn "
                      "more from a step; adamw for other weights."),
    # google-research mobilebert/lamb_optimizer.py.
    PROGRESSIVE: Optimizer("variants.ProgressiveLamb", "the optimizer of --layer_wise_warmup.",
                           {"bias_correction": False}),
}


@dataclasses.dataclass(frozen=True)
class Schedule:
    """A form of the learning rate.

    Attributes:
        decay: function of schedules.py that gives its fall, one of its `DECAYS`.
        warmup: end of the warm-up: "peak"; "line", the decay there; "product", the warm-up is a
            factor of the decay; or "own", the decay's function has it.
        outlasts: whether the warm-up may be longer than the run.
        ends: whether the rate depends on the step where it ends.
        tail: how it falls from there to the end in the last steps, --num_decay_steps: "line", or
            "root", with the square root of the steps; "" where they are not special.
        ahead: a number that is added to the step.
        peaks: whether the first step and the last of the warm-up have the peak.
    """

    help: str
    decay: str
    warmup: str = "peak"
    outlasts: bool = False
    ends: bool = True
    tail: str = ""
    ahead: int = 0
    peaks: bool = False


SCHEDULES = {
    "bert": Schedule("linear, as if from the peak at step 0.", "line"),
    "roberta": Schedule("linear from the peak at the end of the warm-up.", "line_from_peak"),
    # google-research/electra model/optimization.py: the factor is min(1, t / warmup_steps).
    "electra": Schedule("bert's line times the warm-up.", "line", "product"),
    # SpanBERT's code sets no rate before the first step.
    "spanbert": Schedule("bert's, but with the peak at the first step and at the end of the "
                         "warm-up.", "line", peaks=True),
    # tensorflow/models official/modeling/optimization/lr_schedule.py.
    "model_garden": Schedule("bert's line, joined smoothly by the warm-up.", "line", "line"),
    # Its code counts a step before it takes it.
    "gpt": Schedule("electra's, one step later.", "line", "product", ahead=1),
    "cosine": Schedule("half a cosine wave from step 0.", "cosine"),
    # zihangdai/xlnet model_utils.py.
    "xlnet_cosine": Schedule("half a cosine wave from the end of the warm-up.", "cosine_from_peak"),
    "rsqrt": Schedule("the peak during the warm-up, then falling with the inverse square root of "
                      "the step.", "rsqrt", "own", outlasts=True, ends=False),
    "noam": Schedule("as rsqrt, then linear to 0 in the last tenth of the steps.", "noam", "own",
                     outlasts=True),
    "slanted_triangular": Schedule(
        "the warm-up starts at 1/32 of the peak; then the learning rate falls back to 1/32 at the "
        "end.", "slanted", "own"),
    "constant": Schedule("no decay.", "constant", ends=False),
    "exponential": Schedule("the factor 0.9999 per step, to the power --poly_power.",
                            "exponential", ends=False),
    # AnswerDotAI/ModernBERT scheduler.py.
    "warmup_stable_decay": Schedule("the peak, then linear in the last --num_decay_steps.",
                                    "constant", tail="line"),
    "one_minus_sqrt": Schedule("as warmup_stable_decay, but falling fast at first, with the square "
                               "root of the steps.", "constant", tail="root"),
    "cosine_inverse_sqrt": Schedule(
        "a cosine to half of the peak in a quarter of the steps; then falling with the inverse "
        "square root of the step, and linear in the last --num_decay_steps.", "cosine_rsqrt",
        tail="line"),
}


def help_of(rows: Mapping[str, Any]) -> str:
    """The sentences of a table's rows, each after its name."""
    return " ".join(f"{name}: {row.help}" for name, row in rows.items())
