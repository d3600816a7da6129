"""Our names of a network's weights, with their shapes: what the tables of all formats refer to.

A name is a variable's path relative to the network, as in Google's files; the names of a head's
weights begin with the head's. "{i}" is the number of a layer. In shapes, V is the vocabulary, T
segments, P positions, E the width of the embeddings, H hidden, I the feed-forward layer, N heads of
attention, D their width; a digit is itself. Not in a configuration are C, labels, and, of a head
that reads features with LSTMs, F, their width, U, an LSTM's width, G, four times that, and K, how
many layers are weighted.
"""

from collections.abc import Mapping
from types import MappingProxyType

from bert_tf import heads
from bert_tf.config import EncoderConfig

# The file with the model that a training run writes into its folder.
MODEL_FILE = "model.keras"

# The embeddings, and the parts of a layer, with their kinds. "split" and "join" are dense layers
# into and out of the heads of attention, for which some formats have an axis of their own.
EMBEDDINGS = {"word_embeddings": "table", "token_type_embeddings": "table",
              "position_embeddings": "table", "LayerNorm": "norm"}
LAYER = {"attention/self/query": "split", "attention/self/key": "split",
         "attention/self/value": "split", "attention/output/dense": "join",
         "attention/output/LayerNorm": "norm", "intermediate/dense": "dense",
         "output/dense": "dense", "output/LayerNorm": "norm"}

# The parts that are not of the encoder proper, and may be absent.
HEADS = ("pooler", *heads.HEADS)
# The heads to which Google's and Hugging Face's files all give one name.
CLASSIFIERS = tuple(head.name for head in heads.HEADS.values() if head.is_classifier)


def _heads(named):
    """(name, `Head`) of all heads, and of those that have names of their own."""
    return [*heads.HEADS.items(), *((name, heads.HEADS[row]) for name, row in named.items())]


def optional(named: Mapping[str, str] = MappingProxyType({})) -> set[str]:
    """The weights that a head may lack; `named` is as in `shapes`."""
    return {f"{name}/{part}" for name, head in _heads(named) for part in head.optional}


def shapes(config: EncoderConfig, named: Mapping[str, str] = MappingProxyType({})
           ) -> dict[str, str]:
    """The names of all weights that a network and its heads may have, with their shapes.

    Args:
        config: the network's.
        named: for heads that have names of their own, their rows in `heads.HEADS`.

    Returns:
        Shapes in letters, by names with "{i}" for the number of a layer.
    """
    del config      # All networks have the same names so far.
    widths = {"intermediate/dense": "HI", "output/dense": "IH"}
    layer = {}
    for part, kind in LAYER.items():
        layer |= (heads.norm(part, "H") if kind == "norm"
                  else heads.dense(part, *widths.get(part, "HH")))
    return {
        "embeddings/word_embeddings": "VE",
        "embeddings/token_type_embeddings": "TE",
        "embeddings/position_embeddings": "PE",
        **heads.norm("embeddings/LayerNorm", "E"),
        **{f"encoder/layer_{{i}}/{name}": shape for name, shape in layer.items()},
        **heads.dense("pooler/dense", "H", "H"),
        **{f"{name}/{part}": shape for name, head in _heads(named)
           for part, shape in head.shapes.items()},
    }


def head(name: str) -> str:
    """The head, or the part of the encoder, that a name belongs to."""
    return name.split("/")[0]


def sizes(config: EncoderConfig) -> dict[str, int | None]:
    """The number for each letter; None where the configuration doesn't give it."""
    return {"V": config.vocab_size, "T": config.type_vocab_size,
            "P": config.max_position_embeddings, "E": config.hidden_size, "H": config.hidden_size,
            "I": config.intermediate_size, "N": config.num_attention_heads,
            "D": config.head_size, "1": 1, "2": 2, **dict.fromkeys("CFUGK")}


def expand(pattern: str, config: EncoderConfig) -> list[str]:
    """`pattern` written out for every layer of the network, or alone."""
    layers = config.num_hidden_layers if "{i}" in pattern else 1
    return [pattern.replace("{i}", str(i)) for i in range(layers)]
