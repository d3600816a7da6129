"""Tokenizers that the library tokenizers reads, against the library itself and golden lines."""

import gzip
import json
import multiprocessing
import pathlib
import pickle

import numpy as np
import pytest
import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

from bert_tf.errors import InputError
from bert_tf.tokenization import LibraryTokenizer, find_vocabulary, open_tokenizer
from bert_tf.tokenization.encoding import truncate_pairs
from bert_tf.tokenization.tokenizer_json import has_old_files, has_one_segment
from bert_tf.tokenization.vocabulary import Layout
from tests.goldens import Material
from tests.tokenization.hard_lines import HARD_LINES, random_lines
from tests.tokenization.test_tokenizer_json import save

LINES = [line for line in [*HARD_LINES, *random_lines(100, 7)] if len(line) < 200]
LETTERS = "abcdefghijklmnopqrstuvwxyz.,"


def _template(peer, cls, sep, between=1, segment=1):
    one, two = f"{cls} $A {sep}", (
        f"{cls} $A {f'{sep} ' * between}$B:{segment} {sep}:{segment}")
    peer.post_processor = processors.TemplateProcessing(one, two, [
        (token, peer.token_to_id(token)) for token in (cls, sep)])


def _modernbert():
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("Ġ", "a")]
    words = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *map("".join, merges)]
    peer = tokenizers.Tokenizer(models.BPE({word: i for i, word in enumerate(words)}, merges))
    peer.add_tokens([AddedToken(" " * count) for count in range(8, 1, -1)])
    peer.add_special_tokens(["<|endoftext|>", "[UNK]", "[CLS]", "[SEP]", "[PAD]",
                             AddedToken("[MASK]", lstrip=True)])
    peer.normalizer = normalizers.NFC()
    peer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    peer.decoder = decoders.ByteLevel()
    _template(peer, "[CLS]", "[SEP]")
    return peer


def _llama_3(between="[SEP] [CLS]:1"):
    """With special tokens at both ends of each text."""
    peer = _modernbert()
    peer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", f"[CLS] $A {between} $B:1 [SEP]:1",
        [(token, peer.token_to_id(token)) for token in ("[CLS]", "[SEP]")])
    return peer


def _xlm_roberta():
    words = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁the", "▁a", "he", "th", *LETTERS]
    peer = tokenizers.Tokenizer(models.Unigram(
        [(word, -float(len(words) - i)) for i, word in enumerate(words)], 3))
    peer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True)])
    peer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    peer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    peer.decoder = decoders.Metaspace()
    _template(peer, "<s>", "</s>", 2, 0)
    return peer


def _gemma():
    words = ["<pad>", "<eos>", "<bos>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256)),
             "▁", *LETTERS, "th", "the", "▁the"]
    merges = [("t", "h"), ("th", "e"), ("▁", "the")]
    peer = tokenizers.Tokenizer(models.BPE(
        {word: i for i, word in enumerate(words)}, merges, unk_token="<unk>", fuse_unk=True,
        byte_fallback=True))
    peer.add_special_tokens(["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"])
    peer.normalizer = normalizers.Replace(" ", "▁")
    peer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    peer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                      decoders.Fuse()])
    _template(peer, "<bos>", "<eos>")
    return peer


def _llama():
    peer = _gemma()
    peer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    peer.pre_tokenizer = None
    peer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                      decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return peer


def _herbert(lowercase=False):
    words = ["<s>", "</s>", "<unk>", "<pad>", "<mask>", *LETTERS,
             *(f"{letter}</w>" for letter in LETTERS), "th", "the</w>"]
    peer = tokenizers.Tokenizer(models.BPE(
        {word: i for i, word in enumerate(words)}, [("t", "h"), ("th", "e</w>")],
        unk_token="<unk>", end_of_word_suffix="</w>"))
    peer.add_special_tokens(words[:5])
    peer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    peer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    peer.decoder = decoders.BPEDecoder("</w>")
    _template(peer, "<s>", "</s>")
    return peer


