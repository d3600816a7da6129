"""tokenizer.json against the library that writes it."""

import contextlib
import json
import random

import pytest
import tokenizers
from tokenizers import processors

from bert_tf.errors import InputError
from bert_tf.tokenization import find_vocabulary, open_tokenizer
from bert_tf.tokenization.tokenizer_json import has_old_files, old_files
from tests import sentencepieces
from tests.tokenization.hard_lines import HARD_LINES, random_lines
from tests.tokenization.test_byte_bpe import make_files

WORDS = [" plain", " Café", " unplainable", " masking", " CAFE"]
LINES = [line for line in [*HARD_LINES, *random_lines(200, 3)] if len(line) < 100]


def save(folder, vocabulary, **settings):
    """Writes the tokenizer.json of a WordPiece vocabulary; returns the library's tokenizer."""
    folder.mkdir(exist_ok=True)
    (folder / "list.txt").write_text("\n".join(vocabulary.tokens) + "\n")
    peer = tokenizers.BertWordPieceTokenizer(str(folder / "list.txt"), **settings)
    peer.save(str(folder / "tokenizer.json"))
    (folder / "list.txt").unlink()
    return peer


@pytest.mark.parametrize("settings", [
    {"lowercase": True}, {"lowercase": False}, {"lowercase": True, "strip_accents": False},
    {"lowercase": False, "strip_accents": True},
    {"lowercase": True, "handle_chinese_chars": False}])
def test_wordpiece(vocabulary, tmp_path, settings):
    save(tmp_path, vocabulary, **settings)
    peer = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    opened = open_tokenizer(str(tmp_path))
    assert opened.vocabulary.tokens == vocabulary.tokens
    assert opened.do_lower_case == settings["lowercase"]
    rng = random.Random(5)      # the library has other classes of characters for odd ones
    for _ in range(200):
        line = "".join(rng.choices("abcxyzABCXYZ01é ßñ中.,-!  ", k=30)) + rng.choice(WORDS)
        assert opened.encode(line) == peer.encode(line, add_special_tokens=False).ids, line


@pytest.mark.parametrize("written, config", [
    ({}, {"do_lower_case": False}), ({}, {"strip_accents": False, "tokenize_chinese_chars": False}),
    ({}, {"do_lower_case": True, "keep_accents": True}), ({}, {"x": 1}),
    ({"strip_accents": False, "handle_chinese_chars": False},
     {"strip_accents": True, "tokenize_chinese_chars": True})])
def test_the_configuration_beside_it_comes_first(vocabulary, tmp_path, written, config):
    save(tmp_path, vocabulary, lowercase=True, **written)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    peer = tokenizers.BertWordPieceTokenizer(
        {token: index for index, token in enumerate(vocabulary.tokens)},
        lowercase=config.get("do_lower_case", True), strip_accents=config.get("strip_accents"),
        handle_chinese_chars=config.get("tokenize_chinese_chars", True))
    opened = open_tokenizer(str(tmp_path))
    for line in ("Un plain caf\u00e9 \u4e2d\u6587 CAFE", "ABC \u00e9\u4e2da"):
        assert opened.encode(line) == peer.encode(line, add_special_tokens=False).ids


@pytest.mark.parametrize("form", ["pair", "sequence", "ends alone"])
def test_pairs_with_other_separators_are_the_library_s(vocabulary, tmp_path, form):
    """Whatever post-processor puts them there; a WordPiece of RoBERTa's pairs, or of T5's."""
    save(tmp_path, vocabulary)
    peer = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    ends = [(token, peer.token_to_id(token)) for token in ("[SEP]", "[CLS]")]
    peer.post_processor = processors.RobertaProcessing(*ends)
    if form == "sequence":
        peer.post_processor = processors.Sequence([
            processors.ByteLevel(), processors.TemplateProcessing(
                "[CLS] $A [SEP]", "[CLS] $A [SEP] [SEP] $B [SEP]", ends)])
    elif form == "ends alone":
        peer.post_processor = processors.TemplateProcessing(
            "$A [SEP]", "$A [SEP] $B [SEP]", ends)
    peer.save(str(tmp_path / "tokenizer.json"))
    assert open_tokenizer(str(tmp_path))(("plain", "un"))["input_ids"][0].tolist() == (
        peer.encode("plain", "un").ids)


