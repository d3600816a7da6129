"""A run that a signal ends loses no step; checkpoints are written while it trains."""

import json
import os
import signal
import threading

import pytest
import tensorflow as tf

from bert_tf.checkpoints import checksummed
from bert_tf.errors import InputError
from bert_tf.training import resume
from bert_tf.training.settings import TrainSettings
from bert_tf.training.train import Run, Stopped
from tests.training import tiny


@pytest.fixture(name="run")
def fixture_run(records, tmp_path):
    def make(**settings):
        return Run(tiny.trainer(dropout=0.1), TrainSettings(**{
            "output_dir": str(tmp_path), "train_batch_size": 8, "num_train_steps": 8,
            "num_warmup_steps": 0, "iterations_per_loop": 8, "save_checkpoints_steps": 8,
            "random_seed": 1, **settings}), records)
    return make


def steps(folder):
    return [int(path[-21:-12]) for path in resume.checkpoints(str(folder))]


def last_bytes(folder):
    with open(resume.checkpoints(str(folder))[-1], "rb") as file:
        return file.read()


def at_step(trainer, monkeypatch, step, act):
    """Has `act` happen within the call of TensorFlow that takes a step, before the next one."""
    reduce = trainer._any_stopping

    def notice():
        def happen(number):
            if number == step:
                act()
            return reduce().numpy() if tf.executing_eagerly() else False
        with tf.control_dependencies([tf.py_function(happen, [trainer.step], tf.bool)]):
            return reduce()
    monkeypatch.setattr(trainer, "_any_stopping", notice)


def test_a_loop_of_many_steps_is_left_at_the_next_one(run, monkeypatch, tmp_path, capfd):
    """In a graph, where Python's handlers wait until all steps are taken."""
    stopped, said = run(), threading.Event()
    stop = stopped._trainer.stop

    def stop_and_say(*is_stopping):
        stop(*is_stopping)
        if not is_stopping:
            said.set()

    def send():
        os.kill(os.getpid(), signal.SIGTERM)
        said.wait()

    monkeypatch.setattr(stopped._trainer, "stop", stop_and_say)
    at_step(stopped._trainer, monkeypatch, 3, send)
    with pytest.raises(Stopped, match="stopped by a signal at step 3, which is saved") as error:
        stopped.train()
    assert error.value.status == 143 and steps(tmp_path) == [3]
    assert capfd.readouterr().out.count("stopping at the next step") == 1
    with open(tmp_path / "metrics.jsonl", encoding="utf-8") as file:
        assert [json.loads(line)["step"] for line in file] == [3]


def test_steps_are_taken_while_a_checkpoint_is_written(eagerly, run, monkeypatch, tmp_path):
    """A store that takes as long for a write as two further steps."""
    written, far_enough = [], threading.Event()
    write = checksummed.write

    def write_slowly(path, tensors, extra):
        assert far_enough.wait(600)
        write(path, tensors, extra)
        written.append(int(tensors["trainer/step"]))

    monkeypatch.setattr(checksummed, "write", write_slowly)
    running = run(iterations_per_loop=1, num_train_steps=4, save_checkpoints_steps=2)
    train = running._trainer.train

    def notice(*args):
        metrics = train(*args)
        if running.step == 4:
            assert not written
            far_enough.set()
        return metrics

    monkeypatch.setattr(running._trainer, "train", notice)
    running.train()
    assert written == [2, 4] == steps(tmp_path)
    # What was written is the state of the step, not of the time.
    again = run(num_train_steps=4, save_checkpoints_steps=2, stop_at_step=2,
                output_dir=str(tmp_path / "two"))
    (tmp_path / "two").mkdir()
    again.train()
    with open(resume.checkpoints(str(tmp_path))[0], "rb") as file:
        assert file.read() == last_bytes(tmp_path / "two")


def test_an_error_of_writing_stops_the_run(eagerly, run, monkeypatch, tmp_path):
    failed = threading.Event()

    def fail(*_):
        failed.set()
        raise InputError("the store refuses.")

    monkeypatch.setattr(checksummed, "write", fail)
    running = run(iterations_per_loop=1, save_checkpoints_steps=2)
    train = running._trainer.train

    def wait_and_train(*args):
        assert running.step < 2 or failed.wait(600)
        return train(*args)

    monkeypatch.setattr(running._trainer, "train", wait_and_train)
    with pytest.raises(InputError, match="the store refuses"):
        running.train()
    assert running.step <= 4 and not steps(tmp_path)


def test_an_error_of_writing_hides_no_other(eagerly, run, monkeypatch, capsys):
    running = run(iterations_per_loop=1, save_checkpoints_steps=2)
    broken = threading.Event()

    def fail(*_):
        assert broken.wait(600)
        raise InputError("the store refuses.")

    def train(*_):
        if running.step == 2:
            broken.set()
            raise InputError("the loss is not finite.")
        running._trainer.step.assign_add(2)
        return {"learning_rate": 0.0, "grad_norm": 0.0}

    monkeypatch.setattr(checksummed, "write", fail)
    monkeypatch.setattr(running._trainer, "train", train)
    with pytest.raises(InputError, match="not finite"):
        running.train()
    assert "warning: the store refuses." in capsys.readouterr().out
