"""The sizes of GPT."""

import dataclasses
from typing import ClassVar

from bert_tf.bert.config import BertConfig
from bert_tf.config.sizes import ACTIVATIONS, Sizes, check_sizes, fraction, one_of, whole


@dataclasses.dataclass(frozen=True)
class GPTConfig(Sizes):
    """Sizes of GPT (Radford et al. 2018); the defaults are the released model's.

    Attributes:
        vocab_size: V, the special tokens _start_, _delimiter_ and _classify_ included.
    """

    uncased: ClassVar = {"vocab_size": 30522}

    vocab_size: int = whole(40481, "tokens")
    hidden_size: int = whole(768)
    num_hidden_layers: int = whole(12, "layers")
    num_attention_heads: int = whole(12, "heads")
    intermediate_size: int = whole(3072, "inner width")
    hidden_act: str = one_of("gelu", ACTIVATIONS)
    hidden_dropout_prob: float = fraction(0.1)
    attention_probs_dropout_prob: float = fraction(0.1)
    embedding_dropout_prob: float = fraction(0.1)
    max_position_embeddings: int = whole(512, "positions")
    initializer_range: float = fraction(0.02, below=10)
    layer_norm_eps: float = fraction(1e-5)
    model_type: str = one_of("openai-gpt", ("openai-gpt",))

    directionality = "left_to_right"
    truncates_initializer, has_tied_lm = False, True

    def __post_init__(self):
        super().__post_init__()
        check_sizes(self)

    def weights(self) -> dict[str, str]:
        shared = ("embeddings/word", "embeddings/position", "encoder/")
        of_bert = BertConfig.weights(self)     # type: ignore[arg-type]
        return {name: shape for name, shape in of_bert.items() if name.startswith(shared)}
