"""The model that is trained and saved: a network and its objectives."""

import keras
from keras import ops

from bert_tf.layers.base import register
from bert_tf.layers.dropout import split_seed
from bert_tf.networks.encoder import INPUTS

# The original's guard against a batch without a single masked position.
_EPSILON = 1e-5


@register
class Learner(keras.Model):
    """One network and the objectives it is trained on.

    A batch is a dict of features under the names of the records. Every loss is a sum and a count,
    so that a training loop can add both up over its devices before dividing; on one device
    `compile(optimizer)` and `fit` do the same.

    Args:
        encoder: the network.
        objectives: a list of objectives with different names.
    """

    def __init__(self, encoder, objectives, **kwargs):
        super().__init__(autocast=False, **kwargs)
        if not encoder.trainable:       # and if it was loaded, its weights don't know of it
            for variable in encoder.weights:
                variable.trainable = False
        self.encoder = encoder
        self.objectives = list(objectives)
        self.built = True  # as its parts are

    def call(self, batch, training=False, dropout_seed=None):
        """A dict of each objective's logits, by its name.

        Args:
            batch: dict of features; those of the encoder are [B, S], or [B, C, S] for C choices
                that the encoder is to take one by one.
            training: whether to apply dropout; an encoder that has nothing to be trained gets none.
            dropout_seed: integer [2], of which all dropout masks are a pure function; drawn from
                the encoder's generator if None.
        """
        if training and dropout_seed is None:
            dropout_seed = self.encoder.seed_generator.next()
        encoder_seed, *seeds = split_seed(dropout_seed if training else None,
                                          1 + len(self.objectives))
        rows = {name: ops.reshape(batch[name], (-1, ops.shape(batch[name])[-1]))
                for name in INPUTS if batch.get(name) is not None}
        training = training and any(v.trainable for v in self.encoder.weights)
        outputs = self.encoder(rows, training=training, dropout_seed=encoder_seed)
        return {objective.name: objective(outputs, batch, self.encoder.embedding_table, seed)
                for objective, seed in zip(self.objectives, seeds)}

    def targets(self, batch):
        """A dict of each objective's (labels, weights)."""
        return {objective.name: objective.targets(batch) for objective in self.objectives}

    def counts(self, batch):
        """A dict of what each objective's losses are to be divided by; needs no forward pass."""
        return {objective.name: ops.sum(objective.weights_in_loss(*objective.targets(batch)))
                for objective in self.objectives}

    def measure(self, batch, training=False, dropout_seed=None):
        """A dict, by objective, of {"loss": (sum, count), "accuracy": (sum, count)}."""
        return self.measure_logits(self(batch, training=training, dropout_seed=dropout_seed), batch)

    def measure_logits(self, logits, batch):
        """The same, from what `call` returned."""
        targets = self.targets(batch)
        return {
            objective.name: {
                "loss": objective.loss(logits[objective.name], *targets[objective.name]),
                "accuracy": objective.accuracy(logits[objective.name], *targets[objective.name]),
            } for objective in self.objectives}

    def total_loss(self, measures, counts=None):
        """The mean losses, each times its objective's weight, added up (float32 scalar).

        Args:
            measures: what `measure` returns.
            counts: a dict of other counts to divide by, such as those of all devices.
        """
        total = 0.0
        for objective in self.objectives:
            loss, count = measures[objective.name]["loss"]
            count = count if counts is None else counts[objective.name]
            total += objective.loss_weight * loss / (count + _EPSILON)
        return total

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """For `fit`: labels and weights are among the features `x`."""
        return self.total_loss(self.measure_logits(y_pred, x))

    def get_config(self):
        return {**super().get_config(),
                "encoder": keras.saving.serialize_keras_object(self.encoder),
                "objectives": [keras.saving.serialize_keras_object(o) for o in self.objectives]}

    @classmethod
    def from_config(cls, config):
        parts = {key: keras.saving.deserialize_keras_object(config[key])
                 for key in ("encoder", "objectives")}
        return cls(**{**config, **parts})
