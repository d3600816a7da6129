"""Tagging from fixed features: the layers that are read, the LSTMs against NumPy, training."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import expit, softmax

from bert_tf.config import EncoderConfig, MobileBertConfig
from bert_tf.errors import InputError
from bert_tf.networks import build
from bert_tf.networks.encoder import BertEncoder
from bert_tf.objectives.attentive_classification import AttentiveClassification
from bert_tf.objectives.lstms import CHOICES
from bert_tf.objectives.tagging import FeatureTagging
from bert_tf.training.learners.learner import Learner
from bert_tf.training.optimizers.adam import AdamWeightDecay
from bert_tf.training.trainer import Trainer
from bert_tf.training.transfer import freeze

CONFIG = EncoderConfig.preset(
    "tiny", vocab_size=40, hidden_size=8, num_attention_heads=2, num_hidden_layers=5,
    intermediate_size=16, max_position_embeddings=16)
TWO = dataclasses.replace(CONFIG, num_hidden_layers=2)
B, S, K = 4, 5, 3
RNG = np.random.default_rng(0)
MASK = (np.arange(S) < [[5], [3], [1], [0]]).astype("int32")
BATCH = {"input_ids": RNG.integers(1, 40, (B, S)).astype("int32"), "input_mask": MASK,
         "label_ids": RNG.integers(0, K, (B, S)).astype("int32"),
         "label_weights": MASK.astype("float32")}
OUTPUTS = {"embedding_output": RNG.normal(size=(B, S, 8)).astype("float32"),
           "layer_outputs": [RNG.normal(size=(B, S, 8)).astype("float32") for _ in range(5)]}


def make_head(choice="concat_last_4", config=CONFIG, **options):
    """A head all of whose weights are random."""
    keras.utils.set_random_seed(1)
    head = FeatureTagging(config, K, choice, **{"lstm_size": 6, "dropout_rate": 0.0, **options})
    for variable in head.trainable_variables:
        variable.assign(np.random.default_rng(2).normal(size=variable.shape) / 2)
    return head


def make_learner(choice, config=CONFIG, **options):
    head = make_head(choice, config, **options)
    learner = Learner(BertEncoder(config), [head])
    freeze(learner.encoder, -1)
    return learner


def chosen(head):
    """The features by their definition."""
    layers = OUTPUTS["layer_outputs"]
    named = {v.name: np.array(v) for v in head.reader.trainable_variables}
    if "weighted" in head.reader.choice or head.reader.choice == "elmo":
        weights = softmax(named["layer_weights"])
        used = layers[-4:] if head.reader.choice.endswith("4") else layers
        if head.reader.choice == "elmo":
            used = [OUTPUTS["embedding_output"], *layers]
        return named["scale"] * sum(w * x for w, x in zip(weights, used, strict=True))
    return {"embeddings": OUTPUTS["embedding_output"], "last": layers[4],
            "elmo_top": named.get("scale", 1) * layers[4], "second_to_last": layers[3],
            "concat_last_4": np.concatenate(layers[1:], axis=-1)}[head.reader.choice]


def lstm(x, kernel, recurrent, bias):
    """One direction over the tokens of one text [S, width] (Hochreiter & Schmidhuber, 1997)."""
    hidden = cell = np.zeros(len(recurrent))
    outputs = []
    for row in x:
        i, f, c, o = np.split(row @ kernel + hidden @ recurrent + bias, 4)
        cell = expit(f) * cell + expit(i) * np.tanh(c)
        hidden = expit(o) * np.tanh(cell)
        outputs.append(hidden)
    return np.array(outputs)


def expected_logits(head, x):
    """The logits of one text from its features, without padding."""
    for layer in head.reader.lstms:
        weights = [np.array(w, float) for w in layer.weights]
        x = np.concatenate([lstm(x, *weights[:3]), lstm(x[::-1], *weights[3:])[::-1]], axis=-1)
    kernel, bias = (np.array(w) for w in head.classifier.weights)
    return x @ kernel + bias


@pytest.mark.parametrize("choice", CHOICES)
def test_each_choice_and_the_lstms_by_their_formulas(choice):
    head = make_head(choice)
    logits = np.array(head(OUTPUTS, BATCH))
    features = chosen(head).astype(float)
    assert logits.shape == (B, S, K)
    for row, length in enumerate(MASK.sum(1)):      # the padding is as if it weren't there
        if length:
            assert np.allclose(logits[row, :length],
                               expected_logits(head, features[row, :length]), atol=1e-5)


def test_the_content_of_padding_changes_nothing():
    head, changed = make_head(), {"layer_outputs": [
        np.where(MASK[..., None], x, 99).astype("float32") for x in OUTPUTS["layer_outputs"]]}
    one, other = (np.array(head(outputs, BATCH)) for outputs in (OUTPUTS, changed))
    assert np.array_equal(one, other)
    longer = {"layer_outputs": [np.pad(x, ((0, 0), (0, 3), (0, 0)), constant_values=5)
                                for x in OUTPUTS["layer_outputs"]]}
    found = head(longer, {"input_mask": np.pad(MASK, ((0, 0), (0, 3)))})
    assert np.allclose(np.array(found)[:, :S][MASK == 1], one[MASK == 1], atol=1e-6)


def test_without_a_mask_all_are_tokens():
    head = make_head("last", lstm_layers=1)
    logits = np.array(head(OUTPUTS, {}))
    assert np.allclose(logits[2], expected_logits(head, OUTPUTS["layer_outputs"][4][2]), atol=1e-5)


def test_directions_begin_differently_and_weighted_sums_as_means():
    keras.utils.set_random_seed(1)
    head = FeatureTagging(CONFIG, K, "weighted_sum_all", lstm_size=6)
    kernels = [w for w in head.reader.trainable_variables if "kernel" in w.path]
    assert len(kernels) == 8 and len({np.array(w).tobytes() for w in kernels}) == 8
    mixed = np.array(head.reader.choose(OUTPUTS))
    assert np.allclose(mixed, np.mean(OUTPUTS["layer_outputs"], axis=0), atol=1e-6)
    keras.utils.set_random_seed(1)
    again = FeatureTagging(CONFIG, K, "weighted_sum_all", lstm_size=6)
    assert all(np.array_equal(a, b) for a, b in zip(head.weights, again.weights))


def test_labels_weights_and_options_are_those_of_tagging():
    head = make_head(class_weights=[1, 2, 3], label_smoothing=0.1, loss_weight=2.0)
    labels, weights = head.targets(BATCH)
    assert np.array_equal(labels, BATCH["label_ids"]) and np.array_equal(weights, MASK)
    loss, count = head.loss(head(OUTPUTS, BATCH), labels, weights)
    assert np.isfinite(loss) and float(count) == ((BATCH["label_ids"] + 1) * MASK).sum()


def test_it_is_compiled_for_any_length():
    learner = make_learner("weighted_sum_all", TWO, dropout_rate=0.5, lstm_layers=1)

    @tf.function(autograph=False, jit_compile=True, input_signature=[{
        name: tf.TensorSpec([None, None], value.dtype) for name, value in BATCH.items()}])
    def step(batch):
        with tf.GradientTape() as tape:
            measures = learner.measure(batch, training=True, dropout_seed=tf.constant([1, 2]))
            loss = learner.total_loss(measures)
        return loss, tape.gradient(loss, [v.value for v in learner.trainable_variables])

    batch = {name: tf.constant(value[:, :4]) for name, value in BATCH.items()}
    loss, gradients = step(batch)
    again = learner.total_loss(
        learner.measure(batch, training=True, dropout_seed=tf.constant([1, 2])))
    assert float(loss) == pytest.approx(float(again), rel=1e-5)
    assert len(gradients) == 2 + 6 + 2
    assert all(np.any(np.array(gradient)) for gradient in gradients)


def test_dropout_is_a_function_of_the_seed_and_leaves_the_encoder_alone():
    learner = make_learner("last", TWO, dropout_rate=0.5, lstm_layers=1)

    def logits(*seed):
        return np.array(learner(BATCH, training=True, dropout_seed=np.array(seed))[
            "feature_tagging"])

    assert np.array_equal(logits(1, 2), logits(1, 2))
    assert not np.allclose(logits(1, 2), logits(1, 3))
    plain = make_learner("last", TWO, lstm_layers=1)
    assert np.array_equal(plain(BATCH, training=True)["feature_tagging"],
                          plain(BATCH)["feature_tagging"])


def train(strategy):
    """Takes two steps; returns the learner's weights, before and after, and the loss."""
    with strategy.scope():
        learner = make_learner("weighted_sum_all", TWO, lstm_layers=1,
                               class_weights=[1.0, 5.0, 0.5])
        trainer = Trainer(learner, AdamWeightDecay(1e-2), strategy)
    before = {v.path: v.numpy() for v in learner.weights}
    batch = {**BATCH, "label_weights": np.ones((B, S), "float32")}
    batches = tf.data.Dataset.from_tensor_slices(batch).repeat(2).batch(B, drop_remainder=True)
    metrics = trainer.train(iter(strategy.experimental_distribute_dataset(batches)), 2)
    return before, {v.path: v.numpy() for v in learner.weights}, metrics["loss"]


