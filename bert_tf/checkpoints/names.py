"""Our names of a BERT's weights, with their shapes: what the tables of all formats refer to.

A name is a variable's path relative to the network, as Google's are; a head's names begin with its
objective's. "{i}" stands for the number of a layer. In shapes, V is the vocabulary, T segments,
P positions, H hidden, I the feed-forward layer, N heads, D their width, C labels, which no
configuration tells; a digit is itself.
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
    **_dense("answer_span/dense", "H", "2"),
    **_dense("multiple_choice/dense", "H", "1"),
}
# What a head may lack: without a matrix of its own, the masked LM takes the word embeddings.
OPTIONAL = ("masked_lm/output_weights",)
# What is no part of the encoder proper, and may be absent.
HEADS = ("pooler", "masked_lm", "next_sentence", "classification", "multi_label", "regression",
         "tagging", "answer_span", "multiple_choice")

# The heads that Google's and Hugging Face's files call by one name, whichever it is.
TASKS = ("classification", "multi_label", "regression", "tagging", "multiple_choice")


def head(name):
    """The head or part of the encoder that a name belongs to."""
    return name.split("/")[0]


def sizes(config):
    """The number that each letter stands for; None for C."""
    return {"V": config.vocab_size, "T": config.type_vocab_size,
            "P": config.max_position_embeddings, "H": config.hidden_size,
            "I": config.intermediate_size, "N": config.num_attention_heads,
            "D": config.head_size, "C": None, "1": 1, "2": 2}


def expand(pattern, config):
    """`pattern` written out for every layer of the network, or alone."""
    layers = config.num_hidden_layers if "{i}" in pattern else 1
    return [pattern.replace("{i}", str(i)) for i in range(layers)]