# form -> its maker, the blank in its tokens, and what precedes a word that follows a blank
FORMS = {"modernbert": (_modernbert, "Ġ", " "), "xlm_roberta": (_xlm_roberta, "▁", ""),
         "gemma": (_gemma, "▁", " "), "llama": (_llama, "▁", ""), "llama 3": (_llama_3, "Ġ", " "),
         "class of the first": (lambda: _llama_3("[SEP] [CLS]"), "Ġ", " "),
         "separator of the second": (lambda: _llama_3("[SEP]:1"), "Ġ", " "),
         "herbert": (_herbert, "", ""),
         "lower": (lambda: _herbert(True), "", "")}


@pytest.fixture(params=FORMS)
def opened(request, tmp_path):
    """The form, the library's tokenizer and ours."""
    peer = FORMS[request.param][0]()
    (tmp_path / "model").mkdir()
    peer.save(str(tmp_path / "model" / "tokenizer.json"))
    return request.param, peer, open_tokenizer(str(tmp_path / "model"))


def test_ids_are_the_library_s(opened):
    form, peer, tokenizer = opened
    assert isinstance(tokenizer, LibraryTokenizer)
    assert (tokenizer.blank, tokenizer.word_prefix) == FORMS[form][1:]
    ids, lengths = tokenizer.encode_lines([*LINES, "half \ud800 a pair"])
    for line, row in zip(LINES, np.split(ids, np.cumsum(lengths))):
        whole = line.encode("utf-8", "replace").decode() if "\ud800" in line else line
        assert row.tolist() == peer.encode(whole, add_special_tokens=False).ids, line
        assert tokenizer.encode_with_offsets(line)[0] == row.tolist()
        assert tokenizer(line)["input_ids"][0].tolist() == peer.encode(whole).ids
        assert tokenizer.decode(row, False) == peer.decode(row, skip_special_tokens=False)
    assert tokenizer.encode_words(["the", "cat"])[0].tolist() == (
        peer.encode(f"{tokenizer.word_prefix}the cat", add_special_tokens=False).ids)


@pytest.mark.parametrize("length", [9, 10, 24])
def test_pairs_are_cut_as_by_the_library(opened, length):
    _, peer, tokenizer = opened
    texts = ["the cat", "a " * 9, "cat that sat on the mat", "x y z"]
    pairs = [(first, second) for first in texts for second in texts]
    rows = tokenizer(pairs, length, pad_to_max=True)
    peer.enable_truncation(length)
    for pair, ids, mask, segments in zip(pairs, *rows.values()):
        expected = peer.encode(*pair)
        assert ids[mask > 0].tolist() == expected.ids
        assert segments[mask > 0].tolist() == expected.type_ids


def test_lengths_of_all_pairs():
    layout, peer = Layout(longest_first=True), _modernbert()
    a, b = (axis.ravel() for axis in np.mgrid[1:14, 1:14])
    for length in range(6, 16):
        peer.enable_truncation(length)
        kept = np.stack(truncate_pairs(a, b, length, layout), 1).tolist()
        for first, second, pair in zip(a, b, kept):
            found = peer.encode("x" * first, "x" * second).sequence_ids
            assert [found.count(0), found.count(1)] == pair


def test_copies_and_saved_ones_are_equal(opened, tmp_path):
    _, peer, tokenizer = opened
    (tmp_path / "saved").mkdir()
    tokenizer.save(str(tmp_path / "saved"))
    assert (tmp_path / "saved" / "tokenizer.json").read_bytes() == (
        tmp_path / "model" / "tokenizer.json").read_bytes()
    for other in (pickle.loads(pickle.dumps(tokenizer)), open_tokenizer(str(tmp_path / "saved"))):
        assert other.vocabulary.describe() == tokenizer.vocabulary.describe()
        assert other.vocabulary.special == tokenizer.vocabulary.special
        assert other.describe() == tokenizer.describe()
        assert other.encode("the cat") == tokenizer.encode("the cat")


def test_processes_get_it(tmp_path):
    _modernbert().save(str(tmp_path / "tokenizer.json"))
    tokenizer = open_tokenizer(str(tmp_path))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(tokenizer.encode, ["the cat"]) == [tokenizer.encode("the cat")]


