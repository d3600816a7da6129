"""Our names of a BERT's weights, with their shapes: what the tables of all formats refer to.

A name is a variable's path relative to the network, as Google's are; a head's names begin with its
objective's. "{i}" stands for the number of a layer. In shapes, V is the vocabulary, T segments,
P positions, H hidden, I the feed-forward layer, N heads, D their width; a digit is itself. No
configuration tells C, labels, nor, of a head that reads features with LSTMs, F, their width, U, an
LSTM's width, G, four times that, and K, how many layers are weighted.
"""


def _dense(name, inputs, outputs):
    return {f"{name}/kernel": inputs + outputs, f"{name}/bias": outputs}


def _norm(name):
    return {f"{name}/gamma": "H", f"{name}/beta": "H"}


_LAYER = {
    **_dense("attention/self/query", "H", "H"),
    **_dense("attention/self/key", "H", "H"),
    **_dense("attention/self/value", "H", "H"),
    **_dense("attention/output/dense", "H", "H"),
    **_norm("attention/output/LayerNorm"),
    **_dense("intermediate/dense", "H", "I"),
    **_dense("output/dense", "I", "H"),
    **_norm("output/LayerNorm"),
}
_LSTM = {f"{way}_lstm/lstm_cell/{name}": shape for way in ("forward", "backward")
         for name, shape in (("kernel", "FG"), ("recurrent_kernel", "UG"), ("bias", "G"))}
LSTMS = 4       # the most that such a head may have
SHAPES = {
    "embeddings/word_embeddings": "VH",
    "embeddings/token_type_embeddings": "TH",
    "embeddings/position_embeddings": "PH",
    **_norm("embeddings/LayerNorm"),
    **{f"encoder/layer_{{i}}/{name}": shape for name, shape in _LAYER.items()},
    **_dense("pooler/dense", "H", "H"),
    **_dense("masked_lm/transform/dense", "H", "H"),
    **_norm("masked_lm/transform/LayerNorm"),
    "masked_lm/output_bias": "V",
    "masked_lm/output_weights": "VH",
    **_dense("next_sentence/dense", "H", "C"),
    **_dense("classification/dense", "H", "C"),
    **_dense("multi_label/dense", "H", "C"),
    **_dense("regression/dense", "H", "C"),
    **_dense("tagging/dense", "H", "C"),
    **_dense("feature_tagging/dense", "F", "C"),
    **{f"feature_tagging/features/lstm_{i}/{name}": shape
       for i in range(LSTMS) for name, shape in _LSTM.items()},
    "feature_tagging/features/layer_weights": "K",
    "feature_tagging/features/scale": "",
    **_dense("answer_span/dense", "H", "2"),
    **_dense("multiple_choice/dense", "H", "1"),
}
# What a head may lack: without a matrix of its own, the masked LM takes the word embeddings; one
# LSTM may do, on one layer.
OPTIONAL = ("masked_lm/output_weights", *(
    name for name in SHAPES if name.startswith("feature_tagging/features/")
    and not name.startswith("feature_tagging/features/lstm_0/")))
# What is no part of the encoder proper, and may be absent.
HEADS = ("pooler", "masked_lm", "next_sentence", "classification", "multi_label", "regression",
         "tagging", "feature_tagging", "answer_span", "multiple_choice")

# The heads that Google's and Hugging Face's files call by one name, whichever it is.
TASKS = ("classification", "multi_label", "regression", "tagging", "multiple_choice")


def head(name):
    """The head or part of the encoder that a name belongs to."""
    return name.split("/")[0]


def sizes(config):
    """The number that each letter stands for; None where the configuration doesn't tell."""
    return {"V": config.vocab_size, "T": config.type_vocab_size,
            "P": config.max_position_embeddings, "H": config.hidden_size,
            "I": config.intermediate_size, "N": config.num_attention_heads,
            "D": config.head_size, "1": 1, "2": 2, **dict.fromkeys("CFUGK")}


def expand(pattern, config):
    """`pattern` written out for every layer of the network, or alone."""
    layers = config.num_hidden_layers if "{i}" in pattern else 1
    return [pattern.replace("{i}", str(i)) for i in range(layers)]
