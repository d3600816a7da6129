"""Our names of a network's weights, with their shapes: what the tables of all formats refer to.

A name is a variable's path relative to the network, as in Google's files; the names of a head's
weights begin with the head's. "{i}" is the number of a layer; layers that share weights have the
numbers of `EncoderConfig.layer_weights`. In shapes, V is the vocabulary, T segments, M tasks, P
positions, E the width of the embeddings, H hidden, I the feed-forward layer, N heads of attention,
D their width, A that of all heads that learn where to look, Z that of all heads, J two vectors of
width H, L steps of one layer, O buckets of relative positions, X the width of what tokens are
predicted from, Y by how much that is wider than the embeddings, S that of what makes these as wide
as the layers; a digit is itself. Not in a configuration are C, labels, Q, the hidden layers of a
head, and, of a head that reads features with LSTMs, F, their width, U, an LSTM's width, G, four
times that, and K, how many layers are weighted. R are the places of a span, W the width of their
vectors, and B the width of one with two of width H. The weights of recurrent networks have other
uses for the letters whose sizes are not in a configuration.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

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

# What a layer that was trained to be rounded carries beside its weights (layers/quantisation.py).
RANGES = ("steps", "input_threshold", "output_threshold")

# The same where all tensors of a layer are rounded (networks/mobilebert/affine.py): the tensors
# with ranges, by the end of the name of a weight beside them.
MOVING_RANGES = {"/kernel": ("input",), "/gamma": ("input", "beta", "gamma", "product"),
                 "/query/kernel": ("scores", "masked", "summed", "context")}
MOVING_PARTS = ("steps", "low", "high")
# Where Keras saves them in a file, under the layer's place.
KERAS_RANGES = tuple((f"/ranges/{name}", f"/ranges/vars/{i}") for i, name in enumerate(RANGES))

# The parts that decide where a head looks.
_LOOKS = ("attention/self/query", "attention/self/key")

# How the names of the encoder proper begin.
NETWORK = ("embeddings", "embeddings_project", "encoder", "decoder", "logits")
# The parts that are not of the encoder proper, and may be absent.
HEADS = ("pooler", *heads.HEADS)
# The heads to which Google's and Hugging Face's files all give one name.
CLASSIFIERS = tuple(head.name for head in heads.HEADS.values() if head.is_classifier)


def _heads(named):
    """(name, `Head`) of all heads, and of those that have names of their own."""
    return [*heads.HEADS.items(), *((name, heads.HEADS[row]) for name, row in named.items())]


def optional(named: Mapping[str, str] = MappingProxyType({})) -> set[str]:
    """The weights that a file may lack: some of heads, `named` being as in `shapes`, the table of
    tasks, which a network of several tasks can learn on top of one that knew none, and the vector
    of what is to be predicted, which the original's XLNet has in pre-training alone."""
    return {"embeddings/task_type_embeddings", "embeddings/mask_emb"} | {
        f"{name}/{part}" for name, head in _heads(named) for part in head.optional}


def _encoder(config):
    """Those of `BertEncoder`."""
    widths = {"intermediate/dense": "HI", "output/dense": "IH", "attention/self/value": "HZ",
              "attention/output/dense": "ZH", **dict.fromkeys(_LOOKS, "HA")}
    layer = {}
    for part, kind in LAYER.items():
        if part in _LOOKS and not config.learned_heads:
            continue
        layer |= (heads.norm(part, "H") if kind == "norm"
                  else heads.dense(part, *widths.get(part, "HH")))
    return {
        "embeddings/word_embeddings": "VE",
        **({"embeddings/token_type_embeddings": "TE"} if config.segment_types else {}),
        "embeddings/position_embeddings": "PE",
        **({"embeddings/task_type_embeddings": "ME"} if config.task_types else {}),
        **heads.norm("embeddings/LayerNorm", "E"),
        **(heads.dense("embeddings_project", "E", "H") if config.projects else {}),
        **{f"encoder/layer_{{i}}/{name}": shape for name, shape in layer.items()},
        **(heads.dense("pooler/dense", "H", "H") if config.has_pooler else {}),
    }


