"""Examples in memory: batches are the records, whatever their kind, rows and parts."""

import dataclasses
import itertools
import json

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data.batches import bucketing
from bert_tf.data.batches.example_set import ExampleSet
from bert_tf.data.records import tfrecord
from bert_tf.data.records.features import ANSWER_SPAN, ANSWER_SPAN_LABELS, FINETUNING
from bert_tf.data.records.tfrecord import write_shard
from bert_tf.errors import InputError
from tests.rounding import assert_same

LENGTH, CHOICES, LABELS = 24, 3, 4
KINDS = {**FINETUNING, "span": ANSWER_SPAN + ANSWER_SPAN_LABELS}


def write_records(folder, kind, counts, seed=0):
    rng = np.random.default_rng(seed)
    shards = []
    for index, count in enumerate(counts):
        choices = CHOICES if kind == "multiple_choice" else 1
        mask = np.arange(LENGTH) < rng.integers(2, LENGTH + 1, (count, choices, 1))
        features = {}
        for feature in KINDS[kind]:
            shape = {"S": mask.shape, "C*S": mask.shape, "L": (count, LABELS)}.get(
                feature.axis, (count, 1))
            values = (rng.normal(size=shape).astype(np.float32) if feature.dtype == "float32"
                      else rng.integers(1, 1 << 31, shape))
            features[feature.name] = (values * mask if shape == mask.shape else values).reshape(
                count, -1)
        features["input_mask"] = mask.reshape(count, -1)
        shards.append(write_shard(str(folder / f"a{index}.tfrecord"), str(folder), [features]))
    manifest = {"options": {"max_seq_length": LENGTH}, "vocabulary": {}, "shards": shards,
                "fingerprint": [kind, seed]}
    if kind == "span":
        manifest["options"] |= {"doc_stride": 4, "is_training": True}
    else:
        manifest["task"] = {
            "kind": "classification" if kind == "multi_label" else kind, "num_choices": choices,
            "labels": ["x"] * LABELS, "multi_label": kind == "multi_label",
            "features": [dataclasses.asdict(feature) for feature in KINDS[kind]]}
    path = folder / "a.manifest.json"
    path.write_text(json.dumps(manifest), encoding="utf-8")
    return str(path)


def parsed(path, kind):
    """The records as another reader finds them: dict of [N, length]."""
    sizes = {"max_seq_length": LENGTH, "num_choices": CHOICES, "num_labels": LABELS}
    spec = {f.name: tf.io.FixedLenFeature([f.length(**sizes)], f.dtype) for f in KINDS[kind]}
    with open(path, encoding="utf-8") as file:
        shards = json.load(file)["shards"]
    folder = path.removesuffix("a.manifest.json")
    records = [tf.io.parse_single_example(message, spec) for shard in shards
               for message in tfrecord.read_records(folder + shard["name"])]
    return {name: np.stack([record[name] for record in records]) for name in spec}


@pytest.fixture(name="examples", scope="module")
def fixture_examples(tmp_path_factory):
    return ExampleSet(write_records(tmp_path_factory.mktemp("records"), "classification", [53]))


def tokens(batch):
    return np.asarray(batch["input_mask"]).reshape(len(batch["input_mask"]), -1)


@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_the_records(tmp_path, kind):
    path = write_records(tmp_path, kind, [19, 1, 7])
    examples, expected = ExampleSet(path), parsed(path, kind)
    choices = (CHOICES,) if kind == "multiple_choice" else ()
    mask = expected["input_mask"].reshape(27, -1, LENGTH)
    assert examples.size == 27 and examples.max_seq_length == LENGTH
    assert np.array_equal(examples.lengths, mask.sum(-1).max(-1))
    rng = np.random.default_rng(5)
    for _ in range(20):
        rows = rng.integers(0, 27, rng.integers(1, 9))
        length = int(rng.integers(examples.lengths[rows].max(), LENGTH + 1))
        batch = examples.batch(rows, length)
        assert set(batch) == set(expected) | {"is_real_example"}
        assert np.array_equal(batch["is_real_example"], np.ones([len(rows), 1]))
        for name, values in batch.items():
            assert values.dtype == (np.float32 if kind == "regression" and name == "label_ids"
                                    else np.int32)
            if name == "is_real_example":
                continue
            wanted = expected[name][rows]
            if wanted.shape[1] >= LENGTH:
                wanted = wanted.reshape(len(rows), *choices, LENGTH)[..., :length]
            assert np.array_equal(values, wanted)
        spec = examples.spec(len(rows), length)
        assert {n: (s.shape, s.dtype) for n, s in spec.items()} == {
            n: (v.shape, v.dtype) for n, v in batch.items()}
    assert np.array_equal(examples["input_ids"].reshape(27, -1), expected["input_ids"])


@pytest.mark.parametrize("kind", ["classification", "tagging"])
def test_fillers_weigh_nothing(tmp_path, kind):
    examples = ExampleSet(write_records(tmp_path, kind, [6]))
    rows = np.array([4, ~0, 2, ~5])
    batch, same = (examples.batch(r, LENGTH) for r in (rows, np.array([4, 0, 2, 5])))
    assert batch["is_real_example"].ravel().tolist() == [1, 0, 1, 0]
    for name in set(batch) - {"is_real_example", "label_weights"}:
        assert np.array_equal(batch[name], same[name])
    if kind == "tagging":
        assert same["label_weights"].any(1).all()
        assert np.array_equal(batch["label_weights"].any(1), [True, False, True, False])
        # What is kept is not changed.
        again = examples.batch(np.array([0, 5]), LENGTH)["label_weights"]
        assert again.any(1).all()


