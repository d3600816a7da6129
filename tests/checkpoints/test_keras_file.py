"""Files of Keras: their weights have our names, which the files tell."""

import dataclasses
import warnings

import keras
import numpy as np
import pytest

import bert_tf
from bert_tf import checkpoints, networks
from bert_tf.checkpoints import keras_file
from bert_tf.checkpoints.weights import variables
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.layers.base import register
from bert_tf.networks.encoder import BertEncoder
from tests.networks.test_networks import FORMS

CONFIG = EncoderConfig(vocab_size=11, hidden_size=8, num_hidden_layers=3, num_attention_heads=2,
                       intermediate_size=6, max_position_embeddings=5)


def learner_of(*heads, encoder=None):
    keras.utils.set_random_seed(5)
    return bert_tf.Learner(encoder or bert_tf.BertEncoder(CONFIG), heads)


def two_heads():
    """Two heads of one class and of one size, which only their order tells apart."""
    return learner_of(bert_tf.Regression(CONFIG),
                      bert_tf.Classification(CONFIG, 3, name="mnli"),
                      bert_tf.Classification(CONFIG, 3, name="snli"), bert_tf.MaskedLM(CONFIG))


def assert_same_weights(one, other):
    one, other = variables(one), variables(other)
    assert one.keys() == other.keys()
    for name, variable in one.items():
        assert np.array_equal(variable, other[name]), name


def test_two_heads_of_one_class(tmp_path):
    learner = two_heads()
    learner.save(tmp_path / "model.keras")
    assert_same_weights(learner, keras.models.load_model(tmp_path / "model.keras"))
    weights = checkpoints.read(tmp_path / "model.keras")
    assert weights.heads == ["pooler", "masked_lm", "regression", "mnli", "snli"]
    other = two_heads()
    for variable in other.weights:
        variable.assign(np.zeros(variable.shape))
    account = checkpoints.load(tmp_path / "model.keras", other)
    assert not account.missing and "mnli/dense/kernel" in account.mapped
    assert_same_weights(learner, other)


def test_heads_of_one_class_in_other_formats(tmp_path):
    two_heads().save(tmp_path / "model.keras")
    account = checkpoints.convert(tmp_path / "model.keras", tmp_path / "google", "google")
    assert "of the head mnli, which the format google does not have" in account.ignored.values()
    assert checkpoints.read(tmp_path / "google", "regression").heads == [
        "pooler", "masked_lm", "regression"]


def test_one_head_of_its_class_keeps_its_row_whatever_it_is_called(tmp_path):
    learner_of(bert_tf.Classification(CONFIG, 3, name="mnli")).save(tmp_path / "model.keras")
    assert checkpoints.read(tmp_path / "model.keras").heads == ["pooler", "classification"]


@pytest.mark.parametrize("names", [("same", "same"), ("a/b", "c"), ("tagging", "c"), (3, "c")])
def test_heads_that_cannot_be_told_apart(names):
    objectives = [("Classification", {"name": name}) for name in names]
    with pytest.raises(InputError, match="need different names"):
        keras_file._name_heads(objectives, "x.keras")


@register
class WithProjection(BertEncoder):
    """An encoder with a dense layer before its pooler, as ALBERT's has."""

    def __init__(self, config, **kwargs):
        super().__init__(config, **kwargs)
        projection, pooler = self.dense(4), self.pooler
        projection.build((None, 8))
        # Keras saves the layers in the order in which they were set.
        self._tracker.unlock()
        self._layers.remove(pooler)
        self.widening = projection
        self._layers.append(pooler)
        self._tracker.lock()


def test_a_second_dense_layer_in_the_encoder(tmp_path, monkeypatch):
    monkeypatch.setitem(networks.NETWORKS, "Projected", "WithProjection")
    encoder = WithProjection(CONFIG)
    learner = learner_of(bert_tf.Tagging(CONFIG, 2), encoder=encoder)
    learner.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras").encoder
    assert np.array_equal(again.pooler.kernel, encoder.pooler.kernel)
    tensors = keras_file.read(str(tmp_path / "model.keras")).tensors
    assert np.array_equal(tensors["pooler/dense/kernel"].read(), encoder.pooler.kernel)
    assert np.array_equal(tensors["dense/kernel"].read(), encoder.widening.kernel)


def test_a_bare_encoder(tmp_path):
    encoder = learner_of().encoder
    encoder.save(tmp_path / "model.keras")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = bert_tf.BertEncoder.from_pretrained(tmp_path / "model.keras")
    assert_same_weights(encoder, again)


def test_a_network_without_a_table_of_segments(tmp_path):
    config = dataclasses.replace(CONFIG, model_type="distilbert", pooler_type="first_token_relu")
    one, other = (learner_of(bert_tf.Tagging(config, 2), encoder=BertEncoder(config))
                  for _ in range(2))
    one.save(tmp_path / "model.keras")
    assert not checkpoints.load(str(tmp_path / "model.keras"), other).missing
    assert_same_weights(one, other)


@pytest.mark.parametrize("name, sizes", [(name, forms[-1]) for name, forms in FORMS.items()])
def test_a_file_tells_the_names_of_its_weights(name, sizes, tmp_path):
    file = tmp_path / "model.keras"
    config = getattr(bert_tf.config, name).from_dict(sizes)
    network = networks.build(config)
    network.save(file)
    told = checkpoints.read(file)
    assert told.tensors.keys() == variables(network).keys()
    assert_same_weights(network, keras.models.load_model(file))