def _gpt(config):
    """Those of `GPT`."""
    kept = ("embeddings/word", "embeddings/position", "encoder/")
    return {name: shape for name, shape in _encoder(config).items() if name.startswith(kept)}


def _universal(config):
    """Those of `UniversalTransformer`."""
    layer = {
        **heads.norm("attention/LayerNorm", "H"),
        **{f"attention/{part}/kernel": "HH"
           for part in ("self/query", "self/key", "self/value", "output/dense")},
        **heads.norm("LayerNorm", "H"),
        **heads.dense("intermediate/dense", "H", "I"), **heads.dense("output/dense", "I", "H"),
        **(heads.dense("halting", "H", "1") if config.halts else {}),
        **({"step_embeddings": "LH"} if config.step_timing_signal_type == "learned" else {}),
    }
    return {
        "embeddings/word_embeddings": "VE",
        "embeddings/token_type_embeddings": "TE",
        **{f"encoder/layer_{{i}}/{name}": shape for name, shape in layer.items()},
        **heads.norm("encoder/LayerNorm", "H"), **heads.dense("pooler/dense", "H", "H"),
    }


def _t5(config):
    """Those of `T5`."""
    attention = {"layer_norm/scale": "H", "query/kernel": "HA", "key/kernel": "HA",
                 "value/kernel": "HA", "output/kernel": "AH"}
    hidden = ("wi_0", "wi_1") if config.is_gated else ("wi",)
    feed_forward = {"layer_norm/scale": "H", **{f"{name}/kernel": "HI" for name in hidden},
                    "wo/kernel": "IH"}
    found = {"embeddings/word_embeddings": "VH",
             **({} if config.tie_word_embeddings else {"logits/kernel": "HV"})}
    for stack in config.stacks:
        crosses = stack == "decoder" and config.has_encoder
        parts = {"attention": attention, **({"cross_attention": attention} if crosses else {}),
                 "feed_forward": feed_forward}
        found |= {f"{stack}/relative_attention_bias/weight": "NO", f"{stack}/layer_norm/scale": "H",
                  **{f"{stack}/layer_{{i}}/{part}/{name}": shape
                     for part, weights in parts.items() for name, shape in weights.items()}}
    return found


def _xlnet(config):
    """Those of `XLNet`."""
    of_heads = ("query", "key", "value")
    biases = ("r_w", "r_r", "r_s")
    layer = {
        **{f"attention/self/{part}/kernel": "HA" for part in (*of_heads, "position")},
        **(dict.fromkeys((f"attention/self/{name}" for name in biases), "ND")
           if config.untie_r else {}),
        "attention/self/seg_embed": "2ND",
        "attention/output/dense/kernel": "AH", **heads.norm("attention/output/LayerNorm", "H"),
        **heads.dense("intermediate/dense", "H", "I"), **heads.dense("output/dense", "I", "H"),
        **heads.norm("output/LayerNorm", "H"),
    }
    summary = {
        "pooler/summary_bias": "H",
        **{f"pooler/attention/{part}/kernel": "HA" for part in of_heads},
        "pooler/attention/output/kernel": "AH", **heads.norm("pooler/attention/LayerNorm", "H"),
    } if config.summary_type == "attn" else {}
    return {
        "embeddings/word_embeddings": "VE", "embeddings/mask_emb": "H",
        **({} if config.untie_r else dict.fromkeys((f"encoder/{name}" for name in biases), "ND")),
        **{f"encoder/layer_{{i}}/{name}": shape for name, shape in layer.items()},
        **summary, **(heads.dense("pooler/dense", "H", "H") if config.use_summ_proj else {}),
    }


