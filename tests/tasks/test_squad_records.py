"""Records of SQuAD files: what is in them, and that workers and repetition change nothing."""

import hashlib
import pathlib

import pytest
import squad_case

from bert_tf.data.records import features, tfrecord
from bert_tf.errors import InputError
from bert_tf.tasks.answer_spans import SquadRecords
from bert_tf.tokenization import WordpieceTokenizer


@pytest.fixture(name="case")
def fixture_case(tmp_path):
    """The golden case of v2.0."""
    return squad_case.load("lower_v2", tmp_path)


def records(case, folder, is_training=True, **changes):
    folder.mkdir(exist_ok=True)
    return SquadRecords(case.path, str(folder / "squad.tfrecord"), case.tokenizer, is_training,
                        case.negative, changes.get("options", case.span_options))


def digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def read(manifest, folder):
    return [tfrecord.parse_example(message) for shard in manifest["shards"]
            for message in tfrecord.read_records(folder / shard["name"])]


@pytest.mark.parametrize("mode", ["train", "predict"])
def test_records_hold_the_features(case, tmp_path, mode):
    manifest = records(case, tmp_path / "out", mode == "train").make(1)[0]
    golden = case.golden[mode]["features"]
    assert manifest["counts"]["records"] == len(golden)
    wanted = features.ANSWER_SPAN + (features.ANSWER_SPAN_LABELS if mode == "train" else ())
    for example, row in zip(read(manifest, tmp_path / "out"), golden, strict=True):
        assert list(example) and set(example) == {feature.name for feature in wanted}
        for feature in wanted:
            assert len(example[feature.name]) == feature.length(case.span_options.max_seq_length, 0)
        assert [example["unique_ids"][0], example["input_ids"].tolist()] == [row[0], row[5]]
        if mode == "train":
            assert [example["start_positions"][0], example["end_positions"][0]] == row[3:5]
    if mode == "train":
        impossible = sum(q["is_impossible"] for article in case.golden["dataset"]["data"]
                         for p in article["paragraphs"] for q in p["qas"])
        marked = [e for e in read(manifest, tmp_path / "out") if e["is_impossible"][0]]
        assert len(marked) >= impossible > 0 and not any(e["end_positions"][0] for e in marked)


def test_skipped_and_cut_questions_are_counted_and_named(case, tmp_path):
    manifest, _ = records(case, tmp_path / "out").make(1)
    counts = manifest["counts"]
    assert counts["questions"] == len(case.golden["train"]["ids"])
    assert counts["skipped"] == 48 - counts["questions"] > 0 and counts["cut"] > 0
    assert len(manifest["notes"]) == counts["skipped"] + counts["cut"]
    assert all(note.startswith(f"{case.path}: question '") for note in manifest["notes"])


def test_workers_and_repetition_change_nothing(case, tmp_path, monkeypatch):
    monkeypatch.setattr(SquadRecords, "piece_questions", 10)
    for workers in (1, 2):
        manifest, was_there = records(case, tmp_path / str(workers)).make(workers)
        assert not was_there
    assert len(manifest["shards"]) > 3
    assert digests(tmp_path / "1") == digests(tmp_path / "2")
    ids = [example["unique_ids"][0] for example in read(manifest, tmp_path / "2")]
    assert ids == list(range(1000000000, 1000000000 + manifest["counts"]["records"]))
    assert records(case, tmp_path / "2").make(2) == (manifest, True)

    # Another text under the same name is other work.
    path = pathlib.Path(case.path)
    path.write_text(path.read_text(encoding="utf-8").replace("museum", "kingdom"), encoding="utf-8")
    other, was_there = records(case, tmp_path / "2").make(1)
    assert not was_there and other["fingerprint"] != manifest["fingerprint"]


def test_another_setting_of_the_tokenizer_is_other_work(case, tmp_path):
    manifest, _ = records(case, tmp_path / "out").make(1)
    case.tokenizer = WordpieceTokenizer(case.tokenizer.vocabulary, tokenize_chinese_chars=False)
    with pytest.raises(InputError, match="other records"):
        records(case, tmp_path / "out").make(1, may_replace=False)
    other, was_there = records(case, tmp_path / "out").make(1)
    assert not was_there and other["fingerprint"] != manifest["fingerprint"]


def test_refusals(case, tmp_path):
    with pytest.raises(InputError, match="max_seq_length"):
        records(case, tmp_path / "out", options=squad_case.SpanOptions(max_seq_length=20)).make(1)
    case.path = str(tmp_path / "absent.json")
    with pytest.raises(InputError, match="absent.json"):
        records(case, tmp_path / "out").make(1)
    assert not list((tmp_path / "out").iterdir())
