"""The sizes of a Universal Transformer."""

import dataclasses
from typing import ClassVar

from bert_tf.bert.config import BertConfig
from bert_tf.config.sizes import ACTIVATIONS, UNSEEN_KEYS, fraction, one_of, whole


@dataclasses.dataclass(frozen=True)
class UniversalConfig(BertConfig):
    """Sizes of a Universal Transformer's encoder, under BERT's names; further ones under
    tensorflow/tensor2tensor's.

    Attributes:
        num_hidden_layers: steps that apply the one layer.
        recurrence_type: "basic", all steps for all positions, or "act", adaptive halting.
        step_timing_signal_type: the signal of a step, "learned" or "sinusoid".
        act_type: mixture of the steps' outputs with weights u in adaptive halting: "basic", new * u
            + old * (1 - u), or "accumulated", their sum, as in arXiv:1603.08983.
        act_max_steps: most steps of adaptive halting; None: twice `num_hidden_layers`.
        act_epsilon: a position ends when its probability of having ended is above 1 minus this.
        act_loss_weight: weight of the steps in the loss of pre-training.
        act_halting_bias_init: first value of the bias of a step's probability to be the last.
    """

    added_keys: ClassVar = ()
    distinctive_keys: ClassVar = ("recurrence_type", "step_timing_signal_type")
    unseen_keys: ClassVar = (*UNSEEN_KEYS, "num_hidden_layers", "recurrence_type",
                             "step_timing_signal_type", "act_type", "act_max_steps", "act_epsilon")
    is_plain, shares_layers = False, True

    hidden_size: int = whole(1024)
    num_hidden_layers: int = whole(6, "layers")
    num_attention_heads: int = whole(16, "heads")
    intermediate_size: int = whole(4096, "inner width")
    hidden_act: str = one_of("relu", ACTIVATIONS)
    type_vocab_size: int = whole(2)
    layer_norm_eps: float = fraction(1e-6)
    model_type: str = one_of("universal", ("universal",))
    recurrence_type: str = one_of("basic", ("basic", "act"))
    step_timing_signal_type: str = one_of("learned", ("learned", "sinusoid"))
    act_type: str = one_of("basic", ("basic", "accumulated"))
    act_max_steps: int | None = whole(None, "layers")
    act_epsilon: float = fraction(0.01)
    act_loss_weight: float = fraction(0.01, below=100)
    act_halting_bias_init: float = fraction(1.0, below=100)

    # Whether each position ends by itself; the steps share all weights.
    halts = property(lambda self: self.recurrence_type == "act")
    layer_weights = property(lambda self: [(0, 0)] * self.depth)

    @property
    def depth(self) -> int:
        """T, the most steps that a position takes."""
        if self.halts:
            return self.act_max_steps or 2 * self.num_hidden_layers
        return self.num_hidden_layers

    def weights(self) -> dict[str, str]:
        layer = {
            "attention/LayerNorm": "norm H",
            **{f"attention/{part}/kernel": "HH"
               for part in ("self/query", "self/key", "self/value", "output/dense")},
            "LayerNorm": "norm H", "intermediate/dense": "dense HI", "output/dense": "dense IH"}
        if self.halts:
            layer["halting"] = "dense H1"
        if self.step_timing_signal_type == "learned":
            layer["step_embeddings"] = "LH"
        return {
            "embeddings/word_embeddings": "VE", "embeddings/token_type_embeddings": "TE",
            **{f"encoder/layer_{{i}}/{name}": shape for name, shape in layer.items()},
            "encoder/LayerNorm": "norm H", "pooler/dense": "dense HH"}
