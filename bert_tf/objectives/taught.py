"""The base class of objectives that compare a network with a frozen teacher.

Shapes: B batch, S sequence, V vocabulary.
"""

from typing import Any, ClassVar

from keras import ops

from bert_tf.config import Sizes
from bert_tf.errors import InputError
from bert_tf.layers.base import Tensor
from bert_tf.objectives.base import Batch, Objective

# The internal with the masked LM's logits of every token, float32 [B, S, V].
TOKEN_LOGITS = "token_logits"
# The internal that is the first layer's input, float [B, S, H].
FIRST_STATE = "first_state"
# The internal with the weights of all layers by name.
LAYER_WEIGHTS = "layer_weights"


def of_teacher(name: str) -> str:
    """Returns the name of a batch's feature that holds the teacher's internal `name`."""
    return f"teacher/{name}"


def check_heads(ours: Tensor, theirs: Tensor) -> None:
    """Raises InputError unless the scores of a layer, [B, N, S, S], have equally many heads."""
    if ours.shape[1] != theirs.shape[1]:
        raise InputError(f"the teacher has {theirs.shape[1]} attention heads and the student "
                         f"{ours.shape[1]}: heads are compared one by one; give the student as "
                         "many heads as the teacher (num_attention_heads).")


class TaughtObjective(Objective):
    """An objective that a `Distiller` trains.

    A subclass defines `losses(outputs, batch)`, which returns float32 losses [...]. Both arguments
    have `internals`; the batch names the teacher's by `of_teacher`. It also defines `count(batch)`,
    whose batch has none of them.

    Attributes:
        internals: names of the tensors that it reads from both networks; see `internals_of` in
            training/learners/distiller.py.
        sizes: arguments taken from the teacher: {name: field of its configuration}.
        settings: arguments taken from flags: {name: flag}.
        idle_id: a token, 0, whose embedding gets no gradient: padding, where it is compared too;
            None for no such token.
    """

    internals: tuple[str, ...] = ()
    sizes: ClassVar[dict[str, str]] = {}
    settings: ClassVar[dict[str, str]] = {}
    idle_id: int | None = None
    measures = ("loss",)
    auxiliary = True

    def __init__(self, config: Sizes, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.built = True

    def losses(self, outputs: Any, batch: Batch) -> Tensor:
        """Returns float32 losses of any shape, whose sum is divided by the count."""
        raise NotImplementedError

    def call(self, outputs: Any, batch: Batch, embedding_table: Tensor | None = None,
             dropout_seed: Tensor | None = None) -> Tensor:
        """Returns the losses in the place of logits."""
        return self.losses(outputs, batch)

    def targets(self, batch: Batch) -> tuple[Tensor, ...]:
        """The count alone."""
        return (self.count(batch),)

    def measure(self, logits: Tensor, count: Tensor, *more: Tensor
                ) -> dict[str, tuple[Tensor, Tensor]]:
        return {"loss": (ops.sum(logits), count)}

    def answers(self, logits: Tensor) -> dict[str, Tensor]:
        return {}
