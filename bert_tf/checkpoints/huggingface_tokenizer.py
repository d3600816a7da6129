"""Tokenizers in Hugging Face's folders: `tokenizer_config.json`, and `tokenizer.json`, the only
file that readers in JavaScript and Rust know."""

import os
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from bert_tf.checkpoints import rules
from bert_tf.checkpoints.weights import Weights
from bert_tf.errors import warn
from bert_tf.files import read_json, write_aside
from bert_tf.models.gpt import tokenizer as gpt_bpe
from bert_tf.tokenization import unigram
from bert_tf.tokenization.base import ADDED, Tokenizer
from bert_tf.tokenization.byte_bpe import MERGES_FILE, read_merges
from bert_tf.tokenization.library_settings import TOKENIZER_FILE as NAME
from bert_tf.tokenization.wordpiece import MAX_WORD_CHARS

# What an added token of tokenizers has; transformers' files have further keys.
_ADDED_KEYS = ("content", "single_word", "lstrip", "rstrip", "normalized", "special")
# Names of transformers for the roles of special tokens.
_NAMES = {role: f"{role}_token" for role in ("unk", "cls", "sep", "mask", "pad")}
# Padding has no role in WordPiece's vocabularies.
PADDING = ("[PAD]", "<pad>")
_NUMBER = re.compile(r".*\d,", re.DOTALL)
# A score that no path of pieces takes: of pieces of a number with a comma, which ALBERT cuts apart.
_NEVER = -1000.0


def _own_settings(tokenizer):
    special = tokenizer.vocabulary.special
    ends = {f"{end}_token": special[role] for end, role in (("bos", "cls"), ("eos", "sep"))
            if role in special}
    return {"RobertaTokenizer": ends, "AlbertTokenizer": ends,
            "T5Tokenizer": {"extra_ids": 100, **ends}, "XLNetTokenizer": {"padding_side": "left"},
            "PreTrainedTokenizerFast": ends if tokenizer.name == "byte_bpe" else {},
            }.get(tokenizer.library_class, {})


def _special(tokenizer):
    """{name of transformers: token}; [MASK] takes the blank before it, if tokens have blanks."""
    vocabulary, special = tokenizer.vocabulary, dict(tokenizer.vocabulary.special)
    if tokenizer.name == "gpt_bpe":
        return {"unk_token": special["unk"]}
    # Attention passes padding over, so that any special token can be it.
    special["pad"] = next((token for token in (special.get("pad"), *PADDING)
                           if token in vocabulary.ids), special["sep"])
    named = {name: special[role] for role, name in _NAMES.items() if role in special}
    if "cls" not in special:        # one ends a sequence, none begins it
        named.pop("sep_token")
    if tokenizer.blank and "mask" in special:
        named["mask_token"] = {"__type": "AddedToken", **_entry(special["mask"], lstrip=True)}
    return named


def _entry(content, **more):
    return {"content": content, **dict.fromkeys(_ADDED_KEYS[1:], False), "special": True, **more}


def _reads_passages_as_texts(file):
    """Whether the model in the folder of a file reads passages as transformers does."""
    if path := rules.beside(file, "task.json"):
        return read_json(path).get("options", {}).get("squad_style") == "transformers"
    return rules.beside(file, "config.json") is not None


def notes(weights: Weights) -> Iterator[str]:
    """Yields sentences on texts whose first word follows a blank here, and not in transformers."""
    tokenizer, texts = weights.tokenizer, {}
    if not tokenizer or not tokenizer.word_prefix:
        return
    if not _reads_passages_as_texts(weights.origin.file):
        texts["answer_span"] = "passage"
    if tokenizer.name != "byte_bpe":        # whose settings say so, see `settings`
        texts["tagging"] = "text"
    for head, text in texts.items():
        if head in weights.heads:
            yield (f"transformers puts no blank before the first word of a {text}; here it has "
                   "one.")