def test_what_was_opened_is_saved_as_the_older_files(vocabulary, tmp_path):
    save(tmp_path / "new", vocabulary, lowercase=True, strip_accents=False)
    opened = open_tokenizer(str(tmp_path / "new" / "tokenizer.json"))
    opened.save(str(tmp_path / "old"))
    assert find_vocabulary(str(tmp_path / "old")).endswith("vocab.txt")
    again = open_tokenizer(str(tmp_path / "old"))
    assert again.describe() == opened.describe()
    assert again.vocabulary.hash == opened.vocabulary.hash
    assert open_tokenizer(str(tmp_path / "new"), do_lower_case=False).do_lower_case is False


@pytest.mark.parametrize("prefix", [False, True])
def test_byte_bpe(tmp_path, capsys, prefix):
    pairs = [("e", "r"), ("t", "h"), ("th", "e"), ("Ġ", "a"), ("Ġ", "th"), ("Ġth", "e")]
    old = make_files(tmp_path / "old", pairs)
    peer = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(
        old, old.replace("vocab.json", "merges.txt")))
    peer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    peer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    (tmp_path / "new").mkdir()
    peer.save(str(tmp_path / "new" / "tokenizer.json"))
    opened = open_tokenizer(str(tmp_path / "new"))
    assert opened.vocabulary.tokens == open_tokenizer(old).vocabulary.tokens
    for line in LINES:
        if "<" not in line:
            assert opened.encode(line) == peer.encode(line).ids, line
    assert not capsys.readouterr().err
    for value in (True, False):
        (tmp_path / "new" / "tokenizer_config.json").write_text(
            json.dumps({"add_prefix_space": value}))
        assert open_tokenizer(str(tmp_path / "new")).settings == (
            {"add_prefix_space": True} if value else {})
    (tmp_path / "new" / "tokenizer_config.json").unlink()
    # As GPT's, which gives every word an ending in place of a blank before it.
    path = tmp_path / "new" / "tokenizer.json"
    read = json.loads(path.read_text())
    read["model"]["end_of_word_suffix"] = "</w>"
    bytes_of_words = json.dumps(read)
    read["pre_tokenizer"], read["normalizer"] = None, {"type": "BertNormalizer", "lowercase": True}
    for content in (bytes_of_words, json.dumps(read)):
        path.write_text(content)
        assert not has_old_files(str(path))
    (tmp_path / "new" / "config.json").write_text('{"model_type": "openai-gpt"}')
    assert "merges.txt" in old_files(str(path))[0]
    peer.add_tokens(["added"])
    peer.save(str(tmp_path / "new" / "tokenizer.json"))
    assert open_tokenizer(str(tmp_path / "new")).encode("added") == peer.encode("added").ids


@pytest.mark.parametrize("file, value, is_found", [
    ("added_tokens.json", {"<e1>": 160}, True), ("added_tokens.json", {"[MASK]": 4}, False),
    ("tokenizer_config.json", {"added_tokens_decoder": {
        "160": {"content": "<e1>", "special": True}}}, True),
    ("tokenizer_config.json", {"added_tokens_decoder": 5}, False),
    ("tokenizer_config.json", {"added_tokens_decoder": {"x": {"content": "<e1>"}}}, False),
    ("tokenizer.json", {"added_tokens": [{"id": 160, "content": 5}, 5]}, False),
    ("tokenizer.json", {"added_tokens": [{"id": 160, "content": "<e1>"}]}, True)])
def test_added_tokens_beside_a_vocabulary_are_found(vocabulary, tmp_path, file, value, is_found):
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in vocabulary.tokens))
    (tmp_path / file).write_text(json.dumps(value))
    assert (open_tokenizer(str(tmp_path)).encode("<e1>") == [160]) == is_found


