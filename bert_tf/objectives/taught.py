"""What objectives have in common that compare a network with a frozen teacher.

Shapes: B batch, S sequence, V vocabulary.
"""

from typing import Any, ClassVar

from bert_tf.config import Sizes
from bert_tf.layers.base import Tensor
from bert_tf.objectives.base import Batch, Objective, ratio

# The internal that is the masked LM's logits of every token, float32 [B, S, V].
TOKEN_LOGITS = "token_logits"
# The internal that is a dict of the weights of all layers, by their names.
LAYER_WEIGHTS = "layer_weights"


def of_teacher(name: str) -> str:
    """The feature of a batch that is the teacher's internal `name`."""
    return f"teacher/{name}"


class TaughtObjective(Objective):
    """An objective that a `Distiller` trains.

    A subclass defines `losses(outputs, batch)`, which returns float32 losses [...] from the
    outputs of the network and the batch; both have `internals`, the batch under the names of
    `of_teacher`. And it defines `count(batch)`, which has none of them.

    Attributes:
        internals: names of what it reads of both networks; see `internals_of` in
            training/distiller.py.
        sizes: arguments that are sizes of the teacher: {name: field of its configuration}.
        settings: arguments that flags give: {name: flag}.
        idle_id: the token, 0, whose vector its gradient shall leave alone: that of padding, which
            it compares too; None for no such token.
    """

    internals: tuple[str, ...] = ()
    sizes: ClassVar[dict[str, str]] = {}
    settings: ClassVar[dict[str, str]] = {}
    idle_id: int | None = None
    measures = ("loss",)
    auxiliary = True

    @classmethod
    def of_teacher_sizes(cls, teacher: Sizes) -> dict[str, Any]:
        """The arguments `sizes`, for a teacher's configuration."""
        return {name: getattr(teacher, size) for name, size in cls.sizes.items()}

    def losses(self, outputs: Any, batch: Batch) -> Tensor:
        """float32 losses of any shape, whose sum is divided by the count."""
        raise NotImplementedError

    def call(self, outputs: Any, batch: Batch, embedding_table: Tensor | None = None,
             dropout_seed: Tensor | None = None) -> Tensor:
        """The losses, in the place of logits."""
        return self.losses(outputs, batch)

    def targets(self, batch: Batch) -> tuple[Tensor, ...]:
        """The count alone."""
        return (self.count(batch),)

    def measure(self, logits: Tensor, count: Tensor, *more: Tensor
                ) -> dict[str, tuple[Tensor, Tensor]]:
        return {"loss": (ratio(logits, 1.0)[0], count)}

    def answers(self, logits: Tensor) -> dict[str, Tensor]:
        """Nothing."""
        return {}
