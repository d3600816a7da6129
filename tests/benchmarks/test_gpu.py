"""The step on JAX, its batches, and the table beside transformers."""

import importlib.util
import json
import sys

import numpy as np
import pytest
import tensorflow as tf

from benchmarks import gpu
from benchmarks.peers import running, worker
from bert_tf import training
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.recipes import find
from tests.networks.test_encoder import run_python

JOB = {"vocab_size": 2000, "length": 32, "batch_size": 6, "seed": 3}
SIZES = {"vocab_size": 2000, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 64, "max_position_embeddings": 32, "hidden_dropout_prob": 0.0,
         "attention_probs_dropout_prob": 0.0}


def test_batches_have_the_share_of_padding():
    full, = worker.draw(JOB, 1)
    assert full["input_mask"].all() and full["masked_lm_weights"].all()
    batches = worker.draw({**JOB, "padding": 0.4}, 200)
    mask = np.concatenate([batch["input_mask"] for batch in batches])
    assert abs(1 - mask.mean() - 0.4) < 0.02
    assert (np.diff(mask, axis=1) <= 0).all()           # padding is at the end
    for batch in batches[:20]:
        used = batch["masked_lm_weights"] > 0
        lengths = batch["input_mask"].sum(1, keepdims=True)
        assert ((batch["masked_lm_positions"] < lengths) | ~used).all() and used.any()
        assert not batch["input_ids"][batch["input_mask"] == 0].any()


def test_keras_is_looked_for_without_tensorflow(tmp_path):
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\n[ "$KERAS_BACKEND" = jax ]\n')
    python.chmod(0o755)
    assert running.has_system(str(python), running.OURS_ON_JAX)
    assert not running.has_system(str(python), running.OURS)


@pytest.mark.peer
@pytest.mark.parametrize("padding", [0, 0.4])
def test_a_step_on_jax_equals_a_step_on_tensorflow(padding, tmp_path):
    if importlib.util.find_spec("jax") is None:
        pytest.skip("jax isn't installed")
    learner = training.Learner.of_terms(EncoderConfig(**SIZES), find("bert").terms)
    np.savez(tmp_path / "before.npz", *[v.numpy() for v in learner.trainable_variables])
    batches = worker.draw({**JOB, "padding": padding}, 3)
    trainer = training.Trainer(learner, training.make_optimizer("adamw", 1e-3),
                               tf.distribute.get_strategy())
    feed = iter(tf.data.Dataset.from_tensor_slices(
        {name: np.stack([batch[name] for batch in batches]) for name in batches[0]}))
    loss = trainer.train(feed, 1)["loss"]
    trainer.train(feed, 2)
    run_python(f"""
        import sys
        sys.modules["tensorflow"] = None
        sys.path.insert(0, {running.FOLDER!r})
        import bert_tf_jax_system as system, numpy as np, worker
        learner = system.Learner.of_terms(system.EncoderConfig(**{SIZES!r}),
                                          system.find("bert").terms)
        with np.load("before.npz") as before:
            for variable, name in zip(learner.trainable_variables, before.files, strict=True):
                variable.assign(before[name])
        step, state = system.make_step(learner, system.make_optimizer("adamw", 1e-3))
        batches, losses = worker.draw({dict(JOB, padding=padding)!r}, 3), []
        for batch in system._packed(batches) if {padding!r} else batches:
            state, loss = step(state, batch, np.zeros(2, np.uint32))
            losses.append(float(loss))
        np.savez("after.npz", losses[0], *state[0])
        """, tmp_path)
    with np.load(tmp_path / "after.npz") as after:
        theirs = [after[name] for name in after.files]
    assert theirs[0] == pytest.approx(loss, rel=1e-5)
    for variable, value in zip(learner.trainable_variables, theirs[1:], strict=True):
        # Adam's step is of the size of the rate even where the gradient is a rounding error.
        assert np.mean(np.abs(variable.numpy() - value)) < 1e-6, variable.path


def test_the_table_has_the_ratio_of_each_job(tmp_path, monkeypatch):
    asked = []

    def in_turns(pythons, settings, rounds, seconds, logs, clock):
        asked.append(settings["kind"])
        costs = {"bert_tf_jax": [1.0, 2.0, 4.0], "transformers": [2.0, 3.0, 6.0]}
        return {name: {"version": "1", clock: costs[name], "peak": 3e9} for name in pythons}

    monkeypatch.setattr(running, "in_turns", in_turns)
    monkeypatch.setattr(running, "has_system", lambda python, system: True)
    job = gpu.GpuFlags(output_dir=str(tmp_path), sizes=["base"], lengths=["128"],
                       train_tokens=1024)
    gpu.main(job)
    gpu.main(job)
    assert asked == ["multiply", "train", "train"]
    rows = [line.split(" | ") for line in (tmp_path / "gpu.md").read_text().splitlines()[2:]]
    assert [row[0] for row in rows] == ["| base, S=128, B=8, bfloat16, 0% padding",
                                        "| base, S=128, B=8, bfloat16, 45% padding"]
    assert [row[1] for row in rows] == ["4", "4"] and [row[4] for row in rows] == ["1.50"] * 2
    assert json.loads((tmp_path / "results.json").read_text())["jobs"]


def test_a_system_that_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "has_system", lambda python, system: False)
    with pytest.raises(InputError, match="bert_tf_jax needs jax, keras; install them"):
        gpu.main(gpu.GpuFlags(output_dir=str(tmp_path)))
    with pytest.raises(InputError, match="can't import jax, keras, which bert_tf_jax needs"):
        gpu.main(gpu.GpuFlags(output_dir=str(tmp_path),
                              peer_python=[f"bert_tf_jax={sys.executable}"]))
