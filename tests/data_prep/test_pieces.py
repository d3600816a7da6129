"""A corpus of many pieces: the same bytes for any number of workers and after any stop."""

import json
import os
import pathlib
import random
import signal

import pytest

from bert_tf import files
from bert_tf.data.records import shards
from bert_tf.data.text import corpus
from bert_tf.errors import InputError
from bert_tf.files import writing
from data_prep import text_job
from tests.data_prep.conftest import start_dying


def content(folder):
    """The files of a folder but for flags and tokenizers: path -> bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.name.endswith(files.FLAGFILE)
            and not path.parent.name.endswith(files.TOKENIZER_ENDING)}


@pytest.fixture
def text(random_text):
    return random_text(1, documents=40, sentences=6)


@pytest.mark.parametrize("recipe", ["bert", "albert"])
def test_any_number_of_workers(prepare, tmp_path, text, recipe):
    folders = [tmp_path / f"workers{count}" for count in (1, 2, 50)]
    for folder, count in zip(folders, (1, 2, 50)):
        prepare(text, output_file=[str(folder / "a.tfrecord"), str(folder / "b.gz")],
                piece_bytes=4000, num_workers=count, dupe_factor=2, recipe=recipe)
    first, *others = map(content, folders)
    assert len(first) > 5 and all(other == first for other in others)


@pytest.mark.parametrize("recipe", ["bert", "albert"])
def test_pieces_are_files_of_their_own(prepare, tmp_path, text, recipe):
    prepare(text, piece_bytes=2000, recipe=recipe)
    pieces = list(corpus.read_pieces([tmp_path / "text0.txt"], 2000))
    assert len(pieces) > 4
    seeds = [text_job.piece_seed(12345, index) for index in range(len(pieces))]
    assert seeds[0] == 12345 and len(set(seeds)) == len(seeds)
    for index, (piece, seed) in enumerate(zip(pieces, seeds)):
        prepare(piece, output_file=[str(tmp_path / "one")], random_seed=seed, recipe=recipe)
        name = f"out/r.tfrecord-{index:05d}-of-{len(pieces):05d}"
        assert (tmp_path / "one").read_bytes() == (tmp_path / name).read_bytes()


def test_tiny_pieces_and_pieces_without_text(prepare, tmp_path, random_text):
    text = "\n" * 9 + random_text(2) + "\n\x01\x02\x03\n\n\n"
    prepare(text, piece_bytes=1)
    manifest = json.loads((tmp_path / "out/r.manifest.json").read_text())
    records = [shard["records"] for shard in manifest["shards"]]
    assert records.count(0) >= 5 and sum(records) == manifest["counts"]["instances"]
    assert manifest["counts"]["documents"] == 8


def test_what_one_piece_hides_is_found_across_pieces(prepare, tmp_path):
    rng = random.Random(1)
    document = "".join(f"the {'abcd'[i % 4]} {rng.random()}\n" for i in range(2000)) + "\n"
    prepare(document * 4, piece_bytes=len(document), dupe_factor=1)
    manifest = json.loads((tmp_path / "out/r.manifest.json").read_text())
    assert manifest["counts"]["repeated_lines_within_pieces"] == 0
    assert manifest["rates"]["repeated_lines"] == pytest.approx(0.75)


def test_one_line_again_and_again_is_found(prepare, tmp_path):
    document = "".join(f"the house\na tree {i}\n" for i in range(50)) + "\n"
    prepare(document * 4, piece_bytes=len(document), dupe_factor=1)
    manifest = json.loads((tmp_path / "out/r.manifest.json").read_text())
    assert manifest["rates"]["repeated_lines"] >= 0.49


def test_a_finished_job_does_nothing(prepare, tmp_path, text, capsys):
    prepare(text, piece_bytes=2000)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    (tmp_path / "out/r.progress").mkdir()       # as if killed between manifest and its removal
    capsys.readouterr()
    prepare(text, piece_bytes=2000, num_workers=2)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()} == before
    output = capsys.readouterr().out
    assert "are there already" in output and "instances of up to" in output


def test_other_words_for_the_same_job(prepare, tmp_path, text, monkeypatch, capsys):
    prepare(text)
    monkeypatch.chdir(tmp_path / "out")
    prepare(None, input_file=["../text0.txt"], output_file=["r.tfrecord"])
    assert "are there already" in capsys.readouterr().out


@pytest.mark.parametrize("changed", [{"random_seed": 1}, {"piece_bytes": 4000}])
def test_changed_flags_replace_the_shards(prepare, tmp_path, text, changed, capsys):
    prepare(text, **{"piece_bytes": 2000, **changed})
    expected = content(tmp_path / "out")
    told = "r.manifest.json described records of other flags or another text; they are replaced."
    assert told not in capsys.readouterr().out
    prepare(text, piece_bytes=2000)
    assert told in capsys.readouterr().out
    assert content(tmp_path / "out") != expected
    prepare(text, **{"piece_bytes": 2000, **changed})
    assert content(tmp_path / "out") == expected


def test_changed_text_replaces_the_shards(prepare, tmp_path, text):
    prepare(text, piece_bytes=2000)
    prepare(text[:1000])
    assert sorted(content(tmp_path / "out")) == ["r.manifest.json", "r.tfrecord"]


@pytest.fixture
def unfinished(prepare, tmp_path, text, monkeypatch):
    """The content of all records, while those in out/ are made but for the manifest."""
    prepare(text, piece_bytes=2000, output_file=[str(tmp_path / "whole/r.tfrecord")])
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(shards, "write_json", lambda *arguments: raise_(KeyboardInterrupt))
        prepare(None, piece_bytes=2000)
    return content(tmp_path / "whole")


def made(monkeypatch):
    """The pieces that are made from now on."""
    do, found = text_job.TextJob.__call__, []
    monkeypatch.setattr(text_job.TextJob, "__call__", lambda self, index, piece: (
        found.append(index) or do(self, index, piece)))
    return found


def test_a_text_with_another_time_is_the_same(prepare, tmp_path, unfinished, monkeypatch):
    os.utime(tmp_path / "text0.txt", (1, 1))
    found = made(monkeypatch)
    prepare(None, piece_bytes=2000)
    assert found == [] and content(tmp_path / "out") == unfinished


def test_only_the_changed_piece_of_a_text_is_made_again(prepare, tmp_path, text, unfinished,
                                                       monkeypatch):
    data = bytearray((tmp_path / "text0.txt").read_bytes())
    place = data.index(b"a", 2500)
    data[place:place + 1] = b"b"
    found = made(monkeypatch)
    prepare(bytes(data), piece_bytes=2000)
    assert found == [1]
    prepare(None, piece_bytes=2000, output_file=[str(tmp_path / "again/r.tfrecord")])
    assert content(tmp_path / "out") == content(tmp_path / "again") != unfinished


def test_a_text_that_changes_meanwhile_is_named(prepare, tmp_path, text, monkeypatch):
    do = text_job.TextJob._make
    monkeypatch.setattr(text_job.TextJob, "_make", lambda *arguments: (
        os.utime(tmp_path / "text0.txt", (1, 1)), do(*arguments))[1])
    with pytest.raises(InputError, match="text0.txt was changed while its records were made"):
        prepare(text, piece_bytes=2000)
    assert not (tmp_path / "out/r.manifest.json").exists()


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [
    flip, pathlib.Path.unlink, lambda path: path.write_bytes(b"")])
def test_a_damaged_shard_of_a_finished_job_is_made_again(prepare, tmp_path, text, damage, capsys):
    prepare(text, piece_bytes=2000)
    expected = content(tmp_path / "out")
    shard = sorted((tmp_path / "out").glob("*-of-*"))[1]
    damage(shard)
    capsys.readouterr()
    prepare(text, piece_bytes=2000)
    assert content(tmp_path / "out") == expected
    assert f"warning: {shard} is not as its manifest describes it" in capsys.readouterr().out


@pytest.mark.parametrize("damage", [flip, pathlib.Path.unlink])
def test_a_damaged_shard_of_an_unfinished_job_is_made_again(
        prepare, tmp_path, unfinished, damage, monkeypatch):
    damage(sorted((tmp_path / "out").glob("*-of-*"))[1])
    found = made(monkeypatch)
    prepare(None, piece_bytes=2000)
    assert found == [1] and content(tmp_path / "out") == unfinished


def test_notes_that_hold_something_else_are_made_again(prepare, tmp_path, unfinished, monkeypatch):
    first = json.loads((tmp_path / "out/r.progress/piece-00000.json").read_text())
    first["result"]["counts"] = {}
    notes = [json.dumps(first), "[]", '{"shards": [{}], "counts": {}}', '{"a', "[" * 100_000]
    for index, note in enumerate(notes):
        (tmp_path / f"out/r.progress/piece-{index:05d}.json").write_text(note)
    found = made(monkeypatch)
    prepare(None, piece_bytes=2000)
    assert found == [*range(len(notes))] and content(tmp_path / "out") == unfinished


def raise_(error):
    raise error


def test_files_of_others_are_left_alone(prepare, tmp_path, text):
    out = tmp_path / "out"
    out.mkdir()
    thesis = out / "r.tfrecord"
    thesis.write_text("my thesis")
    with pytest.raises(InputError, match="r.tfrecord exists, but no manifest names it"):
        prepare(text)
    assert content(out) == {"r.tfrecord": b"my thesis"}
    thesis.unlink()
    # Their names begin as those of temporary files.
    mine = {"r.tfrecord.tmp-old": b"1", "r.tfrecord.tmp-7": b"2", "r.manifest.json.tmp-notes": b"3"}
    for name, data in mine.items():
        (out / name).write_bytes(data)
    # What a killed process of ours left.
    (out / f"r.tfrecord{files.ASIDE}99999999-{writing._machine()}-1").mkdir()
    prepare(text)
    assert mine.items() <= content(out).items()
    assert sorted(content(out)) == sorted([*mine, "r.tfrecord", "r.manifest.json"])


def test_a_folder_of_others_is_not_emptied(prepare, tmp_path, text):
    folder = tmp_path / "out/r.progress"
    folder.mkdir(parents=True)
    (folder / "chapter1.txt").write_text("my thesis")
    with pytest.raises(InputError, match="chapter1.txt is in the folder where a job keeps"):
        prepare(text)
    assert (folder / "chapter1.txt").exists()


def test_a_second_job_on_the_same_records_is_refused(prepare, hold, tmp_path, text):
    (tmp_path / "out").mkdir()
    other = hold(tmp_path / "out/r.manifest.json")
    with pytest.raises(InputError, match=f"records: process {other.pid} on .* is at work on"):
        prepare(text)
    other.communicate()
    prepare(text)
    assert sorted(os.listdir(tmp_path / "out")) == ["r.manifest.json", "r.tfrecord", "r.tokenizer"]


PIECE_BYTES = 10_000


@pytest.fixture
def killed(tmp_path, vocab_file, random_text):
    """The folder of a job of many pieces that was killed after its first shard."""
    out, text = tmp_path / "out", tmp_path / "text0.txt"
    text.write_text(random_text(3, documents=1200, sentences=6), encoding="utf-8")
    assert start_dying(num_workers=2, input_file=text, output_file=f"{out}/r.tfrecord",
                       vocab_file=vocab_file, piece_bytes=PIECE_BYTES).wait() == -signal.SIGKILL
    assert not (out / "r.manifest.json").exists()
    return out


def test_a_killed_job_redoes_only_what_is_missing(prepare, killed, tmp_path):
    shards = {path.name: path.stat().st_mtime_ns
              for path in killed.glob("r.tfrecord-?????-of-?????")}
    prepare(None, output_file=[str(tmp_path / "whole/r.tfrecord")], piece_bytes=PIECE_BYTES)
    expected = content(tmp_path / "whole")
    assert len(expected) > 15 and 0 < len(shards) < len(expected) - 1
    for name in shards:     # what has its final name is whole
        assert (killed / name).read_bytes() == expected[name]
    noted = [json.loads(path.read_text())["result"]["shards"][0]["name"]
             for path in (killed / "r.progress").glob("piece-?????.json")]
    prepare(None, piece_bytes=PIECE_BYTES, num_workers=2)
    assert content(killed) == expected
    for name in noted:
        assert (killed / name).stat().st_mtime_ns == shards[name]


def test_nothing_of_a_killed_job_stays_beside_another(prepare, killed, random_text):
    other = killed / f"r.tfrecord-00007-of-00009{files.ASIDE}1-{writing._machine()}-1/r"
    other.parent.mkdir()
    other.write_text("not of this job")
    prepare(random_text(4), piece_bytes=1 << 20)
    assert sorted(content(killed)) == ["r.manifest.json", "r.tfrecord",
                                       str(other.relative_to(killed))]
