"""Layers that share weights compute what layers with equal weights of their own compute."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import checkpoints, networks
from bert_tf.checkpoints.weights import variables
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.networks.encoder import BertEncoder
from bert_tf.training.transfer import freeze, layer_decay_factors, reinitialize_top

L, INNER = 4, 2
SHARED = EncoderConfig.preset(
    "tiny", vocab_size=20, hidden_size=16, intermediate_size=12, max_position_embeddings=8,
    num_hidden_layers=L, num_hidden_groups=2, inner_group_num=INNER, embedding_size=8,
    initializer_range=0.3)
INPUTS = {"input_ids": np.array([[2, 3, 4, 5, 6], [7, 8, 9, 0, 0]]),
          "input_mask": np.array([[1] * 5, [1, 1, 1, 0, 0]])}


@pytest.mark.parametrize("parts", ["all", "attention", "feed_forward"])
def test_they_compute_what_copies_compute(parts):
    config = dataclasses.replace(SHARED, shared_parts=parts)
    keras.utils.set_random_seed(7)
    shared = BertEncoder(config)
    apart = BertEncoder(dataclasses.replace(config, num_hidden_groups=None))
    ours, copies = variables(shared), variables(apart)
    owner = {}
    for name in copies:
        owner[name] = name
        if name.startswith("encoder/"):
            _, layer, rest = name.split("/", 2)
            pair = config.layer_weights[int(layer.removeprefix("layer_"))]
            number = pair[0] if rest.startswith("attention/") else pair[1]
            owner[name] = f"encoder/layer_{number}/{rest}"
        copies[name].assign(ours[owner[name]])
    assert set(owner.values()) == set(ours)

    masks = np.random.default_rng(0).uniform(size=(L * INNER, 2)).astype("float32")
    found = []
    for encoder in (shared, apart):
        with tf.GradientTape() as tape:
            outputs = encoder(INPUTS, head_mask=masks, return_attention=True)
            loss = tf.reduce_sum(outputs["sequence_output"]**3)
        named = {name: v for name, v in variables(encoder).items() if v.trainable}
        gradients = tape.gradient(loss, [v.value for v in named.values()])
        found.append((outputs, dict(zip(named, map(tf.convert_to_tensor, (
            tf.zeros(1) if g is None else g for g in gradients))))))
    (outputs, gradients), (wanted, apart_gradients) = found
    assert len(outputs["layer_outputs"]) == len(outputs["attention_probs"]) == L * INNER
    for name, value in wanted.items():
        assert np.allclose(outputs[name], value, atol=1e-5), name
    for name, gradient in gradients.items():
        total = sum(apart_gradients[copy] for copy, own in owner.items() if own == name)
        assert np.allclose(gradient, total, rtol=1e-3, atol=1e-3), name


def test_dropout_differs_between_passes_of_one_layer():
    config = dataclasses.replace(SHARED, num_hidden_groups=1, inner_group_num=1)
    outputs = BertEncoder(config)(INPUTS, training=True, dropout_seed=np.array([1, 2]))
    dropped = [np.asarray(layer) for layer in outputs["layer_outputs"]]
    assert not np.allclose(dropped[0], dropped[1])


@pytest.mark.parametrize("action, message", [
    (lambda encoder: freeze(encoder, 1), "--frozen_layers is 1, but the layers of this network"),
    (lambda encoder: reinitialize_top(encoder, 1), "--reinit_layers is 1"),
    (lambda encoder: layer_decay_factors(encoder.config, 0.9), "--layer_decay is 0.9"),
])
def test_none_can_be_treated_apart(action, message):
    encoder = BertEncoder(SHARED)
    with pytest.raises(InputError, match=message):
        action(encoder)
    freeze(encoder, 0)
    reinitialize_top(encoder, 0)
    assert layer_decay_factors(SHARED, 1.0) == ()
    freeze(encoder, -1)
    assert not encoder.trainable_variables


def test_projections_belong_to_their_encoders():
    first = BertEncoder(SHARED)
    second = BertEncoder(dataclasses.replace(SHARED, hidden_size=8, num_attention_heads=1),
                         embeddings=first.embeddings)
    third = BertEncoder(dataclasses.replace(SHARED, hidden_size=24), embeddings=first.embeddings)
    assert second.embeddings_project is None
    assert third.embeddings_project.kernel.shape == (8, 24)
    assert third(INPUTS)["sequence_output"].shape == (2, 5, 24)
    with pytest.raises(InputError, match="have embedding_width 8, the encoder has 16"):
        networks.build(dataclasses.replace(SHARED, embedding_size=None),
                       embeddings=first.embeddings)


def test_without_a_pooler_the_first_vector_is_the_pooled_one():
    outputs = BertEncoder(dataclasses.replace(SHARED, pooler_type="first_token"))(INPUTS)
    assert np.array_equal(outputs["pooled_output"], outputs["sequence_output"][:, 0])


@pytest.mark.parametrize("changes, key", [
    ({"num_hidden_layers": 6}, "num_hidden_layers is 4, but the model has 6"),
    ({"num_hidden_groups": 1, "inner_group_num": 4}, "num_hidden_groups is 2")])
def test_weights_of_another_depth_are_refused(changes, key, tmp_path):
    """The tensors alone would fit."""
    BertEncoder(SHARED).save(tmp_path / "model.keras")
    with pytest.raises(InputError, match=key):
        checkpoints.read_for(tmp_path / "model.keras", dataclasses.replace(SHARED, **changes))
