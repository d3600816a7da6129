"""The files in which sentence-transformers says how the vectors of tokens become one of a text."""

import os
import re

from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError, warn
from bert_tf.files import (
    copy_file,
    is_file,
    make_folders,
    open_file,
    parse_json,
    read_json,
    write_json,
)
from bert_tf.tokenization.library_settings import SETTINGS_FILE, told_length

TEXTS, LENGTH = "config_sentence_transformers.json", "sentence_bert_config.json"
_MODULES = "modules.json"
# Modules without weights beside the network's; dropout is of training alone.
PLAIN = ("Transformer", "Pooling", "Normalize", "Dropout")


def read(folder: str) -> dict[str, str]:
    """Returns the name of each module's folder, by its class, such as Pooling; {} if the model in
    `folder` is not one of sentence-transformers. InputError if the file can't be read."""
    if not is_file(path := os.path.join(folder, _MODULES)):
        above, name = os.path.split(folder.rstrip("/"))
        if is_file(os.path.join(above, _MODULES)) and name in read(above).values():
            warn(f"{folder} is a part of the model of sentence-transformers in {above or '.'}, "
                 "whose pooling and further layers are left out.")
        return {}
    with open_file(path, "rb") as file:
        modules = parse_json(b'{"modules": %s}' % file.read(), path)["modules"]
    try:
        folders = {module["type"].rpartition(".")[2]: module["path"] for module in modules}
        if all(re.fullmatch(r"|[\w-][\w.-]*", name) for name in folders.values()):
            return folders
    except (AttributeError, KeyError, TypeError):
        pass
    raise InputError(f"{path} must be a list of modules, each with its type and the name of its "
                     "folder; correct the file, or remove it.")


def copy(source: str, target: str, config: EncoderConfig) -> None:
    """Copies the files to the folder of a model that was converted, or pre-trained further, for
    texts no longer than it reads. Warns of a module with weights, and copies nothing then."""
    modules = read(source)
    if others := [name for kind, name in modules.items() if kind not in PLAIN]:
        warn(f"{source} is a model of sentence-transformers, whose vectors of texts also need "
             f"{', '.join(others)}, which is not taken over.")
        return
    if not modules:
        return
    inner = [os.path.join(name, "config.json") for name in modules.values() if name]
    for name in (TEXTS, *inner, _MODULES):      # which names the others, after them
        if is_file(file := os.path.join(source, name)):
            make_folders(os.path.dirname(os.path.join(target, name)))
            copy_file(file, os.path.join(target, name))
    sizes = read_json(os.path.join(source, LENGTH), {})
    if longest := sizes.get("max_seq_length"):
        sizes["max_seq_length"] = min(longest, config.max_position_embeddings)
    if sizes:
        write_json(os.path.join(target, LENGTH), sizes)
    # Since its version 6, the length is that of the tokenizer.
    file, most = os.path.join(target, SETTINGS_FILE), config.max_position_embeddings
    if is_file(file) and (longest := told_length(source, most)) < most:
        write_json(file, {**read_json(file), "model_max_length": longest})