def taken_batches(examples, taken, count, **options):
    found = examples.training_batches(3, taken, **{"global_batch": 8, "replicas": 1, **options})
    return [{name: values.numpy() for name, values in batch.items()}
            for batch in itertools.islice(found, count)]


def test_training_goes_on_anywhere(examples):
    whole = taken_batches(examples, 0, 20)
    rows = np.concatenate([bucketing.epoch_batches(examples.lengths, 8, 3, epoch)
                           for epoch in range(4)])
    for batch, wanted in zip(whole, rows):
        length = bucketing.padded_length(examples.lengths[wanted], LENGTH)
        assert_same(batch, examples.batch(wanted, length))
    for step in (1, 5, 6, 7, 13, 17):       # 6 steps are an epoch
        assert_same(taken_batches(examples, 8 * step, 3), whole[step:step + 3])
    assert list(itertools.islice(examples.batch_lengths(3, 16, 8), 18)) == [
        tokens(batch).shape[1] for batch in whole[2:]]


@pytest.mark.parametrize("replicas, workers", [(4, 1), (2, 2), (8, 4)])
def test_parts_make_up_the_batch(examples, replicas, workers):
    steps, local = 7, replicas // workers
    parts = [taken_batches(examples, 16, steps * local, replicas=replicas, worker=worker,
                           workers=workers) for worker in range(workers)]
    for step, whole in enumerate(taken_batches(examples, 16, steps)):
        mine = [part for found in parts for part in found[step * local:(step + 1) * local]]
        assert {len(part["input_ids"]) for part in mine} == {8 // replicas}
        assert_same(whole, {
            name: np.concatenate([part[name] for part in mine]) for name in whole})


def test_one_stream_for_each_length_is_the_same_stream(examples):
    whole = taken_batches(examples, 24, 15)
    lengths = [tokens(batch).shape[1] for batch in whole]
    assert len(set(lengths)) > 1
    for length in set(lengths):
        wanted = [batch for batch, own in zip(whole, lengths) if own == length]
        assert_same(taken_batches(examples, 24, len(wanted), length=length), wanted)


def test_all_can_be_padded(tmp_path):
    path = write_records(tmp_path, "classification", [53])
    padded, bucketed, exact = (taken_batches(ExampleSet(path, padding=padding), 0, 9)
                               for padding in ("max_length", "buckets", "longest"))
    for one, other, third in zip(padded, bucketed, exact):
        assert one["input_ids"].shape == (8, LENGTH)
        assert third["input_ids"].shape == (8, third["input_mask"].sum(1).max())
        for cut in (other, third):
            length = cut["input_ids"].shape[1]
            assert not one["input_mask"][:, length:].any()
            assert_same({name: values[:, :length] for name, values in one.items()}, cut)


def test_an_iterator_that_is_given_up_keeps_nobody_waiting(examples):
    assert not examples.training_batches(3, 0, 4, 1).options().autotune.enabled


def test_fewer_examples_than_a_batch(tmp_path):
    examples = ExampleSet(write_records(tmp_path, "classification", [3]))
    for batch in taken_batches(examples, 0, 4):
        labels, counts = np.unique(batch["label_ids"], return_counts=True)
        assert len(labels) == 3 and sorted(counts) == [2, 3, 3]
        assert batch["is_real_example"].all()


def test_identity_is_that_of_the_contents(tmp_path):
    found = []
    for name, count, seed in (("a", 3, 0), ("b", 3, 0), ("c", 4, 0), ("d", 3, 1)):
        (tmp_path / name).mkdir()
        found.append(ExampleSet(
            write_records(tmp_path / name, "classification", [count], seed)).identity())
    assert found[0] == found[1] and found[0] not in found[2:]
    assert json.loads(json.dumps(found[0])) == found[0]


def test_damaged_records_are_named(tmp_path):
    path = write_records(tmp_path, "classification", [5, 5])
    shard = tmp_path / "a1.tfrecord"
    good = shard.read_bytes()
    for position in range(0, len(good), 149):
        shard.write_bytes(good[:position] + bytes([good[position] ^ 8]) + good[position + 1:])
        with pytest.raises(InputError, match=rf"{shard}: record [0-4] .*the records again\.$"):
            ExampleSet(path)
    for changed in (good[:-1], good + b"\0", b""):
        shard.write_bytes(changed)
        with pytest.raises(InputError, match=f"{shard} does not have the [0-9,]+ bytes"):
            ExampleSet(path)
    shard.unlink()
    with pytest.raises(InputError, match=f"{shard} does not have the [0-9,]+ bytes"):
        ExampleSet(path)
    with pytest.raises(InputError, match="absent.json is not a manifest"):
        ExampleSet(str(tmp_path / "absent.json"))


def test_records_of_another_kind_are_named(tmp_path):
    path = write_records(tmp_path, "classification", [2])
    with open(path, encoding="utf-8") as file:
        manifest = json.load(file)
    manifest["options"]["max_seq_length"] = LENGTH + 1
    with open(path, "w", encoding="utf-8") as file:
        json.dump(manifest, file)
    with pytest.raises(InputError, match="record 0 has 24 values in input_ids, not 25; remove"):
        ExampleSet(path)
