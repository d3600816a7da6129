"""Hugging Face's tokenizer.json, the only file of a tokenizer that transformers 5 writes. The older
files are made from it: vocab.txt of WordPiece, or vocab.json and merges.txt of BPE."""

import json
import os
from typing import Any

from bert_tf import tokenization
from bert_tf.errors import InputError, warn
from bert_tf.files import read_json
from bert_tf.tokenization.library_classes import ENDS_WORDS
from bert_tf.tokenization.library_settings import (
    TOKENIZER_FILE,
    added_tokens,
    kind_beside,
    settings_beside,
)
from bert_tf.tokenization.vocabulary import ANGLE_ROLES, BERT_ROLES, PADDING

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
                  "model.unk_token": [None, BERT_ROLES["unk"]],
                  "model.max_input_chars_per_word": [None, 100, 200]},
    "ByteLevel": {**_BPE, "model.end_of_word_suffix": [None, ""], "normalizer.type": [None],
                  "pre_tokenizer.use_regex": [None, True]},
    "WordBpe": {**_BPE, **_BERT, "normalizer.lowercase": [True]}}
# The special tokens that each kind has; the post-processor adds no others.
_SPECIAL: dict[str, list[set]] = {
    "WordPiece": [{*BERT_ROLES.values()}],
    "ByteLevel": [{*ANGLE_ROLES.values()}, {"<|endoftext|>"}], "WordBpe": [set()]}
# Where special tokens stand in a pair of texts A and B, and the segments of these, by the token
# that begins it. The networks of the second one have no segments.
_PAIRS = {BERT_ROLES["cls"]: ("-A0-B1-",), ANGLE_ROLES["cls"]: ("-A0--B0-", "-A0--B1-")}
_ENDS = ("cls", "sep")


def has_old_files(path: str) -> bool:
    """Whether `old_files` reads the file; the library tokenizers reads all others."""
    return _kind(read_json(path), path) is not None


def old_files(path: str, rows: int | None = None) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Returns the contents of the older files by name, and the tokenizer's settings, of which those
    in a tokenizer_config.json next to it come first. InputError if the file is damaged."""
    read = read_json(path)
    kind = _kind(read, path)
    if _value_in(read, "truncation", "direction") == "Left":
        warn(f"{path}: truncation.direction is Left, but texts that are too long lose their end "
             "here.")
    try:
        model, tokens = read["model"], _tokens(read)
        if kind == "WordBpe":
            rows = 0
        else:           # without tokens behind these: words are not cut into them
            size = 1 + max((index for token, index in tokens.items()
                            if token in model["vocab"] or token in _ROLES), default=-1)
            tokens = {token: index for token, index in tokens.items() if index < size}
        ordered = sorted(tokens, key=tokens.__getitem__)
        added = added_tokens(path, ordered, {*model["vocab"], *_ROLES}, rows)
        more: dict[str, Any] = {"added_tokens_decoder": added} if added else {}
        beside = settings_beside(path)
        if kind == "WordPiece":
            normalizer = read.get("normalizer") or {}
            settings = {"do_lower_case": bool(normalizer.get("lowercase"))}
            if (strips := normalizer.get("strip_accents")) in (True, False):
                settings["strip_accents"] = strips
            if normalizer.get("handle_chinese_chars") is False:
                settings["tokenize_chinese_chars"] = False
            settings |= {name: beside[name] for name in _OF_WORDPIECE if name in beside}
            lines = [_in_lines(token, tokens) for token in ordered]
            return {"vocab.txt": _lines(lines)}, settings | more
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


def _tokens(read):
    """{token: id} of the vocabulary and of the tokens that were added to it."""
    return {**read["model"]["vocab"], **{added["content"]: added["id"]
                                         for added in read.get("added_tokens") or []}}


def _value_in(read, part, key):
    within = read.get(part)
    return within.get(key) if isinstance(within, dict) else None


def _lines(texts):
    return "".join(f"{text}\n" for text in texts).encode()


def _in_lines(token, known):
    """A token as a line of vocab.txt, which is empty if an added token has a line break, or blanks
    without which it is another token."""
    bare = token.strip()
    is_lost = "\n" in token or bare != token and bare in known
    return "" if is_lost else token


def _kind(read, path):
    """The key of `_VALUES` whose values the tokenizer has; None if it has others, if it lacks the
    special tokens of its kind, or if ids have gaps. Of those whose pieces end in </w>, one alone
    cuts words as its original, and the files beside it name it; others cut them as they say."""
    model, step = read.get("model"), _value_in(read, "pre_tokenizer", "type")
    if not isinstance(model, dict):
        return None
    kind = None
    if model.get("type") == "WordPiece" and step == "BertPreTokenizer":
        kind = "WordPiece"
    elif (model.get("type") == "BPE" and model.get("end_of_word_suffix") == "</w>"
          and kind_beside(path) == ENDS_WORDS):
        kind = "WordBpe"
    elif model.get("type") == "BPE" and step == "ByteLevel":
        kind = "ByteLevel"
    if not kind or any(_value_in(read, *name.split(".")) not in values
                       for name, values in _VALUES[kind].items()):
        return None
    try:
        tokens = _tokens(read)
        has_gaps = sorted(tokens.values()) != list(range(len(tokens)))
        steps = _last_steps(read)
        around = {token for step in steps for token in (
            *(step.get("special_tokens") or ()), *(step[key][0] for key in _ENDS if key in step))}
        is_usual = all(map(_is_pair_usual, steps))
    except (KeyError, TypeError, AttributeError):
        return None
    special = any(tokens.keys() >= roles >= around for roles in _SPECIAL[kind])
    return kind if special and not has_gaps and is_usual else None


def _last_steps(read):
    post = read.get("post_processor") or {"type": None}
    return post["processors"] if post["type"] == "Sequence" else [post]


def _pair(step):
    """The token that begins a pair, or None, and the pair in the form of `_PAIRS`; "" if a
    post-processor changes none."""
    if "cls" in step:       # the other type of these has two tokens between the texts
        return step["cls"][0], "-A0-B1-" if step["type"] == "BertProcessing" else "-A0--B0-"
    pair = step.get("pair") or [{}]
    form = "".join("{id}{type_id}".format(**part["Sequence"]) if "Sequence" in part else "-"
                   for part in pair if part)
    return pair[0].get("SpecialToken", {}).get("id"), form


def _is_pair_usual(step):
    """Whether a post-processor puts special tokens as `_PAIRS`, or has none."""
    first, form = _pair(step)
    if first is None:
        return "-" not in form
    return form in _PAIRS.get(first, (form,))


def has_one_segment(path: str) -> bool:
    """Whether the library tokenizers reads the file, and gives both texts of a pair the segment 0.
    A sentencepiece.bpe.model always does."""
    if path.endswith(".model"):
        return tokenization.UnigramTokenizer.reads(path)
    if os.path.basename(path) != TOKENIZER_FILE or has_old_files(path):
        return False
    try:
        return any("B0" in _pair(step)[1] for step in _last_steps(read_json(path)))
    except (KeyError, TypeError, AttributeError):
        return False
