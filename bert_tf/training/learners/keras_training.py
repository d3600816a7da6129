"""Keras's own training of a Learner: `compile`, `fit`, `evaluate`."""

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from bert_tf.errors import InputError
from bert_tf.layers.base import Tensor
from bert_tf.training import distribution


class TrainsByKeras:
    """Mixin for a `Learner`, before `keras.Model`.

    Under a strategy of tf.distribute, `fit` takes the step of one device with the whole batch.
    """

    objectives: list
    measure_logits: Any
    optimizer: Any
    total_loss: Any

    def compile(self, optimizer: Any = "rmsprop", loss: Any = None, loss_weights: Any = None,
                *args: Any, **kwargs: Any) -> None:
        """Prepares `fit`; takes the arguments of `keras.Model.compile` except the losses.

        Raises:
            InputError: a loss or a weight of losses is given; or the optimizer is Keras's Adam or
                one like it, and can't change weights of the Learner's type.
        """
        for name, value in (("loss", loss), ("loss_weights", loss_weights)):
            if value is not None:
                raise InputError("a Learner's objectives have losses and loss weights of their "
                                 f"own; leave out {name} in compile.")
        super().compile(optimizer, None, None, *args, **kwargs)     # type: ignore[misc]
        self._check_rounding()

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles a loaded Learner; Keras leaves out classes with a `compile` of their own."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def _check_rounding(self):
        """Keras corrects a bias by 1 - beta_2 ** step in the type of a weight; 0.999 is 1 in
        bfloat16."""
        corrected = (keras.optimizers.Adam, keras.optimizers.Lamb, keras.optimizers.Nadam)
        if not isinstance(self.optimizer, corrected):
            return
        for dtype in {str(variable.dtype) for variable in self.trainable_variables}:
            if float(ops.convert_to_tensor(self.optimizer.beta_2, dtype)) == 1:
                raise InputError(
                    f"{type(self.optimizer).__name__} of Keras can't change weights in {dtype}, "
                    f"where its beta_2 of {self.optimizer.beta_2} is 1: make the Learner under the "
                    f"policy mixed_{dtype}, or give beta_2=0.99.")

    def fit(self, x: Any = None, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Trains as `keras.Model.fit` does.

        Raises:
            InputError: labels in memory are not an array, are text, or have no output of the head.
        """
        self._check_labels(x, y)
        of_validation = kwargs.get("validation_data")
        if isinstance(of_validation, tuple):
            self._check_labels(*of_validation[:2])
        return super().fit(x, y, *args, **kwargs)  # type: ignore[misc]

    def evaluate(self, x: Any = None, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Measures as `keras.Model.evaluate` does; raises what `fit` does."""
        self._check_labels(x, y)
        return super().evaluate(x, y, *args, **kwargs)  # type: ignore[misc]

    def _check_labels(self, x, y=None):
        for objective in self.objectives:
            name, labels = "y", y
            if y is None and isinstance(x, Mapping):
                name = next(iter(objective.reads), None)
                labels = x.get(name)
            if labels is not None:
                objective.check_labels(name, labels)

    def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None,
                     sample_weight: Any = None, training: bool = True) -> Tensor:
        """Computes the loss for `fit`.

        Args:
            x: features; the labels and their weights too, where `y` and `sample_weight` are None.
            y: the labels of a model with one task.
            sample_weight: the weight of each example, [B].
        """
        measures = self.measure_logits(y_pred, self._labelled(x, y, sample_weight))
        replicas = distribution.count_replicas()
        if replicas == 1:
            return self.total_loss(measures)
        names = [objective.name for objective in self.objectives]
        counts = distribution.all_reduce_sum([measures[name]["loss"][1] for name in names])
        loss = self.total_loss(measures, dict(zip(names, counts)))
        # Keras adds the gradients up, and takes the mean of the values times the replicas.
        whole = distribution.all_reduce_sum([ops.stop_gradient(loss)])[0]
        return loss + ops.stop_gradient(whole / replicas - loss)

    def _labelled(self, x, y, sample_weight):
        """The features with labels and weights under the names of the records."""
        if y is None:
            return x
        names = [objective.reads[:1] for objective in self.objectives]
        if names != [("label_ids",)]:
            raise InputError("fit(x, y) is for a model with one task; put the labels into x, under "
                             "the names of the records' features.")
        weights = {} if sample_weight is None else {"is_real_example": sample_weight}
        return {**x, "label_ids": y, **weights}
