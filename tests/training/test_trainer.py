"""The training loop: the same numbers however the batch is shared out."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import networks, recipes
from bert_tf.bert.layers import TransformerLayer
from bert_tf.bert.objective import SentencePrediction
from bert_tf.config.quantisation import Quantisation
from bert_tf.data.batches.pipeline import RecordSet
from bert_tf.errors import InputError
from bert_tf.networks.encoder import BertEncoder
from bert_tf.training.learners.learner import Learner
from bert_tf.training.trainer import rematerialize
from tests.training import tiny

BATCH, STEPS, RATE = 8, 2, 1e-2
# Adam's own epsilon makes steps of the full rate out of the rounding of gradients near 0. With an
# epsilon of 1 no step is longer than the rate times the gradient, nor differs by more.
EXACT = {"dtype": "float64", "epsilon": 1.0}
# What weights may then differ by where the same is computed in another order. Logits and losses are
# float32 even so: each logit's gradient, at most 1 as clipped gradients are, differs by half an ulp
# for each addition and division of a softmax over the vocabulary.
BOUND = STEPS * RATE * 2 * tiny.VOCAB * 2.0**-24


def run(records, steps=STEPS, strategy=None, rematerializes=False, **options):
    trainer = tiny.trainer(strategy, rate=RATE, **options)
    if rematerializes:
        rematerialize(trainer.learner)
    batches = iter(trainer.distribute(lambda worker, workers, replicas: records.training_batches(
        3, 0, BATCH, replicas, worker, workers)))
    return trainer, trainer.train(batches, steps)


@pytest.fixture(scope="module")
def reference(records):
    """Weights and metrics after training on one device, without tracing."""
    is_eager = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    trainer, metrics = run(records, **EXACT)
    tf.config.run_functions_eagerly(is_eager)
    weights = tiny.weights(trainer)
    start = tiny.weights(tiny.trainer(**EXACT))
    assert tiny.largest_difference(start, weights) > 1e4 * BOUND
    return weights, metrics


def check_equal(weights, metrics, records, **options):
    """That training with these options ends with the same weights and metrics."""
    trainer, found = run(records, **EXACT, **options)
    assert tiny.largest_difference(weights, tiny.weights(trainer)) < BOUND
    assert found == pytest.approx(metrics, rel=1e-5)


def test_two_replicas_equal_one_device(records, mirrored, reference):
    check_equal(*reference, records, strategy=mirrored)


@pytest.mark.parametrize("optimizer", ["lamb", "muon"])
def test_optimizers_that_read_whole_matrices_equal_one_device(
        eagerly, records, mirrored, optimizer):
    options = {"optimizer": optimizer, "steps": 1}
    trainer, metrics = run(records, **EXACT, **options)
    check_equal(tiny.weights(trainer), metrics, records, strategy=mirrored, **options)


def test_metrics_are_means(reference):
    metrics = reference[1]
    assert metrics["loss"] == pytest.approx(
        metrics["masked_lm/loss"] + metrics["next_sentence/loss"], rel=1e-4)
    assert 0 <= metrics["masked_lm/accuracy"] <= 1


@pytest.mark.parametrize("options", [{"accumulation": 4}, {"jit_compile": True}])
def test_parts_and_compilation_change_nothing(eagerly, records, reference, options):
    tf.config.run_functions_eagerly("jit_compile" not in options)
    check_equal(*reference, records, **options)


def test_layers_that_are_computed_again_change_nothing(eagerly, records, mirrored, monkeypatch):
    calls = []
    call = TransformerLayer.call

    def count(self, *args):
        calls.append(self.name)
        return call(self, *args)

    monkeypatch.setattr(TransformerLayer, "call", count)
    options = {**EXACT, "dropout": 0.1, "steps": 1, "strategy": mirrored}
    kept, metrics = run(records, **options)
    once = len(calls)
    again, found = run(records, rematerializes=True, **options)
    assert tiny.largest_difference(tiny.weights(kept), tiny.weights(again)) < BOUND
    assert found == pytest.approx(metrics, rel=1e-5)
    assert len(calls) - once == 2 * once        # in the backward pass, too


def test_networks_that_compute_no_layer_again_say_so():
    rounded = tiny.config(num_hidden_layers=1, quantisation=Quantisation())
    config = dataclasses.replace(rounded, quantisation=None)
    other = tiny.config_of(recipes.find("xlnet"), num_hidden_layers=1)
    for encoder, part in ((BertEncoder(rounded), "a network of rounded numbers"),
                          (networks.build(other), "not for a XLNet")):
        with pytest.raises(InputError, match=f"--rematerialize.* {part}"):
            rematerialize(Learner(encoder, [SentencePrediction(config)]))


def test_counts_below_one_are_divided_by_too():
    """As weights of classes can make them; without any count there is no mean but 0."""
    means = tiny.trainer().means(np.array([[0.2, 0.4], [0.3, 0.4], [0.0, 0.0], [0.0, 0.0]]))
    assert means == pytest.approx({
        "loss": 0.5, "masked_lm/loss": 0.5, "masked_lm/accuracy": 0.75,
        "next_sentence/loss": 0, "next_sentence/accuracy": 0}, rel=1e-4)


def test_replicas_parts_and_steps_have_different_dropout(eagerly, records, mirrored):
    trainer = tiny.trainer(mirrored, dropout=0.5, accumulation=2)
    seeds = []
    gradients = trainer.replica.gradients
    trainer.replica.gradients = lambda batch, number, seed, *rest: (
        seeds.append(seed), gradients(batch, number, seed, *rest))[1]

    @tf.function(autograph=False)
    def step(batch, number):
        seeds.clear()
        mirrored.run(trainer.replica.step, args=(batch, number, tf.constant(1.0)))
        return tf.stack(seeds)

    batch = next(iter(trainer.distribute(
        lambda worker, workers, replicas: records.training_batches(3, 0, BATCH, replicas))))
    found = [tuple(seed) for number in (0, 1)
             for seed in step(batch, tf.constant(number, tf.int64)).numpy()]
    assert len(set(found)) == len(found) == 8


def test_evaluation_counts_every_record_once(eagerly, records, mirrored):
    features = tiny.write_records(records.paths[0] + ".odd", 21, seed=4)
    odd = RecordSet.open(records.paths[0] + ".odd", "input_file")
    whole = tiny.trainer().learner.measure(tiny.batch(features, slice(None)))
    expected = {f"{name}/{kind}": float(total / count) for name, kinds in whole.items()
                for kind, (total, count) in kinds.items()}
    trainer = tiny.trainer(mirrored)
    found = trainer.evaluate(trainer.distribute(
        lambda worker, workers, replicas: odd.evaluation_batches(8, 0, replicas)))
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-4)


def test_perplexity_is_that_of_the_logits(eagerly, records):
    """The exponential of the mean negative log likelihood, by NumPy; next sentences have none."""
    trainer, features = tiny.trainer(), tiny.write_records(records.paths[0] + ".ppl", 21, seed=6)
    held_out = RecordSet.open(records.paths[0] + ".ppl", "input_file")
    found = trainer.evaluate(trainer.distribute(
        lambda worker, workers, replicas: held_out.evaluation_batches(8, 0, replicas)))
    logits = trainer.learner(tiny.batch(features, slice(None)))["masked_lm"].numpy().astype(float)
    used = features["masked_lm_weights"] > 0
    shares = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    likelihood = np.take_along_axis(shares, features["masked_lm_ids"][..., None], 2)[..., 0][used]
    assert found["masked_lm/perplexity"] == pytest.approx(
        np.exp(-np.log(likelihood).mean()), rel=1e-5)
    assert "next_sentence/perplexity" not in found


def test_nothing_predicted_has_no_perplexity(eagerly, records):
    trainer, features = tiny.trainer(), tiny.write_records(records.paths[0] + ".none", 8, seed=6)
    none = {**features, "masked_lm_weights": features["masked_lm_weights"] * 0}
    tiny.write_features(records.paths[0] + ".none", none)
    held_out = RecordSet.open(records.paths[0] + ".none", "input_file")
    found = trainer.evaluate(trainer.distribute(
        lambda worker, workers, replicas: held_out.evaluation_batches(8, 0, replicas)))
    assert found["masked_lm/loss"] == 0 and "masked_lm/perplexity" not in found


def test_float16_finds_a_loss_scale_and_learns(records):
    trainer = tiny.trainer(dtype="mixed_float16")
    batches = iter(trainer.distribute(lambda *_: records.training_batches(3, 0, BATCH, 1)))
    trainer.loss_scale.assign(2.0**20)      # gradients overflow at first
    before = tiny.weights(trainer)
    first = trainer.train(batches, 1)
    assert float(trainer.loss_scale) == 2.0**19
    assert tiny.largest_difference(before, tiny.weights(trainer)) == 0
    last = [trainer.train(batches, 20) for _ in range(3)][-1]
    assert last["loss"] < 0.8 * first["loss"]


def test_bfloat16_learns_and_keeps_float32_weights(eagerly, records):
    trainer, first = run(records, dtype="mixed_bfloat16")
    assert {v.dtype for v in trainer.learner.trainable_variables} == {"float32"}
    assert trainer.learner.encoder.compute_dtype == "bfloat16"
    batches = iter(trainer.distribute(lambda *_: records.training_batches(3, 40, BATCH, 1)))
    assert trainer.train(batches, 8)["loss"] < first["loss"]


def test_the_compiled_step_has_no_dynamic_shape(records):
    trainer = tiny.trainer(accumulation=2, dropout=0.1)
    batch = next(iter(records.training_batches(3, 0, BATCH, 1)))

    @tf.function(jit_compile=True, autograph=False)
    def step(features, number):
        return trainer.replica.step(features, number, tf.constant(1.0))

    text = step.experimental_get_compiler_ir(batch, tf.constant(0, tf.int64))(stage="hlo")
    assert "f32[" in text
    assert "<=" not in text         # how XLA writes the bound of a dynamic dimension