@pytest.mark.parametrize("added", ["\n", "un\nplain", " plain", "two words"])
def test_added_tokens_that_are_no_line_of_a_vocabulary(vocabulary, tmp_path, added):
    save(tmp_path, vocabulary)
    path = str(tmp_path / "tokenizer.json")
    peer = tokenizers.Tokenizer.from_file(path)
    peer.add_tokens([tokenizers.AddedToken(added, normalized=False), "<e1>"])
    peer.save(path)
    opened, line = open_tokenizer(str(tmp_path)), f"a plain{added} b <e1> word"
    assert opened.vocabulary.size == peer.get_vocab_size()
    ids = peer.encode(line, add_special_tokens=False).ids
    assert opened.encode(line) == opened.encode_with_offsets(line)[0] == ids
    assert peer.token_to_id(added) in ids and added in opened.decode(ids)
    (tmp_path / "saved").mkdir()
    opened.save(str(tmp_path / "saved"))
    assert open_tokenizer(str(tmp_path / "saved")).encode(line) == ids


@pytest.mark.parametrize("file", ["vocab.txt", "tokenizer.json"])
@pytest.mark.parametrize("named", ["BertJapaneseTokenizer", "HerbertTokenizerFast"])
def test_a_class_that_finds_other_words_is_refused(vocabulary, tmp_path, file, named):
    save(tmp_path, vocabulary)
    if file == "vocab.txt":
        opened = open_tokenizer(str(tmp_path))
        (tmp_path / "tokenizer.json").unlink()
        opened.save(str(tmp_path))
    # The library's file has the rules of its class, but the Japanese class asks a program.
    for name, is_refused in (("BertTokenizer", False), (
            named, file == "vocab.txt" or "Japanese" in named)):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
        with pytest.raises(InputError, match=f"tokenizer_config.json: tokenizer_class is {named}"
                           ) if is_refused else contextlib.nullcontext():
            open_tokenizer(str(tmp_path))


@pytest.mark.parametrize("file, value, said", [
    ("tokenizer_config.json", {"tokenizer_class": "KoBertTokenizer"}, "tokenizer_class is KoBertT"),
    ("tokenizer_config.json", {"word_tokenizer_type": "mecab"}, "word_tokenizer_type is mecab"),
    ("tokenizer_config.json", {"auto_map": {"AutoTokenizer": ["my.T", None]}}, "auto_map is"),
    ("config.json", {"tokenizer_class": "BertJapaneseTokenizer"}, "tokenizer_class is BertJ")])
def test_other_rules_for_words_are_refused_wherever_they_are_named(
        vocabulary, tmp_path, file, value, said):
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in vocabulary.tokens))
    (tmp_path / file).write_text(json.dumps(value))
    with pytest.raises(InputError, match=f"{file}: {said}"):
        open_tokenizer(str(tmp_path))


@pytest.mark.parametrize("config, said", [
    ({"tokenizer_class": "BertTokenizer"}, "lacks do_lower_case, so transformers 5 takes true"),
    ({"tokenizer_class": "DistilBertTokenizerFast"}, "the default of DistilBertTokenizerFast"),
    ({"tokenizer_class": "BertTokenizer", "do_lower_case": False}, ""),
    ({"tokenizer_class": "ConvBertTokenizer"}, ""),
    ({"tokenizer_class": "TokenizersBackend"}, ""), ({}, "")])
def test_defaults_of_transformers_that_differ_are_told(vocabulary, tmp_path, capsys, config, said):
    save(tmp_path, vocabulary, lowercase=False)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert not open_tokenizer(str(tmp_path)).do_lower_case
    told = capsys.readouterr().err
    assert said in told and bool(told) == bool(said)


@pytest.mark.parametrize("file", ["vocab.txt", "tokenizer.json", "spiece.model"])
@pytest.mark.parametrize("setting, usual, other, said", [
    ("truncation_side", "right", "left", "texts that are too long lose their end here"),
    ("extra_ids", 100, 300, "the tokenizer here has 100 sentinels")])
