"""The sizes of GPT."""

import dataclasses
from typing import ClassVar

from bert_tf.config.encoder import EncoderConfig
from bert_tf.config.sizes import ACTIVATIONS, FRACTIONS, WHOLE_NUMBERS, Sizes, check_sizes


@dataclasses.dataclass(frozen=True)
class GPTConfig(Sizes):
    """Sizes of GPT (Radford et al. 2018); the defaults are the released model's.

    Attributes:
        vocab_size: V, the special tokens _start_, _delimiter_ and _classify_ included.
    """

    whole_numbers: ClassVar = WHOLE_NUMBERS
    fractions: ClassVar = {"embedding_dropout_prob": 1, **FRACTIONS}
    choices: ClassVar = {"hidden_act": ACTIVATIONS, "model_type": ("openai-gpt",)}
    unused_keys: ClassVar = ()
    uncased: ClassVar = {"vocab_size": 30522}

    vocab_size: int = 40481
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    embedding_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-5
    model_type: str = "openai-gpt"

    directionality = "left_to_right"
    truncates_initializer, has_tied_lm = False, True

    def __post_init__(self):
        super().__post_init__()
        check_sizes(self)

    def weights(self) -> dict[str, str]:
        kept = ("embeddings/word", "embeddings/position", "encoder/")
        found = EncoderConfig.weights(self)     # type: ignore[arg-type]
        return {name: shape for name, shape in found.items() if name.startswith(kept)}
