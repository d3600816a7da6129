"""NomicBERT's additions to its row of `MODELS`, which has the original's names."""

from typing import Any

import numpy as np

from bert_tf.checkpoints.rules import Tensor
from bert_tf.checkpoints.weights import Weights
from bert_tf.models.eurobert.weights import join, split

PREFIX, _DENSE = "nomic_bert.", "cls.predictions.transform.dense."
# Biases that the original's masked LM lacks, and matrices with as many rows.
_BIASES = {f"{_DENSE}bias": f"{_DENSE}weight",
           "cls.predictions.bias": f"{PREFIX}embeddings.word_embeddings.weight"}


def take(values: dict[str, Any], tensors: dict[str, Tensor], file: str
         ) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Joins the matrices of a file. The original adds rows to the table of words, up to a multiple
    of `pad_vocab_size_multiple`, and leaves `vocab_size` as it was."""
    sizes = values.get("vocab_size"), values.get("pad_vocab_size_multiple")
    rows = next((tensor.shape[0] for name, tensor in tensors.items()
                 if name.endswith("word_embeddings.weight") and tensor.shape), 0)
    if all(type(size) is int and size > 0 for size in sizes) and (
            rows == -(-sizes[0] // sizes[1]) * sizes[1]):
        values = {**values, "vocab_size": rows}
    return values, join(tensors, file)


def add_biases(tensors: dict[str, Tensor]) -> None:
    """Adds zeros for those of `_BIASES` that a file with a masked LM has not."""
    for bias, like in _BIASES.items() if f"{_DENSE}weight" in tensors else ():
        tensors.setdefault(bias, tensors[like].changed(
            lambda values: np.zeros_like(values[:, 0]), name="", shape=tensors[like].shape[:1]))


def give(values: dict[str, np.ndarray], described: dict[str, Any], weights: Weights
         ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The tensors by the names in the file that was read, and `config.json`."""
    names = {}
    for name, tensor in (weights.origin.tensors if weights.origin else {}).items():
        if not tensor.name.startswith(("bert.", PREFIX)):
            name = name.removeprefix(PREFIX)
        names[name] = tensor.name
    values = {names.get(name) or name: value for name, value in values.items()
              if names.get(name) != ""}
    longest = min(described["n_positions"], described["max_trained_positions"])
    return split(values, weights.config), {**described, "max_position_embeddings": longest}