def test_settings_of_transformers_that_nothing_follows_are_told(
        vocabulary, tmp_path, capsys, file, setting, usual, other, said):
    if file == "spiece.model":
        (tmp_path / "spiece.model").write_bytes(sentencepieces.train(
            ["a b c d e"] * 9, 12, **sentencepieces.T5))
    else:
        save(tmp_path, vocabulary, strip_accents=False)
    if file == "vocab.txt":
        open_tokenizer(str(tmp_path)).save(str(tmp_path))
    path = tmp_path / "tokenizer_config.json"
    for value, is_told in ((usual, False), (
            other, setting == "truncation_side" or file == "spiece.model")):
        path.write_text(json.dumps({setting: value}))
        open_tokenizer(str(tmp_path))
        out, told = capsys.readouterr()     # predictions may go to standard output
        assert not out
        assert told.startswith(f"warning: {path}: {setting} is {other}") == is_told
        assert (said in told) == is_told and len(told.splitlines()) == is_told


def test_truncation_of_the_left_end_is_told(vocabulary, tmp_path, capsys):
    save(tmp_path, vocabulary)
    path = tmp_path / "tokenizer.json"
    for side, is_told in (("Right", False), ("Left", True)):
        path.write_text(json.dumps({**json.loads(path.read_text()), "truncation": {
            "direction": side, "max_length": 8, "strategy": "LongestFirst", "stride": 0}}))
        open_tokenizer(str(tmp_path))
        assert (f"warning: {path}: truncation.direction is Left, but texts"
                in capsys.readouterr().err) == is_told


def test_tokens_of_other_vocabularies_are_told(tmp_path, capsys):
    make_files(tmp_path, [("t", "h")])
    for added, is_told in (({"<mask>": 4}, False), ({"<mask>": 4, "<e1>": 270}, True)):
        (tmp_path / "added_tokens.json").write_text(json.dumps(added))
        open_tokenizer(str(tmp_path))
        out, told = capsys.readouterr()
        assert ("(<e1>)" in told) == is_told and not out


def test_special_tokens_of_the_vocabulary_are_plain_text(vocabulary, tmp_path, capsys):
    peer = save(tmp_path, vocabulary, strip_accents=False)
    peer.save(str(tmp_path / "tokenizer.json"))
    open_tokenizer(str(tmp_path))
    assert not capsys.readouterr().err
    peer.add_special_tokens(["[MASK]", "<e1>"])
    peer.save(str(tmp_path / "tokenizer.json"))
    opened = open_tokenizer(str(tmp_path))
    assert opened.tokenize("a<e1>") == ["a", "<e1>"]
    assert "[MASK]" not in opened.tokenize("a[MASK]")


@pytest.mark.parametrize("change", [
    {"model": {"type": "Unigram", "vocab": {}}}, {"model": {"type": "WordPiece"}}, {"model": []},
    {"model": {"type": ["WordPiece"], "vocab": {}}}, {"model": {"type": "WordPiece", "vocab": []}},
    {"model": {"type": "WordPiece", "vocab": {"a": 0}}}])
def test_what_cannot_be_read_is_refused(vocabulary, tmp_path, change):
    save(tmp_path, vocabulary)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "added_tokens": [], **change}))
    with pytest.raises(InputError, match=f"{path}.* is not a tokenizer.json that the library|"
                       f"{path}.* makes no token"):
        open_tokenizer(str(path))
    if change["model"] == []:       # a folder that has only this file has no vocabulary
        assert find_vocabulary(str(tmp_path)) is None


def test_a_vocabulary_that_is_not_there_names_the_one_that_is(vocabulary, tmp_path):
    save(tmp_path, vocabulary)
    with pytest.raises(InputError, match="no .*vocab.txt; the vocabulary of this folder is "
                       ".*tokenizer.json: name that file, or the folder"):
        open_tokenizer(str(tmp_path / "vocab.txt"))


def test_the_settings_of_keras_hub_are_no_vocabulary(tmp_path):
    (tmp_path / "tokenizer.json").write_text('{"config": {}}')
    assert find_vocabulary(str(tmp_path)) is None
