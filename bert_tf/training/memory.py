"""State that a network carries from step to step, such as the memory of earlier segments.

A network's attribute `carries` is a dict of names and the shapes of one row. Its `call` takes
`carried` among its inputs, a dict by those names of float32 [B, ...], and without it begins at
zero. It returns `carried` among its outputs, which gradients must not pass. An objective's
`in_order` is true where row r of a batch continues row r of the batch before. The state is zero at
step 0 and is kept in training checkpoints. An evaluation begins with zeros of its own.

Shapes: B batch of a replica, R rows of a global batch; row r of it is row r % B of replica r // B.
"""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from bert_tf.errors import InputError


class CarriedState:
    """The rows that each replica carries, in variables of its own.

    Args:
        shapes: shapes of one row, by name.
        rows: R.
    """

    def __init__(self, shapes: Mapping[str, tuple[int, ...]], rows: int | None,
                 strategy: tf.distribute.Strategy) -> None:
        replicas = strategy.num_replicas_in_sync
        if not rows or rows % replicas:
            raise InputError(f"the network carries {', '.join(shapes)} from step to step, so the "
                             f"batch size must be a multiple of the {replicas} devices; it is "
                             f"{rows}.")
        self._strategy = strategy
        self._shapes = {name: (rows, *shape) for name, shape in shapes.items()}
        with strategy.scope():
            self._variables = {name: tf.Variable(
                tf.zeros([rows // replicas, *shape]), trainable=False, name=name,
                synchronization=tf.VariableSynchronization.ON_READ,
                aggregation=tf.VariableAggregation.NONE) for name, shape in shapes.items()}

    def read(self) -> dict[str, tf.Tensor]:
        """Returns the rows of this replica in a step, [B, ...]."""
        return {name: variable.read_value() for name, variable in self._variables.items()}

    def write(self, values: Mapping[str, tf.Tensor]) -> None:
        """Keeps the rows of this replica for the next step; of a step."""
        for name, variable in self._variables.items():
            variable.assign(values[name])

    def tensors(self) -> dict[str, np.ndarray]:
        """Returns the rows of all workers' replicas, float32 [R, ...]; all workers must call it."""
        if isinstance(self._strategy, tf.distribute.MultiWorkerMirroredStrategy):
            return {name: value.numpy() for name, value in self._gather().items()}
        of_replicas = self._strategy.experimental_local_results
        return {name: np.concatenate([part.numpy() for part in of_replicas(variable)])
                for name, variable in self._variables.items()}

    @tf.function(autograph=False)
    def _gather(self):
        return {name: self._strategy.gather(value, axis=0)
                for name, value in self._strategy.run(self.read).items()}

    def assign(self, tensors: Mapping[str, np.ndarray]) -> None:
        """Takes over the result of `tensors`, on any number of replicas; begins at zero where
        batches had another number of rows."""
        if self._shapes != {name: value.shape for name, value in tensors.items()}:
            print(f"batches have another number of rows, so {', '.join(self._shapes)} "
                  "starts at zero", flush=True)
            tensors = self._zeros()
        worker = getattr(self._strategy.cluster_resolver, "task_id", 0) or 0
        for name, variable in self._variables.items():
            parts = self._strategy.experimental_local_results(variable)
            for index, part in enumerate(parts, worker * len(parts)):
                rows = part.shape[0]
                part.assign(tensors[name][index * rows:(index + 1) * rows])

    def reset(self) -> None:
        self.assign(self._zeros())

    def _zeros(self):
        return {name: np.zeros(shape, np.float32) for name, shape in self._shapes.items()}


def zeros(shapes: Mapping[str, tuple[int, ...]], batch: Mapping[str, tf.Tensor]
          ) -> dict[str, tf.Tensor]:
    """Returns the state that is carried into a first batch."""
    rows = tf.shape(next(iter(batch.values())))[0]
    return {name: tf.zeros([rows, *shape]) for name, shape in shapes.items()}
