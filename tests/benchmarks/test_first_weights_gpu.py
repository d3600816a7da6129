"""Both first weights, trained side by side on JAX."""

import importlib.util
import json
import os

import numpy as np
import pytest

from benchmarks import first_weights_gpu
from benchmarks.peers import worker
from bert_tf.data.records import tfrecord
from bert_tf.errors import InputError
from tests.networks.test_encoder import run_python

POINTS = [{"step": step, "masked_lm_accuracy": scores} for step, scores in (
    (10, [0.1, 0.2, 0.3, 0.5]), (1000, [0.25, 0.25, 0.5, 0.5]))]


def test_a_row_has_the_mean_and_the_deviation_of_its_seeds():
    assert first_weights_gpu.table(first_weights_gpu.scores(POINTS, 2)) == [
        "| step | 10 | 1,000 |", "|---|---|---|",
        "| original | 15.0 ± 7.1 | 25.0 ± 0.0 |", "| neighbours | 40.0 ± 14.1 | 50.0 ± 0.0 |"]


def test_points_must_divide_the_steps():
    with pytest.raises(InputError, match=r"--num_train_steps is 7; it must be a multiple of "
                                         r"--points=2\."):
        first_weights_gpu.FirstWeightsGpuFlags(
            input_file="a", eval_file="a", output_dir="b", num_train_steps=7, points=2)


def test_records_without_masks_are_refused(tmp_path):
    job = first_weights_gpu.FirstWeightsGpuFlags(
        input_file=str(tmp_path / "r.tfrecord"), eval_file=str(tmp_path / "r.tfrecord"),
        output_dir=str(tmp_path / "out"))
    with pytest.raises(InputError, match="^--input_file=.*r.tfrecord: there is no manifest "):
        first_weights_gpu.main(job)
    (tmp_path / "r.manifest.json").write_text(json.dumps(
        {"recipe": {"name": "bert", "corruption": {"dynamic": True}}}))
    with pytest.raises(InputError, match="^--input_file=.* hold no masks; make them with --mask"):
        first_weights_gpu.main(job)
    assert not (tmp_path / "out").exists()


def test_curves_are_drawn_without_tensorflow(tmp_path):
    run_python("""
        import sys
        sys.modules["tensorflow"] = None
        from benchmarks.tables.report import draw
        from benchmarks.tables.table import Column, Table
        draw("curves.png", Table("name", "title", "", ["row"], [Column("1", "")],
                                 lambda *place: None, {}, over="steps"),
             {"row": {"1": {"mean": 5.0, "stdev": None}}})
    """, tmp_path, PYTHONPATH=os.path.dirname(os.path.dirname(first_weights_gpu.__file__)))
    assert (tmp_path / "curves.png").stat().st_size > 1000


@pytest.mark.peer
def test_each_model_is_trained_as_if_alone(tmp_path):
    if importlib.util.find_spec("jax") is None:
        pytest.skip("jax isn't installed")
    batch, = worker.draw({"vocab_size": 60, "length": 16, "batch_size": 64, "seed": 1}, 1)
    tfrecord.write_shard(str(tmp_path / "r.tfrecord"), str(tmp_path), [
        {name: values if values.dtype == np.float32 else values.astype(np.int64)
         for name, values in batch.items()}])
    (tmp_path / "r.manifest.json").write_text(json.dumps(
        {"recipe": {"name": "bert"}, "vocabulary": {"size": 60}}))

    def train(seeds):
        path, folder = str(tmp_path / "r.tfrecord"), tmp_path / str(seeds)
        first_weights_gpu.main(first_weights_gpu.FirstWeightsGpuFlags(
            input_file=path, eval_file=path, output_dir=str(folder), num_hidden_layers=1,
            hidden_size=64, num_train_steps=4, points=2, train_batch_size=4, seeds=seeds))
        assert (folder / "first-weights-gpu.png").exists()
        return json.loads((folder / "results.json").read_text())["points"]

    for one, two in zip(train(1), train(2), strict=True):
        assert one["step"] == two["step"]
        assert one["masked_lm_loss"] == pytest.approx(two["masked_lm_loss"][::2], rel=1e-5)
        # Another seed is another model, and so are other first weights.
        assert len(set(np.round(two["masked_lm_loss"], 4))) == 4
