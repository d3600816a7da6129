"""A learner with a frozen teacher; TinyBERT's losses are those of its code (golden/distillation of
$BERT_TF_TEST_DATA)."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import networks, objectives
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.models.distilbert.settings import DistilBertSettings
from bert_tf.recipes import find
from bert_tf.training import (
    Distiller,
    DualTraining,
    Learner,
    ProjectionSettings,
    make_optimizer,
    save_model,
)
from bert_tf.training.resume import variables
from bert_tf.training.trainer import Trainer

pytestmark = pytest.mark.usefixtures("eagerly")
STUDENT = EncoderConfig(
    vocab_size=61, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24,
    hidden_act="gelu_erf", max_position_embeddings=20, type_vocab_size=2, hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0)
TEACHER = dataclasses.replace(STUDENT, hidden_size=32, num_hidden_layers=4, intermediate_size=40)


def make_batch():
    rng = np.random.default_rng(1)
    batch = {"input_ids": rng.integers(1, 61, (4, 12)),
             "input_mask": np.arange(12) < [[12], [9], [5], [7]], "label_ids": [2, 0, 1, 1]}
    return {name: tf.constant(np.asarray(value, "int32")) for name, value in batch.items()}


def make_distiller(student=STUDENT, teacher=TEACHER):
    keras.utils.set_random_seed(3)
    return Distiller(networks.build(student), [
        objectives.Classification(student, 3), objectives.AttentionTransfer(student),
        objectives.HiddenTransfer(student, teacher.hidden_size)],
        teacher=Learner(networks.build(teacher), [objectives.Classification(teacher, 3)]))


def values(learner):
    return [np.array(variable) for variable in learner.weights]


def test_the_teacher_only_teaches():
    dropping = dataclasses.replace(TEACHER, hidden_dropout_prob=0.5)
    learner, batch = make_distiller(teacher=dropping), make_batch()
    trainer = Trainer(learner, make_optimizer("adamw", 1e-2), tf.distribute.get_strategy())
    before, mine, taught = values(learner.teacher), values(learner), learner.teach(batch)
    trainer.train(iter([batch, batch]), 2)
    assert all(map(np.array_equal, before, values(learner.teacher)))
    assert not any(map(np.array_equal, mine[2:], values(learner)[2:]))
    for old, new in zip(tf.nest.flatten(taught), tf.nest.flatten(learner.teach(batch))):
        assert np.array_equal(old, new)                         # without dropout, too
    assert len([name for name in variables(trainer) if name.startswith("learner/")]) == len(mine)
    assert type(learner.parts()["model"]) is Learner
    assert [o.name for o in learner.parts()["model"].objectives] == ["classification"]


def test_narrow_embeddings_are_compared_after_their_projection(eagerly):
    """TinyBERT's loss of hidden states, of networks whose embeddings are projected for the first
    layer: the sum over layers of mean squares."""
    learner = make_distiller(dataclasses.replace(STUDENT, embedding_size=8),
                             dataclasses.replace(TEACHER, embedding_size=12))
    batch, found = make_batch(), []
    for one in (learner, learner.teacher):
        outputs = one.run_network(batch)
        found.append([outputs["projected_output"], *outputs["layer_outputs"]])
    hidden = learner.objectives[-1]
    ours, theirs = found[0], found[1][::2]
    wanted = sum(np.mean(np.square(hidden.fit_dense(x) - y)) for x, y in zip(ours, theirs))
    total, count = learner.measure(batch)["hidden_transfer"]["loss"]
    assert float(total / count) == pytest.approx(wanted, rel=1e-5)


def test_the_teacher_reads_no_noise():
    learner, batch = make_distiller(teacher=dataclasses.replace(TEACHER, hidden_size=16)
                                    ), make_batch()
    noise = tf.cos(tf.range(4 * 12 * 16, dtype=tf.float32))
    for name in ("word_noise", "embedding_noise"):
        moved = {**batch, name: tf.reshape(noise, [4, 12, 16])}
        for one, other in zip(*(tf.nest.flatten(learner.teach(x)) for x in (batch, moved))):
            assert np.array_equal(one, other)
        assert not np.allclose(learner(batch)["classification"], learner(moved)["classification"])


@pytest.mark.parametrize("of_masked", [False, True])
def test_squared_error_of_logits_is_distillers(tmp_path, of_masked):
    """transformers' distiller.py: the sum of the squares by the number of chosen tokens."""
    keras.utils.set_random_seed(3)
    save_model(str(tmp_path), Learner(networks.build(TEACHER), [objectives.MaskedLM(TEACHER)]))
    settings = DistilBertSettings(teacher=str(tmp_path), alpha_mse=0.25,
                                restrict_ce_to_mask=of_masked)
    terms = find("distilbert").terms[:2]
    learner = Distiller.of_terms(STUDENT, terms, settings=settings)
    assert [one.name for one in learner.objectives] == [
        "masked_lm", "token_distillation", "token_squared_error"]
    assert learner.objectives[-1].loss_weight == 0.25
    assert "token_squared_error" not in learner.parts()["model"].describe()["terms"]
    places = np.array([[1, 4], [3, 0], [2, 1], [5, 6]])
    used = np.array([[1, 1], [1, 0], [1, 1], [1, 1]], "float32")
    batch = {**make_batch(), "masked_lm_positions": tf.constant(places), "masked_lm_weights": used,
             "masked_lm_ids": tf.ones_like(places)}
    table = learner.encoder.embedding_table
    ours = learner.objectives[0].predict(learner.run_network(batch)["sequence_output"], table)
    theirs = learner.teach(batch)["teacher/token_logits"]
    chosen = np.array(batch["input_mask"]) > 0
    if of_masked:
        chosen = np.zeros_like(chosen)
        for row, (own, weights) in enumerate(zip(places, used)):
            chosen[row, own[weights > 0]] = True
    wanted = np.square(np.array(ours)[chosen] - np.array(theirs)[chosen]).sum() / chosen.sum()
    total, count = learner.measure(batch)["token_squared_error"]["loss"]
    assert float(total / count) == pytest.approx(wanted, rel=1e-5)
    with pytest.raises(InputError, match="--alpha_mse=0.25 is for terms that compare logits"):
        Distiller.of_terms(STUDENT, terms[:1], settings=settings)


