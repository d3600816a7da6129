"""A learner whose network's attention heads have gates that learn to close (Voita et al.,
arXiv:1905.09418)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import keras
from keras import ops

from bert_tf import networks
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.layers.base import Tensor, register
from bert_tf.layers.functions import seed_of_pass, shared_seed, split_seed, uniform
from bert_tf.objectives.base import Batch, Objective
from bert_tf.objectives.head_gates import STRETCH, HeadGates
from bert_tf.training.learners.learner import Learner


@register
class GatedLearner(Learner):
    """A Learner one of whose objectives is `HeadGates`; its gates multiply the heads' outputs.

    In training the gates of a step are drawn once for the whole batch: their noise is a function of
    the step's dropout seed, the same on all replicas. A plain Learner is saved, in whose values the
    gates are factors: a head whose gate is closed gives nothing, and can be removed
    (`compression.dead_heads`).

    A batch may have `gate_noise`, float [L, N], uniform between 0 and 1.

    Args:
        rate_factor: factor of the gates' learning rate.
    """

    draws = "the gates of its heads"

    def __init__(self, encoder: keras.Model, objectives: Iterable[Objective],
                 rate_factor: float = 1.0, **kwargs: Any):
        super().__init__(encoder, objectives, **kwargs)
        self.rate_factor = rate_factor

    @property
    def optimizer_options(self) -> dict[str, Any]:
        return {"rate_factors": ((f"^{self.head_gates.name}/", self.rate_factor),)}

    @property
    def head_gates(self) -> HeadGates:
        return next(one for one in self.objectives if isinstance(one, HeadGates))

    def call(self, batch: Batch, training: bool = False,
             dropout_seed: Tensor | None = None) -> dict[str, Tensor]:
        dropout_seed = seed_of_pass(dropout_seed, training, self.encoder.seed_generator)
        if training and "gate_noise" not in batch:
            batch = {**batch, "gate_noise": self.draw(dropout_seed)}
        return super().call(batch, training, dropout_seed)

    def draw(self, dropout_seed: Tensor) -> Tensor:
        """The noise of a step's gates, float32 [L, N], for integer [2]."""
        # The first seeds that come of this one are dropout's.
        own = split_seed(shared_seed(dropout_seed), 2 + len(self.objectives))[-1]
        return uniform(self.head_gates.log_a.shape, own)

    def run_network(self, batch: Batch, training: bool = False, dropout_seed: Tensor | None = None,
                    options: Mapping[str, Any] | None = None) -> dict[str, Any]:
        mask = self.head_gates.gates(batch["gate_noise"] if training else None)
        return super().run_network({**batch, "head_mask": mask}, training, dropout_seed, options)

    def parts(self) -> dict[str, Learner]:
        encoder = networks.build(self.encoder.config, name=self.encoder.name,
                                 dtype=self.encoder.dtype_policy)
        encoder.set_weights(self.encoder.get_weights())
        for layer, of_layer in zip(encoder.layers_, self.head_gates.gates()):
            value = layer.attention.value
            factors = ops.repeat(of_layer, self.encoder.config.head_size)
            value.kernel.assign(value.kernel * factors)
            value.bias.assign(value.bias * factors)
        return {"model": Learner(encoder, [one for one in self.objectives if not one.auxiliary])}


def check_gates(config: Any, learner: type[Learner], stretch: Sequence[Any] = STRETCH) -> None:
    """Raises InputError unless a network's heads can have gates, stretched so, under a learner."""
    if len(stretch) != 2 or not float(stretch[0]) < 0 or not float(stretch[1]) > 1:
        raise InputError(f"--concrete_stretch is {','.join(map(str, stretch))}; it must be a "
                         "number below 0 and a number above 1.")
    if type(config) is not EncoderConfig or config.shares_layers or config.pruned_heads:
        raise InputError("--concrete_coef is for BERT's encoder without pruned heads or shared "
                         "layers; leave the flag out.")
    if learner is not Learner:
        raise InputError("--concrete_coef is for one task without a teacher; leave the flag out.")
