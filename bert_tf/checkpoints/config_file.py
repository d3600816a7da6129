"""Configurations that are read without weights; the formats of weights are not loaded for ours."""

import os

from bert_tf.config import EncoderConfig
from bert_tf.config import read_config as read_config_of_ours
from bert_tf.files import read_json

# Keys that transformers alone writes into a config.json.
_OWN_KEYS = {"architectures", "transformers_version", "_name_or_path"}


def read_config_file(path: str | os.PathLike) -> EncoderConfig:
    """Reads a configuration: a file such as `bert_config.json`, or the `config.json` of a folder in
    Hugging Face's format, which a key of transformers shows. InputError for other networks."""
    values = read_json(path)
    if _OWN_KEYS.isdisjoint(values):
        return read_config_of_ours(path)
    from bert_tf.checkpoints import huggingface_config
    return huggingface_config.read_config_file(values, os.fspath(path))
