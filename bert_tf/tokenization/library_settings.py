"""What other libraries saved beside a WordPiece vocabulary: settings of their tokenizers."""

import os
from typing import Any

from bert_tf.files import is_file
from bert_tf.options import read_json

# keras-hub's places of a vocabulary and of its tokenizer's settings, in the folder of a preset.
KERAS_HUB_VOCABULARY = os.path.join("assets", "tokenizer", "vocabulary.txt")
_KERAS_HUB = "tokenizer.json"
# Our settings, with transformers' names, and the values of theirs that count.
_KNOWN = {"do_lower_case": (True, False), "strip_accents": (False,),
          "tokenize_chinese_chars": (False,)}


def settings_beside(path: str) -> dict[str, Any]:
    """Returns the settings in transformers' tokenizer_config.json beside the file at `path`, or of
    keras-hub's tokenizer whose vocabulary the file is; without those at their defaults."""
    beside = os.path.join(os.path.dirname(path), "tokenizer_config.json")
    preset = path.removesuffix(KERAS_HUB_VOCABULARY) + _KERAS_HUB
    given: Any = {}
    if is_file(beside):
        given = read_json(beside)
    elif path.endswith(KERAS_HUB_VOCABULARY) and is_file(preset):
        given = read_json(preset).get("config")
        given = {**given, "do_lower_case": given.get("lowercase")} if isinstance(
            given, dict) else {}
    return {name: given[name] for name, values in _KNOWN.items() if given.get(name) in values}
