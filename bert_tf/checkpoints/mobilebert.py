"""MobileBERT's weights in Keras's files, in Google's checkpoints and in Hugging Face's files."""

from collections.abc import Callable, Iterator, Mapping

from bert_tf.checkpoints.names import KERAS_RANGES, MOVING_PARTS, MOVING_RANGES, keras_dense
from bert_tf.checkpoints.weights import Weights, check_parts
from bert_tf.config import MobileBertConfig
from bert_tf.config.mobilebert import MOST_FEED_FORWARDS
from bert_tf.errors import InputError

LAYER = "encoder/layer_{i}/"
# Parts with a dense layer and a norm.
NORMED = ("bottleneck/input", "bottleneck/attention", "attention/output", "output",
          "output/bottleneck", *(f"ffn_layer_{i}/output" for i in range(MOST_FEED_FORWARDS - 1)))
# Parts with a dense layer alone.
PLAIN = ("attention/self/query", "attention/self/key", "attention/self/value",
         "intermediate/dense",
         *(f"ffn_layer_{i}/intermediate/dense" for i in range(MOST_FEED_FORWARDS - 1)))
_TABLES = ("word_embeddings", "token_type_embeddings", "position_embeddings")


# Keras

def keras_parts(config: MobileBertConfig) -> list[tuple[str, str]]:
    """Returns the parts in the order of the network's `layers`: (class, name in the table)."""
    return [("MobileEmbeddings", "embeddings"),
            *(("MobileBertLayer", f"layer_{i}") for i in range(config.num_hidden_layers)),
            *([(keras_dense(config), "pooler")] if config.has_pooler else [])]


def _attribute(part):
    """Returns the attribute path of a layer's part."""
    steps = {"bottleneck/input": "input_bottleneck", "bottleneck/attention": "query_bottleneck",
             "attention/output": "attention_output", "output/bottleneck": "output_bottleneck"}
    return steps.get(part, part.replace("attention/self", "attention").replace(
        "output", "output_").removesuffix("/dense"))


def _ranges(end):
    """Returns the ranges of a place where all tensors are rounded."""
    names = [f"{tensor}_{part}" for tensor in MOVING_RANGES[end] for part in MOVING_PARTS]
    return tuple((f"/ranges/{name}", f"/ranges/vars/{i}") for i, name in enumerate(names))


def keras_rows(config: MobileBertConfig) -> Iterator[tuple]:
    """Yields the rows of the network's table."""
    how = config.quantisation
    moving = how is not None and how.scheme == "affine"
    of_dense, of_norm = (_ranges("/kernel"), _ranges("/gamma")) if moving else (KERAS_RANGES, ())
    dense = (("/kernel", "/vars/0"), ("/bias", "/vars/1"), *of_dense)
    norm = (("/gamma", "/vars/0"), ("/beta", "/vars/1"), *of_norm)
    if moving:
        yield f"{LAYER}attention/self", f"{LAYER}attention", _ranges("/query/kernel")
    saved = "encoder/embeddings"
    yield "embeddings", f"{saved}/vars", tuple((f"/{name}", f"/{i}")
                                               for i, name in enumerate(_TABLES))
    yield "embeddings", "encoder/embeddings", KERAS_RANGES
    yield "embeddings/embedding_transformation", f"{saved}/transformation", dense
    yield "embeddings/LayerNorm", f"{saved}/norm", norm
    for part in PLAIN:
        yield LAYER + part, LAYER + _attribute(part), dense
    for part in NORMED:
        yield f"{LAYER}{part}/dense", f"{LAYER}{_attribute(part)}/projection", dense
        yield f"{LAYER}{part}/LayerNorm", f"{LAYER}{_attribute(part)}/norm", norm
    yield "pooler/dense", "encoder/pooler", dense


# The others

def encoder_rows(rename: Callable[[str], str], kinds: Mapping[str, tuple]) -> tuple:
    """Returns the rows of a `Format` for the network.

    Args:
        rename: maps our name to the format's; "{i}" is the number of a layer.
        kinds: the endings of each kind: "table", "dense", "norm".
    """
    rows = [*((f"embeddings/{name}", "table") for name in _TABLES),
            ("embeddings/embedding_transformation", "dense"), ("embeddings/LayerNorm", "norm"),
            ("pooler/dense", "dense"), *((LAYER + part, "dense") for part in PLAIN)]
    for part in NORMED:
        rows += [(f"{LAYER}{part}/dense", "dense"), (f"{LAYER}{part}/LayerNorm", "norm")]
    return tuple((name, rename(name), kinds[kind]) for name, kind in rows)


def check_huggingface(weights: Weights) -> None:
    """Raises InputError if transformers couldn't build the network of `weights`."""
    config = weights.config
    check_parts(weights, ("pooler_type",))
    if config.normalization_type == "manual_layer_norm":
        raise InputError(f"{weights.source}: normalization_type is manual_layer_norm, which "
                         "transformers does not have; choose another format.")
    if config.query_size != config.inner_size:
        raise InputError(f"{weights.source}: queries read {config.query_size} numbers, but those "
                         f"of transformers always {config.inner_size}, the width of a layer "
                         "inside, so that it can't build this teacher; choose another format.")