def test_a_cosine_of_vectors_of_other_widths_is_refused_before_training(tmp_path):
    save_model(str(tmp_path), Learner(networks.build(TEACHER), [objectives.MaskedLM(TEACHER)]))
    terms, settings = find("distilbert").terms, DistilBertSettings(teacher=str(tmp_path))
    with pytest.raises(InputError, match=f"^--teacher={tmp_path} is 32 wide and the network 16 "
                                         "wide, but .*; set .* out of --terms.$"):
        Distiller.of_terms(STUDENT, terms, settings=settings)
    assert len(Distiller.of_terms(STUDENT, terms[:2], settings=settings).objectives) == 2


def test_examples_that_fill_a_batch_up_do_not_count():
    learner, batch = make_distiller(), make_batch()
    part = {name: value[:3] for name, value in batch.items()}
    whole = {**batch, "is_real_example": tf.constant([1, 1, 1, 0])}
    for name, measures in learner.measure(whole).items():
        np.testing.assert_allclose(measures["loss"], learner.measure(part)[name]["loss"], rtol=1e-5)
        np.testing.assert_allclose(measures["loss"][1], learner.counts(whole)[name])


@pytest.mark.parametrize("change, match", [
    ({"num_hidden_layers": 3}, "4 layers and the student 3"),
    ({"num_attention_heads": 2}, "4 attention heads and the student 2")])
def test_networks_that_can_not_be_compared(change, match):
    with pytest.raises(InputError, match=match):
        make_distiller(dataclasses.replace(STUDENT, **change))(make_batch())


@pytest.mark.parametrize("change, match", [
    ({"num_hidden_layers": 3}, "as many layers as the teacher"),
    ({}, r"has the shape \(16, 24\), which blocks of 16 don't divide"),
    ({"intermediate_size": 48}, "has 3 blocks in the network, but 2 in the teacher")])
def test_weights_that_cannot_be_projected_are_refused_before_a_step(change, match):
    student = dataclasses.replace(STUDENT, **{"num_hidden_layers": 4, **change})
    with pytest.raises(InputError, match=match):
        Distiller(networks.build(student), [objectives.WeightProjection(student, 32)], teacher=(
            Learner(networks.build(dataclasses.replace(TEACHER, intermediate_size=64)), [])))


