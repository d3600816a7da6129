"""Networks: from ids to named tensors."""

from typing import TYPE_CHECKING, Any

import lazy_loader

if TYPE_CHECKING:
    from bert_tf.config import Sizes

# The network that each class of `bert_tf.config` describes, by the names of both.
NETWORKS = {"EncoderConfig": "BertEncoder", "FixedPatternConfig": "FixedPatternEncoder",
            "UniversalConfig": "UniversalTransformer", "GPTConfig": "GPT",
            "ElmoConfig": "Elmo", "SequenceLstmConfig": "SequenceLstm", "T5Config": "T5",
            "BiLstmConfig": "BiLstm", "XLNetConfig": "XLNet", "MobileBertConfig": "MobileBert"}

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs={"bilstm": ["BiLstm"], "elmo": ["Elmo"],
                            "encoder": ["BertEncoder", "pool"],
                            "fixed_patterns": ["FixedPatternEncoder"], "gpt": ["GPT"],
                            "mobilebert": ["MobileBert"],
                            "sequence_lstm": ["SequenceLstm"], "t5": ["T5"],
                            "universal": ["UniversalTransformer"], "xlnet": ["XLNet"]})
__all__ += ["NETWORKS", "build"]


def build(config: "Sizes", **options: Any) -> Any:
    """The network of a configuration, with initial weights.

    Every network has the attributes `config`, `reads` (names of the features it takes),
    `embedding_table` (variable [V, E]) and `seed_generator`. Its
    `call(features, training, dropout_seed)` returns a dict of tensors, with `sequence_output`
    [B, S, H] and, for objectives of whole sequences, `pooled_output` [B, H]. One that hands
    something on from step to step has `carries` (see `bert_tf/training/memory.py`).

    Args:
        config: an object of a class in `bert_tf.config.CONFIGS`.
        options: of the network, such as `name` and `dtype`.
    """
    return __getattr__(NETWORKS[type(config).__name__])(config, **options)
