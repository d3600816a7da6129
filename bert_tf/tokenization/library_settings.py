"""Settings of tokenizers, and added tokens, that other libraries saved with a vocabulary."""

import contextlib
import os
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from bert_tf.errors import InputError, warn
from bert_tf.files import is_file, read_json

# keras-hub's places of a vocabulary and of its tokenizer's settings, in the folder of a preset.
KERAS_HUB_VOCABULARY = os.path.join("assets", "tokenizer", "vocabulary.txt")
_KERAS_HUB = "tokenizer.json"
_SETTINGS = "tokenizer_config.json"
# Our settings, which are true or false, with transformers' names.
_KNOWN = ("do_lower_case", "strip_accents", "tokenize_chinese_chars", "keep_accents",
          "add_prefix_space")
_MOST_ROWS = 1 << 40
# Classes of transformers with files as others have them, which find the words otherwise.
_OTHER_WORDS = ("BertJapaneseTokenizer", "BertweetTokenizer", "HerbertTokenizer",
                "PhobertTokenizer")
# Functions that give the added tokens in transformers' files, {id: token}; the last file counts.
_ADDED: dict[str, Callable[[dict], Mapping[str, Any]]] = {
    "added_tokens.json": lambda read: {
        str(index): {"content": token, "special": True, "normalized": True}
        for token, index in read.items()},
    "tokenizer.json": lambda read: {
        str(token["id"]): {name: value for name, value in token.items() if name != "id"}
        for token in read.get("added_tokens", [])},
    _SETTINGS: lambda read: read.get("added_tokens_decoder", {})}


def check_settings(path: str) -> None:
    """Raises InputError if transformers' tokenizer_config.json next to the vocabulary at `path`
    names a class that cuts texts as no tokenizer here does. Warns of settings that none follows."""
    beside = os.path.join(os.path.dirname(path), _SETTINGS)
    given = read_json(beside) if is_file(beside) else {}
    if given.get("truncation_side") == "left":
        warn(f"{beside}: truncation_side is left, but texts that are too long lose their end "
              "here.")
    if path.endswith(".model") and (count := given.get("extra_ids", 100)) != 100:
        warn(f"{beside}: extra_ids is {count}, but the tokenizer here has 100 sentinels, so "
              "<extra_id_0> and the like get other ids than in transformers.")
    named = str(given.get("tokenizer_class"))
    if named.removesuffix("Fast") in _OTHER_WORDS:
        raise InputError(f"{beside}: tokenizer_class is {named}, which finds words as no tokenizer "
                         "here does; take another model, or cut your texts into words in the same "
                         "way and name BertTokenizer there.")


def settings_beside(path: str) -> dict[str, Any]:
    """Returns the settings in transformers' tokenizer_config.json next to the file at `path`, or of
    keras-hub's tokenizer whose vocabulary the file is. All classes of transformers that prepare
    text for SentencePiece join quotation marks."""
    beside = os.path.join(os.path.dirname(path), _SETTINGS)
    preset = path.removesuffix(KERAS_HUB_VOCABULARY) + _KERAS_HUB
    given: Any = {}
    if is_file(beside):
        given = read_json(beside)
    elif path.endswith(KERAS_HUB_VOCABULARY) and is_file(preset):
        given = read_json(preset).get("config")
        given = {**given, "do_lower_case": given.get("lowercase")} if isinstance(
            given, dict) else {}
    found = {name: given[name] for name in _KNOWN if given.get(name) in (True, False)}
    return found | {"join_quotes": True} if is_file(beside) else found


def _read_added(path):
    """Returns {id: token} of the files next to the vocabulary at `path`."""
    found: dict[str, Any] = {}
    for name, read in _ADDED.items():
        file = os.path.join(os.path.dirname(path), name)
        if is_file(file):
            # The reader that needs a damaged file raises the error.
            with contextlib.suppress(InputError, AttributeError, TypeError, KeyError):
                found |= read(read_json(file))
    return found


def added_tokens(path: str, tokens: Sequence[str], known: Collection[str], rows: int | None
                 ) -> dict[str, dict]:
    """Returns {id: token} of the tokens that transformers' files next to the vocabulary at `path`
    add. Warns of tokens without a row in the model's table, and of tokens whose ids leave a gap.

    Args:
        tokens: in the order of their ids.
        known: the vocabulary's tokens, which T5 may write with the mark of a blank before them;
            special tokens among them are plain text here, as in BERT.
        rows: of the table, if it is known.
    """
    rows = _MOST_ROWS if rows is None else rows
    found = {key: token for key, token in _read_added(path).items()
             if key.isdecimal() and _is_added(token, known)}
    size, held = len(tokens), {int(key) for key in found if int(key) >= len(tokens)}
    taken = {key: token for key, token in found.items() if int(key) < rows and (
                 tokens[int(key)] == token["content"] if int(key) < size
                 else held == set(range(size, size + len(held))))}
    if left := [found[key]["content"] for key in found.keys() - taken.keys()]:
        shown = textwrap.shorten(", ".join(sorted(left)), 100)
        warn(f"{os.path.dirname(path) or os.curdir} adds tokens to its vocabulary ({shown}) that "
              "are cut as other text here: the model has no rows for them, or their ids do not "
              "follow the vocabulary's.")
    return taken


def _is_added(token, known):
    """Whether a token of these files is well-formed, and no special token of the vocabulary."""
    content = token.get("content") if isinstance(token, dict) else None
    if not isinstance(content, str) or not content:
        return False
    return not (token.get("special") and (content in known or f"\u2581{content}" in known))