def settings(tokenizer: Tokenizer, has_segments: bool, length: int | None,
             reads_words: bool = False) -> dict[str, Any]:
    """The values of `tokenizer_config.json`. `has_segments`: whether the model reads segments.
    `length` is of the longest sequence; None: any. `reads_words`: whether it reads each word alone,
    so that a blank precedes the first word of a text, too."""
    described = tokenizer.library_settings()
    if reads_words and tokenizer.name == "byte_bpe":
        described["add_prefix_space"] = True
    described.pop("join_quotes", None)      # transformers joins them, and so does who reads this
    if tokenizer.name != "tokenizer_json":      # whose own settings are whole
        described |= {**_own_settings(tokenizer), **_special(tokenizer)}
    described["model_input_names"] = [
        "input_ids", *["token_type_ids"] * has_segments, "attention_mask"]
    if length:
        described["model_max_length"] = length
    return described


def write(folder: str, tokenizer: Tokenizer | None, has_segments: bool, length: int | None = None,
          reads_words: bool = False) -> None:
    """Writes the files of the vocabulary, `tokenizer_config.json` (see `settings`) and, except for
    a SentencePiece model that is not Unigram, `tokenizer.json`; nothing without a tokenizer."""
    if tokenizer is None:
        return
    config = settings(tokenizer, has_segments, length, reads_words)
    tokenizer.save(folder, config)
    if NAME in tokenizer.vocabulary.files:
        return
    if tokenizer.name == "sentencepiece" and not unigram.is_unigram(_model(tokenizer)):
        warn(f"{tokenizer.vocabulary.source} is not a Unigram model, so {NAME} is not written; "
             "other programs need the .model file.")
        return
    content = getattr(tokenizer.vocabulary, "content", b"")
    with write_aside(os.path.join(folder, NAME), "wb") as file:
        file.write(content or make(tokenizer, config).to_str().encode())


def make(tokenizer: Tokenizer, config: dict[str, Any]) -> Any:
    """Returns the `tokenizers.Tokenizer` that gives the same ids; `config` has its `settings`."""
    from tokenizers import AddedToken

    plain = tokenizer.plain
    if tokenizer.name == "byte_bpe":
        made = _byte_bpe(plain, config["add_prefix_space"])
    else:
        made = {"wordpiece": _wordpiece, "gpt_bpe": _gpt,
                "sentencepiece": _unigram}[tokenizer.name](plain)
    named = {}
    for name, value in config.items():
        if name.endswith("_token"):
            entry = value if isinstance(value, dict) else _entry(value)
            named[entry["content"]] = entry
    entries = {token: named.get(token, _entry(token)) for token in _special_tokens(plain, named)}
    made.add_special_tokens([AddedToken(**{key: entry[key] for key in _ADDED_KEYS})
                             for entry in entries.values()])
    added = sorted(tokenizer.settings.get(ADDED, {}).items(), key=lambda item: int(item[0]))
    made.add_tokens([AddedToken(**{"normalized": not entry.get("special"), **{
        name: entry[name] for name in _ADDED_KEYS if name in entry}}) for _, entry in added])
    if tokenizer.name != "gpt_bpe":     # a text of its language model has no special tokens
        made.post_processor = _processor(tokenizer, config)
    return made


def _special_tokens(plain, named):
    ids = plain.vocabulary.ids
    tokens = {*plain.vocabulary.special.values(), *named}
    if plain.name == "gpt_bpe":
        tokens -= {plain.vocabulary.tokens[0]}      # a piece of texts too
    if plain.name == "sentencepiece":
        tokens |= {*plain.control_pieces}
    return sorted(tokens & ids.keys(), key=ids.__getitem__) + [
        f"<extra_id_{number}>" for number in reversed(range(100))
        if getattr(plain, "has_sentinels", False)]


