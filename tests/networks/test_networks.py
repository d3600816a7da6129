"""Every configuration has a network, and every network the attributes that its users rely on."""

import dataclasses
import importlib
import inspect
import pkgutil

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import config, models, networks
from bert_tf.checkpoints import names
from bert_tf.checkpoints.weights import variables
from bert_tf.config.sizes import letters, numbers
from bert_tf.data.records.features import KNOWN
from bert_tf.errors import InputError
from bert_tf.objectives import Classification, MaskedLM, MultipleChoice
from bert_tf.training.learners.learner import Learner
from tests.networks.forms import FORMS, SIZES
from tests.rounding import assert_same

ONE_LAYER = {**SIZES, "num_hidden_layers": 1}


def classes_of(package, base):
    inner = (*pkgutil.walk_packages(package.__path__, f"{package.__name__}."),
             *pkgutil.walk_packages(models.__path__, "bert_tf.models."))
    modules = [package, *(importlib.import_module(module.name) for module in inner)]
    return {name for module in modules for name, value in vars(module).items()
            if inspect.isclass(value) and issubclass(value, base) and value is not base
            and value.__module__ == module.__name__}


def test_no_network_and_no_configuration_is_missing_from_the_tables():
    learners = {"DisentangledElectra", "Electra", "KnowledgeTransfer", "MultiTaskLearner"}
    assert classes_of(networks, keras.Model) - learners == {*networks.NETWORKS.values()} - {"Bert"}
    configs = {cls.__name__ for cls in config.CONFIGS.values()}
    assert classes_of(config, config.Sizes) - {"ChangeableConfig"} == configs
    assert configs == {*networks.NETWORKS} - {"BertConfig"}


@pytest.mark.parametrize("name", FORMS)
def test_a_network_is_built_from_its_configuration(name):
    sizes = {field.name: 2 if "layers" in field.name else 16 if field.name in (
                 "hidden_size", "embedding_size") else 8
             for field in dataclasses.fields(getattr(config, name))
             if field.metadata.get("least") == 1}
    network = networks.build(getattr(config, name)(**sizes), name="mine", dtype="bfloat16")
    assert type(network).__name__ == networks.NETWORKS[name]
    assert network.name == "mine" and network.dtype_policy.name == "bfloat16"
    assert set(network.reads) <= set(KNOWN)
    assert isinstance(network.embedding_table, keras.Variable)
    assert isinstance(network.seed_generator, keras.random.SeedGenerator)
    same = type(network).from_config(network.get_config())
    assert same.config == network.config


@pytest.mark.parametrize("name, sizes", [(name, sizes) for name, forms in FORMS.items()
                                         for sizes in forms])
def test_the_table_of_names_has_the_variables_of_a_network(name, sizes):
    """Both ways: a name that no variable has, and a variable whose name is in no table."""
    sizes = getattr(config, name).from_dict(sizes)
    known = {}
    for row, shape in names.shapes(sizes).items():
        if names.head(row) in (*names.NETWORK, "pooler"):
            for i in numbers(sizes, row):
                ours = names.numbered(row, i, sizes)
                found = letters(sizes, ours)
                known[ours] = tuple(found[letter] for letter in shape)
    held = {ours: tuple(variable.shape)
            for ours, variable in variables(networks.build(sizes)).items()}
    assert known.keys() == held.keys()
    for ours, shape in known.items():
        assert all(size in (None, own) for size, own in zip(shape, held[ours], strict=True)), ours


@pytest.mark.parametrize("name", FORMS)
def test_a_checkpoint_of_tensorflow_has_all_weights(name, tmp_path):
    sizes = getattr(config, name).from_dict(FORMS[name][0])
    learner, other = (Learner(networks.build(sizes), [Classification(sizes, num_labels=2)])
                      for _ in range(2))
    for variable in learner.trainable_variables:
        variable.assign(variable + 1)
    path = tf.train.Checkpoint(model=learner).save(tmp_path / "checkpoint")
    tf.train.Checkpoint(model=other).restore(path).assert_consumed()
    assert_same(other.get_weights(), learner.get_weights())


def test_every_network_has_its_forms():
    assert FORMS.keys() == networks.NETWORKS.keys() - {"BertConfig"}


