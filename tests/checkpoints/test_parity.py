"""Loaded checkpoints compute what three independent implementations compute (make_golden.py)."""

import pathlib

import keras
import numpy as np
import pytest

from bert_tf.checkpoints import load, read_config
from bert_tf.networks.encoder import BertEncoder
from bert_tf.objectives.masked_lm import MaskedLM
from bert_tf.objectives.sentence import SentencePrediction
from bert_tf.training.learner import Learner

GOLDEN = pathlib.Path(__file__).parent.parent / "golden"
FOLDERS = sorted(path.parent.name for path in GOLDEN.glob("*/expected.npz"))
TOLERANCE = 1e-5


def make_learner(config):
    return Learner(BertEncoder(config), [MaskedLM(config), SentencePrediction(config)])


def compare(outputs, expected):
    for name in outputs.keys() & expected.keys():
        ours = np.array([keras.ops.convert_to_numpy(x) for x in outputs[name]])
        assert ours.shape == expected[name].shape, name
        assert np.abs(ours - expected[name]).max() <= TOLERANCE, name
    return outputs.keys() & expected.keys()


@pytest.mark.parametrize("folder", FOLDERS)
def test_transformers_and_the_model_garden(folder):
    expected = dict(np.load(GOLDEN / folder / "expected.npz"))
    batch = {name: expected.pop(name) for name in
             ("input_ids", "input_mask", "segment_ids", "masked_lm_positions")}
    learner = make_learner(read_config(GOLDEN / folder))
    account = load(GOLDEN / folder, learner)
    assert not account.missing and len(account.mapped) == len(learner.trainable_variables)
    outputs = {**learner.encoder(batch, return_attention=True), **learner(batch)}
    assert compare(outputs, expected) == expected.keys()


def test_the_originals_graph(test_data):
    folder = test_data / "weights" / "bert-tiny-question-classifier"
    expected = dict(np.load(test_data / "golden" / "bert_tiny_forward_seed1.npz"))
    batch = {name: expected.pop(name) for name in ("input_ids", "input_mask", "segment_ids")}
    encoder = BertEncoder(read_config(folder))
    account = load(folder, encoder)
    assert account.ignored == {name: "the model has no classification"
                               for name in ("output_weights", "output_bias")}
    assert not account.missing
    outputs = encoder(batch)
    outputs |= {f"layer_{i}": value for i, value in enumerate(outputs["layer_outputs"])}
    assert compare(outputs, expected) == expected.keys()