def _processor(tokenizer, config):
    """Returns the step that adds special tokens and segments as `pack_pairs` does."""
    from tokenizers import processors

    vocabulary, layout = tokenizer.vocabulary, tokenizer.vocabulary.layout
    special = vocabulary.special
    cls, sep = special.get("cls"), special["sep"]
    ids = [(token, vocabulary.ids[token]) for token in special.values()]
    if tokenizer.name == "byte_bpe" and cls:
        return processors.RobertaProcessing(
            (sep, vocabulary.sep_id), (cls, vocabulary.cls_id), trim_offsets=True,
            add_prefix_space=config["add_prefix_space"])
    first = [f"{cls}:0"] * layout.before + ["$A:0"]
    one, two = [f"{sep}:0"] * layout.after, [f"{sep}:1"] * layout.after
    if layout.cls_last:
        one[-1] = two[-1] = f"{cls}:2"
    return processors.TemplateProcessing(
        first + one, [*first, *[f"{sep}:0"] * layout.between, "$B:1", *two], ids)


def _wordpiece(tokenizer):
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    made = Tokenizer(models.WordPiece(
        tokenizer.vocabulary.ids, unk_token=tokenizer.vocabulary.special["unk"],
        max_input_chars_per_word=MAX_WORD_CHARS))
    made.normalizer = normalizers.BertNormalizer(
        clean_text=True, lowercase=tokenizer.do_lower_case,
        strip_accents=tokenizer.settings.get("strip_accents"),
        handle_chinese_chars="tokenize_chinese_chars" not in tokenizer.settings)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    return made


def _bpe(tokenizer, **options):
    from tokenizers import Tokenizer, models

    ids = tokenizer.vocabulary.ids
    pieces = ids.keys() - tokenizer.vocabulary.special.values()
    merges = [pair for pair in read_merges(tokenizer.vocabulary.files[MERGES_FILE])
              if "".join(pair) in pieces]
    return Tokenizer(models.BPE(ids, merges, **options))


def _byte_bpe(tokenizer, add_prefix_space):
    from tokenizers import decoders, pre_tokenizers

    made = _bpe(tokenizer)
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    made.decoder = decoders.ByteLevel()
    return made


def _gpt(tokenizer):
    from tokenizers import Regex, decoders, normalizers, pre_tokenizers

    made = _bpe(tokenizer, unk_token=tokenizer.vocabulary.tokens[0], end_of_word_suffix=gpt_bpe.END)
    made.normalizer = normalizers.Sequence([
        *(normalizers.Replace(char, other) for char, other in gpt_bpe.REPLACED.items()),
        normalizers.Replace(Regex(gpt_bpe.STOP), " . "), normalizers.Lowercase()])
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), *(
        pre_tokenizers.Split(Regex(each), "isolated") for each in gpt_bpe.expressions())])
    made.decoder = decoders.BPEDecoder(gpt_bpe.END)
    return made


def _model(tokenizer):
    """The content of the file of a model of SentencePiece."""
    return next(iter(tokenizer.vocabulary.files.values()))


def _unigram(tokenizer):
    vocabulary = tokenizer.vocabulary
    tokens = [token.removeprefix(tokenizer.blank) if "<extra_id_" in token else token
              for token in vocabulary.tokens]
    return unigram.pipeline([
        (token, _NEVER if tokenizer.prepares and _NUMBER.fullmatch(token) else score)
        for token, score in zip(tokens, tokenizer.scores)], vocabulary.unk_id,
        [*_preparations(tokenizer), *unigram.charsmaps(_model(tokenizer))])


def _preparations(tokenizer):
    """The steps of `sentencepiece.prepare`, with joined quotation marks, as in transformers."""
    from tokenizers import Regex, normalizers

    if not tokenizer.prepares:
        return []
    steps = [normalizers.Replace(two, '"') for two in ("``", "''")]
    if "keep_accents" not in tokenizer.settings:
        marks = "".join(char for char in map(chr, range(0x110000)) if unicodedata.combining(char))
        steps += [normalizers.NFKD(), normalizers.Replace(Regex(f"[{marks}]"), "")]
    return steps + [normalizers.Lowercase()] * tokenizer.do_lower_case