@pytest.mark.parametrize("features, said", [
    ({"input_ids": [[1]], "attention_mask": [[1]]}, "'attention_mask' is 'input_mask' here"),
    ({"input_word_ids": [[1]]}, "'input_word_ids' is 'input_ids' here"),
    ([[1]], "a dict of features"),
    ({"input_ids": [[1, 2]]}, "'input_ids' is a list; give an array"),
    ({"input_ids": tf.ragged.constant([[1, 2], [1]])}, "'input_ids' is a RaggedTensor"),
    ({"input_ids": np.array([[1, -1]])}, "'input_ids' has ids from -1 to 1, but the model's voc"),
    ({"input_ids": np.array([[1, 99]])}, "'input_ids' has ids from 1 to 99.*give ids from 0 to"),
    ({"input_ids": np.array([[1]]), "segment_ids": np.array([[8]])}, "type_vocab_size is 8"),
    ({"input_ids": np.array([1, 2])}, r"'input_ids' has the shape \[2\]; give a row for each")],
    ids=["transformers", "Model Garden", "no dict", "lists", "ragged", "negative", "above",
         "segments", "no rows"])
def test_features_in_other_forms_are_refused(features, said):
    """A network reads the names that it knows, so a mask of another name would have no effect.
    Keras would take a list of lists for many scalar inputs."""
    network = networks.build(config.EncoderConfig(**SIZES))
    learner = Learner(network, [Classification(network.config, 2)])
    for model in (network, learner):
        with pytest.raises(InputError, match=said):
            model(features)


def test_features_may_be_named():
    network = networks.build(config.EncoderConfig(**SIZES))
    learner = Learner(network, [Classification(network.config, 2)])
    features = dict.fromkeys(network.reads, keras.ops.ones((1, 2), "int32"))
    for given in (network(inputs=features), learner(batch=features)):
        assert given
    with pytest.raises(InputError, match="a dict of features"):
        network()


def learner(objective):
    sizes = config.EncoderConfig(**ONE_LAYER)
    return Learner(networks.build(sizes), [objective(sizes)])


# Each model, and some names of its outputs.
@pytest.mark.parametrize("make, names", [
    (lambda: networks.build(config.EncoderConfig(**ONE_LAYER)), {"layer_outputs_0"}),
    (lambda: learner(MultipleChoice), {"multiple_choice"})], ids=["BERT", "choices"])
def test_keras_exports_a_model(make, names, tmp_path):
    """What TensorFlow serves, under flat names, equals the outputs of a call."""
    model, rng = make(), np.random.default_rng(0)
    model.export(str(tmp_path), verbose=False)
    features = {name: tf.constant(rng.integers(0, 2, (3,) * (axes - 1) + (5,)), tf.int32)
                for name, axes in model.feature_axes.items()}
    features["input_ids"] += 1
    found, expected = tf.saved_model.load(str(tmp_path)), keras.tree.flatten(model(features))
    served = found.serve(features)
    assert names <= served.keys() and len(served) == len(expected)
    for one, other in zip(keras.tree.flatten(dict(served)), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def test_keras_exports_features_of_given_types(tmp_path):
    network = networks.build(config.EncoderConfig(**ONE_LAYER))
    network.export(str(tmp_path), verbose=False, input_signature=[
        {"input_ids": keras.InputSpec("int64", (None, 4))}])
    ids = tf.constant([[1, 2, 3, 4]], tf.int64)
    found = tf.saved_model.load(str(tmp_path))
    np.testing.assert_allclose(found.serve({"input_ids": ids})["pooled_output"],
                               network({"input_ids": ids})["pooled_output"], atol=1e-6)


def test_keras_exports_no_onnx(tmp_path):
    network = networks.build(config.EncoderConfig(**SIZES))
    with pytest.raises(InputError, match="call bert-export-model --format=onnx"):
        network.export(str(tmp_path / "model.onnx"), format="onnx")


def test_an_export_takes_the_features_that_logits_depend_on():
    assert learner(MaskedLM).feature_axes == {
        "input_ids": 2, "input_mask": 2, "segment_ids": 2, "masked_lm_positions": 2}
    states = networks.build(config.SequenceLstmConfig.from_dict(FORMS["SequenceLstmConfig"][0]))
    assert states.feature_axes == {"input_ids": 2, "input_mask": 2}
