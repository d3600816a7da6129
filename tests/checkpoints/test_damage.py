"""Damaged and hostile files: one sentence each, nothing loaded, nothing allocated."""

import json
import pathlib
import random
import struct
import zipfile

import h5py
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import save_file

from bert_tf import checkpoints, protobuf
from bert_tf.bert.objective import MaskedLM, SentencePrediction
from bert_tf.checkpoints import convert, hdf5, tensor_bundle
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.networks.encoder import BertEncoder
from bert_tf.training.learners.learner import Learner
from tests.rounding import assert_same

GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "google_gelu"
# The files of each format that its reader reads.
FILES = {
    "google": ("bert_model.ckpt.index", "bert_model.ckpt.data-00000-of-00001", "bert_config.json"),
    "model_garden": ("bert_model.ckpt.index", "bert_model.ckpt.data-00000-of-00001"),
    "huggingface": ("model.safetensors", "config.json"),
    "keras_hub": ("model.weights.h5", "config.json"),
    "keras": ("model.keras",),
}
WITHOUT_CHECKSUMS = ("model.safetensors", "model.weights.h5")      # of tensors
MUTANTS = 60    # of each file


def mutate(content, rng):
    """`content` with a few bytes changed, cut, doubled, or taken from elsewhere."""
    content = bytearray(content)
    # Most of what steers a reader stands near the ends.
    near = rng.choice((64, 1024, len(content)))
    at = rng.randrange(min(near, len(content)))
    at = at if rng.random() < 0.6 else len(content) - 1 - at
    kind = rng.randrange(6)
    if kind == 0:
        content[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        content[at:at + 8] = rng.choice((b"\xff" * 8, b"\0" * 8, struct.pack("<Q", 1 << 40)))
    elif kind == 2:
        del content[at:]
    elif kind == 3:
        del content[at:at + rng.randrange(1, 40)]
    elif kind == 4:
        content[at:at] = content[at // 2:at // 2 + rng.randrange(1, 40)]
    else:
        content[at:at + 4] = rng.randbytes(4)
    return bytes(content)


def test_a_tensor_in_slices_is_named(tmp_path):
    tf.raw_ops.SaveV2(prefix=str(tmp_path / "bert_model.ckpt"), tensor_names=["a", "a", "b"],
                      shape_and_slices=["4 2 0,1:0,2", "4 2 1,3:0,2", ""],
                      tensors=[np.zeros((1, 2)), np.zeros((3, 2)), np.zeros(5)])
    with pytest.raises(InputError, match=r"bert_model.ckpt: can't be read .*\(a is cut in slices"):
        checkpoints.read(tmp_path)


def arrays(path, whole=None, what=None):
    """Everything that a reader gives, {name: array}. It must be `whole`, if that is given."""
    tensors = checkpoints.read(path).tensors
    found = {name: tensor.read() for name, tensor in tensors.items()}
    for name, tensor in tensors.items():
        assert found[name].shape == tensor.shape, name
    if whole is not None:
        assert_same(found, whole, what)
    return found


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("formats")
    for form in FILES:
        convert(GOLDEN, root / form, form)
    return root


@pytest.fixture(scope="module")
def whole_arrays(folders):
    return {form: arrays(folders / form) for form in FILES}


@pytest.mark.parametrize("form, name", [(form, name) for form in FILES for name in FILES[form]])
def test_mutants(form, name, folders, whole_arrays):
    """An InputError, or a load of tensors that all fit. With checksums they equal the whole file's.
    """
    expected = None if name in WITHOUT_CHECKSUMS else whole_arrays[form]
    rng = random.Random(f"{form} {name}")
    path = folders / form / name
    whole, refused = path.read_bytes(), 0
    try:
        for _ in range(MUTANTS):
            path.write_bytes(mutate(whole, rng))
            try:
                arrays(folders / form, expected)
            except InputError as error:
                refused += 1
                assert str(folders / form) in str(error)
    finally:
        path.write_bytes(whole)
    arrays(folders / form)
    assert refused > MUTANTS / 10


def odd_values(value):
    """Copies of a JSON value, each with something odd in one place."""
    for odd in (None, [], {}, "x", -1, 0, 1.5, True, 10**40, [[]], float("nan")):
        yield odd
    items = value.items() if isinstance(value, dict) else enumerate(
        value if isinstance(value, list) else ())
    for key, part in items:
        for odd in odd_values(part):
            copy = value.copy()
            copy[key] = odd
            yield copy


@pytest.mark.parametrize("form, name", [
    ("google", "bert_config.json"), ("huggingface", "config.json"),
    ("huggingface", "tokenizer_config.json"), ("keras_hub", "config.json"),
    ("keras_hub", "tokenizer.json")])
def test_odd_json(form, name, folders, whole_arrays):
    path = folders / form / name
    whole = path.read_text() if path.is_file() else '{"do_lower_case": 1, "config": {"x": 1}}'
    existed = path.is_file()
    try:
        # Each place has three or four odd values, its neighbours have others.
        for value in list(odd_values(json.loads(whole)))[::3]:
            path.write_text(json.dumps(value))
            try:
                arrays(folders / form, whole_arrays[form], value)
            except InputError as error:
                assert str(path) in str(error) or "model" in str(error)
    finally:
        path.write_text(whole) if existed else path.unlink()


def test_odd_json_in_archives(tmp_path):
    config = EncoderConfig(11, 4, 1, 2, 8, max_position_embeddings=6)
    learner = Learner(BertEncoder(config), [MaskedLM(config), SentencePrediction(config)])
    learner.save(tmp_path / "whole.keras")
    with zipfile.ZipFile(tmp_path / "whole.keras") as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    (tmp_path / "odd").mkdir()
    whole = arrays(tmp_path / "whole.keras")
    # Each place has one or two odd values, its neighbours have others.
    values = list(odd_values(json.loads(contents["config.json"])))[::8]
    refused = 0
    for value in values:
        rewrite(tmp_path / "whole.keras", tmp_path / "odd" / "model.keras",
                lambda c, value=value: {**c, "config.json": json.dumps(value)})
        try:
            arrays(tmp_path / "odd", whole, value)
        except InputError:
            refused += 1
    assert refused > len(values) / 3


def blocks_of(content):
    """(offset, size) of the blocks of an index of TensorFlow's."""
    handles, at = [], 0
    for _ in range(4):
        value, at = protobuf.read_varint(content[-48:], at)
        handles.append(value)
    offset, size = handles[2:]
    blocks = [(offset, size)]
    for _, handle in tensor_bundle._block(content, offset, size):
        start, at = protobuf.read_varint(handle, 0)
        blocks.append((start, protobuf.read_varint(handle, at)[0]))
    return blocks


def test_mutants_with_right_checksums(folders, whole_arrays):
    """What stands between a reader and a hostile index is not its checksum."""
    path = folders / "google" / "bert_model.ckpt.index"
    whole, rng = path.read_bytes(), random.Random(5)
    blocks = blocks_of(whole)
    refused = 0
    try:
        for _ in range(4 * MUTANTS):
            content = bytearray(whole)
            start, size = rng.choice(blocks)
            for _ in range(rng.randrange(1, 4)):
                content[start + rng.randrange(size)] = rng.choice((0, 127, 128, 255,
                                                                   rng.randrange(256)))
            checksum = protobuf.masked_crc(bytes(content[start:start + size + 1]))
            content[start + size + 1:start + size + 5] = struct.pack("<I", checksum)
            path.write_bytes(content)
            try:
                arrays(folders / "google", whole_arrays["google"])
            except InputError:
                refused += 1
    finally:
        path.write_bytes(whole)
    assert refused > MUTANTS


def test_an_index_of_endless_names(tmp_path):
    """Each entry of three bytes would make a name as long as the first."""
    def number(value):
        return bytes([value & 127 | 128]) + number(value >> 7) if value > 127 else bytes([value])

    def block(content):
        content += struct.pack("<II", 0, 1)
        return content + b"\0" + struct.pack("<I", protobuf.masked_crc(content + b"\0"))

    length = 1 << 18
    names = block(b"\0" + number(length) + b"\0" + b"x" * length +
                  (number(length) + b"\1\0y") * 100_000)
    index = block(b"\0\1" + bytes([1 + len(number(len(names) - 5))]) + b"z" + b"\0" +
                  number(len(names) - 5))
    footer = b"\0\0" + number(len(names)) + number(len(index) - 5)
    (tmp_path / "x.index").write_bytes(names + index + footer.ljust(40, b"\0") +
                                       tensor_bundle._MAGIC)
    with pytest.raises(InputError, match="names are too long"):
        checkpoints.read(tmp_path)


def header(path, entries):
    """A safetensors file whose header promises `entries`."""
    text = json.dumps(entries).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"\0" * 64)


@pytest.mark.parametrize("shape, end", [
    ([4, 4], 1 << 40), ([1 << 40], 4 << 40), ([4, 4], 65), ([-1], 64), ([1 << 62, 16], 64)])
def test_safetensors_that_promise_too_much(shape, end, tmp_path):
    header(tmp_path / "model.safetensors",
           {"bert.x": {"dtype": "F32", "shape": shape, "data_offsets": [0, end]}})
    with pytest.raises(InputError, match="model.safetensors"):
        checkpoints.read(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", 1 << 60) + b"{}")
    with pytest.raises(InputError, match="model.safetensors"):
        checkpoints.read(tmp_path)


@pytest.mark.parametrize("form", ["google", "huggingface"])
def test_configurations_without_bound(form, folders, tmp_path):
    """They are refused by what the file holds, or, alone, by their number of weights."""
    name = {"google": "bert_config.json", "huggingface": "config.json"}[form]
    path = folders / form / name
    whole = path.read_text()
    try:
        for key, value in (("vocab_size", 9_000_000), ("intermediate_size", 1_000_000),
                           ("num_hidden_layers", 1000), ("hidden_size", 65536),
                           ("num_hidden_layers", 10**30), ("vocab_size", 1e9)):
            path.write_text(json.dumps({**json.loads(whole), key: value}))
            with pytest.raises(InputError):
                checkpoints.read_config(folders / form)
    finally:
        path.write_text(whole)
    with pytest.raises(InputError, match="weights"):
        EncoderConfig(vocab_size=10_000_000, hidden_size=65_536, num_attention_heads=1024)
    with pytest.raises(InputError, match="JSON"):
        nested = tmp_path / "bert_config.json"
        nested.write_text("[" * 100_000)
        EncoderConfig.from_json_file(nested)


def rewrite(source, target, change):
    """Copies a `.keras` archive with `change(dict of contents)` in between."""
    with zipfile.ZipFile(source) as archive:
        contents = {info.filename: archive.read(info) for info in archive.infolist()}
    contents = change(contents) or contents
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)


def described(edit):
    """A change of an archive that edits the description of its classes."""
    def change(contents):
        values = json.loads(contents["config.json"])
        edit(values)
        contents["config.json"] = json.dumps(values)
    return change


LAMBDA = {"module": "keras.layers", "class_name": "Lambda", "registered_name": None,
          "config": {"name": "lambda", "function": "4wEAAAA="}}


@pytest.mark.parametrize("change, message", [
    (lambda c: {**c, "../../outside.txt": "x"}, "nothing else"),
    (lambda c: {**c, "extra.py": "x"}, "nothing else"),
    (lambda c: {"config.json": c["config.json"]}, "nothing else"),
    (described(lambda v: v.update(LAMBDA)), "Lambda"),
    (described(lambda v: v["config"].update(encoder=LAMBDA)), "Lambda"),
    (described(lambda v: v["config"]["objectives"].append(LAMBDA)), "Lambda"),
    (described(lambda v: v.update(registered_name="mine>Learner")), "Learner"),
    (described(lambda v: v.update(class_name="Functional")), "Functional"),
    (described(lambda v: v["config"].update(objectives=7)), "config.json"),
    (described(lambda v: v["config"].update(encoder=[])), "config.json"),
    (described(lambda v: v["config"]["encoder"]["config"].update(config="x")), "config.json")])
def test_keras_archives(change, message, folders, tmp_path):
    rewrite(folders / "keras" / "model.keras", tmp_path / "model.keras", change)
    with pytest.raises(InputError, match=message):
        checkpoints.read(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model.keras"]


def test_compressed_archives_are_refused(folders, tmp_path):
    with zipfile.ZipFile(folders / "keras" / "model.keras") as archive, zipfile.ZipFile(
            tmp_path / "model.keras", "w", zipfile.ZIP_DEFLATED) as bomb:
        for name in archive.namelist():
            bomb.writestr(name, archive.read(name))
    with pytest.raises(InputError, match="compressed"):
        checkpoints.read(tmp_path)


@pytest.mark.parametrize("make", [
    lambda file: file.create_dataset("x", data=np.zeros(1000), compression="gzip"),
    lambda file: file.create_dataset("x", (1 << 40,), "f4", chunks=(1 << 10,)),
    lambda file: file.create_dataset("x", (10,), "f4", external=[("secret", 0, 40)]),
    lambda file: file.__setitem__("x", h5py.Empty("f4")),
    lambda file: file.__setitem__("x", h5py.SoftLink("/")),
    lambda file: file.__setitem__("x", h5py.ExternalLink(file.filename, "/"))])
def test_hdf5_that_is_not_plain(make, tmp_path):
    path = tmp_path / "model.weights.h5"
    with h5py.File(path, "w") as file:
        make(file)
    with pytest.raises(InputError, match="model.weights.h5"):
        hdf5.tensors(path.read_bytes(), str(path))


def test_hdf5_of_newer_libraries(tmp_path):
    path = tmp_path / "model.weights.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file.create_group("x", track_order=True)["y"] = np.arange(3.0)
    assert hdf5.tensors(path.read_bytes(), str(path))["x/y"].read().tolist() == [0, 1, 2]


def test_numbers_that_are_no_weights(tmp_path):
    save_file({"bert.embeddings.word_embeddings.weight": np.zeros((7, 8), "int8")},
              tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(
        {"vocab_size": 7, "hidden_size": 8, "num_attention_heads": 2}))
    with pytest.raises(InputError, match="type I8"):
        checkpoints.read(tmp_path)
