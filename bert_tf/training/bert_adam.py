"""BertAdam of pytorch-pretrained-bert, with which BERT-PKD and TinyBERT were trained."""

from typing import Any

from keras import ops

from bert_tf.layers.base import register
from bert_tf.training.optimizer import AdamWeightDecay

_LEAST = 1e-6       # added to a norm, as by torch.nn.utils.clip_grad_norm_


@register
class BertAdam(AdamWeightDecay):
    """Adam without bias correction, which clips the gradient of each variable by itself
    (huggingface/pytorch-pretrained-bert, optimization.py).

    Args:
        clip_each: largest norm of a variable's gradient; 0 for no clipping.
    """

    def __init__(self, *args: Any, clip_each: float = 1.0, name: str = "pytorch_bert_adam",
                 **kwargs: Any):
        super().__init__(*args, name=name,
                         **{"bias_correction": False, "clip_norm": 0.0, **kwargs})
        self.clip_each = clip_each

    def update_step(self, gradient, variable, learning_rate) -> None:
        if self.clip_each:
            norm = ops.sqrt(ops.sum(ops.square(ops.cast(gradient, "float32"))))
            # norm - norm is NaN where the norm is infinite.
            scale = ops.minimum(self.clip_each / (norm + _LEAST), 1.0) + (norm - norm)
            gradient = gradient * ops.cast(scale, gradient.dtype)
        super().update_step(gradient, variable, learning_rate)

    def get_config(self):
        return {**super().get_config(), "clip_each": self.clip_each}
