"""Fixtures of the tests of scripts."""

import os
import shutil

import pytest
from tensorflow.python.framework import config as tf_config

from bert_tf.training import resume
from bert_tf.training.train import Background


@pytest.fixture(autouse=True)
def fixture_determinism():
    """Switches off what a run switches on in this process."""
    yield
    tf_config.disable_op_determinism()


@pytest.fixture
def copy_at(monkeypatch):
    """Function (step, folder, copy): a run into `folder` is copied when the state of `step` is
    saved. The copy is what a kill leaves."""
    def begin(step, folder, copy):
        save = resume.write_checkpoint

        def save_and_copy(trial, state, *rest):
            path = save(trial, state, *rest)
            if state["trainer/step"] == step and not os.path.exists(copy):
                shutil.copytree(folder, copy)
            return path
        monkeypatch.setattr(resume, "write_checkpoint", save_and_copy)
        # Nothing else is written meanwhile.
        monkeypatch.setattr(Background, "start", lambda self, work: work())
    return begin