def test_it_is_trained_alike_on_two_replicas(eagerly, mirrored):
    before, plain, loss = train(tf.distribute.get_strategy())
    for name, value in plain.items():
        assert np.array_equal(value, before[name]) == name.startswith("bert/"), name
    _, other, same = train(mirrored)
    assert same == pytest.approx(loss, rel=1e-5)
    assert max(np.abs(plain[name] - other[name]).max() for name in plain) < 1e-5


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_it_is_saved_and_loaded(dtype, tmp_path):
    head = make_head("weighted_sum_all", TWO, lstm_layers=2, class_weights=[1, 2, 3], dtype=dtype)
    learner = Learner(BertEncoder(TWO, dtype=dtype), [head])
    freeze(learner.encoder, -1)
    learner.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.objectives[0].get_config() == head.get_config()
    logits = learner(BATCH)["feature_tagging"]
    assert logits.dtype == "float32"
    assert head.reader.lstms[0].compute_dtype == dtype.removeprefix("mixed_")
    assert np.array_equal(loaded(BATCH)["feature_tagging"], logits)
    assert [v.path for v in loaded.trainable_variables] == [v.path for v in head.weights]


@pytest.mark.parametrize("choice", ["embeddings", "elmo"])
def test_mobilebert_widens_its_embeddings_itself(choice):
    config = MobileBertConfig(40, 8, 2, 2, 16, embedding_size=4)
    outputs = build(config)(BATCH)
    for head in (make_head(choice, config),
                 AttentiveClassification(config, K, choice, lstm_size=6, hidden_size=6)):
        reader = head.reader
        assert reader.lstms[0].weights[0].shape[0] == reader.choose(outputs).shape[-1] == 8


@pytest.mark.parametrize("layers, options, message", [
    (3, {"layers": "concat_last_4"}, "concat_last_4 need 4 layers, but the encoder has 3"),
    (1, {"layers": "second_to_last"}, "second_to_last need 2 layers"),
])
def test_what_is_impossible_is_refused(layers, options, message):
    with pytest.raises(InputError, match=message):
        FeatureTagging(dataclasses.replace(CONFIG, num_hidden_layers=layers), K, **options)
