"""The base classes of objectives: a head on the network's outputs, its labels, and its loss."""

import importlib
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops
from keras.src.utils.naming import to_snake_case

from bert_tf.config import Sizes
from bert_tf.errors import InputError
from bert_tf.layers.base import FromConfig, Tensor, variant
from bert_tf.layers.functions import argmax, cross_entropy, dropout
from bert_tf.objectives.divergences import DIVERGENCES, OF_MEAN

Batch = Mapping[str, Tensor]


def ratio(values: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the weighted sum of values, and the sum of their weights (float32 scalars)."""
    return ops.sum(values * weights), ops.sum(weights)


def example_weights(batch: Batch, like: Tensor) -> Tensor:
    """Returns a batch's `is_real_example`, or ones: float32, with the shape of `like` [B]."""
    if "is_real_example" in batch:
        return ops.cast(ops.reshape(batch["is_real_example"], (-1,)), "float32")
    return ops.ones_like(like, dtype="float32")


class Objective(FromConfig, keras.layers.Layer):
    """A head on a network's outputs, with its labels and its loss.

    A subclass defines `call(outputs, batch, embedding_table, dropout_seed)`, which returns float32
    logits [..., classes] from the network's outputs and a batch's features, with dropout unless the
    seed, integer [2], is None; and `targets(batch)`, which returns integer labels [...] and float32
    weights [...]. Losses are sums with their counts, so that a mean can be taken over all devices.

    Attributes:
        name: the prefix of its weights; differs between the objectives of a Learner. By default
            the name of the class, "masked_lm" for MaskedLM.
        metrics_name: the prefix of its metrics; by default the name.
        reads: names of the features that training records must have.
        inputs: names of the features, of a fixed length, that its logits depend on in addition to
            the network's outputs.
        sequences: names of the features, integer [B, S], that its logits depend on too, and that
            some networks do not read.
        reads_tokens: whether it reads more outputs of the network than `pooled_output`.
        reads_masked: whether it reads no other tokens' outputs than those at `masked_lm_positions`.
        positional: names of its answers per position, [B, S, ...].
        measures: names of the results of `measure` that are (sum, count).
        tallies: names of its other results, float32 arrays that add up over batches and devices.
            Evaluation gives their sums to `summarize`.
        likelihood: of a language model, the measure that is the mean negative log likelihood of a
            token, whose exponential is the perplexity; else "".
        auxiliary: whether it serves training only, and is not saved.
        loss_weight: factor of its mean loss in the total.
        in_order: whether a row of a batch continues the same row of the batch before, so that the
            network's states are kept.
        extra_count: added to the count of a whole batch.
        label_smoothing: e of the target e / K for each of K classes, plus 1 - e for the label
            (arXiv:1512.00567, section 7).
        class_weights: a factor for each class's cross-entropy. As in
            torch.nn.CrossEntropyLoss(weight=...), a mean is divided by the sum of the labels'
            factors. The accuracy does not use them.
    """

    reads: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    sequences: tuple[str, ...] = ()
    reads_tokens: bool = True
    reads_masked: bool = False
    positional: tuple[str, ...] = ()
    measures: tuple[str, ...] = ("loss", "accuracy")
    tallies: tuple[str, ...] = ()
    likelihood = ""
    auxiliary = False
    in_order = False
    extra_count: float = 0.0
    label_smoothing: float = 0.0
    class_weights: tuple[float, ...] | None = None
    part: str | None = None
    config_keys: tuple[str, ...] = ("loss_weight",)

    @property
    def output_shape(self) -> tuple[int | None, ...] | None:
        return None

    def __init__(self, config: Sizes, loss_weight: float = 1.0, metrics_name: str | None = None,
                 **kwargs: Any):
        super().__init__(config, **{"name": to_snake_case(type(self).__name__), **kwargs})
        self.loss_weight, self._metrics_name = loss_weight, metrics_name

    @property
    def metrics_name(self) -> str:
        return self._metrics_name or self.name

    @classmethod
    def from_pretrained(cls, path: str | os.PathLike, **options: Any) -> Any:
        """Returns the Learner with the weights at `path`; see `bert_tf.pretrained.task`."""
        # When it is called: what reads all formats stands above the objectives.
        return importlib.import_module("bert_tf.pretrained").task(cls, path, **options)

    @classmethod
    def fits(cls, config: Sizes) -> bool:
        """Whether a network of these sizes returns the outputs that this objective reads."""
        return True

    def targets(self, batch: Batch) -> tuple[Tensor, ...]:
        """Returns the labels [...] and float32 weights [...] of the logits [..., classes], and
        further arguments of `measure`."""
        raise NotImplementedError

    def loss(self, logits: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the weighted sum of the cross-entropies, and the sum of `weights_in_loss`
        (float32 scalars), from logits [..., classes], integer labels and float32 weights [...]."""
        losses = cross_entropy(labels, logits)                                  # [...]
        counted = self.weights_in_loss(labels, weights)
        total = ops.sum(losses * counted)
        if self.label_smoothing:
            of_all = -ops.log_softmax(logits)                                   # [..., classes]
            if self.class_weights:
                of_all = of_all * ops.convert_to_tensor(self.class_weights, "float32")
            of_all = ops.sum(ops.mean(of_all, axis=-1) * weights)
            total = (1 - self.label_smoothing) * total + self.label_smoothing * of_all
        return total, ops.sum(counted)

    def weights_in_loss(self, labels: Tensor, weights: Tensor) -> Tensor:
        """Returns each label's weight times its class's weight, [...]."""
        if not self.class_weights:
            return weights
        return weights * ops.take(ops.convert_to_tensor(self.class_weights, "float32"), labels)

    def check_labels(self, name: str, labels: Any) -> None:
        """Checks the labels that `fit` is given in memory. `name` is what messages call them.

        Raises:
            InputError: they are not an array of numbers.
        """
        if not hasattr(labels, "dtype"):
            raise InputError(f"the labels in {name} are a {type(labels).__name__}; give an array.")
        if np.asarray(labels).dtype.kind in "OSTU":
            raise InputError(f"the labels in {name} are not numbers; give the number of each "
                             "label, counted from 0.")

    def count(self, batch: Batch) -> Tensor:
        """Returns the divisor of the summed losses (float32 scalar), without a forward pass."""
        labels, weights, *_ = self.targets(batch)
        return ops.sum(self.weights_in_loss(labels, weights))

    def divergence(self, logits: Any, other: Any, weights: Tensor, form: str) -> Tensor:
        """Returns the weighted sum of a divergence of `DIVERGENCES` between two results of `call`
        (float32 scalar). Weights are the second of `targets`."""
        return ops.sum(ops.sum(DIVERGENCES[form](logits, other), axis=-1) * weights)

    def measure(self, logits: Tensor, labels: Tensor, weights: Tensor) -> dict[str, Any]:
        """Returns (sum, count) of each of `measures`, including the loss, and the `tallies`."""
        return {"loss": self.loss(logits, labels, weights),
                "accuracy": self.accuracy(logits, labels, weights)}

    def summarize(self, tallies: Mapping[str, np.ndarray]) -> dict[str, float]:
        """Returns the further metrics of an evaluation from the sums of `tallies`, by name."""
        return {}

    def accuracy(self, logits: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the weighted number of correct predictions, and the sum of the weights."""
        correct = ops.equal(argmax(logits), ops.cast(labels, "int32"))     # [...]
        return ratio(ops.cast(correct, weights.dtype), weights)

    def answers(self, logits: Tensor) -> dict[str, Tensor]:
        """Returns named float32 tensors for users of the model."""
        return {"logits": logits, "probabilities": ops.softmax(logits)}


class LinearHead(Objective):
    """Dropout and a dense layer of `units` on one output of the network (arXiv:1810.04805, section
    4).

    Shapes: B batch, S sequence, H hidden. Each example has one label, except in some subclasses.
    Examples whose feature `is_real_example`, [B] or [B, 1], is 0 do not count in the loss.

    Attributes:
        source: `pooled_output` [B, H] or `sequence_output` [B, S, H].
        reads: its first name is the feature of the labels, integer [B] or [B, 1].
        dropout_rate: before the dense layer.
        reader: a layer before the dropout, or None.
        reader_size: width of each direction of a recurrent `reader` of `sequence_output`, whose
            result replaces `source` (arXiv:1810.04805, table 5); 0 for none.
        orders: sequences an example, such as both orders of two texts; the sum of their pooled
            outputs is classified.
    """

    source = "pooled_output"
    part = "head"
    config_keys: tuple[str, ...] = ("dropout_rate", "reader_size", "orders")
    reads: tuple[str, ...] = ("label_ids",)

    def __init__(self, config: Sizes, units: int, dropout_rate: float = 0.1,
                 reader: keras.layers.Layer | None = None, reader_size: int = 0, orders: int = 1,
                 **kwargs: Any):
        super().__init__(config, **kwargs)
        if reader_size:
            reader = variant("reader", config)(config, reader_size, self.source,
                                               dtype=kwargs.get("dtype"))
        self.dropout_rate, self.reader_size, self.orders = dropout_rate, reader_size, orders
        self.reader: Any = reader
        self.classifier = self.dense(units, initializer=config.head_initializer,
                                     inputs=getattr(reader, "width", None))
        self.build()

    @property
    def reads_tokens(self) -> bool:     # type: ignore[override]
        return self.source != "pooled_output" or self.reader is not None

    @property
    def output_shape(self) -> tuple[int | None, ...]:
        places = (None,) if self.source == "pooled_output" else (None, None)
        return (*places, self.classifier.units)

    def call(self, outputs: Mapping[str, Tensor], batch: Batch,
             embedding_table: Tensor | None = None, dropout_seed: Tensor | None = None) -> Tensor:
        """`outputs[self.source]`, float [..., H] -> float32 logits [..., units]."""
        if self.reader_size:
            x = self.reader(outputs, batch["input_mask"])
        else:
            x = outputs[self.source]
            if self.source == "sequence_output":
                x = outputs.get("token_output", x)
        if self.orders > 1:
            x = ops.sum(ops.reshape(x, (-1, self.orders, x.shape[-1])), axis=1)
        x = dropout(x, self.dropout_rate, dropout_seed)                         # [..., H]
        return ops.cast(self.classifier(x), "float32")

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Labels and weights [B]."""
        labels = ops.reshape(batch[self.reads[0]], (-1,))
        return labels, example_weights(batch, labels)

    def row_targets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Float32 labels and weights [B, units], where an example has a label for each unit."""
        labels = ops.cast(batch[self.reads[0]], "float32")
        labels = ops.reshape(labels, (-1, self.classifier.units))
        weights = ops.expand_dims(example_weights(batch, labels[:, 0]), axis=1)    # [B, 1]
        return labels, ops.broadcast_to(weights, ops.shape(labels))


class SmoothedHead(LinearHead):
    """A head whose labels may be smoothed, with `label_smoothing` from 0 to below 1."""

    config_keys: tuple[str, ...] = ("label_smoothing",)

    def __init__(self, config: Sizes, units: int, label_smoothing: float = 0.0, **kwargs: Any):
        if not 0 <= label_smoothing < 1:
            raise InputError(f"label_smoothing is {label_smoothing}; it must be from 0 to below 1.")
        super().__init__(config, units, **kwargs)
        self.label_smoothing = label_smoothing

    def divergence(self, logits: Tensor, other: Tensor, weights: Tensor, form: str) -> Tensor:
        """See `Objective.divergence`; those of `OF_MEAN` are the mean over classes, not the sum."""
        total = super().divergence(logits, other, weights, form)
        if form in OF_MEAN:
            total = total / ops.cast(ops.shape(logits)[-1], total.dtype)
        return total


class LabelHead(SmoothedHead):
    """A head with an output for each label of the task. `class_weights` are `num_labels` numbers of
    0 or more, not all 0.

    Attributes:
        checks_range: whether every label in the data is the number of an output; not of other tasks
            in the same records, and not of rows of 0 and 1.
    """

    config_keys: tuple[str, ...] = ("num_labels", "class_weights")
    checks_range = True

    def __init__(self, config: Sizes, num_labels: int,
                 class_weights: Sequence[float] | None = None, **kwargs: Any):
        if class_weights is not None:
            class_weights = tuple(map(float, class_weights))
            if (len(class_weights) != num_labels or not any(class_weights)
                    or not all(0 <= weight < math.inf for weight in class_weights)):
                raise InputError(
                    f"class_weights are {', '.join(map(str, class_weights))}; they must be "
                    f"{num_labels} numbers of 0 or more, one for each label, and not all 0.")
        super().__init__(config, num_labels, **kwargs)
        self.num_labels, self.class_weights = num_labels, class_weights

    def check_labels(self, name: str, labels: Any) -> None:
        """See `Objective`. With `checks_range` the labels are whole numbers below `num_labels`, one
        for each example or, if the answers are `positional`, each token."""
        super().check_labels(name, labels)
        if not self.checks_range:
            return
        array = np.asarray(labels)
        if not self.positional and array.size != len(array):
            raise InputError(f"the labels in {name} have the shape {array.shape}; give one number "
                             "for each example, not a row.")
        wrong = array[(array < 0) | (array >= self.num_labels) | (array != np.floor(array))]
        if wrong.size:
            raise InputError(f"{name} has the label {wrong[0]}, but the head {self.name!r} knows "
                             f"the whole numbers from 0 to {self.num_labels - 1}; give such, or "
                             "another num_labels.")
