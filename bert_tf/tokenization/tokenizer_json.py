"""Hugging Face's tokenizer.json, the only file of a tokenizer that transformers 5 writes.

Its vocabulary is the one of the older files, so these are made from it: vocab.txt of WordPiece, or
vocab.json and merges.txt of BPE.
"""

import json
import os
from typing import Any

from bert_tf.errors import InputError
from bert_tf.files import is_file
from bert_tf.options import read_json

NAME = "tokenizer.json"


def find(folder: str) -> str | None:
    """Returns the folder's tokenizer.json; None if there is none, or one of keras-hub, which holds
    no vocabulary."""
    path = os.path.join(folder, NAME)
    return path if is_file(path) and "model" in read_json(path) else None


def old_files(path: str) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Returns the contents of the older files by name, and the tokenizer's settings.

    Raises:
        InputError: the file is no tokenizer of BERT or RoBERTa, or is damaged.
    """
    read = read_json(path)
    try:
        model, normalizer = read["model"], read.get("normalizer") or {}
        tokens = {**model["vocab"], **{added["content"]: added["id"]
                                       for added in read.get("added_tokens") or []}}
        ordered = sorted(tokens, key=tokens.__getitem__)
        if [tokens[token] for token in ordered] != list(range(len(ordered))):
            raise InputError(f"{path}: the ids of the tokens have gaps; take another file of the "
                             "vocabulary.")
        before = _kinds(read.get("pre_tokenizer"))
        if model["type"] == "WordPiece" and before == ["BertPreTokenizer"]:
            lower, strips = bool(normalizer.get("lowercase")), normalizer.get("strip_accents")
            settings = {"do_lower_case": lower,
                        **({"strip_accents": False} if lower and strips is False else {})}
            return {"vocab.txt": "".join(f"{token}\n" for token in ordered).encode()}, settings
        if model["type"] == "BPE" and (before == ["ByteLevel"] or
                                       model.get("end_of_word_suffix") == "</w>"):
            merges = [pair if isinstance(pair, str) else " ".join(pair)
                      for pair in model["merges"]]
            return {"vocab.json": json.dumps(tokens).encode(), "merges.txt": "".join(
                f"{line}\n" for line in ["#version: 0.2", *merges]).encode()}, {}
        raise InputError(f"{path} holds a tokenizer of the type {model['type']} ("
                         f"{', '.join(before) or 'no pre-tokenizer'}), which can't be read; put "
                         "the vocabulary beside it, such as spiece.model.")
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} does not describe a tokenizer ({error!r}); save it again with "
                         "transformers.") from error


def _kinds(step):
    """Returns the types of a pre-tokenizer, or of those in a sequence."""
    if not step:
        return []
    return [kind for one in step.get("pretokenizers", ()) for kind in _kinds(one)] or [step["type"]]
