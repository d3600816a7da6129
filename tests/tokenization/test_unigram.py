"""A sentencepiece.bpe.model of XLM-RoBERTa or CamemBERT without a tokenizer.json, against golden
lines of transformers and against SentencePiece itself."""

import gzip
import itertools
import json
import pickle

import numpy as np
import pytest
import sentencepiece

from bert_tf.checkpoints import huggingface_tokenizer
from bert_tf.errors import InputError
from bert_tf.tokenization import UnigramTokenizer, open_tokenizer
from bert_tf.tokenization.tokenizer_json import has_one_segment
from bert_tf.tokenization.unigram import FILE
from tests import sentencepieces
from tests.checkpoints.test_huggingface_tokenizer import FOREIGN
from tests.goldens import Material

# model_type -> what fairseq adds to the file's ids, and the number of tokens beside the file's
SHIFTS = {"xlm-roberta": (1, 2), "camembert": (4, 5)}


@pytest.fixture(scope="module")
def lines():
    text = Material("text")
    books = (text / "books_sent.txt").read_text("utf-8").splitlines()
    sample = (text / "sample_text.txt").read_text("utf-8").splitlines()
    return [line for line in (*itertools.islice(books, 300), *sample, *FOREIGN) if line.strip()]


def train(lines, kind="unigram"):
    return sentencepieces.train(
        lines, 700, model_type=kind, normalization_rule_name="nmt_nfkc", character_coverage=0.98,
        user_defined_symbols=["(sat)"])


@pytest.fixture(scope="module")
def content(lines):
    return train(lines)


@pytest.fixture(params=SHIFTS)
def folder(request, content, tmp_path):
    """A folder as it was released: the type of the model says which tokenizer it is."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / FILE).write_bytes(content)
    (tmp_path / "model" / "config.json").write_text(json.dumps({"model_type": request.param}))
    (tmp_path / "model" / "tokenizer_config.json").write_text('{"model_max_length": 512}')
    return request.param, str(tmp_path / "model")


def test_ids_are_those_of_sentencepiece(folder, content, lines):
    kind, path = folder
    (shift, more), tokenizer = SHIFTS[kind], open_tokenizer(path)
    library = sentencepiece.SentencePieceProcessor(model_proto=content)
    ids, lengths = tokenizer.encode_lines(lines)
    for line, row in zip(lines, np.split(ids, np.cumsum(lengths))):
        expected = [3 if index == 0 else index + shift for index in library.encode(line)]
        assert row.tolist() == expected, line
        assert tokenizer.encode_with_offsets(line)[0] == expected
    assert tokenizer.vocabulary.size == library.get_piece_size() + more
    assert tokenizer.vocabulary.mask_id == tokenizer.vocabulary.size - 1
    assert tokenizer.vocabulary.ids["(sat)"] in tokenizer.encode("the cat(sat)on")


def test_copies_and_written_ones_are_equal(folder, content, lines, tmp_path):
    _, path = folder
    tokenizer = open_tokenizer(path)
    assert isinstance(tokenizer, UnigramTokenizer)
    for name, write in (("saved", tokenizer.save), ("written", lambda folder: (
            huggingface_tokenizer.write(folder, tokenizer, False)))):
        (tmp_path / name).mkdir()
        write(str(tmp_path / name))
        assert (tmp_path / name / FILE).read_bytes() == content
        assert (tmp_path / name / "tokenizer.json").exists() == (name == "written")
    for copy in (pickle.loads(pickle.dumps(tokenizer)),
                 *(open_tokenizer(str(tmp_path / name)) for name in ("saved", "written"))):
        assert copy.vocabulary.agrees(tokenizer.vocabulary)
        assert copy.vocabulary.special == tokenizer.vocabulary.special
        assert copy.vocabulary.layout == tokenizer.vocabulary.layout
        assert copy.encode_lines(lines)[0].tolist() == tokenizer.encode_lines(lines)[0].tolist()


@pytest.mark.parametrize("name", ["xlm_roberta", "camembert"])
def test_golden_lines(name):
    folder = Material(f"golden/other_encoders/{name}_tokenizer")
    tokenizer = open_tokenizer(str(folder))
    with gzip.open(folder / "lines.json.gz", "rt") as file:
        golden = json.load(file)
    vocabulary = tokenizer.vocabulary
    assert vocabulary.size == golden["size"]
    for role, token in vocabulary.special.items():
        assert golden["special"][f"{role}_token"] == [token, vocabulary.ids[token]]
    for row in golden["rows"]:
        assert tokenizer(row["text"])["input_ids"][0].tolist() == row["input_ids"]
        assert list(map(list, tokenizer.encode_with_offsets(row["text"])[1])) == (
            row["offsets"][1:-1])
        pair = tokenizer((row["text"], row["pair_with"]))
        assert pair["input_ids"][0].tolist() == row["pair_ids"]
        assert not pair["segment_ids"].any()
    assert has_one_segment(str(folder / FILE))


def test_refusals(tmp_path, content, lines):
    path = tmp_path / FILE
    path.write_bytes(content)
    with pytest.raises(InputError, match="need the model's config.json beside them"):
        open_tokenizer(str(path))
    (tmp_path / "config.json").write_text('{"model_type": "xlm-roberta"}')
    for wrong in (train(lines, "bpe"), b"nothing"):
        path.write_bytes(wrong)
        with pytest.raises(InputError, match="is not a Unigram model of SentencePiece"):
            open_tokenizer(str(path))