@pytest.mark.parametrize("up", [False, True])
def test_weights_are_projected_to_the_other_width(up):
    student = dataclasses.replace(STUDENT, num_hidden_layers=4, intermediate_size=32)
    teacher = dataclasses.replace(TEACHER, intermediate_size=64)
    projection = objectives.WeightProjection(student, 32, up=up)
    learner = Distiller(networks.build(student), [projection],
                        teacher=Learner(networks.build(teacher), []))
    u, v = (np.array(matrix) for matrix in (projection.before, projection.after))
    expected = 0.0
    for mine, theirs in zip(learner.encoder.layers_, learner.teacher.encoder.layers_):
        for one, other in zip(mine.weights, theirs.weights):
            small, large = np.array(one), np.array(other)
            if up:
                small, large = large, small
            blocks = [axis // 32 if not up else axis // 16 for axis in large.shape]
            for block in np.ndindex(*blocks):
                width, to = (16, 32) if up else (32, 16)
                cut = large[tuple(np.s_[i * width:(i + 1) * width] for i in block)]
                image = u @ cut @ v if cut.ndim == 2 else cut @ v
                goal = small[tuple(np.s_[i * to:(i + 1) * to] for i in block)]
                expected += np.square(image - goal).sum()
    batch = make_batch()
    total, count = learner.measure(batch)["weight_projection"]["loss"]
    np.testing.assert_allclose(float(total) / float(count), expected, rtol=1e-5)
    assert float(count) == float(learner.counts(batch)["weight_projection"]) == 4


def test_a_teacher_learns_another_vocabulary(tmp_path):
    """Its tokens are predicted among those of their own vocabulary, and it keeps what it knew."""
    teacher = dataclasses.replace(TEACHER, intermediate_size=64)
    known = Learner(networks.build(teacher), [objectives.MaskedLM(teacher)])
    save_model(str(tmp_path), known)
    student = dataclasses.replace(STUDENT, vocab_size=23, num_hidden_layers=4, intermediate_size=32)
    recipe = find("dual_training")
    learner = DualTraining.of_terms(student, recipe.terms[::2] + recipe.terms[3:], settings=(
        ProjectionSettings(teacher=str(tmp_path), projection_weight=0.5)))
    dual, = learner.teacher.objectives
    assert [one.loss_weight for one in learner.objectives] == [1.0, 0.5, 1.0]
    rng = np.random.default_rng(1)
    mixed = {"input_ids": rng.integers(0, 84, (4, 12)), "input_mask": np.ones([4, 12]),
             "masked_lm_positions": rng.integers(0, 12, (4, 3)),
             "masked_lm_ids": np.array([[0, 60, 61], [83, 7, 70], [5, 62, 80], [1, 2, 3]]),
             "masked_lm_weights": np.ones([4, 3])}
    mine = {**mixed, "input_ids": mixed["input_ids"] % 23, "masked_lm_ids":
            mixed["masked_lm_ids"] % 23}
    batch = {name: tf.constant(np.asarray(value, "float32" if "weights" in name else "int32"))
             for part, prefix in ((mine, ""), (mixed, "beside/"))
             for name, value in ((prefix + name, value) for name, value in part.items())}
    features = {name.removeprefix("beside/"): value for name, value in batch.items()
                if name.startswith("beside/")}
    encoder = learner.teacher.encoder
    logits = np.array(objectives.MaskedLM.call(
        dual, encoder(features), features, encoder.embedding_table))
    expected = 0.0
    for row, label in zip(logits.reshape(12, -1), mixed["masked_lm_ids"].ravel()):
        part = row[:61] if label < 61 else row[61:]
        expected -= row[label] - np.log(np.sum(np.exp(part)))
    found = learner.measure(batch)["dual_masked_lm"]["loss"]
    np.testing.assert_allclose(found, (expected, 12), rtol=1e-5)
    # What it knew gives what it gave; without its text there is nothing to learn.
    old = {**features, "input_ids": features["input_ids"] % 61}
    np.testing.assert_allclose(encoder(old)["sequence_output"],
                               known.encoder(old)["sequence_output"], rtol=1e-6, atol=1e-6)
    alone = {name: value for name, value in batch.items() if not name.startswith("beside/")}
    assert float(learner.measure(alone)["dual_masked_lm"]["loss"][1]) == 0
    # The student's vectors are compared with its rows of the teacher's table.
    projection = learner.objectives[1]
    table = np.array(encoder.embedding_table)[61:]
    difference = table @ np.array(projection.after) - np.array(learner.encoder.embedding_table)
    both = Distiller(learner.encoder, [projection], teacher=learner.teacher)
    less = both.measure(alone)["weight_projection"]["loss"][0]
    more = learner.measure(alone)["weight_projection"]["loss"][0]
    np.testing.assert_allclose((more - less) / 4, np.sum(difference**2), rtol=1e-3)
    assert list(learner.parts()) == ["model"]
