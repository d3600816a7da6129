"""Hugging Face's tokenizer.json, the only file of a tokenizer that transformers 5 writes.

Its vocabulary is the one of the older files, so these are made from it: vocab.txt of WordPiece, or
vocab.json and merges.txt of BPE.
"""

import json
import os
from typing import Any

from bert_tf.errors import InputError, warn
from bert_tf.files import is_file, read_json
from bert_tf.tokenization.library_settings import added_tokens, settings_beside
from bert_tf.tokenization.vocabulary import ANGLE_ROLES, BERT_ROLES, PADDING

NAME = "tokenizer.json"
# Special tokens, which older files hold even if they were added to the vocabulary.
_ROLES = frozenset((*BERT_ROLES.values(), PADDING, *ANGLE_ROLES.values(), "<|endoftext|>"))
_OF_WORDPIECE = ("do_lower_case", "strip_accents", "tokenize_chinese_chars")
# The values that keys may have, None if absent, by the kind of pre-tokenizer: any other value makes
# another tokenizer. Words of more than 100 characters, the library's limit, are cut as in BERT.
_BERT: dict[str, list] = {"normalizer.type": ["BertNormalizer"],
                          "normalizer.clean_text": [None, True]}
_BPE: dict[str, list] = {
    "model.dropout": [None, 0], "model.continuing_subword_prefix": [None, ""],
    "model.byte_fallback": [None, False], "model.ignore_merges": [None, False]}
_VALUES: dict[str, dict[str, list]] = {
    "WordPiece": {**_BERT, "model.continuing_subword_prefix": [None, "##"],
                  "model.max_input_chars_per_word": [None, 100, 200]},
    "ByteLevel": {**_BPE, "normalizer.type": [None], "pre_tokenizer.use_regex": [None, True]},
    "GPT": {**_BPE, **_BERT, "normalizer.lowercase": [True]}}


def find(folder: str) -> str | None:
    """Returns the folder's tokenizer.json; None if it is missing or of a kind that `old_files` does
    not read, such as SentencePiece's or keras-hub's."""
    path = os.path.join(folder, NAME)
    return path if is_file(path) and _kind(read_json(path)) else None


def check(folder: str) -> None:
    """Raises InputError, which says why, if a folder without another vocabulary has a
    tokenizer.json that `find` leaves out."""
    path = os.path.join(folder, NAME)
    if is_file(path) and isinstance(read_json(path).get("model"), dict):
        old_files(path)


def old_files(path: str, rows: int | None = None) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Returns the contents of the older files by name, and the tokenizer's settings. The settings
    in a tokenizer_config.json next to it come first, as in transformers.

    Raises:
        InputError: the file is not a tokenizer of BERT, RoBERTa or GPT, or is damaged.
    """
    read = read_json(path)
    kind = _kind(read)
    if not kind:
        kind, step = (_value_in(read, part, "type") for part in ("model", "pre_tokenizer"))
        raise InputError(f"{path} holds no WordPiece or BPE of BERT, RoBERTa or GPT: model.type is "
                         f"{json.dumps(kind)} and pre_tokenizer.type is {json.dumps(step)}; name "
                         "another file of the vocabulary, such as spiece.model.")
    _check_values(path, read, kind)
    if _value_in(read, "truncation", "direction") == "Left":
        warn(f"{path}: truncation.direction is Left, but texts that are too long lose their end "
             "here.")
    try:
        model = read["model"]
        tokens = {**model["vocab"], **{added["content"]: added["id"]
                                       for added in read.get("added_tokens") or []}}
        if sorted(tokens.values()) != list(range(len(tokens))):
            raise InputError(f"{path}: the ids of the tokens have gaps; take another file of the "
                             "vocabulary.")
        is_gpt = bool(model.get("end_of_word_suffix"))
        tokens = tokens if is_gpt else _without_added(tokens, model["vocab"])
        ordered = sorted(tokens, key=tokens.__getitem__)
        added = added_tokens(path, ordered, {*model["vocab"], *_ROLES}, 0 if is_gpt else rows)
        more: dict[str, Any] = {"added_tokens_decoder": added} if added else {}
        beside = settings_beside(path)
        if kind == "WordPiece":
            return {"vocab.txt": _lines(_in_lines(token, tokens) for token in ordered)}, {
                **_wordpiece_settings(read.get("normalizer") or {}, beside), **more}
        merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
        step = read.get("pre_tokenizer") or {}
        if step.get("type") == "ByteLevel" and beside.get(
                "add_prefix_space", step.get("add_prefix_space")):
            more["add_prefix_space"] = True
        return {"vocab.json": json.dumps(tokens).encode(),
                "merges.txt": _lines(["#version: 0.2", *merges])}, more
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} does not describe a tokenizer ({error!r}); save it again with "
                         "transformers.") from error


def _without_added(tokens, vocabulary):
    """Returns {token: id} without the tokens that were added behind the vocabulary and its special
    tokens: words are not cut into these."""
    size = 1 + max((index for token, index in tokens.items()
                    if token in vocabulary or token in _ROLES), default=-1)
    return {token: index for token, index in tokens.items() if index < size}


def _check_values(path, read, kind):
    if kind == "BPE":
        kind = "GPT" if read["model"].get("end_of_word_suffix") else "ByteLevel"
    for name, known in _VALUES[kind].items():
        value = _value_in(read, *name.split("."))
        if value not in known:
            raise InputError(f"{path}: {name} is {json.dumps(value)}, but only "
                             f"{' or '.join(map(json.dumps, known))} can be read here; give "
                             "another file of the vocabulary.")


def _value_in(read, part, key):
    within = read.get(part)
    return within.get(key) if isinstance(within, dict) else None


def _lines(texts):
    return "".join(f"{text}\n" for text in texts).encode()


def _in_lines(token, known):
    """A token as a line of vocab.txt holds it. The line of an added token is empty if a line break
    would cut it, or if it is another token without its blanks: texts hold it before words are cut.
    """
    bare = token.strip()
    return "" if "\n" in token or bare != token and bare in known else token


def _wordpiece_settings(normalizer, beside):
    settings = {"do_lower_case": bool(normalizer.get("lowercase"))}
    if (strips := normalizer.get("strip_accents")) in (True, False):
        settings["strip_accents"] = strips
    if normalizer.get("handle_chinese_chars") is False:
        settings["tokenize_chinese_chars"] = False
    return settings | {name: beside[name] for name in _OF_WORDPIECE if name in beside}


def _kind(read):
    """Returns "WordPiece" or "BPE" if the tokenizer is one that is known here, else None."""
    model, before = read.get("model"), read.get("pre_tokenizer")
    if not isinstance(model, dict):
        return None
    step = before.get("type") if isinstance(before, dict) else None
    known = {"WordPiece": step == "BertPreTokenizer",
             "BPE": step == "ByteLevel" or model.get("end_of_word_suffix") == "</w>"}
    return next((kind for kind, is_read in known.items()
                 if is_read and model.get("type") == kind), None)
