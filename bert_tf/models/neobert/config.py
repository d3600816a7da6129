"""The sizes of NeoBERT (arXiv:2502.19587)."""

import dataclasses
from typing import ClassVar

from bert_tf.config.sizes import fraction, one_of, whole
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
    rope_theta: float = fraction(10_000.0, below=1e12)
    classifier_pooling: str = one_of("bos", ("bos",))
    model_type: str = one_of("neobert", ("neobert",))

    classifier_activation: ClassVar[str] = "tanh"
    decoder_bias: ClassVar[bool] = True     # type: ignore[misc]
