"""What Hugging Face's libraries read beside a model in ONNX: its configuration and tokenizer."""

import os
import tempfile
from collections.abc import Sequence

from bert_tf.checkpoints.conversion import Changes, convert
from bert_tf.files import copy_file, exists, list_folder, read_json, write_json
from bert_tf.tokenization.library_settings import SETTINGS_FILE


def write_around(folder: str, path: str, changes: Changes, labels: Sequence[str] = ()) -> None:
    """Writes the files of the format huggingface into `folder`, except the weights. `labels` are
    names of the classes for `config.json`; none: as the checkpoint at `path` has them."""
    with tempfile.TemporaryDirectory() as aside:
        written = os.path.join(aside, "model")
        convert(path, written, "huggingface", changes)
        if labels:
            config = os.path.join(written, "config.json")
            write_json(config, {
                **read_json(config),
                "id2label": {str(number): label for number, label in enumerate(labels)},
                "label2id": {label: number for number, label in enumerate(labels)}})
        _write_special_tokens(written)
        for name in list_folder(written):
            if not name.endswith(".safetensors"):
                copy_file(os.path.join(written, name), os.path.join(folder, name))


def _write_special_tokens(folder):
    """Writes the file of special tokens that fastembed reads."""
    settings, special_tokens = (os.path.join(folder, name) for name in (
        SETTINGS_FILE, "special_tokens_map.json"))
    if not exists(settings) or exists(special_tokens):
        return
    named = {key: value for key, value in read_json(settings).items() if key.endswith("_token")}
    for value in named.values():
        if isinstance(value, dict):
            value.pop("__type")
    write_json(special_tokens, named)
