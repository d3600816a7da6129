"""verify_records finds what was done to shards, and names file and record."""

import json
import shutil

import pytest
import tensorflow as tf

from bert_tf.data.records import tfrecord
from bert_tf.errors import InputError
from data_prep import verify_records


@pytest.fixture
def shards(prepare, random_text, tmp_path):
    """The shards of a small corpus."""
    prepare(random_text(1, documents=20), piece_bytes=2500, dupe_factor=1, max_seq_length=32,
            max_predictions_per_seq=5)
    found = sorted((tmp_path / "out").glob("*-of-*"))
    assert len(found) > 2
    return found


def verify(*paths, **flags):
    verify_records.main(verify_records.VerifyRecordsFlags(
        input_file=list(map(str, paths)), **flags))


def problems(capsys, *paths, **flags):
    """The problems that are printed; there must be some."""
    capsys.readouterr()
    with pytest.raises(InputError, match="problems?( in|\\.)"):
        verify(*paths, **flags)
    return capsys.readouterr().out.splitlines()


def rewrite(path, change):
    messages = []
    for number, message in enumerate(tfrecord.read_records(path)):
        example = tf.train.Example.FromString(message)
        change(number, example.features.feature)
        messages.append(example.SerializeToString())
    path.write_bytes(b"".join(map(tfrecord.frame, messages)))


def only(wanted, change):
    return lambda number, feature: change(feature) if number == wanted else None


def test_sound_records_by_every_name(shards, capsys):
    folder = shards[0].parent
    for paths in ([folder / "r.manifest.json"], [folder], shards, [folder / "*"], shards[1:2]):
        verify(*paths)
        output = capsys.readouterr().out
        count = 1 if paths == shards[1:2] else len(shards)
        assert output.startswith(f"{count} file") and "sound" in output
        assert "no manifest" not in output


def test_records_without_a_manifest(shards, tmp_path, capsys):
    copy = shutil.copy(shards[0], tmp_path / "copy")
    verify(copy)
    assert f"{copy}: no manifest names it" in capsys.readouterr().out
    assert problems(capsys, copy, vocab_size=20)[0].startswith(f"{copy}: record 0: ")


def test_other_files_of_a_folder_are_no_records(shards, capsys):
    (shards[0].parent / "curves.png").write_bytes(b"no records")
    capsys.readouterr()
    verify(shards[0].parent)
    said = capsys.readouterr().out
    assert f"{len(shards)} files are sound" in said and "left out: 1 file " in said
    assert "curves.png: record 0" in problems(capsys, shards[0].parent / "c*")[0]
    assert "curves.png: record 0" in problems(capsys, shards[0].parent / "curves.png")[0]


def test_a_flipped_bit(shards, capsys):
    data = bytearray(shards[1].read_bytes())
    data[-200] ^= 4
    shards[1].write_bytes(data)
    line, = problems(capsys, shards[0].parent)
    assert line.startswith(f"{shards[1]}: record ") and "damaged" in line


def test_truncation_in_a_record_and_between_records(shards, capsys):
    data = shards[0].read_bytes()
    last = len(tfrecord.frame(list(tfrecord.read_records(shards[0]))[-1]))
    records = tfrecord.count_records(shards[0])
    shards[0].write_bytes(data[:-5])
    line, = problems(capsys, shards[0])
    assert line.startswith(f"{shards[0]}: record {records - 1} is truncated")
    shards[0].write_bytes(data[:-last])
    lines = problems(capsys, shards[0])
    assert lines[0] == f"{shards[0]}: holds {records - 1} records, the manifest has {records}."
    assert "checksum" in lines[1]


def test_a_missing_shard_and_one_of_another_manifest(shards, tmp_path, capsys):
    folder = shards[0].parent
    shards[0].unlink()
    shutil.copy(shards[2], shards[1])
    lines = problems(capsys, folder / "r.manifest.json")
    assert lines[0] == f"{shards[0]}: the manifest names it, but it is not there."
    assert any(line.startswith(f"{shards[1]}: its checksum is not") for line in lines[1:])


def test_a_changed_count(shards, capsys):
    path = shards[0].parent / "r.manifest.json"
    manifest = json.loads(path.read_text())
    manifest["shards"][1]["records"] += 1
    path.write_text(json.dumps(manifest))
    line, = problems(capsys, path)
    assert line.startswith(f"{shards[1]}: holds ")


@pytest.mark.parametrize("change, problem", [
    (lambda f: f["input_ids"].int64_list.value.__setitem__(3, 10**6), "ids is not below"),
    (lambda f: f["input_ids"].int64_list.value.__setitem__(3, -1), "ids is not below"),
    (lambda f: f["masked_lm_ids"].int64_list.value.__setitem__(0, 10**6), "ids is not below"),
    (lambda f: f["input_mask"].int64_list.value.__setitem__(0, 0), "input_mask"),
    (lambda f: f["input_mask"].int64_list.value.__setitem__(0, 2), "input_mask"),
    (lambda f: f["segment_ids"].int64_list.value.__setitem__(0, 2), "segment_ids"),
    (lambda f: f["next_sentence_labels"].int64_list.value.__setitem__(0, 2), "next_sentence"),
    (lambda f: f["masked_lm_positions"].int64_list.value.__setitem__(0, 0), "masked position"),
    (lambda f: f["masked_lm_positions"].int64_list.value.__setitem__(0, 31), "masked position"),
    (lambda f: f["masked_lm_weights"].float_list.value.__setitem__(0, 0.5), "masked_lm_weights"),
    (lambda f: f["masked_lm_weights"].float_list.value.__setitem__(slice(None), [0.0] * 5),
     "nothing is masked"),
    (lambda f: f["input_ids"].int64_list.value.append(1), "has 33 values in input_ids, not 32"),
    (lambda f: f["input_ids"].bytes_list.value.extend([b""] * 32),
     "has no list of int64 as input_ids"),
    (lambda f: f.pop("segment_ids"), "has no segment_ids"),
    (lambda f: f.clear(), "has no input_ids"),
])
def test_records_that_are_well_framed_but_wrong(shards, capsys, change, problem):
    rewrite(shards[1], only(2, change))
    lines = problems(capsys, shards[1])
    assert lines[0].startswith(f"{shards[1]}: record 2: ") and problem in lines[0]
    assert lines[-1].startswith(f"{shards[1]}: its checksum")


def test_what_is_no_example(shards, capsys):
    messages = [b"\xff text", *tfrecord.read_records(shards[0])]
    shards[0].write_bytes(b"".join(map(tfrecord.frame, messages)))
    assert f"{shards[0]}: record 0: is not a tf.train.Example" in problems(capsys, shards[0])[0]
    shards[0].write_text("A text is not a TFRecord file.")
    assert problems(capsys, shards[0])[0].startswith(f"{shards[0]}: record 0 ")


def test_it_stops_after_so_many(shards, capsys):
    rewrite(shards[0], lambda number, feature: feature.pop("input_ids"))
    assert len(problems(capsys, shards[0].parent, max_problems=3)) == 3


def test_compressed_records(prepare, random_text, tmp_path, capsys):
    path = tmp_path / "r.gz"
    prepare(random_text(1), output_file=[str(path)])
    verify(path)
    path.write_bytes(path.read_bytes()[:-100])
    assert problems(capsys, path)[0].startswith(f"{path}: record ")


@pytest.mark.parametrize("name, content", [
    ("absent", None), ("other.json", "{}"), ("other.manifest.json", "{}"),
    ("other.manifest.json", "no JSON")])
def test_nothing_to_check_is_an_error(tmp_path, name, content):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(InputError):
        verify(tmp_path / name)