def _mobilebert(config):
    """Those of `MobileBert`."""
    reads = {"query": "A" if config.query_size == config.inner_size else "H",
             "value": "A" if config.value_size == config.inner_size else "H"}
    reads["key"] = reads["query"]
    widths = {"attention/output": "AA", "output": "IA"}
    if config.use_bottleneck:
        widths |= {"bottleneck/input": "HA", "output/bottleneck": "AH"}
    if config.has_query_bottleneck:
        widths["bottleneck/attention"] = "HA"
    hidden = ["intermediate/dense"]
    for i in range(config.num_feedforward_networks - 1):
        hidden.append(f"ffn_layer_{i}/intermediate/dense")
        widths[f"ffn_layer_{i}/output"] = "IA"
    layer = {}
    for part, letter in reads.items():
        layer |= heads.dense(f"attention/self/{part}", letter, "A")
    for part in hidden:
        layer |= heads.dense(part, "A", "I")
    for part, (inputs, outputs) in widths.items():
        layer |= heads.dense(f"{part}/dense", inputs, outputs)
        layer |= heads.norm(f"{part}/LayerNorm", outputs)
    return {
        "embeddings/word_embeddings": "VE",
        **(heads.dense("embeddings/embedding_transformation", "S", "H")
           if config.transformed_size else {}),
        "embeddings/token_type_embeddings": "TH", "embeddings/position_embeddings": "PH",
        **heads.norm("embeddings/LayerNorm", "H"),
        **{f"encoder/layer_{{i}}/{name}": shape for name, shape in layer.items()},
        **(heads.dense("pooler/dense", "H", "H") if config.has_pooler else {}),
    }


_LSTM = {"kernel": "BG", "bias": "G", "projection_kernel": "UW"}


def _elmo(config):
    """Those of `Elmo`."""
    if config.filters:
        dense = [f"highway_{i}_{gate}" for i in range(config.n_highway)
                 for gate in ("carry", "transform")]
        dense += ["projection"] * (config.num_filters != config.projection_dim)
        found = {"embeddings/char_embeddings": "QB"}
        for i in range(len(config.filters)):
            found |= {f"embeddings/convolution_{i}/kernel": "RBW",
                      f"embeddings/convolution_{i}/bias": "W"}
        for name in dense:
            found |= {f"embeddings/{name}/kernel": "FW", f"embeddings/{name}/bias": "W"}
    else:
        found = {"embeddings/word_embeddings": "VW"}
    kept = [name for name in _LSTM if config.projects or name != "projection_kernel"]
    return found | {f"encoder/{way}_{i}/{name}": _LSTM[name] for way in ("forward", "backward")
                    for i in range(config.n_layers) for name in kept}


def _sequence_lstm(config):
    """Those of `SequenceLstm`."""
    return {"embeddings/word_embeddings": "VE", "embeddings/token_counts": "V",
            **{f"encoder/lstm_{i}/{name}": _LSTM[name] for i in range(config.num_hidden_layers)
               for name in ("kernel", "bias")}}


def _bilstm(config):
    """Those of `BiLstm`."""
    return {"embeddings/word_embeddings": "VE", "pooler/dense/kernel": "FH",
            "pooler/dense/bias": "H", **{f"encoder/{way}/{name}": _LSTM[name]
                                         for way in ("forward", "backward")
                                         for name in ("kernel", "bias")}}


# The names of each network's own weights with their shapes, by the name of its configuration:
# functions of that.
NETWORK_SHAPES = {"EncoderConfig": _encoder, "UniversalConfig": _universal,
                  "GPTConfig": _gpt, "T5Config": _t5, "XLNetConfig": _xlnet,
                  "MobileBertConfig": _mobilebert, "ElmoConfig": _elmo,
                  "SequenceLstmConfig": _sequence_lstm, "BiLstmConfig": _bilstm}


