"""The records of --recipe=albert equal the original's: its own files, and a slow account of it."""

import random

import pytest
import reference_albert
import reference_wordpiece
import sentencepiece

from bert_tf.data.records import tfrecord
from bert_tf.data.text import python_random
from bert_tf.errors import InputError
from data_prep import verify_records
from tests import sentencepieces
from tests.data_prep.conftest import TOKENS, WORDS
from tests.goldens import at_hand

FLAGS = {"recipe": "albert", "ngram": 3, "favor_shorter_ngram": True, "do_permutation": False,
         "random_next_sentence": False, "do_whole_word_mask": True}
# Lines of the input, and flags.
GOLDEN = {
    "sop_books1500_s128": (1500, {"random_seed": 11}),
    "sop_books2500_s512_p77": (2500, {"random_seed": 12, "max_seq_length": 512,
                                      "max_predictions_per_seq": 77}),
    "sop_sample_s128": ("text/sample_text.txt", {"random_seed": 13, "dupe_factor": 6}),
    "nsp_books800_longer_s128": (800, {"random_seed": 14, "random_next_sentence": True,
                                       "favor_shorter_ngram": False}),
    "sop_books400_unigram_subword_cased_s64": (400, {
        "random_seed": 15, "max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 2,
        "ngram": 1, "do_whole_word_mask": False, "do_lower_case": False}),
    "sop_books500_wordpiece_s128": (500, {"random_seed": 16}),
    "permutation_books300_s128": (300, {"random_seed": 17, "do_permutation": True}),
    "edge_s64": ("golden/albert/edge.txt", {
        "random_seed": 18, "max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 6}),
}


def read(path):
    """The features of all records as lists."""
    return [{name: values.tolist() for name, values in tfrecord.parse_example(message).items()}
            for message in tfrecord.read_records(str(path))]


@pytest.mark.parametrize("name", at_hand("golden/albert/{}.tfrecord.gz", GOLDEN))
def test_golden_records_of_the_original(test_data, prepare, name):
    source, flags = GOLDEN[name]
    with open(test_data / (source if isinstance(source, str) else "text/books_sent.txt"),
              "rb") as file:
        text = b"".join(file.readlines()[:None if isinstance(source, str) else source])
    vocabulary = "bert-base-uncased/vocab.txt" if "wordpiece" in name else "albert/spiece.model"
    job = prepare(text, vocab_file=str(test_data / "vocabs" / vocabulary),
                  **{"recipe": "albert", "dupe_factor": 1, **flags})
    assert read(job.output_file[0]) == read(test_data / f"golden/albert/{name}.tfrecord.gz")
    verify_records.main(verify_records.VerifyRecordsFlags(
        input_file=[job.output_file[0].replace("tfrecord", "manifest.json")]))


# A model of our own: numbers before commas, unknown characters and variants of letters.

ODD = ["\u00b4", "x\u0301 \u0300", "1998, 3,", "a1998,b", "\u4e2d\u6587", "\u2603\u2603 ", "____",
       "<a> 'tis...", "\ufb01ne \u00bd \u2122", "\u212bngstr\u00f6m", "\u0661, \u0662",
       "walk-ing!!", "it's", "HOUSE", "[CLS]", "98"]


@pytest.fixture(scope="module", name="model")
def fixture_model():
    words = [*WORDS, *"1998, 98, 7 x7, walking's".split()]
    rng = random.Random(1)
    return sentencepieces.train(
        [" ".join(rng.choices(words, k=9)) for _ in range(200)], 130, **sentencepieces.ALBERT,
        user_defined_symbols=["[", "]"], character_coverage=0.98)


@pytest.fixture(name="model_file")
def fixture_model_file(model, tmp_path):
    (tmp_path / "spiece.model").write_bytes(model)
    return str(tmp_path / "spiece.model")


def random_text(rng):
    """Documents of a few lines; some lines vanish, and some end a document without being empty."""
    def line():
        if rng.random() < 0.1:
            return rng.choice(["", " \t", "\u0300\u0301", "\u00b4", "\x01", "\u2028", "\r"])
        return " ".join(rng.choices([*WORDS, *ODD], k=rng.randint(1, rng.choice([3, 12, 40]))))

    return "\n".join(line() + "\n" * (rng.random() < 0.15) for _ in range(rng.randint(1, 60)))


def random_flags(rng):
    size = rng.choice([5, 8, 16, 40, 128])
    return {"max_seq_length": size, "max_predictions_per_seq": rng.choice([1, 3, size]),
            "masked_lm_prob": rng.choice([0.15, 0.15, 0.5, 1.0]), "dupe_factor": rng.randint(1, 3),
            "short_seq_prob": rng.choice([0.0, 0.1, 1.0]), "ngram": rng.randint(1, 5),
            "random_seed": rng.choice([rng.randint(0, 99), -3, 2**40 + 1]),
            **{name: rng.random() < 0.5 for name in (
                "favor_shorter_ngram", "do_permutation", "random_next_sentence",
                "do_whole_word_mask", "do_lower_case")}}


def expected(job, pieces):
    with open(job.input_file[0], "rb") as file:
        return reference_albert.features([file.read()], pieces, job)


@pytest.mark.parametrize("seed", range(24))
def test_random_flags_and_texts(prepare, model, model_file, seed, monkeypatch):
    monkeypatch.setattr(python_random, "_BLOCK", 1 << 14)
    rng = random.Random(seed)
    # There has to be something to read.
    job = prepare("the house\n" + random_text(rng), vocab_file=model_file,
                  **FLAGS | random_flags(rng))
    pieces = reference_albert.SentencePieces(
        sentencepiece.SentencePieceProcessor(model_proto=model), job.do_lower_case)
    assert read(job.output_file[0]) == expected(job, pieces)


@pytest.mark.parametrize("seed", range(6))
def test_wordpiece(prepare, random_text, seed, monkeypatch):
    monkeypatch.setattr(python_random, "_BLOCK", 1 << 14)
    flags = FLAGS | random_flags(random.Random(seed))
    job = prepare(random_text(seed), strip_accents=flags.get("do_lower_case", True), **{
        "do_lower_case": True, **flags})
    vocab = {token: index for index, token in enumerate(TOKENS)}

    def tokenize(line):
        return [TOKENS[index]
                for index in reference_wordpiece.encode(line, vocab, job.do_lower_case)[0]]

    assert read(job.output_file[0]) == expected(job, reference_albert.WordPieces(tokenize, vocab))


def test_the_report_names_the_kind_of_pair(prepare, random_text, capsys):
    prepare(random_text(3), recipe="albert")
    assert "with A and B swapped or a random B" in capsys.readouterr().out
    prepare(random_text(3), recipe="albert", random_next_sentence=True)
    assert "with a random next sentence" in capsys.readouterr().out


def test_the_report_counts_one_document(prepare, capsys):
    prepare("The lower cat.\nThe other cat.\n", recipe="bert")
    assert "\n1 document, 2 sentences, " in capsys.readouterr().out


def test_the_vocabulary_of_albert_is_refused_for_t5(prepare, model_file):
    """Its last pieces, which are words, would be taken for sentinels."""
    with pytest.raises(InputError, match="SentencePiece model without sentinels"):
        prepare("a", recipe="t5", vocab_file=model_file)


def test_a_vocabulary_without_special_tokens_is_refused(tmp_path, prepare):
    (tmp_path / "spiece.model").write_bytes(
        sentencepieces.train(WORDS * 9, 60, **sentencepieces.T5))
    with pytest.raises(InputError, match="no special token for mask"):
        prepare("a", recipe="albert", vocab_file=str(tmp_path / "spiece.model"))
