"""Settings of tokenizers, and added tokens, that other libraries saved with a vocabulary."""

import contextlib
import os
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from bert_tf.errors import InputError, warn
from bert_tf.files import is_file, read_json
from bert_tf.tokenization.library_classes import OF_BERT, OWN_RULES, SAME_WORDS, UNREAD

# keras-hub's places of a vocabulary and of its tokenizer's settings, in the folder of a preset.
KERAS_HUB_VOCABULARY = os.path.join("assets", "tokenizer", "vocabulary.txt")
# Also keras-hub's settings, without a vocabulary.
TOKENIZER_FILE = "tokenizer.json"
SETTINGS_FILE = "tokenizer_config.json"
# Settings with transformers' names, and the last three, which it does not know.
_KNOWN = ("do_lower_case", "strip_accents", "tokenize_chinese_chars", "keep_accents",
          "add_prefix_space", "drop_category_c", "join_quotes", "max_characters")
_USUAL_NAMES = ("vocab.txt", "vocab.json", "spiece.model")
# Functions that give the added tokens in transformers' files, {id: token}; the last file counts.
_ADDED: dict[str, Callable[[dict], Mapping[str, Any]]] = {
    "added_tokens.json": lambda read: {
        str(index): {"content": token, "special": True, "normalized": True}
        for token, index in read.items()},
    TOKENIZER_FILE: lambda read: {str(token["id"]): token
                                  for token in read.get("added_tokens", [])},
    SETTINGS_FILE: lambda read: read.get("added_tokens_decoder", {})}


def find_tokenizer_json(folder: str) -> str | None:
    """Returns the folder's tokenizer.json; None without, or if it is keras-hub's."""
    path = os.path.join(folder, TOKENIZER_FILE)
    return path if isinstance(read_json(path, {}).get("model"), dict) else None


def check_settings(path: str) -> None:
    """Raises InputError if transformers' tokenizer_config.json next to the vocabulary at `path`
    names a class that cuts texts as no tokenizer here does. Warns of settings that none follows."""
    beside = settings_file(path)
    settings = read_json(beside, {})
    if settings.get("truncation_side") == "left":
        warn(f"{beside}: truncation_side is left, but texts that are too long lose their end "
              "here.")
    if path.endswith(".model") and (count := settings.get("extra_ids", 100)) != 100:
        warn(f"{beside}: extra_ids is {count}, but the tokenizer here has 100 sentinels, so "
              "<extra_id_0> and the like get other ids than in transformers.")
    _check_class(path, beside, settings)
    for key in UNREAD.get(kind_beside(path), ()):
        if path.endswith(".model") and settings.get(key):
            raise InputError(f"{beside}: {key} is {settings[key]}, but {path} is read without it "
                             "here; put a tokenizer.json in its place.")


def _check_class(path, beside, settings):
    model, key = os.path.join(os.path.dirname(path), "config.json"), "tokenizer_class"
    named = settings.get(key)
    if named is None and (of_model := read_json(model, {}).get(key)) is not None:
        beside, named = model, of_model
    # A tokenizer.json says itself how its class finds words.
    has_rules = os.path.basename(path) == TOKENIZER_FILE and _bare(named) not in OWN_RULES
    if named is None or has_rules or _is_known(named):
        # Code of the model's own, and the rules of the Japanese class.
        key = next((key for key in ("auto_map", "word_tokenizer_type") if settings.get(key)), "")
        beside, named = settings_file(path), settings.get(key)
    if key:
        raise InputError(f"{beside}: {key} is {named}, which finds words as no tokenizer here "
                         "does; take another model, or cut your texts into words in the same way, "
                         f"and leave {key} out there.")


def _is_known(named):
    return named == "TokenizersBackend" or _bare(named) in SAME_WORDS


def has_other_class(folder: str) -> bool:
    """Whether transformers' files in a folder name a class of none of the tokenizers here, so that
    a tokenizer.json says more than other files."""
    named = [name for file in (SETTINGS_FILE, "config.json")
             if (name := read_json(os.path.join(folder, file), {}).get("tokenizer_class"))]
    return bool(named) and not _is_known(named[0])


def kind_beside(path: str) -> str:
    """Returns the kind of tokenizer that transformers' files beside the vocabulary at `path` name,
    such as "bigbird" for BigBirdTokenizer or a model of the type big-bird; "" if none."""
    kind = ""
    for file in (os.path.join(os.path.dirname(path), "config.json"), settings_file(path)):
        settings = read_json(file, {})
        kind = _bare(settings.get("tokenizer_class") or "") or kind or str(
            settings.get("model_type") or "").replace("-", "")
    return kind.lower()


def _bare(named):
    return str(named).removesuffix("Fast").removesuffix("Tokenizer")


