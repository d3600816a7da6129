"""MobileBERT's learner: progressive knowledge transfer, then pre-training with soft labels
(arXiv:2004.02984, section 3.4; google-research mobilebert/run_pretraining.py)."""

from collections.abc import Sequence
from typing import Any

from keras import ops

from bert_tf import checkpoints, objectives
from bert_tf.checkpoints.weights import variables
from bert_tf.config import Sizes
from bert_tf.errors import InputError
from bert_tf.layers.base import Tensor, register
from bert_tf.models.mobilebert.settings import MobileBertSettings
from bert_tf.objectives.base import Batch
from bert_tf.training.learners.distiller import Distiller, load_teacher
from bert_tf.training.learners.learner import Learner

# Objectives of the first stage, with the settings that are their weights.
_STAGE_1 = {"FeatureMapTransfer": "hidden_distill_factor",
            "AttentionMapTransfer": "attention_distill_factor",
            "MeanTransfer": "beta_distill_factor", "VarianceTransfer": "gamma_distill_factor"}


@register
class KnowledgeTransfer(Distiller):
    """A Distiller whose network has no dropout, as in the original. `temperature` is a factor of
    the vectors from which the teacher predicts masked tokens; `phase_steps` how many steps each
    layer is trained; 0 for pre-training."""

    def __init__(self, *args: Any, temperature: float = 1.0, phase_steps: int = 0, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.temperature, self.phase_steps = temperature, phase_steps
        # Of masked tokens there may be none; positions there always are.
        self.epsilon = 0.0 if phase_steps else Learner.epsilon

    @classmethod
    def of_terms(cls, config: Sizes, terms: Sequence, dtype: str | None = None,
                 settings: MobileBertSettings | None = None) -> Learner:
        """Makes the Learner, which begins as its teacher where weights fit; a plain one without."""
        settings = settings or MobileBertSettings()
        plain = Learner.of_terms(config, terms, dtype)
        if not settings.teacher:
            return plain
        teacher = read_teacher(settings.teacher, config, dtype)
        heads = {head.name: head for head in plain.objectives}
        added, phase_steps = [], 0
        if settings.layer_wise_warmup:
            phase_steps = settings.num_distill_steps // config.num_hidden_layers
            if not phase_steps:
                raise InputError(f"--num_distill_steps is {settings.num_distill_steps}, fewer than "
                                 f"the {config.num_hidden_layers} layers; give at least as many.")
            for name, flag in _STAGE_1.items():
                options = {}
                if name in ("MeanTransfer", "VarianceTransfer"):
                    options["of_all_layers"] = settings.statistics_of_all_layers
                added.append(getattr(objectives, name)(
                    config, phase_steps, loss_weight=getattr(settings, flag), dtype=dtype,
                    **options))
            for head in heads.values():     # kept for the next stage
                head.loss_weight = 0.0
        elif "masked_lm" in heads and settings.distill_ground_truth_ratio < 1:
            head, share = heads["masked_lm"], settings.distill_ground_truth_ratio
            added.append(objectives.PredictionTransfer(
                config, loss_weight=head.loss_weight * (1 - share), dtype=dtype))
            head.loss_weight *= share
        learner = cls(plain.encoder, [*plain.objectives, *added], teacher=teacher,
                      temperature=settings.distill_temperature, phase_steps=phase_steps)
        begin_as(learner, teacher)
        return learner

    @property
    def optimizer_options(self) -> dict[str, Any]:
        return {"phase_steps": self.phase_steps} if self.phase_steps else {}

    def run_network(self, batch: Batch, training: bool = False, dropout_seed: Tensor | None = None,
                    options: Any = None) -> dict[str, Any]:
        return super().run_network(batch, options=options)

    def see_teacher(self, outputs: dict[str, Any]) -> dict[str, Any]:
        return {**outputs, "sequence_output": outputs["sequence_output"] * self.temperature}

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "temperature": self.temperature,
                "phase_steps": self.phase_steps, "of_all_layers": all(
                    getattr(objective, "of_all_layers", True) for objective in self.objectives)}


def read_teacher(path: str, config: Sizes, dtype: str | None = None) -> Learner:
    """Reads the teacher, whose vocabulary, depth, width and heads must be the network's."""
    sizes = checkpoints.read_config(path)
    for key in ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"):
        if getattr(sizes, key) != getattr(config, key):
            raise InputError(f"--teacher: {path} has the {key} {getattr(sizes, key)}, but the "
                             f"network to train has {getattr(config, key)}; make them equal.")
    return load_teacher(path, dtype)


def begin_as(learner: Learner, teacher: Learner) -> None:
    """Gives a network and its heads the teacher's weights outside the layers, where they fit."""
    values = variables(teacher)
    norms = {getattr(model.encoder.config, "normalization_type", "") == "no_norm"
             for model in (learner, teacher)}
    for name, variable in variables(learner).items():
        is_other_norm = name.startswith("embeddings/LayerNorm") and len(norms) > 1
        if name.startswith("encoder/") or is_other_norm or name not in values:
            continue
        if values[name].shape == variable.shape:
            variable.assign(ops.convert_to_numpy(values[name]))
