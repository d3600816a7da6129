"""Any tokenizer.json, read by the library tokenizers: byte-level BPE, Unigram, byte fallback.
transformers' files beside it name the special tokens."""

import json
import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert_tf.errors import InputError, warn
from bert_tf.files import read_json
from bert_tf.tokenization.base import Tokenizer
from bert_tf.tokenization.encoding import encode_blocks, whole
from bert_tf.tokenization.library_settings import SETTINGS_FILE
from bert_tf.tokenization.library_settings import TOKENIZER_FILE as NAME
from bert_tf.tokenization.vocabulary import Layout, Vocabulary, read_vocabulary_file

# The files of special tokens, {"cls_token": "[CLS]", ...}; the last one counts.
_NAMED_IN = ("special_tokens_map.json", SETTINGS_FILE)
_USUAL = {"mask": ("[MASK]", "<mask>"), "pad": ("[PAD]", "<pad>"), "unk": ("[UNK]", "<unk>")}
# Keys of tokenizer_config.json that are not kept: they name files that stay behind.
_LEFT_BEHIND = ("auto_map", "name_or_path", "tokenizer_file", "special_tokens_map_file",
                "vocab_file", "is_local", "local_files_only")
_BLANKS = ("\u0120", "\u2581")      # of byte-level BPE, and of SentencePiece
_PROBES = ("a", "1", "\u4e2d")
_NOWHERE = re.compile("(?!)")       # no line can be cut without changing its ids


class LibraryVocabulary(Vocabulary):
    """The tokens of a tokenizer.json, its `content`; ids without a token have "". `described` is
    what tokenizer_config.json says, which is saved again."""

    def __init__(self, content: bytes, source: str, described: dict[str, Any],
                 named: dict[str, str], files: Mapping[str, bytes] | None = None):
        """`named`: {role: token} as files beside it say. `files`: what `content` is made of."""
        backend = _load(content, source)
        ids = backend.get_vocab(with_added_tokens=True)
        tokens = [""] * (1 + max(ids.values(), default=-1))
        for token, index in ids.items():
            tokens[index] = token
        layout, places = _layout(backend, source)
        roles = _roles(json.loads(content), named, {
            role: tokens[index] for role, index in places.items()}, ids)
        if "sep" not in roles:
            raise InputError(f"{source} puts no special token around a text and {SETTINGS_FILE} "
                             "names none; write cls_token and sep_token there.")
        super().__init__(tokens, source, files or {NAME: content}, roles, layout)
        self.content, self.described = content, described


def _load(content, source):
    """Returns the library's tokenizer, which cuts and pads nothing."""
    # Data jobs have a process a core; the library's threads would not survive their start.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import tokenizers

    try:
        backend = tokenizers.Tokenizer.from_buffer(content)
    except Exception as error:      # the library raises nothing more precise
        raise InputError(f"{source} is not a tokenizer.json that the library tokenizers "
                         f"{tokenizers.__version__} reads ({error}); save it again with "
                         "transformers.") from error
    backend.no_truncation()
    backend.no_padding()
    return backend


def _layout(backend, source):
    """The `Layout`, and {role: id} of the special tokens that the library puts around texts."""
    text = next((text for text in _PROBES if backend.encode(text, add_special_tokens=False).ids),
                None)
    if text is None:
        raise InputError(f"{source} makes no token of a letter; take another tokenizer.json.")
    one, two = backend.encode(text), backend.encode(text, text)
    before, after = _around(one, 0)
    first, rest = _around(two, 0)
    size = rest.index(None) if None in rest else 0
    between, last = rest[:size], _around(two, 1)[1]
    cls_last = not before and len(after) > 1 and after[-1] != after[0]
    # As Llama's tokenizers with a token at both ends of a text.
    cls_between = len(between) > 1 and between[-1] in before and between[0] not in before
    separators = {*between[:len(between) - cls_between], *after[:len(after) - cls_last]}
    if (first, last) != (before, after) or len({*before}) > 1 or len(separators) > 1:
        raise InputError(f"{source}: post_processor puts other special tokens around one text than "
                         "around two, or several kinds of separators, which no network here "
                         "reads; give another file of the vocabulary.")
    places = {}
    if separators:
        places["sep"] = separators.pop()
    if before or cls_last:
        places["cls"] = (before or after)[-1]
    start, of_b = two.sequence_ids.index(1), int(cls_between)
    segments = two.type_ids[len(before):start + 1]
    if len({*segments}) > 1:
        of_b = segments[-1 - size:-1].count(segments[-1])
    # Pairs that are too long are cut as the library cuts them.
    return Layout(len(before), size, len(after), cls_last, cls_between, of_b, longest_first=True,
                  one_segment=segments[0] == segments[-1]), places


def _around(encoding, sequence):
    """Returns the ids before and after a sequence; after it, None where another one begins."""
    owners = encoding.sequence_ids
    start = owners.index(sequence)
    end = len(owners) - owners[::-1].index(sequence)
    after = [None if owner is not None else index
             for index, owner in zip(encoding.ids[end:], owners[end:])]
    return encoding.ids[:start], after


def _roles(read, named, placed, ids):
    """{role: token}: the post-processor's tokens, else those that files name, else usual ones."""
    model = read.get("model") or {}
    unknown = model.get("unk_token")
    if isinstance(model.get("unk_id"), int):
        unknown = model["vocab"][model["unk_id"]][0]
    roles = {role: next((token for token in usual if token in ids), None)
             for role, usual in _USUAL.items()}
    roles |= {"unk": unknown or roles["unk"], **named, **placed}
    roles.setdefault("sep", roles.get("cls"))
    return {role: token for role, token in roles.items() if token in ids}


