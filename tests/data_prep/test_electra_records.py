"""ELECTRA's records: against the original's, and against a slow reference of its description."""

import gzip
import os
import random

import numpy as np
import pytest

from bert_tf.tokenization import open_tokenizer
from data_prep import create_pretraining_data
from tests.data_prep.conftest import columns
from tests.goldens import at_hand
from tests.rounding import assert_same


def reference(files, tokenizer, seed, size, blanks=True):
    """(first segment, second segment) of each record, from texts in the order of their names."""
    rng, target, gathered, records = random.Random(seed), size, [], []
    files = list(files)
    rng.shuffle(files)

    def make():
        nonlocal target
        goal = 100000 if rng.random() < 0.1 else (target - 3) // 2
        first, second = [], []
        for sentence in gathered:
            if (not first or len(first) + len(sentence) < goal
                    or not second and len(first) < goal and rng.random() < 0.5):
                first += sentence
            else:
                second += sentence
        first = first[:size - 2]
        records.append((first, second[:max(0, size - len(first) - 3)]))
        gathered.clear()
        target = rng.randint(5, size) if rng.random() < 0.05 else size

    for text in files:
        for line in text.split("\n"):
            if line.strip():
                gathered.append(list(tokenizer.encode(line)))
            if (blanks and not line.strip() and any(gathered)) or (
                    sum(map(len, gathered)) >= target):
                make()
        if any(gathered):
            make()
    return records


def texts(record, vocabulary):
    count = int(record["input_mask"].sum())
    ids, parts = record["input_ids"][:count], record["segment_ids"][:count]
    assert ids[0] == vocabulary.cls_id and ids[-1] == vocabulary.sep_id
    assert not record["input_ids"][count:].any() and not record["segment_ids"][count:].any()
    first, second = ids[parts == 0], ids[parts == 1]
    return first[1:-1].tolist(), second[:-1].tolist()


@pytest.mark.parametrize("blanks", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_the_slow_reference(prepare, random_text, seed, blanks):
    size = random.Random(seed).choice([5, 9, 16, 40, 64])
    files = [random_text(10 * seed + i) for i in range(1 + seed % 4)]
    files[0] = " \n\u3000\n\u00ad\n" + files[0] + "\u2029\n\n\n"
    job = prepare(files, recipe="electra", dupe_factor=1, short_seq_prob=0.05, max_seq_length=size,
                  random_seed=seed, blanks_separate_docs=blanks, do_lower_case=True)
    tokenizer = open_tokenizer(job.vocab_file, True, drop_category_c=True)
    found = columns(job.output_file[0])
    records = [{name: column[row] for name, column in found.items()}
               for row in range(len(found["input_ids"]))]
    assert [texts(record, tokenizer.vocabulary) for record in records] == reference(
        files, tokenizer, seed, size, blanks)


def test_the_end_of_a_file_and_of_a_piece(prepare, tmp_path, random_text):
    """Pieces are texts of their own, whose records are the same for any number of workers."""
    found = []
    for workers in (1, 3):
        job = prepare([random_text(1), random_text(2)], recipe="electra", dupe_factor=1,
                      piece_bytes=400, num_workers=workers)
        shards = sorted((tmp_path / "out").glob("*.tfrecord*"))
        found.append([path.read_bytes() for path in shards])
        for path in (*shards, tmp_path / "out/r.manifest.json"):
            path.unlink()
    assert job and len(found[0]) > 2 and found[0] == found[1]


def test_masks_can_be_static_on_these_segments(prepare, random_text):
    """BERT's masks on ELECTRA's segments, with words masked as a whole in the reordered ones."""
    job = prepare(random_text(3, documents=40), segments="electra", do_whole_word_mask=True,
                  dupe_factor=2, max_seq_length=16)
    found = columns(job.output_file[0])
    vocabulary = open_tokenizer(job.vocab_file, True).vocabulary
    used = found["masked_lm_weights"] > 0
    ids = found["input_ids"].copy()
    rows = np.nonzero(used)[0]
    ids[rows, found["masked_lm_positions"][used]] = found["masked_lm_ids"][used]
    assert used.any(1).mean() > 0.9 and vocabulary.mask_id not in ids
    hidden = np.zeros(ids.shape, bool)
    hidden[rows, found["masked_lm_positions"][used]] = True
    goes_on = np.isin(ids, [i for token, i in vocabulary.ids.items() if token.startswith("##")])
    assert (hidden[:, 1:] == hidden[:, :-1])[goes_on[:, 1:]].all()


GOLDEN = {
    "books3000_s128": ({"max_seq_length": 128, "random_seed": 21}, "books_sent.txt", 3000),
    "enwiki1500_s512_noblanks": (
        {"max_seq_length": 512, "random_seed": 22, "blanks_separate_docs": False},
        "enwiki_sent.txt.gz", 1500),
    "sample_cased_nostrip_s64": (
        {"max_seq_length": 64, "random_seed": 23, "do_lower_case": False, "strip_accents": False},
        "sample_text.txt", None),
    "edge_s64": ({"max_seq_length": 64, "random_seed": 25}, "../golden/electra/edge.txt", None),
}


def golden_job(test_data, **flags):
    lower = flags.get("do_lower_case", True)
    vocabulary = f"vocabs/bert-base-{'uncased' if lower else 'cased'}/vocab.txt"
    create_pretraining_data.main(create_pretraining_data.PretrainingDataFlags(
        vocab_file=str(test_data / vocabulary), recipe="electra", dupe_factor=1,
        short_seq_prob=0.05, num_workers=1, **flags))


def check_golden(path, golden):
    assert_same(columns(path), columns(golden))


@pytest.mark.parametrize("name", at_hand("golden/electra/{}.tfrecord.gz", GOLDEN))
def test_the_original_records(test_data, tmp_path, name):
    flags, text, count = GOLDEN[name]
    opener = gzip.open if text.endswith(".gz") else open
    with opener(test_data / "text" / text, "rt", encoding="utf-8", newline="") as file:
        (tmp_path / "text.txt").write_bytes("".join(list(file)[:count]).encode())
    golden_job(test_data, input_file=[str(tmp_path / "text.txt")],
               output_file=[str(tmp_path / "r.tfrecord")], **flags)
    check_golden(tmp_path / "r.tfrecord", test_data / f"golden/electra/{name}.tfrecord.gz")


def test_the_original_records_of_several_files(test_data, tmp_path):
    """The files are shuffled, and each closes its last document."""
    wanted = [os.fspath(test_data / f"golden/electra/three_files_s128.{i}-of-2.tfrecord.gz")
              for i in range(2)]
    with open(test_data / "text/books_sent.txt", encoding="utf-8") as file:
        lines = list(file)
    third = next(row for row in range(5000, len(lines)) if not lines[row].strip()) + 1
    (tmp_path / "in").mkdir()
    (tmp_path / "in/00.txt").write_text("".join(lines[:200]))
    (tmp_path / "in/01.txt").write_bytes((test_data / "text/sample_text.txt").read_bytes())
    (tmp_path / "in/02.txt").write_text("".join(lines[third:third + 150]))
    outputs = [str(tmp_path / f"{i}.tfrecord") for i in range(2)]
    golden_job(test_data, input_file=[str(tmp_path / "in")], output_file=outputs, random_seed=24)
    for path, golden in zip(outputs, wanted):
        check_golden(path, golden)
