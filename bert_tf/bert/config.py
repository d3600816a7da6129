"""The sizes of BERT."""

import dataclasses
from typing import ClassVar

from bert_tf.config.sizes import (
    ACTIVATIONS,
    UNSEEN_KEYS,
    Sizes,
    check_sizes,
    fraction,
    one_of,
    whole,
)


@dataclasses.dataclass(frozen=True)
class BertConfig(Sizes):
    """Sizes under the keys of google-research/bert's BertConfig, with its defaults.

    Attributes:
        type_vocab_size: the rows of the table of segments.
    """

    uncased: ClassVar = {"vocab_size": 30522, "type_vocab_size": 2}
    added_keys: ClassVar[tuple[str, ...]] = ("layer_norm_eps",)
    unseen_keys: ClassVar[tuple[str, ...]] = UNSEEN_KEYS

    vocab_size: int = whole(most="tokens")
    hidden_size: int = whole(768)
    num_hidden_layers: int = whole(12, "layers")
    num_attention_heads: int = whole(12, "heads")
    intermediate_size: int = whole(3072, "inner width")
    hidden_act: str = one_of("gelu", ACTIVATIONS)
    hidden_dropout_prob: float = fraction(0.1)
    attention_probs_dropout_prob: float = fraction(0.1)
    max_position_embeddings: int = whole(512, "positions")
    type_vocab_size: int = whole(16)
    initializer_range: float = fraction(0.02, below=10)
    layer_norm_eps: float = fraction(1e-12)

    model_type, pooler_type, is_plain = "bert", "first_token_transform", True

    def __post_init__(self):
        super().__post_init__()
        self.check()

    def check(self) -> None:
        """Raises InputError if the sizes do not fit each other."""
        check_sizes(self)

    def weights(self) -> dict[str, str]:
        layer = {
            "attention/self/query": "dense HA", "attention/self/key": "dense HA",
            "attention/self/value": "dense HZ", "attention/output/dense": "dense ZH",
            "attention/output/LayerNorm": "norm H", "intermediate/dense": "dense HI",
            "output/dense": "dense IH", "output/LayerNorm": "norm H"}
        return {
            "embeddings/word_embeddings": "VE", "embeddings/token_type_embeddings": "TE",
            "embeddings/position_embeddings": "PE", "embeddings/LayerNorm": "norm E",
            **{f"encoder/layer_{{i}}/{name}": shape for name, shape in layer.items()},
            "pooler/dense": "dense HH"}
