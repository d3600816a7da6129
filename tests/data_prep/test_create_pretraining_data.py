"""The records equal the original's: its own files, and a slow account of its algorithm."""

import gzip
import hashlib
import json
import types

import numpy as np
import pytest
import reference_pretraining
import reference_wordpiece
import tensorflow as tf

from bert_tf.data.records import features
from bert_tf.data.text import python_random
from bert_tf.tokenization import open_tokenizer
from data_prep.create_pretraining_data import _warn_of_case
from tests.goldens import at_hand

GOLDEN = {
    "sample_s128_d10_seed12345": {},
    "books3000_s128_d2_seed7": {"dupe_factor": 2, "random_seed": 7},
    "books3000_s512_wwm_d1_seed12345": {
        "max_seq_length": 512, "max_predictions_per_seq": 77, "dupe_factor": 1,
        "do_whole_word_mask": True},
    "sample_cased_s64_d5_seed99": {
        "max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 5, "random_seed": 99,
        "short_seq_prob": 0.3, "do_lower_case": False},
}
# SHA-256 of the files, so that not even the order of features in a record may change.
HASHES = {
    "sample_s128_d10_seed12345":
        "d9a372d0100f07e5e421b14787ece00c5e546172c1afb727ba02ee371aa9a786",
    "books3000_s128_d2_seed7":
        "57d1919731ba8a1eb716775be8f7710371fa7f2c03d710d9de704e3d1882365d",
    "books3000_s512_wwm_d1_seed12345":
        "6df177d9e39dfbad8ffe641f6781f2289a85bc0ebfeca080e093d9db1627939e",
    "sample_cased_s64_d5_seed99":
        "1de0b2b6d55b006f5c178f9b15f5035e29af818d3ae34bfd89e82ae7bf1d8634",
}


def read(*paths):
    """The features of all records, as TensorFlow parses them."""
    kind = "GZIP" if str(paths[0]).endswith(".gz") else ""
    records = []
    for message in tf.data.TFRecordDataset(list(map(str, paths)), kind).as_numpy_iterator():
        feature = tf.train.Example.FromString(message).features.feature
        records.append({name: list(value.float_list.value or value.int64_list.value)
                        for name, value in feature.items()})
    return records


@pytest.fixture
def prepare(prepare):
    """Lower-cases and drops accents by default, as the original, whatever the tokens are."""
    return lambda texts, **flags: prepare(texts, **{
        "do_lower_case": True, "strip_accents": flags.get("do_lower_case", True), **flags})


def expected(job):
    with open(job.vocab_file, encoding="utf-8") as file:
        tokens = file.read().split("\n")[:-1]
    vocab = {token: index for index, token in enumerate(tokens)}
    files = []
    for path in job.input_file:
        with open(path, "rb") as file:
            files.append(file.read())

    def tokenize(line):
        ids, _ = reference_wordpiece.encode(line, vocab, job.do_lower_case)
        return [tokens[index] for index in ids]

    return reference_pretraining.features(files, tokenize, vocab, job)


