"""Settings of pre-training with a teacher, under the flag names of google-research's
mobilebert/run_pretraining.py and of transformers' examples/research_projects/distillation."""

import dataclasses
import functools

from bert_tf.errors import InputError
from bert_tf.flags import Scope, check, option

_DISTILLERS = ("Distiller", "DualTraining")
_of_teacher = functools.partial(option, for_=Scope(
    "recipes with a teacher, such as distilbert and mobilebert",
    lambda recipe: recipe.learner in (*_DISTILLERS, "KnowledgeTransfer")))
_of_distiller = functools.partial(option, for_=Scope(
    "recipes such as distilbert", lambda recipe: recipe.learner in _DISTILLERS))
_of_mobilebert = functools.partial(option, for_=Scope(
    "recipes such as mobilebert", lambda recipe: recipe.learner == "KnowledgeTransfer"))
_of_layers = functools.partial(option, for_=Scope("--layer_wise_warmup", bool, "layer_wise_warmup"))


def _learning(objective, example):
    """The `Scope` of recipes that learn an objective beside a teacher."""
    return Scope(f"recipes such as {example}", lambda recipe: recipe.learner in _DISTILLERS and any(
        term.objective == objective for term in recipe.terms))


_LOGITS = _learning("TokenDistillation", "distilbert")
_of_logits = functools.partial(option, for_=_LOGITS)
_of_projection = functools.partial(option, for_=_learning("WeightProjection", "small_vocabulary"))


@dataclasses.dataclass(frozen=True)
class TransferSettings:
    """The teacher, and how the network learns from it."""

    teacher: str = _of_teacher(
        "", "Folder of the teacher, of any format, with its masked LM. MobileBERT's teacher has "
        "the same number of layers and heads, and the same width between layers; without a "
        "teacher, MobileBERT learns masked tokens and next sentences alone.")
    teacher_layers: list[str] = _of_distiller(
        [], "For distilbert and tinybert: layers of the teacher, from 0, whose weights the network "
        "begins with, as it does with the teacher's embeddings; default: random weights. "
        "DistilBERT has 0,2,4,7,9,11.", items=int)
    vocab_transform: bool = option(
        False, "With --teacher_layers, copy the hidden layer of the masked LM, too.", rare=True,
        for_=Scope("--teacher_layers", bool, "teacher_layers"))
    restrict_ce_to_mask: bool = _of_logits(
        False, "Compare logits at the predicted tokens alone, not at all tokens.", rare=True)
    alpha_ce: float | None = _of_logits(
        None, "Weight of DistilBERT's divergence from the teacher's logits (default: 5).", least=0,
        below=float("inf"))
    alpha_mse: float = _of_logits(
        0.0, "Weight of the squared difference of the logits from the teacher's, for distilbert.",
        least=0, below=float("inf"), rare=True)
    alpha_mlm: float | None = option(
        None, "Weight of DistilBERT's masked LM loss (default: 2).", least=0, below=float("inf"),
        for_=_learning("MaskedLM", "distilbert"))
    alpha_cos: float | None = option(
        None, "Weight of DistilBERT's cosine loss between hidden vectors (default: 1).", least=0,
        below=float("inf"), for_=_learning("HiddenCosine", "distilbert"))
    layer_wise_warmup: bool = _of_mobilebert(
        False, "Progressive knowledge transfer: one layer after the other learns the outputs of "
        "the teacher's layers; masked tokens are not learned.")
    num_distill_steps: int = _of_layers(
        240_000, "With --layer_wise_warmup, number of steps for all layers together.", least=1)
    hidden_distill_factor: float = _of_layers(
        100.0, "With --layer_wise_warmup, weight of the loss on normalised outputs of layers.",
        least=0, most=10**9, rare=True)
    attention_distill_factor: float = _of_layers(
        1.0, "With --layer_wise_warmup, weight of the loss on attention maps.", least=0, most=10**9,
        rare=True)
    beta_distill_factor: float = _of_layers(
        5000.0, "With --layer_wise_warmup, weight of the loss on the means of layers' outputs.",
        least=0, most=10**9, rare=True)
    gamma_distill_factor: float = _of_layers(
        5.0, "With --layer_wise_warmup, weight of the loss on the variances of layers' outputs.",
        least=0, most=10**9, rare=True)
    statistics_of_all_layers: bool = _of_layers(
        True, "With --layer_wise_warmup, compare the mean and variance of each layer with the mean "
        "and variance of all of the teacher's layers, as the original's code does. If false, "
        "compare them with the teacher's same layer, as in the paper.", rare=True)
    distill_ground_truth_ratio: float = _of_mobilebert(
        0.5, "With --teacher, share of the true token in the labels of masked tokens; the "
        "teacher's prediction makes up the rest.", least=0, most=1)
    distill_temperature: float = option(
        1.0, "With --teacher, factor of the teacher's vectors from which masked tokens are "
        "predicted. For distilbert: the temperature by which logits are divided (default there: "
        "2).", least=0, most=10**6, for_=Scope(
            "recipes such as distilbert and mobilebert",
            lambda recipe: recipe.learner == "KnowledgeTransfer" or _LOGITS.holds(recipe)))

    project_up: bool = _of_projection(
        False, "For small_vocabulary and dual_training: project the network's weights up to the "
        "teacher's width. If false, project the teacher's down.", rare=True)
    projection_weight: float | None = _of_projection(
        None, "Weight of the loss on projected weights: their squared differences (default: 1).",
        least=0, below=float("inf"), rare=True)

    def __post_init__(self):
        check(self)
        if self.layer_wise_warmup and not self.teacher:
            raise InputError("--layer_wise_warmup needs a teacher; give the teacher's folder as "
                             "--teacher.")
