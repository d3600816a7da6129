"""What other libraries saved beside a vocabulary: settings of their tokenizers, and added
tokens.
"""

import contextlib
import functools
import os
import textwrap
from collections.abc import Callable, Collection
from typing import Any

from bert_tf.errors import InputError
from bert_tf.files import is_file
from bert_tf.options import read_json

# keras-hub's places of a vocabulary and of its tokenizer's settings, in the folder of a preset.
KERAS_HUB_VOCABULARY = os.path.join("assets", "tokenizer", "vocabulary.txt")
_KERAS_HUB = "tokenizer.json"
# Our settings, with transformers' names, and the values of theirs that count.
_KNOWN = {"do_lower_case": (True, False), "strip_accents": (True, False),
          "tokenize_chinese_chars": (False,), "keep_accents": (True,),
          "add_prefix_space": (True,)}
# Functions that list the added tokens in transformers' files.
_ADDED: dict[str, Callable[[dict], Any]] = {
    "added_tokens.json": lambda read: [{"content": token, "special": True} for token in read],
    "tokenizer_config.json": lambda read: read.get("added_tokens_decoder", {}).values(),
    "tokenizer.json": lambda read: read.get("added_tokens", [])}


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


def tell_of_added_tokens(path: str, known: Collection[str]) -> None:
    """Prints a warning if transformers' files beside the vocabulary at `path` add tokens, which
    transformers looks for before it cuts a text.

    Args:
        known: the vocabulary's own tokens, where T5's have the mark of a blank before them; special
            ones of these are plain text here, as in BERT.
    """
    folder, entries = os.path.dirname(path), []
    for name, read in _ADDED.items():
        if is_file(os.path.join(folder, name)):
            # Whoever needs a damaged file tells of it.
            with contextlib.suppress(InputError, AttributeError, TypeError):
                entries += read(read_json(os.path.join(folder, name)))
    added = [entry["content"] for entry in entries
             if isinstance(entry, dict) and isinstance(entry.get("content"), str)
             and not (entry.get("special") and (entry["content"] in known
                                                or f"\u2581{entry['content']}" in known))]
    if added:
        _warn(folder or os.curdir, ", ".join(dict.fromkeys(added)))


@functools.cache
def _warn(folder, added):
    """Prints the warning once a process."""
    print(f"warning: {folder} adds tokens to its vocabulary ({textwrap.shorten(added, 100)}). They "
          "are cut as other text here, but not in transformers: ids differ where texts hold them.",
          flush=True)
