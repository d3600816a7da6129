"""The model that is trained and saved: a network and its objectives; and a pass over a batch, with
the gradient of its loss. Shapes: B rows of a batch, S sequence."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import keras
import lazy_loader
from keras import ops

from bert_tf import networks
from bert_tf import objectives as all_objectives
from bert_tf.config import Sizes
from bert_tf.errors import InputError
from bert_tf.layers.base import TakesFeatures, Tensor, network_names, register, saved_names
from bert_tf.layers.changes import NOISES
from bert_tf.layers.functions import seed_of_pass, split_seed
from bert_tf.objectives.base import Batch, Objective
from bert_tf.training.learners.keras_training import TrainsByKeras

tf = lazy_loader.load("tensorflow")     # other backends train by `fit`, without it
# Features with the places of predictions, on which logits depend.
POSITIONS = {"masked_lm_positions"}
Measures = dict[str, dict[str, Any]]
# Factors of parts of the network, which are not features of the records.
_MASKS = ("head_mask", "unit_mask")
# Dropout and gates take the first seeds that are split off a step's seed.
_SEEDS_OF_LEARNERS = 2


@register
class Learner(TakesFeatures, TrainsByKeras, keras.Model):
    """One network and the objectives it is trained on, which have different names.

    A batch is a dict of features under the names of the records. `compile(optimizer)` and `fit`
    train it, on one device or under a strategy. Every loss is a sum and a count, so that a training
    loop can add both up over its devices before dividing.

    Attributes:
        epsilon: the original's guard against a batch without a masked position; 0 where the mean
            of nothing is 0.
        one_task_a_batch: whether the means over steps count only the steps that had the objective.
        draws: a phrase for its random draws in each training pass, besides dropout; "" if none.
        untrained: names of weights that a converted checkpoint lacked. A saved file calls them
            untrained/NAME, and only Keras itself reads them again.
    """

    epsilon = 1e-5
    one_task_a_batch = False
    draws = ""
    untrained: Collection[str] = ()
    objectives: list[Objective]

    def __init__(self, encoder: keras.Model, objectives: Iterable[Objective], **kwargs: Any):
        super().__init__(autocast=False, **kwargs)
        objectives = list(objectives)
        names = [objective.name for objective in objectives]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"{names.count(name)} objectives have the name {name!r}; give "
                                 "each a different name=.")
        if not encoder.trainable:       # a loaded encoder has not passed this on to its weights
            for variable in encoder.weights:
                variable.trainable = False
        self.encoder = encoder
        self.objectives = objectives
        self.built = True  # as its parts are

    @classmethod
    def of_terms(cls, config: Sizes, terms: Sequence, dtype: str | None = None,
                 settings: Any = None) -> "Learner":
        """Makes the network of a configuration and the objectives of a recipe's terms, with initial
        weights. `settings` is an object of the dataclass that the recipe's row names, or None."""
        further = getattr(settings, "term_options", {})
        return cls(networks.build(config, dtype=dtype), [
            getattr(all_objectives, term.objective)(
                config, loss_weight=term.weight, dtype=dtype, **{**term.options, **further})
            for term in terms])

    @classmethod
    def configs(cls, config: Sizes, settings: Any = None) -> list[Sizes]:
        """The configurations of the networks that `of_terms` makes, the product's first."""
        return [config]

    @property
    def optimizer_options(self) -> dict[str, Any]:
        return {}

    @property
    def packs(self) -> bool:
        """Whether records may share rows, see bert_tf/layers/changes.py."""
        return getattr(self.encoder, "packs", False)

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the sequences that the network or an objective reads."""
        return (*dict.fromkeys((*self.encoder.reads, *(
            name for objective in self.objectives for name in objective.sequences))),)

    @property
    def feature_axes(self) -> dict[str, int]:      # type: ignore[override]
        has_choices = any(getattr(objective, "orders", 1) > 1
                          or isinstance(objective, all_objectives.MultipleChoice)
                          for objective in self.objectives)
        further = [name for objective in self.objectives for name in (
            *objective.inputs, *(POSITIONS & {*objective.reads}))]
        return {**dict.fromkeys(self.reads, 2 + has_choices), **dict.fromkeys(further, 2)}

    @property
    def carries(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of a row of the states that a step hands to the next; see memory.py."""
        in_order = any(objective.in_order for objective in self.objectives)
        return dict(getattr(self.encoder, "carries", {})) if in_order else {}

    def call(self, batch: Batch, training: bool = False,
             dropout_seed: Tensor | None = None) -> dict[str, Tensor]:
        """Returns the logits of each objective, by its name.

        An encoder without a trainable weight gets no dropout.

        Args:
            batch: dict of features; the encoder reads [B, S], or [B, C, S] for C choices, one by
                one. `carried` is the last step's result of that name, which the result then has
                too. `head_mask` and `unit_mask`, and noise of the embeddings [B * C, S, width], are
                passed on to the network.
            dropout_seed: integer [2] that determines all dropout masks; drawn from the encoder's
                generator if None.
        """
        dropout_seed = seed_of_pass(dropout_seed, training, self.encoder.seed_generator)
        encoder_seed, *seeds = split_seed(dropout_seed, 1 + len(self.objectives))
        outputs = self.run_network(batch, training, encoder_seed, self.network_options(batch))
        logits = self.read_outputs(outputs, batch, seeds)
        if "carried" in batch:
            logits["carried"] = outputs["carried"]
        return logits

    def run_network(self, batch: Batch, training: bool = False, dropout_seed: Tensor | None = None,
                    options: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Returns the network's outputs for a batch, by name; `options` are further arguments of
        its `call`."""
        rows = {name: ops.reshape(batch[name], (-1, ops.shape(batch[name])[-1]))    # [B * C, S]
                for name in (*self.encoder.reads, *getattr(self.encoder, "also_reads", ()))
                if batch.get(name) is not None}
        rows |= {name: batch[name] for name in (*NOISES, "carried") if name in batch}
        masks = {name: batch[name] for name in _MASKS if name in batch}
        training = training and any(v.trainable for v in self.encoder.weights)
        return self.encoder(rows, training=training, dropout_seed=dropout_seed,
                            **{**masks, **(options or {})})

    def network_options(self, batch: Batch) -> dict[str, Any]:
        readers = [objective for objective in self.objectives if objective.reads_tokens]
        if not getattr(self.encoder, "pools_first", False) or not all(
                objective.reads_masked for objective in readers):
            return {}
        if not readers:
            return {"read_at": []}
        # Models that are exported, whose batches have no labels, compute all tokens.
        return {"read_at": [batch["masked_lm_positions"]]} if "masked_lm_ids" in batch else {}

    def read_outputs(self, outputs: Any, batch: Batch, seeds: Sequence) -> dict[str, Tensor]:
        """Returns the logits of each objective by its name, from the network's outputs; `seeds` are
        the objectives' dropout seeds."""
        return {objective.name: objective(*self.seen_by(objective, outputs, batch),
                                          self.encoder.embedding_table, seed)
                for objective, seed in zip(self.objectives, seeds)}

    def seen_by(self, objective: Objective, outputs: Any, batch: Batch) -> tuple[Any, Batch]:
        """The network's outputs and the features that an objective reads."""
        return outputs, batch

    def measure(self, batch: Batch, training: bool = False,
                dropout_seed: Tensor | None = None) -> Measures:
        """A dict, by objective, of its measures: {"loss": (sum, count), ...}."""
        return self.measure_logits(self(batch, training=training, dropout_seed=dropout_seed), batch)

    @property
    def measure_names(self) -> list[tuple[str, str]]:
        """(objective, measure) of all that `measure` returns."""
        return [(objective.name, kind) for objective in self.objectives
                for kind in objective.measures]

    def batch_for(self, objective: Objective, batch: Batch) -> Batch:
        """The features that hold an objective's labels and their weights."""
        return batch

    def targets(self, batch: Batch) -> dict[str, tuple[Tensor, ...]]:
        """Returns each objective's (labels, weights) and further inputs of its measures.

        Raises:
            InputError: the batch lacks a feature of them.
        """
        targets = {}
        for objective in self.objectives:
            try:
                targets[objective.name] = objective.targets(self.batch_for(objective, batch))
            except KeyError as error:
                if error.args[0] not in objective.reads:
                    raise
                raise InputError(f"the data have no feature {error.args[0]!r}, which the objective "
                                 f"{objective.name!r} learns from; add it.") from error
        return targets

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Returns the divisor of each objective's loss, by name; needs no forward pass."""
        return {objective.name: objective.count(self.batch_for(objective, batch))
                for objective in self.objectives}

    def measure_logits(self, logits: Mapping[str, Tensor], batch: Batch) -> Measures:
        targets = self.targets(batch)
        return {objective.name: objective.measure(logits[objective.name], *targets[objective.name])
                for objective in self.objectives}

    def total_loss(self, measures: Measures, counts: Mapping[str, Tensor] | None = None) -> Tensor:
        """Returns the sum of the mean losses, each times its objective's weight (float32 scalar).
        `counts` are other counts to divide by, such as the sums over all devices."""
        total: Tensor = 0.0
        for objective in self.objectives:
            loss, count = measures[objective.name]["loss"]
            if counts is not None:
                count = counts[objective.name]
            if self.epsilon:
                count = count + (self.epsilon + objective.extra_count)
            else:
                count = ops.where(count > 0, count, 1.0)
            total += objective.loss_weight * loss / count
        return total

    def parts(self) -> dict[str, "Learner"]:
        """The models that a run leaves, by the names of their files."""
        saved = [objective for objective in self.objectives if not objective.auxiliary]
        if len(saved) == len(self.objectives):
            return {"model": self}
        return {"model": Learner(self.encoder, saved)}

    def describe(self) -> dict[str, Any]:
        """Returns the JSON values that identify the learner when a run is resumed."""
        return {"bert_config_file": self.encoder.config.to_dict(),
                "terms": {objective.name: objective.loss_weight for objective in self.objectives}}

    def get_config(self) -> dict[str, Any]:
        names = network_names(self.encoder)
        for objective in self.objectives:
            names |= {id(v): v.path.removeprefix(objective.path.removesuffix(objective.name))
                      for v in objective.weights}
        names = {key: "untrained/" * (name in self.untrained) + name for key, name in names.items()}
        encoder = keras.saving.serialize_keras_object(self.encoder)
        encoder["config"].pop("weights", None)      # which are among the model's
        return {**super().get_config(), "weights": saved_names(self, names), "encoder": encoder,
                "objectives": [keras.saving.serialize_keras_object(o) for o in self.objectives]}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Learner":
        return cls(**saved_arguments(config))


def saved_arguments(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a Learner that `get_config` has saved, its parts as objects."""
    arguments = {key: value for key, value in config.items() if key != "weights"}
    return arguments | {key: keras.saving.deserialize_keras_object(config[key])
                        for key in ("encoder", "objectives")}


def gradient(tape: Any, loss: Any, variables: list[Any]) -> list[Any]:
    return tape.gradient(loss, variables, unconnected_gradients="zero")


class Pass:
    """The function to differentiate for a batch: a Learner with the batch, the counts that losses
    are divided by, and the factor of the loss in float16."""

    def __init__(self, learner: Learner, batch: Any, counts: Any, loss_scale: Any):
        self.learner, self.batch, self.counts = learner, batch, counts
        self.loss_scale = loss_scale
        self.variables = [v.value for v in learner.trainable_variables]

    def logits(self, seed: Any, **noise: Any) -> dict[str, Any]:
        """The result of the Learner's `call`, with noise added to the embeddings."""
        return self.learner({**self.batch, **noise}, training=True, dropout_seed=seed)

    def loss(self, measures: Measures) -> Any:
        return self.learner.total_loss(measures, self.counts) * self.loss_scale

    def mask(self) -> Any:
        """float32 [B, S, 1], 1 for tokens and 0 for padding."""
        mask = self.batch["input_mask"]
        return ops.cast(ops.reshape(mask, [-1, ops.shape(mask)[-1], 1]), "float32")

    def seeds(self, seed: Any, count: int) -> list[Any]:
        """Seeds, integer [2], that differ from the seeds that the Learner makes of `seed`."""
        skipped = _SEEDS_OF_LEARNERS + len(self.learner.objectives)
        return split_seed(seed, skipped + count)[skipped:]


class Plain:
    """The gradient of the loss."""

    measure_names: tuple[tuple[str, str], ...] = ()

    def check(self, learner: Learner) -> None:
        """Raises InputError if a learner can't be trained in this way."""

    def gradients(self, of: Pass, seed: Any) -> tuple[Measures, list[Any], dict[str, Any]]:
        """Returns the measures of a batch, the gradient of its loss by the trainable variables, and
        its logits. `seed`, integer [2], determines all that is drawn."""
        with tf.GradientTape() as tape:
            logits = of.logits(seed)
            measures = of.learner.measure_logits(logits, of.batch)
            loss = of.loss(measures)
        return measures, gradient(tape, loss, of.variables), logits


def digest(weights: Iterable) -> str:
    """Returns the hexadecimal digest of the bytes of variables."""
    hashed = hashlib.sha256()
    for variable in weights:
        hashed.update(ops.convert_to_numpy(variable).tobytes())
    return hashed.hexdigest()[:16]
