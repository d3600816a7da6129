"""The sizes of NeoBERT (arXiv:2502.19587)."""

import dataclasses
from typing import ClassVar

from bert_tf.config.sizes import fraction, one_of, whole
from bert_tf.errors import InputError
from bert_tf.models.eurobert.config import EuroBertConfig


@dataclasses.dataclass(frozen=True)
class NeoBertConfig(EuroBertConfig):
    """Sizes of NeoBERT: EuroBERT's, with the released model's defaults. Here `intermediate_size` is
    the width of the gate, which NeoBERT's files round up from two thirds of theirs."""

    distinctive_keys: ClassVar = ()

    vocab_size: int = whole(30522, "tokens")
    num_hidden_layers: int = whole(28, "layers")
    intermediate_size: int = whole(2048, "inner width")
    max_position_embeddings: int = whole(4096, "positions")
    layer_norm_eps: float = fraction(1e-6)
    rope_theta: float = one_of(10_000.0, (10_000.0,))
    hidden_act: str = one_of("silu", ("silu",))
    attention_bias: bool = one_of(False, (False,))
    mlp_bias: bool = one_of(False, (False,))
    classifier_pooling: str = one_of("bos", ("bos",))
    model_type: str = one_of("neobert", ("neobert",))

    classifier_activation: ClassVar[str] = "tanh"
    decoder_bias: ClassVar[bool] = True     # type: ignore[misc]

    def __post_init__(self):
        super().__post_init__()
        if self.key_value_heads != self.num_attention_heads:
            raise InputError("a neobert has a head of keys and values for each of queries; leave "
                             "num_key_value_heads out.")
        if self.intermediate_size % 8:
            raise InputError(f"intermediate_size ({self.intermediate_size}) of a neobert must be a "
                             "multiple of 8.")
