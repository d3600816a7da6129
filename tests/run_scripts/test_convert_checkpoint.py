"""The command: flags, the account, and one sentence for what can't be done."""

import pathlib

import pytest

from bert_tf import checkpoints, networks, training
from bert_tf.checkpoints import names
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.objectives.tagging import Tagging
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.task import Task
from run_scripts import convert_checkpoint
from tests import programs

GOLDEN = pathlib.Path(__file__).parent.parent / "golden"


def test_flags_name_what_the_library_knows():
    assert set(checkpoints.FORMATS) - set(convert_checkpoint._FORMATS) == {"training", "quantised"}
    assert convert_checkpoint._HEADS == names.HEADS


def test_converts_and_prints_the_account(tmp_path, capsys, as_program, written):
    job = as_program(convert_checkpoint.ConvertFlags(
        input=str(GOLDEN / "google_gelu"), output_format="huggingface",
        output=str(tmp_path / "out"), leave_out=["next_sentence"]))
    convert_checkpoint.main(job)
    said = capsys.readouterr().out
    assert "44 tensors read" in said and "2 not used: left out as asked for." in said
    assert f"wrote {tmp_path / 'out'}" in said
    assert (tmp_path / "out" / "model.safetensors").is_file()
    assert not [path for path in (tmp_path / "out").iterdir()
                if str(tmp_path).encode() in path.read_bytes()]     # it can be published
    convert_checkpoint.main(as_program(convert_checkpoint.ConvertFlags(
        input=str(tmp_path / "out"), output_format="google", output=str(tmp_path / "back"))))
    assert (tmp_path / "back" / "flags.txt").read_text().endswith("\n--x=1\n")
    # A kill leaves no folder that lacks a file: the same command would refuse it.
    assert written[-1] == "back" and {"flags.txt", "README.md"} <= {*written}


def test_a_task_of_the_working_folder_is_not_the_checkpoints(tmp_path, monkeypatch):
    """A checkpoint may be named by the prefix of its files."""
    task = Task("own", KINDS["tagging"], {}, ("O", "B-X", "I-X"), ("entity_f1",))
    config = EncoderConfig(8, 8, 1, 2, 8, max_position_embeddings=32)
    (tmp_path / "tagger").mkdir()
    training.save_model(str(tmp_path / "tagger"), training.Learner(
        networks.build(config), [Tagging(config, 3)]))
    for folder, length in (("tagger", 16), (".", 32)):
        SavedTask(task, length, True).write(str(tmp_path / folder))
    monkeypatch.chdir(tmp_path)

    def convert(source, output, form):
        convert_checkpoint.main(convert_checkpoint.ConvertFlags(
            input=source, output_format=form, output=output, task="tagging"))
        return SavedTask.read(output)

    convert("tagger/model.keras", "google", "google")
    assert convert("google/bert_model.ckpt", "apart", "keras") is None
    (tmp_path / "google" / "task.json").write_text((tmp_path / "tagger/task.json").read_text())
    assert convert("google/bert_model.ckpt", "beside", "keras").max_seq_length == 16
    (tmp_path / "tagger" / "vocab.txt").write_text("[PAD] [UNK] [CLS] [SEP] [MASK] a b c".replace(
        " ", "\n"))
    convert("tagger", "hf", "huggingface")
    (tmp_path / "hf" / "task.json").unlink(missing_ok=True)
    assert convert("hf", "again", "keras").task.labels == task.labels      # of config.json


def test_dry_run_writes_nothing(tmp_path, capsys):
    job = convert_checkpoint.ConvertFlags(
        input=str(GOLDEN / "google_gelu"), output_format="keras", dry_run=True)
    convert_checkpoint.main(job)
    said = capsys.readouterr().out.splitlines()
    assert any("46 tensors read" in line for line in said) and not list(tmp_path.iterdir())
    assert "pooler/dense/bias: read from bert/pooler/dense/bias" in said
    with pytest.raises(InputError, match="--output"):
        convert_checkpoint.main(convert_checkpoint.ConvertFlags(input="x", output_format="keras"))


def test_a_folder_with_files_is_refused_before_the_checkpoint_is_read(tmp_path):
    (tmp_path / "mine.txt").touch()
    with pytest.raises(InputError, match="is there already and is not an empty folder"):
        convert_checkpoint.main(convert_checkpoint.ConvertFlags(
            input="absent", output=str(tmp_path), output_format="keras"))


def test_an_error_is_one_sentence(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    said = programs.refusal("bert-convert-checkpoint", f"--input={tmp_path}",
                            f"--output={tmp_path / 'out'}", "--output_format=google")
    assert "pytorch_model.bin is not read" in said and not (tmp_path / "out").exists()
