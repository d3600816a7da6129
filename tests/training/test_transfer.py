"""Layer-wise rates, frozen layers and new layers."""

import dataclasses
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.bert.objective import MaskedLM, SentencePrediction
from bert_tf.config import BiLstmConfig, ElmoConfig, SequenceLstmConfig
from bert_tf.config.quantisation import Quantisation
from bert_tf.errors import InputError
from bert_tf.networks.encoder import BertEncoder
from bert_tf.training import resume
from bert_tf.training.learners.learner import Learner
from bert_tf.training.optimizers.adam import AdamWeightDecay
from bert_tf.training.trainer import Trainer
from bert_tf.training.transfer import check, freeze, layer_decay_factors, reinitialize_top
from tests.training import tiny

LAYERS, BATCH = 3, 8
CONFIG = tiny.config(num_hidden_layers=LAYERS, hidden_size=8, num_attention_heads=1,
                     intermediate_size=8)


def make_learner(config=CONFIG, seed=1):
    keras.utils.set_random_seed(seed)
    return Learner(BertEncoder(config), [MaskedLM(config), SentencePrediction(config)])


def values(model):
    return {v.path: v.numpy() for v in model.weights}


def depth(path, layers=LAYERS):
    """How many layers are above a variable, counting all heads as one; by its name."""
    if path.startswith("bert/embeddings/"):
        return layers + 1
    layer = re.match(r"bert/encoder/layer_(\d+)/", path)
    return layers - int(layer[1]) if layer else 0


def test_each_layer_learns_slower_than_the_one_above():
    config = dataclasses.replace(CONFIG, num_hidden_layers=12)      # two have two digits
    learner = make_learner(config)
    optimizer = AdamWeightDecay(1e-3, rate_factors=layer_decay_factors(config, 0.9))
    optimizer.build(learner.trainable_variables)
    depths = [depth(v.path, 12) for v in learner.trainable_variables]
    assert set(depths) == set(range(14))
    assert np.allclose(optimizer._rate_factors, 0.9**np.array(depths))
    assert layer_decay_factors(CONFIG, 1.0) == ()


@pytest.mark.parametrize("layers", [0, 1, LAYERS, -1])
def test_what_is_frozen_is_no_longer_trained(layers):
    learner = make_learner()
    everything = {v.path for v in learner.trainable_variables}
    freeze(learner.encoder, layers)
    left = {v.path for v in learner.trainable_variables}
    if layers < 0:
        assert left == {path for path in everything if not path.startswith("bert/")}
    else:
        assert left == {path for path in everything if not layers or depth(path) <= LAYERS - layers}
    assert {v.path for v in learner.weights if v.path in everything} == everything


def make_trainer(layers):
    learner = make_learner(tiny.config(0.1), seed=5)
    freeze(learner.encoder, layers)
    return Trainer(learner, AdamWeightDecay(1e-2), tf.distribute.get_strategy())


def batches(trainer, records, taken=0):
    return iter(trainer.distribute(lambda worker, workers, replicas: records.training_batches(
        3, taken, BATCH, replicas, worker, workers)))


def test_a_trainer_with_frozen_layers_trains_saves_and_resumes(eagerly, records, tmp_path):
    trainer = make_trainer(1)
    before = values(trainer.learner)
    trainer.train(batches(trainer, records), 1)
    path = tiny.save_checkpoint(tmp_path, trainer, {}, 1)
    trainer.train(batches(trainer, records, BATCH), 1)
    after = values(trainer.learner)
    trained = {v.path for v in trainer.learner.trainable_variables}
    for name, value in before.items():
        assert np.array_equal(value, after[name]) == (name not in trained), name
    assert len(trainer.optimizer._momentums) == len(trained) < len(before)

    again = make_trainer(1)
    for variable in again.learner.weights:      # all of them come from the checkpoint
        variable.assign(variable * 0 + 7)
    resume.restore(path, again)
    again.train(batches(again, records, BATCH), 1)
    assert all(np.array_equal(value, after[name]) for name, value in values(again.learner).items())
    with pytest.raises(InputError, match="belongs to another model or optimizer"):
        resume.restore(path, make_trainer(0))


def test_dropout_is_only_where_something_is_trained():
    batch = {"input_ids": np.random.default_rng(0).integers(1, tiny.VOCAB, (4, 8)),
             "masked_lm_positions": np.array([[1, 2]] * 4)}
    for layers in (2, -1):
        learner = make_learner(tiny.config(dropout=0.3))
        freeze(learner.encoder, layers)
        plain = learner(batch)["masked_lm"]
        same = learner(batch, training=True, dropout_seed=np.array([1, 2]))["masked_lm"]
        assert np.array_equal(plain, same) == (layers < 0)


@pytest.mark.parametrize("layers", [0, 2, LAYERS])
def test_new_layers_are_as_untrained(layers):
    learner = make_learner()
    for variable in learner.trainable_variables:
        variable.assign(variable + 1)
    before = values(learner)
    keras.utils.set_random_seed(3)
    reinitialize_top(learner.encoder, layers)
    new, kernels = 0, []
    for name, value in values(learner).items():
        if layers and name.startswith("bert/") and depth(name) <= layers:
            new += 1
            if name.endswith("kernel"):
                kernels.append(value)
                assert 0.01 < value.std() < 0.03 and np.abs(value).max() <= 0.04 + 1e-6
            else:
                assert np.all(value == name.endswith("gamma"))
        else:
            assert np.array_equal(value, before[name])
    assert new == (16 * layers + 2 if layers else 0)
    assert len({kernel.tobytes() for kernel in kernels}) == len(kernels)


def test_new_layers_are_a_function_of_the_seed():
    found = []
    for seed in (1, 1, 2):
        encoder = make_learner(tiny.config()).encoder
        keras.utils.set_random_seed(seed)
        reinitialize_top(encoder, 1)
        found.append(np.array(encoder.pooler.kernel))
    assert np.array_equal(found[0], found[1]) and not np.array_equal(found[0], found[2])


@pytest.mark.parametrize("action, message", [
    (lambda encoder: freeze(encoder, 4), "--frozen_layers is 4; .* 0 to 3.* or -1 for the whol"),
    (lambda encoder: freeze(encoder, -2), "--frozen_layers is -2"),
    (lambda encoder: reinitialize_top(encoder, 4), "--reinit_layers is 4; .* from 0 to 3"),
    (lambda encoder: reinitialize_top(encoder, -1), "--reinit_layers is -1"),
    (lambda encoder: freeze(make_learner(tiny.config(quantisation=Quantisation())).encoder, -1),
     "--frozen_layers is -1, but a head of few bits learns"),
])
def test_impossible_numbers_are_refused(action, message):
    with pytest.raises(InputError, match=message):
        action(make_learner().encoder)


@pytest.mark.parametrize("changes", [
    {"frozen_layers": 1}, {"reinit_layers": 1}, {"layer_decay": 0.9}])
@pytest.mark.parametrize("config", [ElmoConfig, SequenceLstmConfig, BiLstmConfig])
def test_no_lstm_is_treated_apart(config, changes):
    with pytest.raises(InputError, match=f"--{next(iter(changes))} is .* or are LSTMs, so no"):
        check(config(vocab_size=8), **changes)
    check(config(vocab_size=8), frozen_layers=-1)