def described_by(folder: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns tokenizer_config.json, and {role: token} of transformers' files in a folder."""
    described: dict[str, Any] = {}
    named: dict[str, str] = {}
    for name in _NAMED_IN:
        described = read_json(os.path.join(folder, name), {})
        for role in ("unk", "cls", "sep", "mask", "pad"):
            token = described.get(f"{role}_token")
            if isinstance(token, dict):
                token = token.get("content")
            if isinstance(token, str):
                named[role] = token
    return {key: value for key, value in described.items() if key not in _LEFT_BEHIND}, named


class LibraryTokenizer(Tokenizer):
    """Text -> ids as the library tokenizers computes them. Added and special tokens are found."""

    name = "tokenizer_json"
    has_choice_of_case = False

    def __init__(self, vocabulary: LibraryVocabulary, do_lower_case: bool = False):
        """`do_lower_case` has no effect: the file says what happens to capital letters."""
        del do_lower_case
        self._backend = backend = _load(vocabulary.content, vocabulary.source)
        normalizer = backend.normalizer
        super().__init__(vocabulary, bool(normalizer and normalizer.normalize_str("A").strip(
            "".join(_BLANKS)) == "a"))
        model = json.loads(vocabulary.content)["model"]
        self.library_class = vocabulary.described.get("tokenizer_class", "PreTrainedTokenizerFast")
        self._prefix = model.get("continuing_subword_prefix") or ""
        self._suffix = model.get("end_of_word_suffix") or ""
        added = backend.get_added_tokens_decoder()
        self._added = {index: token.content for index, token in added.items()}
        self._added_tokens = frozenset(self._added.values())
        self._special = {index for index, token in added.items() if token.special} - {
            vocabulary.unk_id, vocabulary.mask_id}
        self.word_prefix, self.blank = self._find_blank()

    @classmethod
    def reads(cls, path):
        return os.path.basename(path) == NAME

    @staticmethod
    def read_vocabulary(path):
        content = read_vocabulary_file(path, f"give the path of a {NAME}")
        read = read_json(path)
        if (read.get("truncation") or {}).get("direction") == "Left":
            warn(f"{path}: truncation.direction is Left, but texts that are too long lose their "
                 "end here.")
        return LibraryVocabulary(content, f"vocabulary {path!r}",
                                 *described_by(os.path.dirname(path)))

    def _find_blank(self):
        """What must precede a word that is encoded alone, and the mark of a blank."""
        def ids_of(text):
            return self._backend.encode(text, add_special_tokens=False).ids

        word = next(text for text in _PROBES if ids_of(text))
        alone, second = ids_of(word), ids_of(f"{word} {word}")
        second = second[len(alone):]
        prefix = " " if second != alone and second == ids_of(f" {word}") else ""
        marks = [mark for mark in _BLANKS if self.vocabulary.tokens[(second or alone)[0]
                                                                    ].startswith(mark)]
        return prefix, next(iter(marks), "")

    def library_settings(self):
        """See `Tokenizer`: what tokenizer_config.json said, with the special tokens."""
        special = {f"{role}_token": token for role, token in self.vocabulary.special.items()}
        return {"tokenizer_class": self.library_class, **special, **self.vocabulary.described}

    def encode_lines(self, lines):
        return encode_blocks(lines, _NOWHERE, self._encode_block)

    def _encode_block(self, lines):
        encoded = [encoding.ids for encoding in self._backend.encode_batch_fast(
            list(map(whole, lines)), add_special_tokens=False)]
        lengths = np.fromiter(map(len, encoded), np.int32, len(encoded))
        return np.fromiter((index for ids in encoded for index in ids), np.int32,
                           int(lengths.sum())), lengths

    def encode_with_offsets(self, text):
        """See `Tokenizer`. Tokens of one character share its offsets; added tokens, and those of
        blanks alone, keep blanks."""
        encoding, offsets = self._backend.encode(whole(text), add_special_tokens=False), []
        for index, (start, end) in zip(encoding.ids, encoding.offsets):
            part = text[start:end]
            if part.strip() and index not in self._added:
                start, end = end - len(part.lstrip()), start + len(part.rstrip())
            offsets.append((start, end))
        return encoding.ids, offsets

    def readable(self, index):
        token = self.vocabulary.tokens[index]
        if index in self._added:
            return token
        if self.blank == _BLANKS[0]:
            return self._backend.decoder.decode([token])
        return super().readable(index).removesuffix(self._suffix)

    def continuations(self, lines, ids, lengths):
        if not self._suffix:
            return super().continuations(lines, ids, lengths)
        goes_on = np.array([not token.endswith(self._suffix) and index not in self._added
                            for index, token in enumerate(self.vocabulary.tokens)], bool)
        continues = np.concatenate([[False], goes_on[ids[:-1]]])[:len(ids)]
        starts = np.cumsum(lengths) - lengths
        continues[starts[lengths > 0]] = False
        return continues

    def fold(self, char):
        normalizer = self._backend.normalizer
        return normalizer.normalize_str(char).strip("".join(_BLANKS)) if normalizer else char

    def _without_special(self, ids):
        return [index for index in super()._without_special(ids) if index not in self._special]

    def _join(self, ids):
        return self._backend.decode(ids, skip_special_tokens=False)

    def _continues(self, token):
        if token in self._added_tokens:
            return False
        if self._prefix:
            return token.startswith(self._prefix)
        return bool(self.blank) and not token.startswith(self.blank)
