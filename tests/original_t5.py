"""The names and settings of the original's T5 in those of ours."""

import re

from bert_tf.config import T5Config

_ATTENTION = {"q": "query", "k": "key", "v": "value", "o": "output"}


def config_of(values, **options):
    """The configuration of a reference network; `values` are its settings."""
    return T5Config(
        vocab_size=-(-values["vocab_size"] // 128) * 128, tie_word_embeddings=values["tied"],
        feed_forward_proj="relu" if values["activation"] == "relu" else "gated-gelu",
        **{name: values[name] for name in ("d_model", "d_kv", "d_ff", "num_layers", "num_heads")},
        **{"dropout_rate": 0.0, **options})


def our_name(name, has_encoder=True):
    """Our name of a variable of the original's."""
    name = name.replace("decoder/logits/", "logits/")
    if name.endswith("embedding"):
        return "embeddings/word_embeddings"
    found = re.match(r"(\w+)/block_(\d+)/layer_(\d+)/(.*)", name)
    if not found:
        return re.sub("rms_norm|final_layer_norm", "layer_norm", name)
    stack, block, layer, rest = found.groups()
    if "relative_attention_bias" in rest:
        return f"{stack}/relative_attention_bias/weight"
    parts = (["attention", "cross_attention", "feed_forward"]
             if stack == "decoder" and has_encoder else ["attention", "feed_forward"])
    rest = rest.replace("rms_norm", "layer_norm").replace("DenseReluDense/", "")
    if "Attention/" in rest:
        rest = f"{_ATTENTION[rest[-1]]}/kernel"
    return f"{stack}/layer_{int(block)}/{parts[int(layer)]}/{rest}"


def our_weights(golden, prefix="weights/"):
    """The arrays of a reference file whose names begin with `prefix`, by our names."""
    has_encoder = "weights/shared/embedding" in golden.files
    return {our_name(name.removeprefix(prefix), has_encoder): golden[name]
            for name in golden.files if name.startswith(prefix)}
