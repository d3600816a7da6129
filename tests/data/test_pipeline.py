"""Batches of records: their order, how they are shared out, and what is refused."""

import dataclasses
import functools
import gzip
import itertools
import os

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import recipes
from bert_tf.data.batches.pipeline import RecordSet
from bert_tf.data.masking.dynamic import DynamicMasks
from bert_tf.data.records import manifest, tfrecord
from bert_tf.errors import InputError
from bert_tf.files import write_json
from bert_tf.recipes.recipe import MaskTokens
from tests.goldens import at_hand
from tests.programs import refused

LENGTH, PREDICTIONS, VOCAB = 8, 2, 1000
GOLDEN = {"sample_s128_d10_seed12345.tfrecord": (128, 20),
          "books3000_s512_wwm_d1_seed12345.tfrecord": (512, 77),
          "sample_cased_s64_d5_seed99.tfrecord": (64, 10)}


def messages(numbers, length=LENGTH, predictions=PREDICTIONS, **changes):
    """One record a number, which is its first id; `changes` are columns of features."""
    column = np.asarray(numbers, int)[:, None]
    features = {
        "input_ids": column + np.zeros(length, int),
        "input_mask": column * 0 + np.ones(length, int),
        "segment_ids": column * 0 + np.zeros(length, int),
        "masked_lm_positions": column * 0 + np.arange(1, predictions + 1),
        "masked_lm_ids": column + np.zeros(predictions, int),
        "masked_lm_weights": (column * 0 + np.ones(predictions)).astype(np.float32),
        "next_sentence_labels": column % 2}
    features.update({name: column * 0 + np.asarray(value) for name, value in changes.items()})
    return tfrecord.serialize_examples(features)


def write(path, numbers, pack=bytes, **options):
    data = b"".join(map(tfrecord.frame, messages(numbers, **options))) if len(numbers) else b""
    path.write_bytes(pack(data))
    return str(path)


def open_records(*paths):
    return RecordSet.open(list(map(str, paths)), "input_file")


def numbers_of(batches, count):
    """The numbers of the records of the first `count` elements."""
    return [batch["input_ids"].numpy()[:, 0].tolist() for batch in batches.take(count)]


def order(records, seed=1, taken=0, count=50):
    """The numbers of `count` records after `taken`."""
    return sum(numbers_of(records.training_batches(seed, taken, 1, 1), count), [])


@pytest.fixture(name="records", scope="module")
def fixture_records(tmp_path_factory):
    """23 records in files of 7, 1, 10 and 5."""
    folder, starts = tmp_path_factory.mktemp("records"), [0, 7, 8, 18, 23]
    return open_records(*(write(folder / f"{start}.tfrecord", range(start, end))
                          for start, end in itertools.pairwise(starts)))


@pytest.fixture(name="whole", scope="module")
def fixture_whole(records):
    """The beginning of the stream."""
    return order(records, count=240)


# Order

def test_every_epoch_holds_every_record_once_in_another_order(records):
    stream = order(records, count=4 * records.size)
    epochs = [tuple(stream[i:i + records.size]) for i in range(0, len(stream), records.size)]
    assert all(sorted(epoch) == list(range(23)) for epoch in epochs)
    assert len({*epochs, tuple(order(records, seed=2, count=records.size))}) == 5


@pytest.mark.parametrize("batch, taken", [(1, 229), (4, 0), (4, 12), (23, 46), (60, 120)])
def test_any_start_gives_the_tail_of_the_stream(records, whole, batch, taken):
    count = (240 - taken) // batch
    found = numbers_of(records.training_batches(1, taken, batch, 1), count)
    assert sum(found, []) == whole[taken:taken + count * batch]


def test_order_depends_on_the_seed_alone(records):
    expected = order(records)
    for seed in (0, 7):
        tf.random.set_seed(seed)
        assert order(RecordSet.open(records.paths, "again")) == expected
    assert tf.random.uniform([]).numpy() != tf.random.uniform([]).numpy()


