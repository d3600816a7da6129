"""TFRecord files and Examples, held against TensorFlow's own."""

import gzip
import random

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data.records import tfrecord
from bert_tf.errors import InputError

MESSAGES = [b"", b"one", bytes(range(40))]
EDGES = [0, 1, 127, 128, 16383, 16384, 2**21 - 1, 2**21, 2**28 - 1, 2**28, 2**35 - 1]


def write(path, messages, pack=bytes):
    path.write_bytes(pack(b"".join(map(tfrecord.frame, messages))))
    return path


def int_example(name, values):
    return tf.train.Example(features=tf.train.Features(feature={
        name: tf.train.Feature(int64_list=tf.train.Int64List(value=values))}))


@pytest.mark.parametrize("kind, pack", [("", bytes), ("GZIP", gzip.compress)])
def test_framing_both_ways(tmp_path, kind, pack):
    ours, theirs = write(tmp_path / "ours", MESSAGES, pack), tmp_path / "theirs"
    with tf.io.TFRecordWriter(str(theirs), kind) as writer:
        for message in MESSAGES:
            writer.write(message)
    assert list(tf.data.TFRecordDataset(str(ours), kind).as_numpy_iterator()) == MESSAGES
    assert list(tfrecord.read_records(theirs)) == MESSAGES
    assert tfrecord.count_records(ours) == tfrecord.count_records(theirs) == len(MESSAGES)


def test_an_empty_file_holds_no_record(tmp_path):
    path = write(tmp_path / "empty", [])
    assert not list(tfrecord.read_records(path)) and tfrecord.count_records(path) == 0


def test_a_first_record_whose_length_looks_like_gzip(tmp_path):
    path = write(tmp_path / "long", [b"x" * 0x8b1f])
    assert [len(message) for message in tfrecord.read_records(path)] == [0x8b1f]


def test_every_flipped_bit_is_reported(tmp_path):
    path = write(tmp_path / "records", MESSAGES)
    data = path.read_bytes()
    record = [index for index, message in enumerate(MESSAGES) for _ in tfrecord.frame(message)]
    for position in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[position] ^= 1 << bit
            path.write_bytes(changed)
            with pytest.raises(InputError, match=f"{path}: record {record[position]} "):
                list(tfrecord.read_records(path))


def test_every_truncation_is_reported(tmp_path):
    path = write(tmp_path / "records", MESSAGES)
    data, ends = path.read_bytes(), np.cumsum([len(m) + 16 for m in MESSAGES]).tolist()
    for size in set(range(1, len(data))) - set(ends):
        path.write_bytes(data[:size])
        record = sum(end <= size for end in ends)
        for read in (tfrecord.count_records, lambda p: list(tfrecord.read_records(p))):
            with pytest.raises(InputError, match=f"{path}: record {record} "):
                read(path)


def test_damaged_gzip_is_reported_or_harmless(tmp_path):
    path = write(tmp_path / "records.gz", MESSAGES, gzip.compress)
    data = path.read_bytes()
    for position in range(1, len(data)):
        path.write_bytes(data[:position])
        with pytest.raises(InputError, match=f"{path}: record "):
            list(tfrecord.read_records(path))
        path.write_bytes(data[:position] + bytes([data[position] ^ 16]) + data[position + 1:])
        try:
            # Some bits, as those of the time in the header, have no meaning for the content.
            assert list(tfrecord.read_records(path)) == MESSAGES
        except InputError as error:
            assert f"{path}: record " in str(error)


@pytest.mark.parametrize("width", [1, 3, 300])
def test_serialized_examples_are_read_by_tensorflow(width):
    rng = np.random.default_rng(width)
    rows = 20
    expected = {f"i{edge}": rng.integers(0, edge + 1, (rows, width)) for edge in EDGES}
    for edge in EDGES:
        expected[f"i{edge}"][0] = edge
    expected["flag"] = rng.random((rows, width)) < 0.5
    expected["float"] = rng.standard_normal((rows, width)).astype(np.float32)
    messages = tfrecord.serialize_examples(expected)
    parsed = tf.io.parse_example(messages, {
        name: tf.io.FixedLenFeature([width], tf.float32 if name == "float" else tf.int64)
        for name in expected})
    for name, values in expected.items():
        np.testing.assert_array_equal(parsed[name], values)
        np.testing.assert_array_equal([tfrecord.parse_example(m)[name] for m in messages], values)


@pytest.mark.parametrize("name", ["records", "records.gz"])
def test_parts_have_the_bytes_of_the_block_that_they_are_of(tmp_path, name):
    """The order of the features depends on the largest number of a block."""
    block = {"small": np.ones((4, 2), np.int32), "all": np.full((4, 3), 70000),
             "ids": np.array([[5, 0], [0, 9], [3, 300], [1, 2]])}
    parts = [{key: rows[at:at + 2] for key, rows in block.items()} for at in (0, 2)]

    def written(blocks, together):
        return tfrecord.write_shard(str(tmp_path / name), str(tmp_path), blocks, together)

    assert written(parts, 1) != written(parts, 2) == written([block], 1)


def test_examples_of_tensorflow_are_read():
    example = tf.train.Example()
    example.features.feature["ints"].int64_list.value.extend([0, -1, 2**63 - 1, -2**63, *EDGES])
    example.features.feature["floats"].float_list.value.extend([0.5, -1.25, 3e38])
    example.features.feature["bytes"].bytes_list.value.extend([b"", b"\xff text"])
    example.features.feature["no ints"].int64_list.SetInParent()
    example.features.feature["nothing"].SetInParent()
    parsed = tfrecord.parse_example(example.SerializeToString())
    assert parsed["ints"].tolist() == list(example.features.feature["ints"].int64_list.value)
    assert parsed["floats"].tolist() == list(example.features.feature["floats"].float_list.value)
    assert parsed["bytes"] == [b"", b"\xff text"]
    assert parsed["no ints"].tolist() == [] and parsed["no ints"].dtype == np.int64
    assert "nothing" not in parsed
    assert tfrecord.parse_example(b"") == {}


def test_values_that_are_not_packed():
    def nested(number, content):
        return bytes([number << 3 | 2, len(content)]) + content

    ints = b"\x08\x05" + b"\x08" + b"\xff" * 9 + b"\x01" + nested(1, b"\x96\x01")
    floats = b"".join(b"\x0d" + np.float32(value).tobytes() for value in (1.5, -2))
    for kind, values, expected in ((3, ints, [5, -1, 150]), (2, floats, [1.5, -2])):
        entry = nested(1, b"n") + nested(2, nested(kind, values))
        message = nested(1, nested(1, entry))
        theirs = tf.train.Example.FromString(message).features.feature["n"]
        assert list((theirs.int64_list if kind == 3 else theirs.float_list).value) == expected
        assert tfrecord.parse_example(message)["n"].tolist() == expected


def test_what_is_no_example_is_a_value_error():
    rng = random.Random(1)
    whole = int_example("name", [1, 300, 2**40]).SerializeToString()
    for _ in range(3000):
        message = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            message[rng.randrange(len(message))] = rng.randrange(256)
        try:
            tfrecord.parse_example(bytes(message[:rng.randint(1, len(message))]))
        except ValueError as error:
            assert "not a tf.train.Example" in str(error)