@pytest.mark.parametrize("name", at_hand("golden/{}.tfrecord", GOLDEN))
def test_golden_records_of_the_original(test_data, prepare, name):
    source = "sample_text" if name.startswith("sample") else "books_sent"
    with open(test_data / f"text/{source}.txt", "rb") as file:
        text = b"".join(file.readlines()[:3000])
    cased = "cased" if "cased" in name else "uncased"
    job = prepare(text, **GOLDEN[name],
                  vocab_file=str(test_data / f"vocabs/bert-base-{cased}/vocab.txt"))
    assert read(*job.output_file) == read(test_data / f"golden/{name}.tfrecord")
    with open(job.output_file[0], "rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == HASHES[name]


FLAGS = {
    "defaults": {},
    "short": {"max_seq_length": 8, "max_predictions_per_seq": 2},
    "shortest": {"max_seq_length": 5, "max_predictions_per_seq": 1, "dupe_factor": 3},
    "long": {"max_seq_length": 512, "max_predictions_per_seq": 77, "dupe_factor": 3},
    "always aimed shorter": {"short_seq_prob": 1.0, "dupe_factor": 3},
    "half masked": {"masked_lm_prob": 0.5, "max_predictions_per_seq": 70, "dupe_factor": 3},
    "all masked": {"masked_lm_prob": 1.0, "max_predictions_per_seq": 200, "dupe_factor": 2},
    "few predictions": {"max_predictions_per_seq": 1, "dupe_factor": 3},
    "cased": {"do_lower_case": False},
    "whole words": {"do_whole_word_mask": True},
    "whole words, short": {"do_whole_word_mask": True, "max_seq_length": 12},
    "whole words, all": {"do_whole_word_mask": True, "masked_lm_prob": 1.0},
    "negative seed": {"random_seed": -5, "dupe_factor": 1},
    "large seed": {"random_seed": 2**70, "dupe_factor": 1},
}


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_flags(prepare, random_text, flags, monkeypatch):
    for seed, block in ((1, 1 << 19), (2, 1 << 14)):
        monkeypatch.setattr(python_random, "_BLOCK", block)
        job = prepare(random_text(seed), **{"random_seed": seed, **flags})
        records = read(*job.output_file)
        assert records == expected(job)
        assert records


TEXTS = {
    "one document": "the house.\na tree\nwalking cafe\n" * 9,
    "one sentence": "the house",
    "one token": "the",
    "documents of one sentence": "the house, a tree.\n\n" * 7,
    "documents of one token": "a\n\nb\n\nc\n\nd\n",
    "blank lines at both ends": "\n\n \na tree\nb\n\n\n\nc d\n\n\n",
    "CRLF": "a tree\r\nb c\r\n\r\nthe house\r\nc\r\n",
    "lone carriage returns": "a tr\ree\rb\n \r \nthe\rhouse\nc\n\r\nd",
    "other line separators": "a\u2028tree\u2029b\x0bc\nd\x1ce\x85f\n\n\u3000\u2028\nb c\nd\n",
    "lines without a token": "a tree\n\x01\x02\nb c\n\ufeff\n\n\u200b\n\nthe house\nd\n",
    "byte order mark": "\ufeffa tree\nb\n\n\ufeff\nc",
    "byte order marks of files": [f"\ufeff{text}" for text in (
        "a tree\nb", "\nc d", "", " \n\nthe house\nd\n")],
    **{f"no last line {end!r}": [f"a tree\nb{end}", "c\n\nd\nthe house\n"]
       for end in ("\r", "\n\r", "\n\r\r")},
    "long word": "a " + "x" * 300 + " b\nc\n\nd " + "the" * 50,
    "special tokens as text": "[MASK] [SEP]\n[CLS]\n\n[UNK] [PAD]\n",
    "NUL": "a\0b c\0\n\0\nd\n\nb",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_texts(prepare, text):
    for whole_words in (False, True):
        job = prepare(text, dupe_factor=3, max_seq_length=16, do_whole_word_mask=whole_words)
        assert read(*job.output_file) == expected(job)


def test_very_long_lines(prepare, random_text, monkeypatch):
    monkeypatch.setattr(python_random, "_BLOCK", 1 << 14)
    text = random_text(3) + "a tree b " * 9000 + "\nthe\n\n" + "c d\n" * 50
    job = prepare(text, dupe_factor=2)
    assert read(*job.output_file) == expected(job)


def test_a_document_goes_on_over_the_end_of_a_file(prepare, capsys):
    job = prepare(["a tree\nb", "", "c d\n", "the house\n\n", "walk\n \n", "d", "e\r\n"])
    assert read(*job.output_file) == expected(job)
    output = capsys.readouterr().out
    assert "text0.txt and 3 more files: the last document continues in" in output
    assert "there is no text in" in output and "text1.txt." in output


def test_a_large_vocabulary(prepare, tmp_path, vocab_file, random_text):
    with open(vocab_file, "a", encoding="utf-8") as file:
        file.writelines(f"filler{index}\n" for index in range(70_000))
    job = prepare(random_text(4))
    records = read(*job.output_file)
    assert records == expected(job)
    assert max(max(record["input_ids"]) for record in records) > 1 << 16


def test_the_released_chinese_vocabulary(prepare, test_data):
    with open(test_data / "text/sample_text.txt", "rb") as file:
        text = b"".join(file.readlines()[:60])
    job = prepare(text, vocab_file=str(test_data / "vocabs/bert-base-chinese/vocab.txt"))
    assert read(*job.output_file) == expected(job)


def test_several_output_files_take_turns(prepare, tmp_path, random_text):
    names = [tmp_path / "out/a.tfrecord", tmp_path / "other/b.tfrecord", tmp_path / "c.gz"]
    job = prepare(random_text(5), output_file=list(map(str, names)))
    for turn, name in enumerate(names):
        assert read(name) == expected(job)[turn::3]
    manifest = json.loads((tmp_path / "out/a.manifest.json").read_text())
    assert [shard["name"] for shard in manifest["shards"]] == [
        "a.tfrecord", "../other/b.tfrecord", "../c.gz"]


def test_gzip_in_and_out(prepare, tmp_path, random_text):
    text = random_text(6).encode()
    prepare(text)
    prepare(gzip.compress(text), output_file=[str(tmp_path / "packed.tfrecord.gz")])
    with gzip.open(tmp_path / "packed.tfrecord.gz") as file:
        assert file.read() == (tmp_path / "out/r.tfrecord").read_bytes()
    assert (tmp_path / "packed.manifest.json").exists()


def test_globs_and_folders(prepare, tmp_path, random_text):
    folder = tmp_path / "texts"
    (folder / "more").mkdir(parents=True)
    for number, name in enumerate(["b.txt", "a.txt", "more/c.txt", ".hidden"]):
        (folder / name).write_text(random_text(number), encoding="utf-8")
    outputs = set()
    for index, patterns in enumerate([
            [str(folder)], [str(folder / "?.txt"), str(folder / "more/*")],
            [str(folder / name) for name in ("a.txt", "b.txt", "more/c.txt")]]):
        job = prepare(None, input_file=patterns, output_file=[str(tmp_path / f"{index}.tfrecord")])
        outputs.add((tmp_path / f"{index}.tfrecord").read_bytes())
    assert len(outputs) == 1
    assert read(*job.output_file) == expected(job)


def test_the_input_function_of_the_original_parses_the_records(prepare, random_text):
    job = prepare(random_text(7), max_seq_length=32, max_predictions_per_seq=5)
    spec = {feature.name: tf.io.FixedLenFeature([feature.length(32, 5)], feature.dtype)
            for feature in features.known(
                "input_ids", "input_mask", "segment_ids", "masked_lm_positions", "masked_lm_ids",
                "masked_lm_weights", "next_sentence_labels")}
    assert {n for n, f in features.KNOWN.items() if n in spec and f.dtype == "float32"} == {
        "masked_lm_weights"}
    batch = next(iter(tf.data.TFRecordDataset(job.output_file).batch(4096)))
    parsed = tf.io.parse_example(batch, spec)
    for name, values in parsed.items():
        np.testing.assert_array_equal(values, [record[name] for record in expected(job)])


def test_the_manifest_counts_what_is_there(prepare, tmp_path, random_text):
    job = prepare(random_text(8) + "\nthe house\nthe house\n", dupe_factor=2)
    manifest = json.loads((tmp_path / "out/r.manifest.json").read_text())
    counts, records = manifest["counts"], read(*job.output_file)
    weights = [sum(record["masked_lm_weights"]) for record in records]
    lengths = [sum(record["input_mask"]) for record in records]
    assert counts["instances"] == len(records) == manifest["shards"][0]["records"]
    assert counts["predictions"] == sum(weights) == (
        counts["masked"] + counts["kept"] + counts["replaced"])
    assert counts["random_next"] == sum(record["next_sentence_labels"][0] for record in records)
    assert counts["positions"] == sum(lengths)
    assert counts["full_length"] == lengths.count(128)
    assert sum(counts["length_histogram"]) == len(records)
    assert counts["documents"] == 9 and counts["repeated_lines_within_pieces"] >= 1
    assert manifest["options"]["random_seed"] == 12345


def test_a_kill_leaves_no_records_without_their_tokenizer(prepare, tmp_path, written):
    prepare("the house\n\na tree\n", dupe_factor=1)
    assert written.index("vocab.txt") < written.index("r.manifest.json") == len(written) - 1
    # What was killed before they had this order.
    (tmp_path / "out" / "r.tokenizer" / "vocab.txt").unlink()
    prepare("the house\n\na tree\n", dupe_factor=1)
    assert "vocab.txt" in written[written.index("r.manifest.json"):]


@pytest.mark.parametrize("text, warning", [
    ("the house\na tree\n" * 30, "there is one document only"),
    ("the house\n\na tree\n\n" * 30, "100% of the documents have one sentence"),
    ("the house\na tree\n\n" * 30, "many lines are repeated"),
    ("日本 ☃\nthe 日本\n\nb ☃\nc\n", "54.5% of the characters are in words that the vocabulary"),
    ("the house\n\na tree\n\nc\n", "most next sentences are random"),
])
def test_the_report_warns_of(prepare, capsys, text, warning):
    prepare(text)
    assert f"warning: {warning}" in capsys.readouterr().out


@pytest.mark.parametrize("flags", [{"segments": "doc_sentences", "masking": "dynamic"},
                                   {"recipe": "ernie2", "task": "token_document"}])
def test_copies_that_are_equal_are_told(prepare, capsys, flags):
    prepare("the house\n\na tree\n", dupe_factor=2, **flags)
    assert ("warning: the records repeat each other, since neither their masks nor their segments "
            "are drawn") in capsys.readouterr().out


@pytest.mark.parametrize("tokens, lowers, warning", [
    (["the", "The", "House"], True, "has tokens with capital letters, which lower-cased"),
    (["the", "house"], False, "has no token with a capital letter"),
    (["the", "The"], False, ""), (["the", "house"], True, ""),
    (["the", "NUM", *map(str, range(200))], True, "")])
def test_the_case_that_does_not_fit_the_vocabulary_is_told(prepare, vocab_file, capsys, tokens,
                                                          lowers, warning):
    vocab_file.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *tokens]))
    prepare("the house\n\nthe\n", do_lower_case=lowers, dupe_factor=1)
    said = f"warning: --vocab_file: {vocab_file} {warning}"
    assert (said in capsys.readouterr().out) == bool(warning)


