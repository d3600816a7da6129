"""A learner whose network learns from a frozen teacher at every step.

Shapes: B batch, S sequence, V vocabulary.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import keras
from keras import ops, tree

from bert_tf import checkpoints, networks, objectives
from bert_tf.config import Sizes
from bert_tf.errors import InputError
from bert_tf.layers.base import Tensor, register
from bert_tf.layers.changes import NOISES, leave_idle
from bert_tf.objectives.base import Batch, Objective
from bert_tf.objectives.small_vocabulary import WeightProjection, layer_weights
from bert_tf.objectives.taught import (
    FIRST_STATE,
    LAYER_WEIGHTS,
    TOKEN_LOGITS,
    TaughtObjective,
    of_teacher,
)
from bert_tf.training import transfer
from bert_tf.training.learners.learner import Learner, Measures, digest
from bert_tf.training.learners.teacher_settings import DistillerSettings, TeacherSettings

# The flags of the weights of terms.
WEIGHTS = {"TokenDistillation": "alpha_ce", "TokenSquaredError": "alpha_mse",
           "MaskedLM": "alpha_mlm", "HiddenCosine": "alpha_cos",
           "WeightProjection": "projection_weight"}


class Untracked:
    """Holds a model out of Keras's sight: its weights are not trained, saved or counted."""

    def __init__(self, model: keras.Model) -> None:
        self.model = model


@register
class Distiller(Learner):
    """A Learner whose `TaughtObjective`s compare its network with another one, the teacher.

    The teacher applies no dropout, gets no gradient and keeps its bytes. It is an input of
    training, as records are: no file holds it. A plain Learner of the network and of the objectives
    that are not auxiliary is saved.

    Objectives name the tensors that they compare (`TaughtObjective.internals`). The network's own
    are added to its outputs under the same names, the teacher's to the batch, as the features
    `of_teacher(name)`.

    Args:
        teacher: has all internals that the objectives name. It is frozen.
    """

    epsilon = 0.0
    packs = False       # a teacher's maps are compared row by row

    def __init__(self, encoder: keras.Model, objectives: Iterable[Objective],
                 teacher: Learner | None = None, **kwargs: Any):
        super().__init__(encoder, objectives, **kwargs)
        if teacher is None:
            raise InputError("this learner needs its teacher, but no file saves that; build the "
                             "learner from the teacher again.")
        teacher.trainable = False
        self._held = Untracked(teacher)
        self._freeze_idle()
        if any(getattr(one, "idle_id", None) == 0 for one in self.objectives):
            leave_idle(encoder.embeddings, 0)
        self.internals = tuple(dict.fromkeys(
            name for objective in self.objectives for name in getattr(objective, "internals", ())))
        for one in self.objectives:
            if isinstance(one, WeightProjection):
                one.check(*(layer_weights({weight.path: weight for weight in network.weights})
                            for network in (encoder, teacher.encoder)))

    @classmethod
    def of_terms(cls, config: Sizes, terms: Sequence, dtype: str | None = None,
                 settings: Any = None) -> "Learner":
        settings = settings or DistillerSettings()
        terms = cls.with_squared_error(terms, getattr(settings, "alpha_mse", 0.0))
        teacher = cls.open_teacher(config, terms, dtype, settings)
        network, made = networks.build(config, dtype=dtype), []
        for term in terms:
            if term.network == "teacher":
                made += teacher.objectives
            else:
                made.append(make_term(term, config, teacher.encoder.config, dtype, settings))
        learner = cls(network, made, teacher)
        if settings.teacher_layers:
            transfer.begin_with(learner, teacher, list(map(int, settings.teacher_layers)),
                                settings.vocab_transform)
        return learner

    @staticmethod
    def with_squared_error(terms: Sequence, weight: float) -> Sequence:
        """The terms, and the squared error of logits if it has a weight."""
        if not weight:
            return terms
        if not any(term.objective == "TokenDistillation" for term in terms):
            raise InputError(f"--alpha_mse={weight:g} is for terms that compare logits, such as "
                             "the terms of distilbert; leave the flag out.")
        return [*terms, *(dataclasses.replace(term, objective="TokenSquaredError", options={})
                          for term in terms if term.objective == "TokenDistillation")]

    @classmethod
    def open_teacher(cls, config: Sizes, terms: Sequence, dtype: str | None,
                     settings: TeacherSettings) -> Learner:
        return read_teacher(settings.teacher, config, terms, dtype)

    def _freeze_idle(self):
        """Keeps heads that no loss reaches, and a pooler that they alone read, from decaying."""
        learned = [one for one in self.objectives if one.loss_weight]
        read = {one.name for one in learned}.union(
            *(getattr(one, "internals", ()) for one in learned))
        for head in (one for one in self.objectives if not isinstance(one, TaughtObjective)):
            head.trainable = head.name in read
            if head.name in read and getattr(head, "source", "") == "pooled_output":
                read.add("pooled_output")
        if getattr(self.encoder, "pooler", None) and "pooled_output" not in read:
            self.encoder.pooler.trainable = False

    @property
    def teacher(self) -> Learner:
        return self._held.model

    def network_options(self, batch: Batch) -> dict[str, Any]:
        needs_maps = any(name.startswith("attention_") for name in self.internals)
        return {"return_attention": True} if needs_maps else {}

    def call(self, batch: Batch, training: bool = False,
             dropout_seed: Tensor | None = None) -> dict[str, Any]:
        """See `Learner`; the dict also holds `teacher`, a dict of the teacher's features."""
        taught = self.teach(batch)
        return {**super().call({**batch, **taught}, training, dropout_seed), "teacher": taught}

    def teach(self, batch: Batch) -> dict[str, Any]:
        """The features that the teacher gives a batch: its internals, without a gradient."""
        outputs: dict[str, Any] = {}
        if set(self.internals) - {LAYER_WEIGHTS}:
            # Noise is for the network that learns.
            seen = {name: value for name, value in batch.items() if name not in NOISES}
            outputs = self.see_teacher(self.teacher.run_network(
                seen, options=self.network_options(batch)))
        internals = internals_of(self.teacher, outputs, batch, self.internals)
        return {of_teacher(name): tree.map_structure(ops.stop_gradient, value)
                for name, value in internals.items()}

    def see_teacher(self, outputs: dict[str, Any]) -> dict[str, Any]:
        return outputs

    def seen_by(self, objective: Objective, outputs: Any, batch: Batch) -> tuple[Any, Batch]:
        internals = getattr(objective, "internals", ())
        return {**outputs, **internals_of(self, outputs, batch, internals)}, batch

    def measure_logits(self, logits: Mapping[str, Any], batch: Batch) -> Measures:
        return super().measure_logits(logits, {**batch, **logits["teacher"]})

    def parts(self) -> dict[str, Learner]:
        return {"model": Learner(self.encoder, [
            objective for objective in self.objectives if not objective.auxiliary])}

    def describe(self) -> dict[str, Any]:
        settings = {flag: getattr(one, name) for one in self.objectives
                    for name, flag in getattr(one, "settings", {}).items()}
        return {**super().describe(), **settings, "teacher": digest(self.teacher.weights)}


