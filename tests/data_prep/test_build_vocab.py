"""Vocabularies that are trained or extended."""

import gzip
import json
import os
import signal
import subprocess
import sys
import tracemalloc

import pytest

from bert_tf.data.text import corpus
from bert_tf.errors import InputError
from bert_tf.tokenization import WordpieceTokenizer, byte_bpe, encoding, open_tokenizer, wordpiece
from bert_tf.tokenization.vocabulary import Vocabulary
from data_prep import build_vocab, extend_vocab, extract_text
from tests.programs import refused

TEXT = ("The lowest newer wider newest low lower. Café, café!\nNo newspapers 中文 here; lower "
        "and lower\u00ad.\n\n") * 20


@pytest.fixture
def text_file(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def build(text_file, name="vocab.txt", **options):
    output = text_file.parent / name
    build_vocab.main(build_vocab.BuildVocabFlags(
        input_file=[str(text_file)], output_file=str(output), **{"vocab_size": 90, **options}))
    opened = open_tokenizer(str(output))
    return opened.vocabulary if opened.name == "wordpiece" else opened


def test_special_tokens_come_first_and_the_text_is_covered(text_file, capsys):
    vocabulary = build(text_file, num_unused=2)
    assert vocabulary.tokens[:7] == [
        "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused1]"]
    tokenizer = WordpieceTokenizer(vocabulary)
    assert vocabulary.unk_id not in tokenizer.encode(TEXT)
    assert "lower" in vocabulary.ids and "cafe" in vocabulary.ids
    assert "0.000% [UNK]" in capsys.readouterr().out
    assert "from 1,200 words (1 different)" in build_vocab.report({"low": 1200}, tokenizer)


def test_every_piece_is_of_the_tokenizers_words(text_file):
    words = build_vocab.count_words([str(text_file)], build_vocab.BuildVocabFlags([], ""))
    pieces = [token for token in build(text_file).tokens[5:] if len(token.removeprefix("##")) > 1]
    for token in pieces:
        piece = token.removeprefix("##")
        assert any(word.startswith(piece) if piece == token else piece in word[1:]
                   for word in words), token


@pytest.mark.parametrize("flags, kept", [
    ({}, "cafe"), ({"strip_accents": False}, "caf\u00e9"),
    ({"do_lower_case": False}, "Caf\u00e9"), ({"do_lower_case": False, "strip_accents": True},
                                             "Cafe")])
def test_readers_follow_the_file_beside_the_vocabulary(text_file, flags, kept, capsys):
    text_file.write_text("Caf\u00e9 Caf\u00e9 na\u00efve\n" * 9, encoding="utf-8")
    build(text_file, **flags)
    said = "23.1% of the letters lose their vowel signs, accents or other marks"
    assert (said in capsys.readouterr().err) == (not flags)     # the other flags chose
    opened = open_tokenizer(str(text_file.parent / "vocab.txt"))
    assert opened.tokenize("Caf\u00e9") == [kept] and opened.vocabulary.unk_id not in opened.encode(
        "Na\u00efve".swapcase() if opened.do_lower_case else "na\u00efve")
    assert json.loads((text_file.parent / "tokenizer_config.json").read_text()) == {
        "tokenizer_class": "BertTokenizer", "do_lower_case": flags.get("do_lower_case", True),
        "strip_accents": kept.isascii()}


BUILD = """
import sys
from data_prep.build_vocab import BuildVocabFlags, main
for kind, name, size in (("wordpiece", "vocab.txt", 70), ("byte_bpe", "vocab.json", 300),
                         ("sentencepiece", "spiece.model", 70)):
    main(BuildVocabFlags([sys.argv[1]], f"{sys.argv[2]}/{kind}/{name}", kind, vocab_size=size))
"""


def test_the_files_are_the_same_in_every_process(text_file):
    contents = []
    for seed in "01":
        folder = text_file.parent / seed
        subprocess.run([sys.executable, "-c", BUILD, text_file, folder], check=True, env={
            **os.environ, "PYTHONHASHSEED": seed, "RAYON_NUM_THREADS": "2"})
        contents.append({str(path.relative_to(folder)): path.read_bytes()
                         for path in folder.rglob("*.*")})
    assert contents[0] == contents[1] and {*contents[0]} == {
        f"{name}/{file}" for name, files in (
            ("wordpiece", ["vocab.txt"]), ("byte_bpe", ["vocab.json", "merges.txt"]),
            ("sentencepiece", ["spiece.model"])) for file in [*files, "tokenizer_config.json"]}


def test_byte_bpe_covers_any_text(text_file, capsys):
    tokenizer = build(text_file, "vocab.json", tokenizer="byte_bpe", vocab_size=300)
    assert tokenizer.vocabulary.tokens[:5] == ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    assert tokenizer.vocabulary.size == 300 and "Ġlower" in tokenizer.vocabulary.ids
    assert tokenizer.vocabulary.unk_id not in tokenizer.encode("any 말 <unk>")
    assert "0.000% <unk>" in capsys.readouterr().out
    found, plain = (corpus.tokenize_documents(["low", blank, "lower"], tokenizer)
                    for blank in (" \t", ""))
    assert len(found.ranges) == 2 and (found.tokens == plain.tokens).all()


@pytest.mark.parametrize("style, first, lowers", [
    ("albert", ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", "(", ")", '"'], True),
    # The ids that data_utils.py of XLNet names.
    ("xlnet", ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"],
     True),
    ("t5", ["<pad>", "</s>", "<unk>"], False)])
def test_sentencepiece_has_the_special_tokens_of_the_original(text_file, style, first, lowers):
    tokenizer = build(text_file, "spiece.model", tokenizer="sentencepiece", vocab_size=72,
                      sentencepiece_style=style)
    assert tokenizer.vocabulary.tokens[:len(first)] == first
    assert "\u2581lower" in tokenizer.vocabulary.ids and tokenizer.do_lower_case == lowers
    assert tokenizer.vocabulary.unk_id not in tokenizer.encode(TEXT.replace("\u00ad", ""))
    assert ("\u2581Café" in "".join(tokenizer.tokens(tokenizer.encode("Café")))) != lowers
    assert ("<extra_id_0>" in tokenizer.vocabulary.tokens[-1]) == (style == "t5")


@pytest.mark.parametrize("size, is_short", [(38, False), (72, True), (400, True)])
def test_the_size_is_told_without_sentinels(text_file, size, is_short, capsys):
    tokenizer = build(text_file, "spiece.model", tokenizer="sentencepiece", vocab_size=size,
                      sentencepiece_style="t5")
    out = capsys.readouterr().out
    assert "100 of them are the sentinels of T5" in out
    assert (f"fewer tokens than --vocab_size={size}" in out) == is_short
    assert (tokenizer.vocabulary.size == size + 100) != is_short


def test_a_small_alphabet_makes_rare_characters_unknown(text_file):
    vocabulary = build(text_file, limit_alphabet=12)
    assert sum(len(token) == 1 for token in vocabulary.tokens) == 12
    assert WordpieceTokenizer(vocabulary).tokenize("中") == ["[UNK]"]


def test_gzip_gives_the_same(text_file):
    packed = text_file.with_suffix(".gz")
    packed.write_bytes(gzip.compress(TEXT.encode()))
    assert build(packed, "b.txt").hash == build(text_file, "a.txt").hash


@pytest.mark.parametrize("content, options, parts", [
    (b" \n\n", {}, ["no word", "text.txt"]),
    (b"good\nbad \xff\n", {}, ["text.txt", "line 2", "byte 5"]),
    (None, {}, ["--input_file: no file matches", "text.txt"]),
    (b"words of text", {"vocab_size": 10}, ["--vocab_size=10", "22"]),
    (b"words", {"min_frequency": 0}, ["--min_frequency"]),
    (b"words", {"num_unused": 2 ** 31}, ["--num_unused=2147483648 is above --vocab_size="]),
    (b"words", {"name": "text.txt"}, ["--input_file", "is also the output file"]),
    (b"words", {"name": "."}, ["--output_file", "is a folder"]),
    (b"ab", {"tokenizer": "gpt_bpe", "name": "v.json", "vocab_size": 7},
     ["--vocab_size=7 is too small: single characters and special tokens take 8"]),
    (b"words", {"tokenizer": "byte_bpe"}, ["--output_file", "vocab.txt", ".json"]),
    (b"words", {"tokenizer": "byte_bpe", "name": "v.json"}, ["--vocab_size=90", "261"]),
    (b"words of text", {"tokenizer": "sentencepiece", "name": "v.model", "vocab_size": 20},
     ["--vocab_size=20"]),
])
def test_refusals(text_file, content, options, parts):
    text_file.unlink() if content is None else text_file.write_bytes(content)
    with refused(*parts):
        build(text_file, **options)
    assert not (text_file.parent / "vocab.txt").exists()


def test_one_job_at_a_time_writes_and_says_what_it_replaces(text_file, monkeypatch, capsys):
    build(text_file, "vocab.json", tokenizer="byte_bpe", vocab_size=300)
    assert "will be replaced" not in capsys.readouterr().out
    count, folder = build_vocab.count_words, text_file.parent

    def count_words(*arguments):
        assert (folder / ".vocab.json.lock").exists()
        return count(*arguments)

    monkeypatch.setattr(build_vocab, "count_words", count_words)
    build(text_file, "vocab.json", tokenizer="byte_bpe", vocab_size=300)
    assert capsys.readouterr().out.startswith(
        f"{folder / 'vocab.json'}, {folder / 'merges.txt'}, {folder / 'tokenizer_config.json'} "
        "will be replaced.\n")
    assert sorted(path.name for path in folder.iterdir()) == [
        "merges.txt", "text.txt", "tokenizer_config.json", "vocab.json"]


TERMINATED = """
import os, signal, sys
from bert_tf import flags
from data_prep import build_vocab
build_vocab._TRAINERS["wordpiece"] = lambda *_: os.kill(os.getpid(), signal.SIGTERM)
flags.run(build_vocab.main, build_vocab.BuildVocabFlags)
"""


def test_a_library_that_lets_no_python_run_is_ended_at_once(text_file):
    ended = subprocess.run([sys.executable, "-c", TERMINATED, f"--input_file={text_file}",
                            f"--output_file={text_file}.vocab"], check=False)
    assert ended.returncode == -signal.SIGTERM


LINES = ["wider café ", "The  lowest", " 中文字 ab\u00ad", "\tΣΣ, x.y ''``"]


@pytest.mark.parametrize("tokenizer, name, beside", [
    ("wordpiece", "vocab.txt", []), ("byte_bpe", "vocab.json", ["merges.txt"])])
def test_a_kill_leaves_no_vocabulary_without_what_belongs_to_it(
        text_file, written, tokenizer, name, beside):
    build(text_file, name, tokenizer=tokenizer, vocab_size=400)
    # After the copies in a temporary folder.
    assert written[1 + len(beside):] == ["tokenizer_config.json", *beside, name]


@pytest.mark.parametrize("tokenizer, boundary", [
    *((name, byte_bpe.BOUNDARY) for name in build_vocab._ENDINGS if name != "wordpiece"),
    ("wordpiece", wordpiece.BOUNDARY)])
def test_a_huge_line_is_counted_in_parts(tmp_path, monkeypatch, tokenizer, boundary):
    path = tmp_path / "text.txt"
    path.write_text(" ".join(LINES * 300) + "\n", encoding="utf-8")
    job = build_vocab.BuildVocabFlags([], "", tokenizer=tokenizer)
    whole = build_vocab.count_words([path], job)
    monkeypatch.setattr(encoding, "BLOCK_CHARS", 50)
    assert len(list(encoding.slices(path.read_text(encoding="utf-8"), boundary))) > 100
    assert build_vocab.count_words([path], job) == whole


def test_a_huge_line_takes_little_memory(tmp_path, monkeypatch):
    path, size = tmp_path / "text.txt", 1 << 21
    path.write_text("abc " * (size // 4))
    monkeypatch.setattr(encoding, "BLOCK_CHARS", 1 << 16)
    tracemalloc.start()
    build_vocab.count_words([path], build_vocab.BuildVocabFlags([], ""))
    extract_text.main(extract_text.ExtractTextFlags(
        input_file=[str(path)], output_file=str(tmp_path / "out.txt"), num_workers=1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * size      # a list of its words takes 14 times its size


@pytest.mark.parametrize("tokenizer", ["byte_bpe", "elmo_words"])
def test_byte_order_marks_are_no_words(tmp_path, tokenizer):
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        path.write_text("\ufeffa\n", encoding="utf-8")
    assert dict(build_vocab.count_words(
        paths, build_vocab.BuildVocabFlags([], "", tokenizer=tokenizer))) == {"a": 2}


# Words that are added

TOKENS = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]", "the", "##s"]


@pytest.fixture
def extend(tmp_path):
    """function(**flags): runs the job; returns the new `Vocabulary`."""
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in TOKENS))

    def run(**flags):
        extend_vocab.main(extend_vocab.ExtendVocabFlags(
            **{"init_vocab_file": str(tmp_path / "vocab.txt"),
               "output_file": str(tmp_path / "new" / "vocab.txt"), **flags}))
        return Vocabulary.from_file(tmp_path / "new" / "vocab.txt")
    return run


def test_words_go_to_the_end(extend, capsys):
    vocabulary = extend(words=["Covid", "the", "café", "covid", "##ing"])
    assert vocabulary.tokens == [*TOKENS, "covid", "cafe", "##ing"]
    assert "12 tokens, 3 new (covid, cafe, ##ing); 1 were there." in capsys.readouterr().out
    assert WordpieceTokenizer(vocabulary).tokenize("Covid thes Café") == [
        "covid", "the", "##s", "cafe"]
    assert extend(words=["the"]).tokens == TOKENS
    assert "9 tokens, 0 new; 1 were there." in capsys.readouterr().out


@pytest.mark.parametrize("flags, tokens", [
    ({"words": ["a", "b", "c"], "fill_unused": True},
     ["[PAD]", "a", *TOKENS[2:6], "b", "the", "##s", "c"]),
    ({"words": ["a"], "fill_unused": True}, ["[PAD]", "a", *TOKENS[2:]]),
    ({"words": ["Covid", "Café"], "do_lower_case": False}, [*TOKENS, "Covid", "Café"]),
    ({"input_file": ["words.txt"]}, [*TOKENS, "one", "two", "中"])])
def test_where_words_go(extend, tmp_path, monkeypatch, flags, tokens):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.txt").write_text("one\n\ntwo\r\n中\n")
    assert extend(**flags).tokens == tokens


def test_settings_beside_the_vocabulary_count(extend, tmp_path):
    (tmp_path / "tokenizer_config.json").write_text('{"strip_accents": false}')
    assert extend(words=["Café"]).tokens[-1] == "café"


@pytest.mark.parametrize("words, message", [
    (["covid-19"], r"'covid-19' is not a .*'covid - 19'"), (["two words"], "single word"),
    (["x" * 201], "single word"), (["\u00ad"], "nothing"), ([], "no word to add"),
    (["##"], "single word"), (["a text " * 500], r"sees '[^']{60}'; give a list of words")])
def test_what_the_tokenizer_would_never_see(extend, tmp_path, words, message):
    with pytest.raises(InputError, match=message):
        extend(words=words)
    assert not (tmp_path / "new").exists()


def test_a_file_that_is_not_text(extend, tmp_path):
    (tmp_path / "words.txt").write_bytes(b"one\n\xff\xfe\n")
    with pytest.raises(InputError, match="words.txt, line 2"):
        extend(input_file=[str(tmp_path / "words.txt")])


def test_other_tokenizers_are_refused(extend, tmp_path):
    build_vocab.main(build_vocab.BuildVocabFlags(
        [str(tmp_path / "vocab.txt")], str(tmp_path / "vocab.json"), "byte_bpe", vocab_size=270))
    with pytest.raises(InputError, match="to a WordPiece vocabulary, .*vocab.json is byte_bpe; add "
                       "them with transformers"):
        extend(init_vocab_file=str(tmp_path / "vocab.json"), words=["word"])
    assert not (tmp_path / "new").exists()


def test_an_output_that_is_an_input_or_a_folder_is_refused(extend, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("one\n")
    with pytest.raises(InputError, match="is also the output file"):
        extend(input_file=[str(words)], output_file=str(words))
    with pytest.raises(InputError, match="is a folder; name a file"):
        extend(words=["one"], output_file=str(tmp_path))
    for name in ("vocab.txt", ""):
        with pytest.raises(InputError, match="vocab.txt is the vocabulary of --init_vocab_file"):
            extend(words=["one"], init_vocab_file=str(tmp_path / name),
                   output_file=str(tmp_path / "vocab.txt"))
    assert words.read_text() == "one\n"
