"""The sizes of NomicBERT (arXiv:2402.01613; nomic-ai/contrastors)."""

import dataclasses
from typing import Any, ClassVar, Self

from bert_tf.config.sizes import fraction, one_of, whole
from bert_tf.errors import InputError
from bert_tf.models.eurobert.config import EuroBertConfig

# Keys that say nothing where files have them without a value.
_NULLABLE = ("rope_parameters", "rotary_scaling_factor", "max_trained_positions")


@dataclasses.dataclass(frozen=True)
class NomicBertConfig(EuroBertConfig):
    """Sizes of NomicBERT. With a `rotary_scaling_factor` the base of the rotary angles grows in
    inputs of more than `max_trained_positions` tokens."""

    unseen_keys: ClassVar = (*EuroBertConfig.unseen_keys, "rotary_scaling_factor",
                             "max_trained_positions")
    dropout_keys: ClassVar = ("hidden_dropout_prob", "attention_probs_dropout_prob")

    vocab_size: int = whole(30528, "tokens")
    num_key_value_heads: None = one_of(None, (None,))
    hidden_act: str = one_of("silu", ("silu",))
    hidden_dropout_prob: float = fraction(0.0)      # type: ignore[misc]
    type_vocab_size: int = whole(2)                 # type: ignore[misc]
    layer_norm_eps: float = fraction(1e-12)
    rope_theta: float = fraction(1000.0, below=1e12)
    rotary_scaling_factor: float = fraction(0.0, below=1000)
    max_trained_positions: int = whole(2048, "positions")
    attention_bias: bool = one_of(False, (False,))
    mlp_bias: bool = one_of(False, (False,))
    classifier_pooling: str = one_of("bos", ("bos",))
    model_type: str = one_of("nomic_bert", ("nomic_bert",))

    has_segments = ties_masked_lm = decoder_bias = True
    classifier_activation: ClassVar[str] = "tanh"
    absent_names = absent_weights = ()      # type: ignore[assignment]

    @property
    def rope_parameters(self) -> dict[str, Any]:
        """The rotary angles as transformers has them."""
        form = {"rope_type": "dynamic", "factor": self.rotary_scaling_factor}
        return {"rope_theta": self.rope_theta,
                **(form if self.rotary_scaling_factor else {"rope_type": "default"})}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """See `Sizes.from_dict`; takes transformers' `rope_parameters` too."""
        values = {key: value for key, value in values.items()
                  if value is not None or key not in _NULLABLE}
        width = values.get("hidden_size", cls.hidden_size)
        if values.get("intermediate_size", 0) is None and type(width) is int:
            values["intermediate_size"] = 4 * width     # as in the original
        rotary = values.pop("rope_parameters", {})
        if not isinstance(rotary, dict) or rotary.get("rope_type", "default") not in (
                "default", "dynamic"):
            raise InputError(f"rope_type must be default or dynamic in rope_parameters {rotary!r}.")
        values["rope_theta"] = rotary.get("rope_theta", values.get("rope_theta", cls.rope_theta))
        if rotary.get("rope_type") == "dynamic":
            values["rotary_scaling_factor"] = rotary.get("factor")
            if "max_trained_positions" not in values:
                values["max_trained_positions"] = values.pop(
                    "max_position_embeddings", cls.max_trained_positions)
        return super().from_dict(values)

    def weights(self) -> dict[str, str]:
        layer = "encoder/layer_{i}/"
        return {"embeddings/word_embeddings": "VH", "embeddings/token_type_embeddings": "TH",
                "embeddings/LayerNorm": "norm H", f"{layer}attention/self/qkv/kernel": "Hq",
                f"{layer}attention/output/dense/kernel": "HH",
                f"{layer}attention/output/LayerNorm": "norm H",
                f"{layer}intermediate/dense/kernel": "Hg", f"{layer}output/dense/kernel": "IH",
                f"{layer}output/LayerNorm": "norm H", "pooler/dense": "dense HH"}
