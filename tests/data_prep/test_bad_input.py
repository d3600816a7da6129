"""What create_pretraining_data refuses: one sentence that names it, and nothing left behind."""

import gzip
import json
import resource
import subprocess
import sys

import pytest

from bert_tf.errors import InputError
from tests import programs

GOOD = b"a tree\nthe house\n\nb\nc\n"
BAD = b"good\n\nbad \xff\n"


def left_over(folder):
    """The files under a folder but for those that the test wrote."""
    return [path for path in folder.rglob("*")
            if path.is_file() and not path.name.startswith(("text", "vocab"))]


@pytest.mark.parametrize("texts, parts", [
    ([b""], ["holds no text", "text0.txt"]),
    ([b"\n \n\t\n"], ["holds no text", "text0.txt"]),
    ([b"\x01\x02\n"], ["holds no text", "text0.txt"]),
    ([BAD], ["text0.txt, line 3, byte 5 is not UTF-8", "0xff"]),
    ([GOOD, BAD], ["text1.txt, line 3, byte 5 is not UTF-8"]),
    ([GOOD, gzip.compress(BAD)], ["text1.txt, line 3, byte 5 is not UTF-8"]),
    ([GOOD, gzip.compress(GOOD)[:-9]], ["text1.txt", "damaged"]),
    ([gzip.compress(GOOD)[:20] + b"\xff" * 30], ["text0.txt", "damaged"]),
])
def test_bad_text(prepare, tmp_path, texts, parts):
    for piece_bytes in (1, 1 << 20):
        with programs.refused(*parts):
            prepare(texts, piece_bytes=piece_bytes)
        left = [path.name for path in left_over(tmp_path)]
        if "is not UTF-8" in parts[0]:      # found when its piece is made; others are kept
            assert "r.manifest.json" not in left and all(
                name.startswith(("r.tfrecord-", "piece-", "job.json")) for name in left)
        else:
            assert not left
    prepare(GOOD)
    prepare(None, output_file=[str(tmp_path / "new/r.tfrecord")])
    assert [path.name for path in left_over(tmp_path / "out")] == [
        path.name for path in left_over(tmp_path / "new")]


@pytest.mark.parametrize("recipe", [
    "bert", "albert", "electra", "ernie", "roberta", "spanbert", "structbert"])
def test_blank_lines_that_fill_a_piece(recipe, prepare, tmp_path):
    """They are no text, and beside text they change nothing."""
    flags = {"recipe": recipe, "max_seq_length": 16}
    with pytest.raises(InputError, match="holds no text"):
        prepare([b"\n\n\n"], **flags)
    assert not left_over(tmp_path)
    text = b"a tree\nthe house a tree\n\nb the house\nc a tree\n\n"

    def instances(texts, folder):
        prepare(texts, piece_bytes=8, output_file=[str(tmp_path / folder / "r.tfrecord")], **flags)
        found = json.loads((tmp_path / folder / "r.manifest.json").read_text())
        return found["counts"]["instances"], sum(one["records"] for one in found["shards"])

    assert instances([text, b"\n" * 20], "more") == instances([text], "alone")


def test_text_that_makes_no_record_is_not_called_empty(prepare, tmp_path):
    with pytest.raises(InputError, match="has 1 sentence, which make no record of "
                       "--recipe=roberta: .*--max_seq_length=8"):
        prepare([b"a tree " * 20], recipe="roberta", max_seq_length=8)
    assert not left_over(tmp_path)


