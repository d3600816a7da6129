"""Presets of keras-hub's BertBackbone: `model.weights.h5` with a `config.json`. They hold the
encoder and the pooler; keras-hub's masked LM has another epsilon and GELU than BERT's."""

import dataclasses
import os

from bert_tf.checkpoints import google, hdf5, rules
from bert_tf.checkpoints.rules import Format, Source, Tensor, encoder_rows
from bert_tf.checkpoints.weights import Weights, as_float32
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError, naming
from bert_tf.files import open_file, read_json, write_json
from bert_tf.tokenization.base import ADDED
from bert_tf.tokenization.library_settings import KERAS_HUB_VOCABULARY, settings_beside
from bert_tf.tokenization.vocabulary import VOCAB_FILE

_TABLE = (("", "/vars/0"),)
_DENSE = (("/kernel", "/vars/0"), ("/bias", "/vars/1"))
_NORM = (("/gamma", "/vars/0"), ("/beta", "/vars/1"))
_SPLIT = (("/kernel", "/vars/0", "HND"), ("/bias", "/vars/1", "ND"))
_JOIN = (("/kernel", "/vars/0", "NDH"), ("/bias", "/vars/1"))

FORMAT = Format((
    *encoder_rows(
        {"table": _TABLE, "norm": _NORM, "dense": _DENSE, "split": _SPLIT, "join": _JOIN},
        ("layers/reversible_embedding", "layers/embedding", "layers/position_embedding",
         "layers/layer_normalization"),
        "layers/transformer_encoder_{i}/",
        ("_self_attention_layer/query_dense", "_self_attention_layer/key_dense",
         "_self_attention_layer/value_dense", "_self_attention_layer/output_dense",
         "_self_attention_layer_norm", "_feedforward_intermediate_dense",
         "_feedforward_output_dense", "_feedforward_layer_norm")),
    ("pooler/dense", "layers/dense", _DENSE),
))
_WEIGHTS = "model.weights.h5"
_CLASS = {"module": "keras_hub.src.models.bert.bert_backbone", "class_name": "BertBackbone",
          "registered_name": "keras_hub>BertBackbone"}
# The versions that write such a preset.
_METADATA = {"keras_version": "3.15.1", "keras_hub_version": "0.32.0"}
# keras-hub's names by ours; it has one dropout rate.
_SIZES = {"vocab_size": "vocabulary_size", "num_hidden_layers": "num_layers",
          "num_attention_heads": "num_heads", "hidden_size": "hidden_dim",
          "intermediate_size": "intermediate_dim", "hidden_dropout_prob": "dropout",
          "max_position_embeddings": "max_sequence_length", "type_vocab_size": "num_segments"}


def find(path: str) -> str | None:
    return rules.named(path, _WEIGHTS)


def _config(path):
    values = read_json(path)
    sizes = values.get("config")
    if values.get("class_name") != _CLASS["class_name"] or not isinstance(sizes, dict):
        raise InputError(f"{path} must describe keras-hub's BertBackbone, not "
                         f"{values.get('class_name')!r}; name a preset of BERT.")
    ours = {ours: sizes[key] for ours, key in _SIZES.items() if key in sizes}
    with naming(path, _SIZES):
        return EncoderConfig.from_dict({
            **ours, "attention_probs_dropout_prob": ours.get("hidden_dropout_prob", 0.1)})


def read(file: str) -> Source:
    path, vocabulary = (rules.beside(file, name) for name in ("config.json", KERAS_HUB_VOCABULARY))
    with open_file(file, "rb") as content:
        tensors = {name.replace("encoder/", "encoder_0/"): tensor
                   for name, tensor in hdf5.tensors(content.read(), file).items()}
    settings = settings_beside(os.path.join(os.path.dirname(file), KERAS_HUB_VOCABULARY))
    return Source(file, _config(path) if path else None, tensors, FORMAT, vocabulary,
                  settings.get("do_lower_case"))


_NOTES = (("tokenize_chinese_chars",
           "Each ideograph is a word in keras-hub's tokenizer, but not in the model's."),
          (ADDED, "keras-hub's tokenizer lacks the tokens that were added to the model's."))


def table_for(weights: Weights) -> Format:
    google.check_original(weights)
    if weights.tokenizer and weights.tokenizer.name != "wordpiece":
        raise InputError(f"{weights.vocab_file} is a vocabulary of {weights.tokenizer.name}, but "
                         "keras-hub's BertBackbone has a WordPiece vocab.txt; choose another "
                         "format.")
    if weights.config.hidden_act != "gelu":
        raise InputError(f"{weights.source}: hidden_act is {weights.config.hidden_act}, but "
                         "keras-hub's BertBackbone always uses the tanh form of GELU; give "
                         "--hidden_act=gelu to change the model to it.")
    settings = weights.tokenizer.settings if weights.tokenizer else {}
    return dataclasses.replace(FORMAT, notes=tuple(
        note for name, note in _NOTES if name in settings))


def write(folder: str, weights: Weights, tensors: dict[str, Tensor]) -> None:
    """Writes a preset that `keras_hub.models.BertBackbone.from_preset` reads."""
    hdf5.write(os.path.join(folder, _WEIGHTS), (
        (name.replace("encoder_0/", "encoder/"), as_float32(tensor, weights.source))
        for name, tensor in tensors.items()))
    config = {key: getattr(weights.config, ours) for ours, key in _SIZES.items()}
    write_json(os.path.join(folder, "config.json"), {**_CLASS, "config": config})
    write_json(os.path.join(folder, "metadata.json"), _METADATA)
    if weights.tokenizer:
        lower = bool(weights.do_lower_case)
        vocabulary = os.path.join(folder, KERAS_HUB_VOCABULARY)
        os.makedirs(os.path.dirname(vocabulary))
        with open(vocabulary, "wb") as file:
            file.write(weights.tokenizer.vocabulary.files[VOCAB_FILE])
        strips = weights.tokenizer.settings.get("strip_accents", lower)
        write_json(os.path.join(folder, "tokenizer.json"), {
            "module": "keras_hub.src.models.bert.bert_tokenizer", "class_name": "BertTokenizer",
            "registered_name": "keras_hub>BertTokenizer",
            "config": {"name": "bert_tokenizer", "config_file": "tokenizer.json",
                       "lowercase": lower, "strip_accents": strips}})