def make_term(term: Any, config: Sizes, teacher: Sizes, dtype: str | None = None,
              settings: TeacherSettings | None = None) -> Objective:
    """Returns the objective of a `recipes.Term` for a network with a teacher; weights and options
    of `settings` come before the term's."""
    kind = getattr(objectives, term.objective)
    options = dict(term.options)
    if issubclass(kind, TaughtObjective):
        options |= {name: getattr(settings, flag) for name, flag in kind.settings.items()
                    if hasattr(settings, flag)} | {name: getattr(teacher, size)
                                    for name, size in kind.sizes.items()}
    weight = getattr(settings, WEIGHTS.get(term.objective, ""), None)
    if weight is None:
        weight = term.weight
    return kind(config, loss_weight=weight, dtype=dtype, **options)


def read_teacher(path: str, config: Sizes, terms: Sequence, dtype: str | None = None) -> Learner:
    """Reads the teacher of a network of `config`, with a masked LM if terms compare predictions."""
    if not path:
        raise InputError("--teacher must be given, since this recipe learns from a pre-trained "
                         "model.")
    sizes = checkpoints.read_config(path)
    read = {name for term in terms for name in getattr(
        getattr(objectives, term.objective), "internals", ())}
    if read - {LAYER_WEIGHTS} and sizes.vocab_size != config.vocab_size:      # type: ignore[attr-defined]
        raise InputError(f"--teacher={path} has a vocabulary of {sizes.vocab_size} tokens, and "
                         f"the network a vocabulary of {config.vocab_size}; both must have the "
                         "same.")
    widths = config.hidden_size, sizes.hidden_size
    if widths[0] != widths[1] and any(term.objective == "HiddenCosine" for term in terms):
        raise InputError(f"--teacher={path} is {widths[1]} wide and the network {widths[0]} wide, "
                         "but the cosine of their vectors needs equal widths; set the network's "
                         "hidden_size to the teacher's, or leave hidden_cosine out of --terms.")
    return load_teacher(path, dtype, bool(read & {TOKEN_LOGITS, "masked_lm"}))


def load_teacher(path: str, dtype: str | None = None, predicts: bool = True) -> Learner:
    """Reads the network at `path`, and its masked LM if it `predicts`."""
    weights = checkpoints.read(path)
    config = weights.config
    teacher = Learner(networks.build(config, dtype=dtype),
                      [objectives.MaskedLM(config, dtype=dtype)] if predicts else [])
    missing = [name for name in checkpoints.load(weights, teacher).missing
               if name.startswith("masked_lm/")]
    if missing:
        raise InputError(f"--teacher={path} has no {', '.join(missing)}, but the student learns "
                         "the teacher's predictions of tokens; name a model with its masked LM.")
    return teacher


def internals_of(learner: Learner, outputs: Mapping[str, Any], batch: Batch,
                 names: Iterable[str]) -> dict[str, Any]:
    """Returns named tensors of a network that its call does not return.

    Args:
        names: internals of the network, such as "layer_outputs" and "attention_scores"; objectives
            of the learner, which mean their logits; or a constant of `objectives.taught`.

    Raises:
        InputError: the network has no such tensor, or the learner no head for it.
    """
    heads = {objective.name: objective for objective in learner.objectives}
    table, tensors = learner.encoder.embedding_table, {}
    for name in names:
        if name in outputs:
            tensors[name] = outputs[name]
        elif name == FIRST_STATE:
            tensors[name] = networks.first_state(outputs)
        elif name == LAYER_WEIGHTS:
            tensors[name] = layer_weights({weight.path: ops.convert_to_tensor(weight)
                                           for weight in learner.encoder.weights})
        elif name == TOKEN_LOGITS and "masked_lm" in heads:
            tensors[name] = heads["masked_lm"].predict(outputs["sequence_output"], table)
        elif name in heads:
            tensors[name] = heads[name](outputs, batch, table)
        else:
            raise InputError(f"distillation compares {name} of both networks, but a "
                             f"{type(learner.encoder).__name__} with "
                             f"{', '.join(heads) or 'no head'} has none; choose another network, "
                             "or another recipe of distillation.")
    return tensors
