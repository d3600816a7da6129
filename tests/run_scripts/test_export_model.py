"""The command bert-export-model, from flags to a model that answers."""

import os
import pathlib
import sys

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import flags
from bert_tf.errors import InputError
from run_scripts import export_model
from run_scripts.export_model import Job

GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "hf_gelu"


def job(tmp_path, **options):
    return Job(**{"init_checkpoint": str(GOLDEN), "output": str(tmp_path / "out"), **options})


def test_an_encoder_of_ids(tmp_path, capsys):
    export_model.main(job(tmp_path, format="ids", version=2))
    assert capsys.readouterr().out == f"{tmp_path}/out/2: signatures serving_default\n"
    expected = np.load(GOLDEN / "expected.npz")
    outputs = tf.saved_model.load(str(tmp_path / "out" / "2")).signatures["serving_default"](
        **{name: tf.constant(expected[name], tf.int32)
           for name in ("input_ids", "input_mask", "segment_ids")})
    assert np.allclose(outputs["pooled_output"], expected["pooled_output"], atol=1e-5)


def test_lite_in_a_new_folder(tmp_path, capsys):
    export_model.main(job(tmp_path, format="lite_int8", max_seq_length=8,
                          output=str(tmp_path / "new" / "m.tflite")))
    assert os.listdir(tmp_path / "new") == ["m.tflite"]
    assert "m.tflite: " in capsys.readouterr().out


@pytest.mark.parametrize("options, message", [
    ({}, "--vocab_file must be given with --format=text"),
    ({"format": "ids", "task": "classification"}, "--labels or --num_labels must be given"),
    ({"format": "ids", "task": "multi_label"}, "--num_labels must be given"),
    ({"format": "ids", "labels": ["a", "b"]}, "--labels names 2 labels, which don't fit"),
    ({"format": "ids", "labels": ["a", "b"], "task": "tagging", "num_labels": 3}, "don't fit"),
    ({"format": "ids", "task": "classification", "num_labels": 2},
     "has no classification/dense/kernel, .* give a model that was trained for"),
    ({"format": "ids", "version": -1}, "--version is -1"),
])
def test_bad_flags_leave_nothing_behind(options, message, tmp_path):
    with pytest.raises(InputError, match=message):
        export_model.main(job(tmp_path, **options))
    assert not os.path.exists(tmp_path / "out") or not os.listdir(tmp_path / "out")


def test_help_names_every_flag(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["bert-export-model", "--help"])
    with pytest.raises(SystemExit):
        flags.run(export_model.main, Job)
    assert "--format={text,ids,onnx,lite,lite_int8}" in capsys.readouterr().out
