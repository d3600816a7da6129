"""Records of tagged text and of phrases by the command, and of data in ERNIE's own format."""

import gzip
import json

import numpy as np
import pytest

from bert_tf import recipes
from bert_tf.data.records import tfrecord
from bert_tf.data.text import corpus, units
from bert_tf.errors import InputError
from bert_tf.tokenization import open_tokenizer
from data_prep import create_pretraining_data, import_ernie_data, verify_records
from data_prep.create_pretraining_data import PretrainingDataFlags
from data_prep.import_ernie_data import ImportErnieDataFlags
from tests.data_prep.conftest import TOKENS, WORDS


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("ernie"), np.random.default_rng(1)
    (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
    documents = ["-DOCSTART- O O\n\n" + "".join("".join(
        f"{word} {rng.choice(['O', 'I-A', 'B-A'])} {rng.choice(['O', 'O', 'B-N', 'I-N'])}\n"
        for word in rng.choice(WORDS, 7)) + "\n" for _ in range(6)) for _ in range(12)]
    (folder / "tagged.txt").write_text("".join(documents), encoding="utf-8")
    (folder / "phrases.txt").write_text(f"{WORDS[0]} {WORDS[1]}\n", encoding="utf-8")
    return folder


def make(folder, name, **changes):
    """The features of all records, in their order, as a dict of arrays."""
    path = folder / name / "r.tfrecord"
    create_pretraining_data.main(recipes.fill(PretrainingDataFlags, **{
        "recipe": "ernie", "input_file": [str(folder / "tagged.txt")],
        "output_file": [str(path)], "vocab_file": str(folder / "vocab.txt"),
        "input_format": "columns", "max_seq_length": 32, "max_predictions_per_seq": 16,
        "dupe_factor": 2, "num_workers": 1, **changes}))
    verify_records.main(verify_records.VerifyRecordsFlags(
        input_file=[str(folder / name / "r.manifest.json")]))
    return {path.name: path.read_bytes() for path in (folder / name).glob("*.tfrecord*")}


def parsed(files):
    rows = [tfrecord.parse_example(message) for name, content in sorted(files.items())
            for message in read(content)]
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def read(content):
    """The messages of a TFRecord file."""
    at = 0
    while at < len(content):
        size = int.from_bytes(content[at:at + 8], "little")
        yield content[at + 12:at + 12 + size]
        at += size + 16


@pytest.mark.parametrize("column", (1, -1))
def test_units_are_the_runs_of_the_column(folder, column):
    found = parsed(make(folder, f"dynamic{column}", masking_units="tags", tag_column=column,
                        do_lower_case=True))
    tokenizer = open_tokenizer(str(folder / "vocab.txt"), do_lower_case=True)
    lines = (folder / "tagged.txt").read_text().split("\n")
    text = units.TaggedText(lines, tokenizer, column, [])
    documents = corpus.tokenize_documents(text.lines, tokenizer, marker=text.mark)
    tokens, begins = documents.tokens.tolist(), (documents.units == 0).tolist()
    assert not np.array_equal(documents.units, documents.continues)
    pairs = set()
    for ids, boundary, mask, segments in zip(*(found[name] for name in (
            "input_ids", "token_boundary", "input_mask", "segment_ids"))):
        for side in (0, 1):
            place = np.flatnonzero((mask == 1) & (segments == side))[side == 0:-1]
            run = ids[place].tolist()
            starts = [i for i in range(len(tokens)) if tokens[i:i + len(run)] == run]
            assert starts
            assert any(begins[i:i + len(run)] == (boundary[place] == 1).tolist() for i in starts)
            pairs.add(tuple(run))
    assert len(pairs) > 10


@pytest.mark.parametrize("recipe, changes", [
    ("ernie", {"masking": "static", "masking_units": "tags"}),
    ("bert", {"masking_units": "tags"}),
    ("albert", {"masking_units": "tags"}),
    ("ernie", {"masking": "static", "masking_units": "phrases", "phrase_file": "phrases.txt"}),
    ("ernie2", {"task": "knowledge_masking", "masking_units": "tags"})])
def test_every_recipe_that_masks_units_takes_them(folder, recipe, changes):
    changes = {name: str(folder / value) if name == "phrase_file" else value
               for name, value in changes.items()}
    name = f"{recipe}{len(changes)}{changes['masking_units']}"
    made = make(folder, name, recipe=recipe, piece_bytes=600, **changes)
    if "phrase_file" in changes:        # the same on two workers, who get the list
        assert make(folder, f"{name}2", recipe=recipe, piece_bytes=600, num_workers=2,
                    **changes) == made
    assert len(made) > 2
    found = parsed(made)
    assert (found["masked_lm_weights"] > 0).sum() > 50


def test_what_units_cannot_be_had_from_is_refused(folder):
    for changes, problem in (
            ({"masking_units": "tags", "input_format": "lines"}, "needs words with tags"),
            ({"masking_units": "phrases"}, "--phrase_file belong together"),
            ({"tag_column": 1}, "--tag_column is for --masking_units=tags"),
            ({"masking_units": "tags", "tag_column": 5}, "tagged.txt, line 3: there is no tag"),
            ({"recipe": "ernie2"}, "--task=: with recipe ernie2, each set of records is"),
            ({"segments": "sentence_distance"}, "is a task of recipe ernie2")):
        with pytest.raises(InputError, match=problem):
            make(folder, "refused", **changes)


# ERNIE's own data

@pytest.fixture(name="data", scope="module")
def fixture_data(folder):
    """Two files of 30 samples with a list of them, and a vocabulary with ids."""
    rng = np.random.default_rng(2)
    for name in ("a.gz", "b.gz"):
        lines = []
        for _ in range(30):
            n, m = rng.integers(1, 9, 2)
            ids = [2, *rng.integers(5, len(TOKENS), n), 3, *rng.integers(5, len(TOKENS), m), 3]
            marks = [-1, 0, *rng.integers(0, 2, n - 1), -1, 0, *rng.integers(0, 2, m - 1), -1]
            segments = [0] * (n + 2) + [1] * (m + 1)
            lines.append(";".join(" ".join(map(str, values)) for values in (
                ids, segments, range(len(ids)), marks, [1])))
        (folder / name).write_bytes(gzip.compress("\n".join(lines).encode()))
    (folder / "list").write_text("a.gz\t1.1\nb.gz\t0.0\n")
    (folder / "ernie_vocab.txt").write_text(
        "".join(f"{token}\t{index}\n" for index, token in enumerate(TOKENS)), encoding="utf-8")
    return folder


def import_data(folder, name, **changes):
    path = folder / name / "e.tfrecord"
    job = ImportErnieDataFlags(**{
        "train_filelist": str(folder / "list"), "output_file": str(path),
        "vocab_file": str(folder / "ernie_vocab.txt"), "max_seq_length": 14,
        "max_predictions_per_seq": 3, "batch_size": 100, **changes})
    import_ernie_data.main(job)
    manifest = folder / name / "e.manifest.json"
    verify_records.main(verify_records.VerifyRecordsFlags(input_file=[str(manifest)]))
    return (json.loads(manifest.read_text()),
            {path.name: path.read_bytes() for path in (folder / name).glob("*.tfrecord*")})


def test_ernies_data_become_records(data, capsys):
    record, files = import_data(data, "one", generate_neg_sample=True, dupe_factor=2)
    found, counts = parsed(files), record["counts"]
    assert "had no room and were left out" in capsys.readouterr().out
    assert record["recipe"]["name"] == "ernie" and len(files) == 2
    assert len(found["input_ids"]) == counts["instances"] and counts["too_long"] > 0
    assert found["next_sentence_labels"].sum() == counts["follows"] == 2 * (
        60 - counts["too_long"] // 2)
    assert (found["masked_lm_weights"] > 0).sum() == (
        counts["predictions"]) > 0 < counts["cut_predictions"]
    # The text of a positive pair is that of a sample.
    used, rows = found["masked_lm_weights"] > 0, np.arange(len(found["input_ids"]))[:, None]
    ids = found["input_ids"].copy()
    places = np.where(used, found["masked_lm_positions"], 0)
    ids[np.broadcast_to(rows, places.shape)[used], places[used]] = found["masked_lm_ids"][used]
    samples = {line.split(b";")[0].decode() for name in ("a.gz", "b.gz")
               for line in gzip.decompress((data / name).read_bytes()).split(b"\n")}
    for row, mask, (label,) in zip(ids, found["input_mask"], found["next_sentence_labels"]):
        if label:
            assert " ".join(map(str, row[:mask.sum()])) in samples
    again, same = import_data(data, "two", generate_neg_sample=True, dupe_factor=2, num_workers=2)
    assert again["counts"] == counts and {n: same[n] for n in files} == files
    import_data(data, "two", generate_neg_sample=True, dupe_factor=2)
    assert "are there already" in capsys.readouterr().out


def test_a_sample_longer_than_a_batch_is_a_batch_of_its_own(data):
    whole, _ = import_data(data, "whole", batch_size=1000)
    alone, _ = import_data(data, "alone", batch_size=1)
    for name in ("instances", "positions", "follows", "too_long"):
        assert alone["counts"][name] == whole["counts"][name]


def test_data_that_are_not_ernies_are_refused(data):
    (data / "broken").write_text("a.gz 1.1\n")
    (data / "absent").write_text("c.gz\t1.1\n")
    (data / "empty").write_text("empty.gz\t1.1\n")
    (data / "empty.gz").write_bytes(gzip.compress(b"2 5 3;0 0 0;0 1 2;-1 0 -1;1\n;;;;1\n"))
    (data / "small.txt").write_text("\n".join(TOKENS[:20]) + "\n", encoding="utf-8")
    for changes, problem in (
            ({"train_filelist": "broken"}, "broken, line 1 is not the name of a file, a tab"),
            ({"train_filelist": "absent"}, "c.gz, which is missing"),
            ({"train_filelist": "empty", "generate_neg_sample": True},
             "empty.gz, line 2: has no tokens"),
            ({"vocab_file": "small.txt"}, "give the vocabulary that made the data"),
            ({"max_seq_length": 4}, "--max_seq_length is 4; it must be at least 5")):
        with pytest.raises(InputError, match=problem):
            import_data(data, "bad", **{name: str(data / value) if isinstance(value, str) else value
                                        for name, value in changes.items()})