def test_offsets_are_without_the_blanks_around_a_token(opened):
    _, _, tokenizer = opened
    mask = tokenizer.vocabulary.special.get("mask")
    text = f"the  cat {mask} that"
    ids, places = tokenizer.encode_with_offsets(text)
    parts = [text[start:end] for start, end in places]
    assert text[:3] in (parts[0], "".join(parts[:3]))
    # The mark of a blank that is a token by itself has the place of the letter after it.
    covered = {place for start, end in places for place in range(start, end)}
    assert covered >= {place for place, char in enumerate(text) if char != " "}
    start, end = places[ids.index(tokenizer.vocabulary.mask_id)]
    assert text[start:end].strip() == mask
    assert not any(part != part.strip() for part in parts if part.strip() not in ("", mask))


def test_words_and_their_continuations(opened):
    _, _, tokenizer = opened
    lines = ["the cat", "", "a mat"]
    ids, lengths = tokenizer.encode_lines(lines)
    continues = tokenizer.continuations(lines, ids, lengths)
    first = (np.cumsum(lengths) - lengths)[lengths > 0]
    starts = ~continues
    starts[first] = True
    assert starts.sum() == 4
    assert tokenizer.readable(tokenizer.encode_words(["the"])[0][-1]).strip() in ("the", "e")


def test_decoding_keeps_masks(opened):
    _, _, tokenizer = opened
    mask = tokenizer.vocabulary.special["mask"]
    ids = tokenizer(f"the cat {mask}", 16, pad_to_max=True)["input_ids"]
    assert tokenizer.decode(ids[0]).replace(" ", "") == f"thecat{mask}"
    assert tokenizer.decode(ids)[0] == tokenizer.decode(ids[0])
    assert tokenizer.vocabulary.special["cls"] in tokenizer.decode(ids[0], skip_special=False)


def test_names_of_special_tokens_and_case(tmp_path):
    peer = _xlm_roberta()
    peer.enable_padding()
    peer.enable_truncation(4)
    peer.save(str(tmp_path / "tokenizer.json"))
    tokenizer = open_tokenizer(str(tmp_path))
    assert tokenizer.do_lower_case and open_tokenizer(str(tmp_path), False).do_lower_case
    assert tokenizer.vocabulary.special == {
        "cls": "<s>", "sep": "</s>", "mask": "<mask>", "pad": "<pad>", "unk": "<unk>"}
    assert len(tokenizer.encode("the cat sat on")) > 4
    (tmp_path / "special_tokens_map.json").write_text(json.dumps(
        {"mask_token": {"content": "▁a"}, "cls_token": "</s>"}))
    assert open_tokenizer(str(tmp_path)).vocabulary.special["mask"] == "▁a"
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(
        {"mask_token": "he", "tokenizer_class": "XLMRobertaTokenizer", "model_max_length": 9}))
    tokenizer = open_tokenizer(str(tmp_path))
    assert (tokenizer.vocabulary.special["mask"], tokenizer.vocabulary.special["cls"]) == (
        "he", "<s>")
    assert tokenizer.library_settings()["model_max_length"] == 9


def test_it_comes_before_files_of_another_class(vocabulary, tmp_path):
    save(tmp_path, vocabulary)
    (tmp_path / "sentencepiece.bpe.model").write_bytes(b"foreign")
    assert find_vocabulary(str(tmp_path)).endswith("tokenizer.json")
    (tmp_path / "vocab.txt").write_text("foreign\n")
    assert find_vocabulary(str(tmp_path)).endswith("vocab.txt")
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "MPNetTokenizer"}')
    assert isinstance(open_tokenizer(str(tmp_path)), LibraryTokenizer)


@pytest.mark.parametrize("normalizer", [
    None, normalizers.Lowercase(), normalizers.BertNormalizer(clean_text=False),
    normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase()])])