@pytest.mark.parametrize("flags, parts", [
    ({"input_file": ["absent.txt"]}, ["--input_file", "no file matches", "absent.txt"]),
    ({"input_file": ["*.absent"]}, ["--input_file", "no file matches", "*.absent"]),
    ({"vocab_file": "absent.txt"}, ["vocabulary", "absent.txt"]),
    ({"output_file": ["text0.txt/r"]}, ["--output_file", "can't write", "text0.txt"]),
    ({"output_file": ["text0.txt"]}, ["--input_file", "also the output file"]),
    ({"output_file": ["."]}, ["--output_file", "is a folder"]),
    ({"output_file": ["new/"]}, ["--output_file", "is a folder"]),
    ({"output_file": ["a", "b", "./a"]}, ["--output_file", "twice"]),
    ({"max_seq_length": 4}, ["--max_seq_length is 4"]),
    ({"max_seq_length": 100_000}, ["--max_seq_length is 100000"]),
    ({"max_predictions_per_seq": 0}, ["--max_predictions_per_seq is 0"]),
    ({"dupe_factor": 0}, ["--dupe_factor is 0"]),
    ({"masked_lm_prob": 0.0}, ["--masked_lm_prob is 0.0"]),
    ({"masked_lm_prob": float("nan")}, ["--masked_lm_prob is nan"]),
    ({"short_seq_prob": 1.5}, ["--short_seq_prob is 1.5"]),
    ({"piece_bytes": 0}, ["--piece_bytes is 0"]),
    ({"num_workers": -1}, ["--num_workers is -1"]),
    *(({"mask_shares": shares}, [f"--mask_shares is {','.join(shares)}; ", "from 0 to 1"])
      for shares in (["0.8"], ["0.8", "0.1", "0.1"], ["0.8", "0.3"], ["a", "b"], ["-0.1", "0.5"])),
    ({"mask_shares": ["nan", "0.1"]}, ["is nan,0.1; each must be a finite number"]),
    ({"recipe": "brt"}, ["did you mean bert? The choices are bert, bert_wwm"]),
    ({"recipe": "albert", "ngram": 0}, ["--ngram is 0; it must be from 1 to"]),
    ({"recipe": "albert", "masking": "dynamic", "do_permutation": True},
     ["leave out --do_permutation or --masking"]),
    ({"recipe": "spanbert", "schemes": ["pair_span", "spans"]}, ["no spans: did you mean ner_s"]),
    ({"recipe": "spanbert", "schemes": ["ner_span"]}, ["--schemes=ner_span needs entities: give"]),
    ({"recipe": "spanbert", "span_lower": 3, "span_upper": 2}, ["is 2; ", "--span_lower=3"]),
    ({"recipe": "spanbert", "segments": "segment_pairs"}, ["--segments=segment_pairs: spans need"]),
    ({"recipe": "spanbert", "max_predictions_per_seq": 4}, ["can have 19 predictions; give that"]),
    ({"recipe": "structbert", "masking": "dynamic"}, ["--masking=dynamic: ", "shuffles trigrams"]),
    ({"recipe": "structbert", "shuffle_prob": 1.5}, ["shuffle_prob is 1.5; it must be from 0 to"]),
    ({"segments": "doc_sentences", "short_seq_prob": 0.2}, ["no --short_seq_prob with --segments"]),
    ({"recipe": "electra", "random_share": 0.3}, ["no --random_share with --segments=electra"]),
])
def test_bad_flags(prepare, tmp_path, monkeypatch, flags, parts):
    monkeypatch.chdir(tmp_path)
    with programs.refused(*parts):
        prepare(GOOD, **flags)
    assert not left_over(tmp_path)
    assert (tmp_path / "text0.txt").read_bytes() == GOOD


@pytest.mark.parametrize("change, parts", [
    (lambda text: text.replace("[MASK]\n", "mask\n"), ["vocab.txt", "lacks [MASK]"]),
    (lambda text: text + "the\n", ["vocab.txt", "'the'", "again"]),
    (lambda text: "", ["vocab.txt", "empty"]),
])
def test_bad_vocabulary(prepare, tmp_path, vocab_file, change, parts):
    vocab_file.write_text(change(vocab_file.read_text(encoding="utf-8")), encoding="utf-8")
    with programs.refused(*parts):
        prepare(GOOD)
    assert not left_over(tmp_path)


def test_bad_text_leaves_an_earlier_result_alone(prepare, tmp_path):
    prepare(GOOD)
    before = {path: path.read_bytes() for path in left_over(tmp_path)}
    with pytest.raises(InputError):
        prepare(BAD)
    assert {path: path.read_bytes() for path in left_over(tmp_path)} == before


# Workers have the time that they need to remove what is unfinished, however busy the machine is.
_COMMAND = """
from bert_tf.data.records import jobs
from run_scripts.commands import start
jobs._SECONDS_TO_END = 600
start("data_prep.create_pretraining_data")
"""


def command(tmp_path, vocab_file, *flags, **options):
    """Runs the command on text.txt; returns its one sentence of complaint."""
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND, "--num_workers=2",
         f"--input_file={tmp_path}/text.txt", f"--output_file={tmp_path}/r.tfrecord",
         f"--vocab_file={vocab_file}", *flags], capture_output=True, text=True, check=False,
        **options)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize("text, flag, message", [
    (BAD, "--dupe_factor=1", "text.txt, line 3, byte 5 is not UTF-8"),
    (GOOD, "stray", "unexpected argument 'stray'")])
def test_the_command_says_one_sentence(tmp_path, vocab_file, text, flag, message):
    (tmp_path / "text.txt").write_bytes(text)
    assert message in command(tmp_path, vocab_file, flag)
    assert not [path for path in left_over(tmp_path) if path.name != "r.flags.txt"]


def test_a_vocabulary_must_be_given():
    assert "--vocab_file must be given" in programs.refusal(
        "bert-create-pretraining-data", "--input_file=x", "--output_file=y", "--vocab_file=")


@pytest.mark.parametrize("piece_bytes", [1, 1 << 20])
def test_a_full_disk(tmp_path, vocab_file, random_text, piece_bytes):
    (tmp_path / "text.txt").write_text(random_text(1), encoding="utf-8")
    message = command(
        tmp_path, vocab_file, f"--piece_bytes={piece_bytes}",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000)))
    assert "error: piece " in message and "make room" in message
    # The progress, and the flags.
    assert {path.suffix for path in left_over(tmp_path)} <= {".json", ".txt"}