def warn_of_defaults(path: str, used: Mapping[str, Any]) -> None:
    """Warns if transformers 5 reads the tokenizer of the vocabulary at `path` otherwise, since its
    file names BERT's class and lacks settings: the class's defaults then count, not those of a
    tokenizer.json. `used`: the settings here, also those that are at their defaults."""
    beside = settings_file(path)
    settings = read_json(beside, {})
    if _bare(settings.get("tokenizer_class")) not in OF_BERT:
        return
    lower = settings.get("do_lower_case", True)
    defaults = {"do_lower_case": True, "strip_accents": lower, "tokenize_chinese_chars": True}
    for name, value in defaults.items():
        if settings.get(name) is None and used[name] != value:
            warn(f"{beside} lacks {name}, so transformers 5 takes {str(value).lower()}, the "
                 f"default of {settings['tokenizer_class']}, but here it is "
                 f"{str(used[name]).lower()}, as the vocabulary or tokenizer.json shows; write the "
                 f"right {name} there.")
            break       # the others go with it


def settings_file(path: str) -> str:
    """Returns the file that describes the tokenizer of the vocabulary at `path`: its own one, whose
    name begins with the vocabulary's, else the folder's."""
    own = f"{path}.{SETTINGS_FILE}"
    return own if is_file(own) else os.path.join(os.path.dirname(path), SETTINGS_FILE)


def new_settings_file(path: str) -> str:
    """Returns the file to write for a new vocabulary at `path`, which `settings_file` will find:
    the folder's, where transformers looks, if that describes no other vocabulary."""
    folder, name = os.path.split(path)
    others = [os.path.join(folder, other) for other in _USUAL_NAMES if other != name]
    if name not in _USUAL_NAMES or any(
            is_file(other) and not is_file(f"{other}.{SETTINGS_FILE}") for other in others):
        return f"{path}.{SETTINGS_FILE}"
    return settings_file(path)


def settings_beside(path: str) -> dict[str, Any]:
    """Returns the settings in the `settings_file` of the vocabulary at `path`, or of keras-hub's
    tokenizer. All classes of transformers that prepare text for SentencePiece join quotes."""
    beside = settings_file(path)
    preset = path.removesuffix(KERAS_HUB_VOCABULARY) + TOKENIZER_FILE
    settings: Any = {}
    if is_file(beside):
        settings = {"join_quotes": True, **read_json(beside)}
    elif path.endswith(KERAS_HUB_VOCABULARY) and is_file(preset):
        preset_settings = read_json(preset).get("config")
        if isinstance(preset_settings, dict):
            settings = {**preset_settings, "do_lower_case": preset_settings.get("lowercase")}
    for name in _KNOWN:
        if isinstance(settings.get(name), str):      # all of them would count as true
            raise InputError(f"{beside}: {name} is the text {settings[name]!r}; write true, false "
                             "or a number without quotes.")
    return {name: settings[name] for name in _KNOWN if isinstance(settings.get(name), int)}


def told_length(folder: str, most: int) -> int:
    """The tokens of the longest text that transformers reads with the files of a folder, at most
    `most`."""
    told = read_json(os.path.join(folder, SETTINGS_FILE), {}).get("model_max_length")
    if type(told) is int and 0 < told < most:
        return told
    return most


def added_tokens(path: str, tokens: Sequence[str], known: Collection[str], rows: int | None
                 ) -> dict[str, dict]:
    """Returns {id: token} of the tokens that transformers' files next to the vocabulary at `path`
    add. Warns of tokens without a row in the model's table, and of tokens whose ids leave a gap.

    Args:
        known: the vocabulary's tokens, which some write with the mark of a blank before them;
            special tokens among them are plain text here, as in BERT.
        rows: of the table, if it is known.
    """
    added: dict[str, Any] = {}
    for name, read in _ADDED.items():
        file = os.path.join(os.path.dirname(path), name)
        if name == SETTINGS_FILE:
            file = settings_file(path)
        # The reader that needs a damaged file raises the error.
        with contextlib.suppress(InputError, AttributeError, TypeError, KeyError):
            added |= read(read_json(file, {}))
    listed = {key: {name: value for name, value in token.items() if name != "id"}
              for key, token in added.items() if key.isdecimal() and _is_added(token, known)}
    beyond = {int(key) for key in listed if int(key) >= len(tokens)}
    if beyond != set(range(len(tokens), len(tokens) + len(beyond))):
        beyond = set()
    taken = {key: token for key, token in listed.items() if (rows is None or int(key) < rows) and (
                 int(key) in beyond or [token["content"]] == tokens[int(key):][:1])}
    if left := [listed[key]["content"] for key in listed.keys() - taken.keys()]:
        shown = textwrap.shorten(", ".join(sorted(left)), 100)
        warn(f"{os.path.dirname(path) or os.curdir} adds tokens to its vocabulary ({shown}) that "
              "are cut as other text here: the model has no rows for them, or their ids do not "
              "follow the vocabulary's.")
    return taken


def _is_added(token, known):
    """Whether a token of these files is well-formed, and no special token of the vocabulary."""
    if not isinstance(token, dict) or not (content := token.get("content")) or (
            not isinstance(content, str)):
        return False
    return not (token.get("special") and (content in known or f"\u2581{content}" in known))
