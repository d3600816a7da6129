"""Objectives of a model with a smaller vocabulary than its teacher's (Zhao et al.,
arXiv:1909.11687, section 3).

Shapes: H width of the network, W of the teacher; B batch, P predictions, V tokens.
"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from keras import ops

from bert_tf.bert.objective import MaskedLM
from bert_tf.config import EncoderConfig, Sizes
from bert_tf.errors import InputError
from bert_tf.layers.base import Tensor, register
from bert_tf.objectives.base import Batch
from bert_tf.objectives.taught import LAYER_WEIGHTS, TaughtObjective, of_teacher

_NEVER = -1e9


@register
class DualMaskedLM(MaskedLM):
    """The masked LM of texts that mix words of two vocabularies (section 3.1): predicts each masked
    token among its own vocabulary's tokens. It is a teacher's, trained with a student, not saved.

    A batch without the teacher's texts has zero `masked_lm_weights`, and predicts nothing. `second`
    is the number of the second vocabulary's tokens, which are the last ones.
    """

    auxiliary = True
    config_keys = ("second",)

    def __init__(self, config: EncoderConfig, second: int, name: str = "dual_masked_lm",
                 **kwargs: Any):
        super().__init__(config, name=name, **kwargs)
        self.first, self.second = config.vocab_size - second, second

    def call(self, outputs: Mapping[str, Tensor], batch: Batch, embedding_table: Tensor,
             dropout_seed: Tensor | None = None) -> Tensor:
        """Logits as `MaskedLM.call`; tokens of the vocabulary that the label is not from get a
        large negative logit."""
        if "sequence_output" not in outputs:
            return ops.zeros((*ops.shape(batch["masked_lm_ids"]), self.config.vocab_size))
        logits = super().call(outputs, batch, outputs["embedding_table"])
        is_second = ops.expand_dims(batch["masked_lm_ids"] >= self.first, axis=-1)  # [B, P, 1]
        column = ops.arange(self.config.vocab_size) >= self.first                   # [V]
        return ops.where(ops.equal(is_second, column), logits, _NEVER)


@register
class WeightProjection(TaughtObjective):
    """The squared differences of all weights of the layers from a teacher's (section 3.2), through
    two matrices U and V that all layers share.

    Projected down, a teacher's matrix [W, W] is U T V, [H, H], and a vector [W] is multiplied by V.
    `up` projects the network's weights to the teacher's shape instead. The paper does not say how
    matrices of the feed-forward network are projected: here by blocks of [W, W], so both networks
    need the same number of blocks; see `check`.
    """

    internals = (LAYER_WEIGHTS,)
    sizes: ClassVar[dict[str, str]] = {"teacher_width": "hidden_size"}
    settings: ClassVar[dict[str, str]] = {"up": "project_up"}
    config_keys = ("teacher_width", "up")

    def __init__(self, config: Sizes, teacher_width: int, up: bool = False, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.teacher_width, self.up = teacher_width, up
        width = self.config.hidden_size
        first, last = (width, teacher_width) if up else (teacher_width, width)
        self.before = self.add_weight((last, first), "glorot_uniform", name="before")
        self.after = self.add_weight((first, last), "glorot_uniform", name="after")

    def check(self, network: Mapping[str, Any], teacher: Mapping[str, Any]) -> None:
        """Raises InputError if two networks differ in their number of layers, or of blocks of their
        `layer_weights`."""
        if network.keys() != teacher.keys():
            raise InputError("the network and the teacher have different weights, but weights are "
                             "compared one by one; give the network as many layers as the teacher "
                             "(num_hidden_layers).")
        for name in network:
            shape, taught = (_divided(name, weights[name].shape, width) for weights, width in (
                (network, self.config.hidden_size), (teacher, self.teacher_width)))
            if shape != taught:
                raise InputError(f"{name} has {math.prod(shape)} blocks in the network, but "
                                 f"{math.prod(taught)} in the teacher; make intermediate_size the "
                                 "same multiple of hidden_size in both.")

    def losses(self, outputs: Any, batch: Batch) -> Tensor:
        """float32 [number of weights], times the rows of the batch."""
        target, source = outputs[LAYER_WEIGHTS], batch[of_teacher(LAYER_WEIGHTS)]
        widths = self.teacher_width, self.config.hidden_size
        if self.up:
            target, source, widths = source, target, widths[::-1]
        squares = [ops.sum(ops.square(self._project(name, source[name], widths)
                                      - _blocks(name, target[name], widths[1]))) for name in target]
        return ops.stack(squares) * self.count(batch)

    def _project(self, name: str, value: Tensor, widths: tuple[int, ...]) -> Tensor:
        """Returns a weight's blocks, projected from the first width to the second."""
        blocks = _blocks(name, value, widths[0])
        if len(value.shape) == 1:
            return ops.matmul(blocks, ops.cast(self.after, "float32"))
        before, after = (ops.cast(matrix, "float32") for matrix in (self.before, self.after))
        return ops.matmul(ops.matmul(before, blocks), after)

    def count(self, batch: Batch) -> Tensor:
        """Returns the rows of the batch; each has the whole loss, so that devices may share it."""
        return ops.cast(ops.shape(batch["input_ids"])[0], "float32")


def _divided(name, shape, width):
    """The number of a weight's blocks in each direction."""
    if any(size % width for size in shape):
        raise InputError(f"{name} has the shape {tuple(shape)}, which blocks of {width} don't "
                         "divide; make intermediate_size a multiple of hidden_size.")
    return [size // width for size in shape]


def _blocks(name: str, value: Tensor, width: int) -> Tensor:
    """Returns a weight as float32 [blocks, width, width], or [blocks, width] if it is a vector."""
    value = ops.cast(value, "float32")
    if len(value.shape) == 1:
        return ops.reshape(value, (-1, width))
    rows, columns = _divided(name, value.shape, width)
    value = ops.reshape(value, (rows, width, columns, width))
    return ops.reshape(ops.transpose(value, (0, 2, 1, 3)), (-1, width, width))


def layer_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Returns the layers' weights, by their names within the network."""
    own = {}
    for path, value in weights.items():
        _, marker, name = path.partition("encoder/layer_")
        if marker:
            own[marker + name] = value
    return own