@pytest.mark.parametrize("lower", [True, False])
def test_a_tokenizer_without_a_choice_of_case_needs_no_warning(tmp_path, capsys, lower):
    path = tmp_path / "vocab.txt"
    path.write_text("<S>\n</S>\n<UNK>\nthe\n")
    words = open_tokenizer(str(path), lower)
    assert words.name != "wordpiece"
    _warn_of_case(types.SimpleNamespace(do_lower_case=lower, vocab_file=str(path)), words)
    assert not capsys.readouterr().out


@pytest.mark.parametrize("text, flags", [
    ("the house a tree\n" * 4 + "\n", {"recipe": "transformer_xl", "dupe_factor": 3,
                                       "bsz_per_host": 2}),
    ("the house\n", {"recipe": "roberta", "dupe_factor": 1}),
    ("the house\n\na tree\n\n", {"recipe": "roberta", "dupe_factor": 1,
                                    "segments": "doc_sentences"})])
def test_the_report_counts_what_is_left_out(prepare, capsys, text, flags):
    """Not copies that are not written, nor separators; long sentences are."""
    prepare(text, max_seq_length=16, **flags)
    said = capsys.readouterr().out
    assert "are left out" not in said and "repeat each other" not in said
    if flags["recipe"] == "roberta":
        prepare(text + "the house " * 20 + "\n", max_seq_length=16, **flags)
        assert "of the tokens are left out, in sentences" in capsys.readouterr().out


@pytest.mark.parametrize("end, documents", [("", " and in documents that no blank line ends"),
                                            ("\n", "")])
def test_documents_without_an_end_are_named_where_tokens_are_left_out(prepare, capsys, end,
                                                                      documents):
    prepare("the house\n\na tree\n" + "the house " * 20 + "\n" + end, max_seq_length=16,
            recipe="spanbert", dupe_factor=1)
    assert (f"% of the tokens are left out, in sentences that are longer than --max_seq_length"
            f"{documents}: raise it") in capsys.readouterr().out