def test_wordpiece_with_another_normalizer(vocabulary, tmp_path, normalizer):
    peer = save(tmp_path, vocabulary)
    peer._tokenizer.normalizer = normalizer
    peer.save(str(tmp_path / "tokenizer.json"))
    opened = open_tokenizer(str(tmp_path))
    assert isinstance(opened, LibraryTokenizer)
    for line in LINES:
        assert opened.encode(line) == peer.encode(line, add_special_tokens=False).ids
    ids, lengths = opened.encode_lines(["unplain plain"])
    assert opened.continuations([""], ids, lengths).tolist() == [
        token.startswith("##") for token in opened.tokens(ids)]


@pytest.mark.parametrize("between, segment", [(1, 1), (1, 0), (2, 0)])
def test_wordpiece_with_other_pairs(vocabulary, tmp_path, between, segment):
    peer = save(tmp_path, vocabulary)
    _template(peer._tokenizer, "[CLS]", "[SEP]", between, segment)
    peer.save(str(tmp_path / "tokenizer.json"))
    opened = open_tokenizer(str(tmp_path))
    assert opened.vocabulary.layout.between == between
    assert isinstance(opened, LibraryTokenizer) == (segment == 0)
    assert opened(("plain", "un"))["segment_ids"][0].tolist() == peer.encode("plain", "un").type_ids
    assert has_one_segment(str(tmp_path / "tokenizer.json")) == (segment == 0)


@pytest.mark.parametrize("part, key, value", [
    ("model", "dropout", 0.1), ("model", "continuing_subword_prefix", "@@"),
    ("model", "byte_fallback", True), ("model", "ignore_merges", True),
    ("pre_tokenizer", "use_regex", False), ("normalizer", "type", "NFC"),
    ("model", "vocab", {"<|endoftext|>": 1}), ("model", "vocab", {"a": 0}),
    ("post_processor", "special_tokens", {"[CLS]": {}})])
def test_which_bpe_the_library_reads(tmp_path, part, key, value):
    read = {"normalizer": None, "pre_tokenizer": {"type": "ByteLevel"}, "post_processor": None,
            "model": {"type": "BPE", "vocab": {"<|endoftext|>": 0}, "merges": []}}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(read))
    assert has_old_files(str(path))
    path.write_text(json.dumps({**read, part: {**(read[part] or {}), key: value}}))
    assert not has_old_files(str(path))


def test_other_layouts_are_refused(tmp_path):
    peer = _xlm_roberta()
    ids = [(token, peer.token_to_id(token)) for token in ("<s>", "</s>", "<pad>")]
    for pair, said in (("<s> $A <pad> $B </s>", "several kinds"), ("$A </s> $B </s>", "than ar")):
        peer.post_processor = processors.TemplateProcessing("<s> $A </s>", pair, ids)
        peer.save(str(tmp_path / "tokenizer.json"))
        with pytest.raises(InputError, match=f"{said}"):
            open_tokenizer(str(tmp_path))
    peer.post_processor = None
    peer.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(InputError, match="write cls_token and sep_token"):
        open_tokenizer(str(tmp_path))


def test_golden_lines_of_modernbert():
    folder = pathlib.Path(Material("golden/modernbert/tokenizer"))
    tokenizer = open_tokenizer(str(folder))
    with gzip.open(folder / "lines.jsonl.gz", "rt") as file:
        for row in map(json.loads, file):
            ids, places = tokenizer.encode_with_offsets(row["text"])
            assert tokenizer(row["text"])["input_ids"][0].tolist() == row["input_ids"]
            assert ids == row["input_ids"][1:-1]
            for (start, end), (first, last) in zip(places, row["offsets"][1:-1]):
                # The blank before a word is not part of its place here.
                assert end == last and (start == first or row["text"][first:start].isspace())
            if not {"[MASK]", "[UNK]"} & {*tokenizer.tokens(ids)}:
                assert tokenizer.decode(row["input_ids"]) == row["decoded"]
    for row in json.loads((folder / "pairs.json").read_text()):
        pair = row["first"], row["second"]
        assert tokenizer(pair)["input_ids"][0].tolist() == row["input_ids"]
        cut = tokenizer(pair, 24, pad_to_max=True)
        assert cut["input_ids"][0].tolist() == row["longest_first_24"]
        assert cut["input_mask"][0].tolist() == row["mask_24"]