def test_files_and_records_are_mixed(tmp_path):
    size, files = 50, 8
    records = open_records(*(write(tmp_path / f"{i}", range(i * size, (i + 1) * size))
                             for i in range(files)))
    found = np.array(order(records, count=records.size))
    # Neither a record's number nor its file tells its place.
    assert abs(np.corrcoef(found, np.arange(records.size))[0, 1]) < 0.2
    assert np.mean(found[1:] // size == found[:-1] // size) < 0.25
    assert len(set(found[:40] // size)) == files


def test_shares_of_the_files_are_read_by_who_needs_them(tmp_path):
    """Their order is a function of the seed and the step, in every layout of workers."""
    sizes = [9, 10, 10, 11, 10, 10]
    ends = list(itertools.accumulate(sizes))
    records = open_records(*(write(tmp_path / f"{end}", range(end - size, end))
                             for size, end in zip(sizes, ends))).in_shares(2)
    assert records.shares == 2
    batch, steps = 12, 15       # three epochs of each share

    def read(replicas, worker, workers, taken=0, steps=steps, among=records):
        local = replicas // workers
        parts = numbers_of(among.training_batches(1, taken, batch, replicas, worker, workers),
                           steps * local)
        return np.reshape(parts, (steps, batch // workers))

    whole = read(1, 0, 1)
    for replicas, workers in ((4, 2), (3, 3), (4, 1)):
        found = [read(replicas, worker, workers) for worker in range(workers)]
        assert np.array_equal(np.concatenate(found, 1), whole)
    assert np.array_equal(read(2, 1, 2, 5 * batch, 4), whole[5:9, 6:])
    halves = whole[:, :6].ravel(), whole[:, 6:].ravel()
    assert all(sorted(half[:30]) == sorted(half[30:60]) == sorted(half[60:]) for half in halves)
    assert sorted([*halves[0][:30], *halves[1][:30]]) == list(range(60))
    # A worker does not even open the files of another.
    for path in records.paths:
        if int(os.path.basename(path)) - 1 in halves[1]:
            os.remove(path)
    assert np.array_equal(read(2, 0, 2), whole[:, :6])


def test_masks_do_not_depend_on_who_reads_a_share(tmp_path):
    numbers = []

    def note(batch, seed, number):
        batch["input_mask"] += tf.cast(number, tf.int32)[:, None]
        return batch

    records = dataclasses.replace(open_records(*(write(tmp_path / f"{i}", range(8))
                                                 for i in range(4))), masks=note).in_shares(4)
    for worker in range(2):
        for element in records.training_batches(1, 16, 8, 4, worker, 2).take(4):
            numbers.append((element["input_mask"].numpy()[:, 0] - 1).tolist())
    assert numbers == [[16, 17], [18, 19], [24, 25], [26, 27],
                       [20, 21], [22, 23], [28, 29], [30, 31]]


def test_too_few_or_uneven_files_are_read_together(records, tmp_path):
    # 10 + 1 and 7 + 5 records are even enough; 10, 7 and 6 are not; and there are but four files.
    assert [records.in_shares(shares).shares for shares in (2, 3, 5)] == [2, 1, 1]
    with pytest.raises(InputError, match=r"--train_batch_size \(9\) must be a multiple of 2"):
        open_records(*(write(tmp_path / f"{i}", range(8)) for i in range(2))).in_shares(
            2).training_batches(1, 0, 9, 1)


@pytest.fixture(name="unshared", scope="module")
def fixture_unshared(records):
    return [numbers_of(batches, 3) for batches in (
        records.training_batches(1, 8, 8, 1), records.evaluation_batches(8, 0, 1))]


@pytest.mark.parametrize("replicas, workers", [(2, 2), (4, 2), (4, 1)])
def test_batches_do_not_depend_on_who_shares_them(records, unshared, replicas, workers):
    local = replicas // workers
    for expected, make in zip(unshared, (
            lambda *share: records.training_batches(1, 8, 8, *share),
            lambda *share: records.evaluation_batches(8, 0, *share))):
        parts = [numbers_of(make(replicas, worker, workers), 3 * local)
                 for worker in range(workers)]
        found = [sum((number for part in parts for number in part[i:i + local]), [])
                 for i in range(0, 3 * local, local)]
        assert found == expected


def test_batches_are_of_static_shapes_and_the_models_dtypes(records):
    dataset = records.training_batches(1, 0, 6, 2)
    spec = {name: (s.dtype, s.shape.as_list()) for name, s in dataset.element_spec.items()}
    batch = next(iter(dataset))
    assert {name: (v.dtype, v.shape.as_list()) for name, v in batch.items()} == spec
    assert spec == {
        "input_ids": (tf.int32, [3, LENGTH]), "input_mask": (tf.int32, [3, LENGTH]),
        "segment_ids": (tf.int32, [3, LENGTH]),
        "masked_lm_positions": (tf.int32, [3, PREDICTIONS]),
        "masked_lm_ids": (tf.int32, [3, PREDICTIONS]),
        "masked_lm_weights": (tf.float32, [3, PREDICTIONS]),
        "next_sentence_labels": (tf.int32, [3, 1])}


def test_an_iterator_that_is_given_up_keeps_nobody_waiting(records):
    """A thread that tunes would, now and then for a minute."""
    for dataset in (records.training_batches(3, 0, 4, 1), records.evaluation_batches(4, 0, 1)):
        assert not dataset.options().autotune.enabled


def test_evaluation_takes_each_record_once_and_fills_up_with_weight_0(records):
    batches = list(records.evaluation_batches(8, 0, 1))
    found = {name: np.concatenate([b[name] for b in batches]) for name in batches[0]}
    assert found["input_ids"][:, 0].tolist() == [*range(23), 0]
    assert found["is_real_example"].ravel().tolist() == [1.0] * 23 + [0.0]
    assert found["masked_lm_weights"].sum(1).tolist() == [PREDICTIONS] * 23 + [0.0]
    assert found["is_real_example"].dtype == np.float32
    assert len(list(records.evaluation_batches(8, 2, 1))) == 2


# Files

def test_compressed_records_are_read_alike(tmp_path, records):
    packed = [write(tmp_path / f"{os.path.basename(path)}.gz",
                    range(int(os.path.basename(path).split(".")[0]), end), gzip.compress)
              for path, end in zip(records.paths, (7, 8, 18, 23))]
    assert order(open_records(*packed)) == order(records)


@pytest.mark.parametrize("name", at_hand("golden/{}", GOLDEN))
def test_the_originals_records_load(test_data, name):
    path = str(test_data / "golden" / name)
    records = open_records(path).check("input_file", *GOLDEN[name], 30522)
    wanted = [tfrecord.parse_example(message) for message in tfrecord.read_records(path)]
    assert records.size == len(wanted)
    found = next(iter(records.evaluation_batches(records.size, 0, 1)))
    for feature in wanted[0]:
        assert np.array_equal(found[feature], [example[feature] for example in wanted])


def write_manifest(folder, name, paths, counts, vocab_size=VOCAB, vocab_hash="h"):
    write_json(folder / f"{name}{manifest.SUFFIX}", {
        "options": {}, "vocabulary": {"size": vocab_size, "sha256": vocab_hash},
        "shards": [{"name": os.path.basename(path), "records": count,
                    "bytes": os.path.getsize(path)} for path, count in zip(paths, counts)]})


def test_counts_come_from_a_manifest_where_there_is_one(tmp_path):
    one, two = write(tmp_path / "one", range(3)), write(tmp_path / "two", range(5))
    write_manifest(tmp_path, "one", [one], [3], VOCAB, "abc")
    records = open_records(tmp_path)
    assert (records.paths, records.counts) == ([one, two], [3, 5])
    assert (records.format.vocab_size, records.vocab_hash) == (VOCAB, "abc")
    assert open_records(two).format.vocab_size is None
    with open(one, "ab") as file:
        file.write(b"more")
    with pytest.raises(InputError, match=f"{one} has .* bytes, but its manifest says"):
        open_records(tmp_path)


def test_a_manifest_that_stands_alone_names_its_shards(tmp_path):
    one, two = write(tmp_path / "one", range(3)), write(tmp_path / "two", range(5))
    write_manifest(tmp_path, "both", [two, one], [5, 3])
    path = tmp_path / f"both{manifest.SUFFIX}"
    records = open_records(path)
    assert (records.paths, records.counts) == ([two, one], [5, 3])
    assert open_records(path, one).paths == [one]
    os.remove(one)
    refusal(lambda: open_records(path), "--input_file: no file matches", one)
    (tmp_path / "other.json").write_text("{}")
    refusal(lambda: open_records(tmp_path / "other.json"), "other.json is not a manifest")


def test_an_empty_shard_among_others_is_no_problem(tmp_path):
    paths = [write(tmp_path / "a", []), write(tmp_path / "b", range(4)), write(tmp_path / "c", [])]
    assert open_records(*paths).paths == paths[1:2]


# Refusals

def refusal(work, *parts):
    with refused(*parts):
        work()


def test_refused_when_opened(tmp_path):
    good = write(tmp_path / "good", range(4))
    other = write(tmp_path / "other", range(4), length=16)
    empty, packed = write(tmp_path / "empty", []), write(tmp_path / "gz", range(4), gzip.compress)
    cut, text = tmp_path / "cut", tmp_path / "text"
    cut.write_bytes((tmp_path / "good").read_bytes()[:-5])
    text.write_text("This is some text and no records. " * 3, encoding="utf-8")
    foreign = tmp_path / "foreign"
    foreign.write_bytes(tfrecord.frame(tfrecord.serialize_examples({"x": np.ones((1, 3), int)})[0]))
    broken = tmp_path / "broken.gz"
    broken.write_bytes((tmp_path / "gz").read_bytes()[:-10])
    for paths, parts in {
            ("absent",): ["--input_file", "no file matches 'absent'"],
            (empty,): ["--input_file", "no records in", empty],
            (good, other): [other, "(16, 2)", good, "(8, 2)"],
            (good, packed): ["--input_file", "mixes compressed and plain"],
            (good, cut): [f"{cut}: record 3 is truncated"],
            (broken,): [f"{broken}: record"],
            (text,): [f"{text}: record 0", "not a TFRecord file"],
            (foreign,): [f"{foreign}: record 0 is not a pre-training record"]}.items():
        refusal(lambda paths=paths: open_records(*paths), *parts)


def test_vocabularies_that_differ_are_refused(tmp_path):
    for name, vocab_hash in (("a", "1"), ("b", "2")):
        write_manifest(tmp_path, name, [write(tmp_path / name, range(3))], [3], VOCAB, vocab_hash)
    refusal(lambda: open_records(tmp_path / "a", tmp_path / "b"), "different vocabularies")


def test_refused_when_flags_disagree(tmp_path):
    path = write(tmp_path / "a", range(4))
    records = open_records(path)
    assert records.check("f", LENGTH, PREDICTIONS, 4).format.vocab_size == 4
    refusal(lambda: records.check("f", 9, PREDICTIONS, VOCAB),
            "--max_seq_length is 9", "--f", "8", path)
    refusal(lambda: records.check("f", LENGTH, 3, VOCAB), "--max_predictions_per_seq is 3", path)
    refusal(lambda: records.check("f", LENGTH, PREDICTIONS, 3), f"{path}: record 3 has 3 in")
    write_manifest(tmp_path, "a", [path], [4])
    assert open_records(path).check("f", LENGTH, PREDICTIONS, VOCAB + 127)      # a padded table
    refusal(lambda: open_records(path).check("f", LENGTH, PREDICTIONS, VOCAB + 128),
            f"vocab_size is {VOCAB + 128}", f"with {VOCAB} tokens")
    write_manifest(tmp_path, "a", [path], [4], 250_102)
    assert open_records(path).check("f", LENGTH, PREDICTIONS, 251_000)      # mDeBERTa's table
    refusal(lambda: open_records(path).check("f", LENGTH, PREDICTIONS, 251_102),
            "vocab_size is 251102", "with 250102 tokens")


@pytest.mark.parametrize("changes, part", [
    ({"masked_lm_positions": [1, LENGTH]}, f"has {LENGTH} in masked_lm_positions"),
    ({"masked_lm_ids": [VOCAB, 1]}, f"has {VOCAB} in masked_lm_ids"),
    ({"segment_ids": np.zeros(LENGTH - 1, int)},
     f"has {LENGTH - 1} values in segment_ids, not {LENGTH}"),
    ({"masked_lm_weights": np.zeros(PREDICTIONS, int)},
     "has no list of float32 as masked_lm_weights"),
])
def test_a_bad_record_deep_in_a_file_stops_reading_and_is_found(tmp_path, changes, part):
    path = tmp_path / "a"
    data = messages(range(40))
    data[30] = messages([30], **changes)[0]
    path.write_bytes(b"".join(map(tfrecord.frame, data)))
    records = open_records(path).check("f", LENGTH, PREDICTIONS, VOCAB)
    for batches in (records.training_batches(1, 0, 8, 1).take(5),
                    records.evaluation_batches(8, 0, 1)):
        with pytest.raises(tf.errors.InvalidArgumentError):
            list(batches)
    refusal(lambda: records.locate_damage(), f"{path}: record 30", part)


def test_a_flipped_byte_stops_reading(tmp_path):
    path = tmp_path / "a"
    write(path, range(40))
    data = bytearray(path.read_bytes())
    data[len(data) // 2 + 30] ^= 4
    path.write_bytes(data)
    records = open_records(path)
    with pytest.raises(tf.errors.DataLossError):
        list(records.training_batches(1, 0, 8, 1).take(5))
    refusal(lambda: records.locate_damage(), f"{path}: record 20 is damaged")


# Features

def write_columns(path, **columns):
    """Records of other features than BERT's seven."""
    path.write_bytes(b"".join(map(tfrecord.frame, tfrecord.serialize_examples(columns))))
    return str(path)


def test_a_set_holds_the_features_of_its_records(tmp_path):
    ids = np.arange(1, 6)[:, None] + np.zeros(LENGTH, int)
    path = write_columns(tmp_path / "a", input_ids=ids, input_mask=ids * 0 + 1, unknown=ids)
    records = open_records(path).check("f", LENGTH, 99, VOCAB)
    assert [feature.name for feature in records.format.features] == ["input_ids", "input_mask"]
    assert records.identity() == {"counts": [5], "max_seq_length": LENGTH, "checksum": None}
    assert set(records.training_batches(1, 0, 2, 1).element_spec) == {"input_ids", "input_mask"}
    found = next(iter(records.evaluation_batches(8, 0, 1)))
    assert found["is_real_example"].numpy().tolist() == [1.0] * 5 + [0.0] * 3
    refusal(lambda: open_records(path).check("f", LENGTH, 99, 5), f"{path}: record 4 has 5 in")
    other = write(tmp_path / "other", range(3))
    refusal(lambda: open_records(path, other), path, other, "masked_lm_ids", "segment_ids")


def test_a_manifest_names_the_features(tmp_path):
    path = write(tmp_path / "a", range(3))
    write_json(tmp_path / f"a{manifest.SUFFIX}", {
        "options": {}, "vocabulary": {"size": VOCAB, "sha256": "h"},
        "features": ["input_ids", "input_mask", "next_sentence_labels"],
        "shards": [{"name": "a", "records": 3, "bytes": os.path.getsize(path)}]})
    records = open_records(path)
    assert {feature.name for feature in records.format.features} == {
        "input_ids", "input_mask", "next_sentence_labels"}
    assert records.format.sizes == {"max_seq_length": LENGTH}


def test_absent_shards_and_changed_counts_are_refused(tmp_path):
    """A shard that nobody asks for may be absent."""
    names = [manifest.shard_name("r.tfrecord", index, 2) for index in range(2)]
    paths = [write(tmp_path / name, range(3)) for name in names]
    record = {"options": {"max_seq_length": LENGTH, "max_predictions_per_seq": PREDICTIONS},
              "vocabulary": {"size": VOCAB, "sha256": "h"}, "counts": {"instances": 6},
              "shards": [{"name": name, "records": 3, "bytes": os.path.getsize(path),
                          "crc32c": index}
                         for index, (name, path) in enumerate(zip(names, paths))]}
    path = tmp_path / f"r{manifest.SUFFIX}"
    write_json(path, record)
    assert open_records(tmp_path).counts == [3, 3]
    checksum = open_records(tmp_path).identity()["checksum"]
    assert checksum != open_records(*reversed(paths)).identity()["checksum"]
    write_json(path, {**record, "shards": [{**one, "crc32c": 9} for one in record["shards"]]})
    assert checksum != open_records(tmp_path).identity()["checksum"]
    write_json(path, record)
    os.remove(paths[1])
    for pattern in (tmp_path, tmp_path / "*.tfrecord*", tmp_path / "r.tfrecord-*"):
        refusal(lambda at=pattern: open_records(at), f"{path} names {paths[1]}, which is missing")
    assert open_records(paths[0]).counts == [3]
    for entry, counts in (({"records": 2}, 6), ({}, 5)):
        write_json(path, {**record, "counts": {"instances": counts}, "shards": [
            {**record["shards"][0], **entry}, record["shards"][1]]})
        refusal(lambda: open_records(paths[0]), f"{path} counts {counts} records, but its shards")


def test_labels_are_below_their_number(tmp_path):
    path = write(tmp_path / "a", range(4), next_sentence_labels=[2])
    refusal(lambda: open_records(path).check("f", LENGTH, PREDICTIONS, VOCAB),
            "has 2 in next_sentence_labels, which must be below 2")
    open_records(path).check("f", LENGTH, PREDICTIONS, VOCAB, num_labels=3)


def test_recipes_that_differ_are_refused(tmp_path):
    for name, recipe in (("a", "bert"), ("b", "bert"), ("c", "bert_wwm")):
        write(tmp_path / name, range(3))
        write_json(tmp_path / f"{name}{manifest.SUFFIX}", {
            "options": {}, "vocabulary": {"size": VOCAB, "sha256": "h"},
            "recipe": recipes.find(recipe).describe(), "features": [],
            "shards": [{"name": name, "records": 3, "bytes": os.path.getsize(tmp_path / name)}]})
    open_records(tmp_path / "a", tmp_path / "b")
    refusal(lambda: open_records(tmp_path / "b", tmp_path / "c"), "different recipes")


# Masks that are drawn while training

def test_drawn_masks_have_static_shapes_and_leave_blanks_alone(records):
    masked = dataclasses.replace(records, masks=DynamicMasks(
        MaskTokens(dynamic=True), LENGTH, 3, 0.15, VOCAB, 5, (998, 999)))
    dataset = masked.training_batches(1, 0, 6, 2)
    assert all(spec.shape.is_fully_defined() for spec in dataset.element_spec.values())
    found = {name: np.concatenate([batch[name] for batch in masked.evaluation_batches(8, 0, 1)])
             for name in ("masked_lm_weights", "is_real_example")}
    assert np.array_equal(found["masked_lm_weights"].sum(1) > 0, found["is_real_example"] > 0)


def number_masks(batch, seed, numbers):
    """Puts each record's number in the stream and the seed in the place of masks."""
    return {**batch, "numbers": tf.cast(numbers, tf.int32)[:, None] + 1000 * seed}


@pytest.mark.parametrize("replicas, workers", [(2, 1), (4, 2)])
def test_masks_get_each_records_number_in_the_stream(records, replicas, workers):
    masked = dataclasses.replace(records, masks=number_masks)
    local = replicas // workers
    for batches, first in ((functools.partial(masked.training_batches, 1, 16), 1016),
                           (functools.partial(masked.evaluation_batches), 0)):
        found = [[] for _ in range(3)]
        for worker in range(workers):
            rest = (replicas, worker, workers)
            made = batches(8, *rest) if first else batches(8, 0, *rest)
            for index, batch in enumerate(made.take(3 * local)):
                found[index // local] += batch["numbers"].numpy()[:, 0].tolist()
        assert found == [list(range(first + 8 * step, first + 8 * step + 8)) for step in range(3)]
