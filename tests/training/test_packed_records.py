"""Records that share rows give the numbers of records with a row each."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import recipes, training
from bert_tf.data.batches.pipeline import PackedRecords, RecordSet
from bert_tf.data.batches.row_layout import lay_out, plan, rounded
from bert_tf.training.trainer import rematerialize
from tests.training import tiny

BATCH, STEPS, RATE = 8, 2, 1e-2
EXACT = {"dtype": "float64", "epsilon": 1.0}
LEARNED = ("bert", "albert", "electra", "spanbert", "structbert", "ltr")


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Some of them short, so that up to four share a row."""
    path = tmp_path_factory.mktemp("packed") / "a.tfrecord"
    features = tiny.write_records(path, 48)
    rng = np.random.default_rng(2)
    for row in range(0, 48, 2):
        kept = np.arange(tiny.LENGTH) < rng.integers(4, 8)
        for name in ("input_ids", "input_mask", "segment_ids"):
            features[name][row] *= kept
        features["masked_lm_positions"][row] %= 4
    tiny.write_features(path, features)
    return RecordSet.open(str(path), "input_file")


@pytest.mark.parametrize("seed", range(20))
def test_every_token_has_one_place(seed):
    """No two tokens share a place, each record stands whole in one row, and rows are few: by
    theory at most 11/9 of the fewest, and one."""
    rng = np.random.default_rng(seed)
    size, count = int(rng.integers(1, 65)), int(rng.integers(1, 70))
    lengths = rng.integers(0, size + 1, count)
    needed = lay_out(lengths, size)[2]
    source, place = plan(lengths, size, rounded(needed, count))
    for record, length in enumerate(lengths):
        own = place[record, :length]
        assert len(set(own // size)) <= 1 and (np.diff(own) == 1).all()
        assert (source.reshape(-1)[own] == record * size + np.arange(length)).all()
    assert (source >= 0).sum() == lengths.sum()
    assert needed <= 11 / 9 * max(_fewest(lengths, size), 1) + 1
    assert len(source) == rounded(needed, count) <= count


def _fewest(lengths, size):
    """The fewest rows that lengths can need at best: those of more than half a row need one
    each, and all tokens need their places."""
    found = (lengths > size / 2).sum()
    # Records of more than a third of a row share one with at most another one.
    thirds = (lengths > size / 3).sum()
    return max(found, -(-thirds // 2), -(-lengths.sum() // size))


def learner_of(name):
    """A small learner of a recipe without dropout, in float64."""
    recipe = recipes.find(name)
    keras.utils.set_random_seed(1)
    config = tiny.config_of(recipe, num_hidden_layers=2, max_position_embeddings=tiny.LENGTH + 2)
    terms = [dataclasses.replace(term, options={**term.options, **(
        {"max_targets": 4} if term.objective == "SpanBoundary" else {})})
        for term in recipe.terms if not term.optional]
    return recipes.load(recipe.learner).of_terms(config, terms, "float64")


def batches_of(records):
    """A batch with rows for each record, and the same packed; with what further objectives read."""
    found = [next(iter(kind.training_batches(3, 0, BATCH, 1)))
             for kind in (records, PackedRecords.of(records, 1))]
    ids, weights = found[0]["masked_lm_positions"], found[0]["masked_lm_weights"]
    rng = np.random.default_rng(5)
    more = {"span_left": tf.maximum(ids - 1, 0), "span_right": ids + 1,
            "span_offset": tf.zeros_like(ids), "span_weights": weights * tf.cast(
                rng.integers(0, 2, weights.shape), tf.float32),
            "word_order_weights": weights * tf.cast(rng.integers(0, 2, weights.shape), tf.float32),
            "draws": tf.constant(rng.random(ids.shape), tf.float32)}
    assert len(found[1]["packed_from"]) < BATCH and len(found[1]["predictions"]) < weights.shape[
        0] * weights.shape[1]
    return [{**batch, **more} for batch in found]


@pytest.mark.parametrize("name", LEARNED)
def test_losses_and_gradients_are_those_of_padded_rows(records, name):
    learner = learner_of(name)
    assert learner.packs
    found = []
    padded, packed = batches_of(records)
    for batch, rematerializes in ((padded, False), (packed, False), (packed, True)):
        if rematerializes:
            rematerialize(learner)
        with tf.GradientTape() as tape:
            measures = learner.measure(batch)
            loss = learner.total_loss(measures, learner.counts(batch))
        gradients = tape.gradient(loss, [v.value for v in learner.trainable_variables],
                                  unconnected_gradients="zero")
        found.append((tf.nest.flatten(measures),
                      [tf.convert_to_tensor(gradient).numpy() for gradient in gradients]))
    largest = max(np.abs(gradient).max() for gradient in found[0][1])
    for measures, gradients in found[1:]:
        for one, other in zip(found[0][0], measures):
            # The bin of a tally may be the next one.
            assert np.sum(one) == pytest.approx(np.sum(other), rel=1e-6)
        for one, other in zip(found[0][1], gradients):
            np.testing.assert_allclose(one, other, atol=1e-6 * largest)


def test_a_token_changes_nothing_in_other_records(records):
    learner = learner_of("bert")
    _, batch = batches_of(records)
    place = np.asarray(batch["packed_at"]) // tiny.LENGTH * np.asarray(batch["input_mask"])
    mates = [np.flatnonzero((place == row).any(1)) for row in np.unique(place)]
    first = max(mates, key=len)[0]
    ids = np.array(batch["input_ids"])
    ids[first, :3] = (ids[first, :3] + 1) % tiny.VOCAB
    before, after = (learner.encoder({**batch, "input_ids": values})
                     for values in (batch["input_ids"], ids))
    for name in ("sequence_output", "pooled_output"):
        differs = (before[name] != after[name]).numpy()
        differs = differs & np.asarray(batch["input_mask"], bool)[:, :, None] if (
            name == "sequence_output") else differs
        assert [row for row in range(BATCH) if differs[row].any()] == [first]


def run(records, parts, strategy=None, **options):
    trainer = tiny.trainer(strategy, rate=RATE, **options)
    packed = PackedRecords.of(records, parts) if parts else records
    batches = iter(trainer.distribute(lambda worker, workers, replicas: packed.training_batches(
        3, 0, BATCH, replicas, worker, workers)))
    return trainer, trainer.train(batches, STEPS)


def test_parts_of_two_devices_learn_the_same(eagerly, records, mirrored):
    bound = STEPS * RATE * 2 * tiny.VOCAB * 2.0**-24       # as in test_trainer.py
    wanted, metrics = run(records, 0, **EXACT)
    trainer, found = run(records, 4, mirrored, accumulation=2, **EXACT)
    assert tiny.largest_difference(tiny.weights(wanted), tiny.weights(trainer)) < bound
    assert found == pytest.approx(metrics, rel=1e-5)


def test_devices_that_must_know_all_shapes_see_the_same_batches(eagerly, records, monkeypatch):
    packed = PackedRecords.of(records, 1)
    found = []
    for static in (False, True):
        trainer = tiny.trainer(rate=RATE)
        monkeypatch.setattr("bert_tf.training.batches.needs_static_shapes",
                            lambda strategy, static=static: static)
        feed = training.Feed(trainer, packed, (3, 0, BATCH))
        feed.train(2)
        found.append(tiny.weights(trainer))
    assert tiny.largest_difference(*found) == 0
    lengths = packed.batch_lengths(3, 0, BATCH)
    assert len({next(lengths) for _ in range(2)}) > 1
    shapes = {next(lengths) for _ in range(9)}
    for rows, slots in shapes:
        batches = packed.training_batches(3, 0, BATCH, 1, length=(rows, slots))
        assert batches.element_spec["packed_from"].shape == (rows, tiny.LENGTH)
        assert batches.element_spec["predictions"].shape == (slots,)