def shapes(config: EncoderConfig, named: Mapping[str, str] = MappingProxyType({})
           ) -> dict[str, str]:
    """The names of all weights that a network and its heads may have, with their shapes.

    Args:
        config: the network's.
        named: for heads that have names of their own, their rows in `heads.HEADS`.

    Returns:
        Shapes in letters, by names with "{i}" for the number of a layer.
    """
    found = {
        **next(NETWORK_SHAPES[cls.__name__] for cls in type(config).__mro__
               if cls.__name__ in NETWORK_SHAPES)(config),
        **{f"{name}/{part}": shape for name, head in _heads(named)
           for part, shape in head.shapes.items()},
    }
    how = config.quantisation
    if how and how.scheme == "affine":
        found |= dict.fromkeys(_moving_ranges(found), "")
    elif how and how.keeps_ranges:
        layers = ["embeddings", *(name.removesuffix("/kernel") for name in found
                                  if name.endswith("/kernel"))]
        found |= {f"{layer}/ranges/{name}": "" for layer in layers for name in RANGES}
    return found


def keras_dense(config: Any) -> str:
    """The class of a network's dense layers outside its encoder's layers."""
    how = config.quantisation
    return "QuantisedDense" if how and how.scheme != "affine" else "Dense"


def _moving_ranges(found):
    """The names of the ranges where all tensors of the encoder's layers are rounded."""
    for name in found:
        for end, tensors in MOVING_RANGES.items():
            if name.startswith("encoder/") and name.endswith(end):
                place = name.removesuffix(end)
                yield from (f"{place}/ranges/{tensor}_{part}" for tensor in tensors
                            for part in MOVING_PARTS)


def is_range(name: str) -> bool:
    """Whether a weight is one of `RANGES`, which a model that was never rounded lacks."""
    return "/ranges/" in name


def head(name: str) -> str:
    """The head, or the part of the encoder, that a name belongs to."""
    return name.split("/")[0]


def sizes(config: EncoderConfig, name: str = "") -> dict[str, int | None]:
    """The number for each letter; None where the configuration doesn't give it.

    Args:
        config: the network's.
        name: ours of the weight whose shape is asked for; heads and units may be cut from its layer
            alone.
    """
    found = {"V": config.vocab_size, "T": config.type_vocab_size, "M": config.task_types,
             "P": config.max_position_embeddings, "E": config.embedding_width,
             "H": config.hidden_size, "I": config.intermediate_size,
             "N": config.num_attention_heads,
             "D": config.head_size, "A": config.learned_heads * config.head_size,
             "Z": config.num_attention_heads * config.head_size,
             "O": getattr(config, "relative_attention_num_buckets", None),
             "X": config.prediction_width, "Y": config.prediction_width - config.embedding_width,
             "S": getattr(config, "transformed_size", None),
             "J": 2 * config.hidden_size, "L": config.depth, "1": 1, "2": 2,
             **dict.fromkeys("CFUGKQRWB")}
    if config.is_pruned and (layer := re.match(r"encoder/layer_(\d+)/", name)):
        number = int(layer[1])
        if "/attention/" in name:
            heads = len(config.kept_heads(number))
            found |= {"N": heads, **dict.fromkeys("AZ", heads * config.head_size)}
        else:
            found["I"] = config.feed_forward_size(number)
    return found


def numbers(name: str, config: EncoderConfig) -> list[int]:
    """The numbers of the layers that have the weight `name`, a key of `shapes`, of their own; [0]
    where `name` has no "{i}"."""
    if "{i}" not in name:
        return [0]
    stacks = getattr(config, "stacks", {})
    if head(name) in stacks:
        return list(range(stacks[head(name)]))
    attentions, feed_forwards = zip(*config.layer_weights)
    if "/attention/self/" in name and config.pruned_heads:
        attentions = tuple(i for i in attentions if config.kept_heads(i))
    return sorted(set(attentions if "/attention/" in name else feed_forwards))


def numbered(name: str, number: int, config: EncoderConfig) -> str:
    """`name` with the number of a layer for "{i}", or in three digits for "{i:03}"; "{g}" is the
    group that the layer stands for, and "{j}" its number in that group."""
    group, inner = divmod(number, config.inner_group_num)
    for letter, value in (("{i}", number), ("{i:03}", f"{number:03}"), ("{g}", group),
                          ("{j}", inner)):
        name = name.replace(letter, str(value))
    return name
