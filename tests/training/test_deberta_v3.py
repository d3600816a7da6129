"""DeBERTa 3's replaced tokens and disentangled embeddings, against the original's outputs."""

import dataclasses
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf import checkpoints, recipes
from bert_tf.checkpoints import convert
from bert_tf.checkpoints.weights import variables
from bert_tf.errors import InputError
from bert_tf.models.deberta.config import DIFFERENCE, DebertaConfig
from bert_tf.models.deberta.learner import DisentangledElectra
from bert_tf.models.electra import learner as electra
from bert_tf.models.electra.settings import GeneratorSettings
from bert_tf.training import Trainer, make_optimizer, resume
from bert_tf.training.learners.learner import Learner
from tests.networks.test_deberta import expected, features, off, part_of, relative, written

TERMS = recipes.find("deberta_v3").terms
NAME = "replaced_token_in_context"
CONFIG = DebertaConfig(
    40, 16, 3, 2, 32, type_vocab_size=0, max_position_embeddings=16, position_buckets=8,
    share_att_key=True, norm_rel_ebd="layer_norm", position_biased_input=False,
    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def make(config=CONFIG, dtype=None, **settings):
    keras.utils.set_random_seed(1)
    return DisentangledElectra.of_terms(config, TERMS, dtype, recipes.fill(
        GeneratorSettings, "deberta_v3", **settings))


def difference(learner):
    return learner.encoder.embeddings.difference


def move_tables(learner):
    """Gives both tables other values than at the start."""
    rng = np.random.default_rng(2)
    for table in (difference(learner), learner.generator.embedding_table):
        table.assign(rng.normal(size=table.shape))


def batch(seed=0, rows=4, size=16, slots=3):
    rng = np.random.default_rng(seed)
    ids = rng.integers(5, 40, (rows, size)).astype("int32")
    places = np.sort(rng.permuted(np.tile(np.arange(1, size), (rows, 1)), axis=1)[:, :slots], 1)
    hidden = ids.copy()
    np.put_along_axis(hidden, places, 4, 1)
    return {"input_ids": hidden, "input_mask": np.ones_like(ids),
            "masked_lm_positions": places.astype("int32"),
            "masked_lm_ids": np.take_along_axis(ids, places, 1),
            "masked_lm_weights": np.ones(places.shape, "float32")}


@pytest.fixture(name="golden")
def fixture_golden(test_data):
    return pathlib.Path(test_data / "golden" / "deberta" / "mlm_v3").parent


def loaded(golden, tmp_path):
    """The learner with the weights of the golden file, and the file."""
    case = expected(golden, "replaced_token_detection")
    generator, network = (part_of(case, name) for name in ("generator", "discriminator"))
    name = "weights/deberta.embeddings.word_embeddings.weight"
    network[name] = network[name] + generator[name]
    folders = [written(part, tmp_path / name, **options) for part, name, options in (
        (generator, "generator", {"enhanced_mask_decoder": True}), (network, "network", {}))]
    learner = make(bert_tf.open_model(folders[1]).config)
    checkpoints.load(folders[0], learner.parts()["generator"])
    checkpoints.load(folders[1], learner)
    return learner, case


def test_the_original_losses_and_gradients(golden, tmp_path, monkeypatch):
    """float32 against the original's float32: gradients of each variable within 5e-6 of its
    largest, of all together within 1e-6."""
    learner, case = loaded(golden, tmp_path)
    wanted = case["weights/discriminator.deberta.embeddings.word_embeddings._weight"]
    assert off(difference(learner), wanted) < 5e-7      # the sum was rounded
    difference(learner).assign(wanted)
    rows, places = np.nonzero(case["labels"])
    slots = np.concatenate([np.arange(count) for count in np.bincount(rows)])
    shape = 4, slots.max() + 1
    positions, labels, sampled = (np.zeros(shape, "int32") for _ in range(3))
    positions[rows, slots] = places
    labels[rows, slots] = case["labels"][rows, places]
    sampled[rows, slots] = case["corrupted_ids"][rows, places]
    monkeypatch.setattr(electra, "sample", lambda *_: tf.constant(sampled))
    seen = {**features(case), "masked_lm_positions": positions, "masked_lm_ids": labels,
            "masked_lm_weights": (labels > 0).astype("float32")}
    with tf.GradientTape() as tape:
        logits = learner(seen)
        means = {name: measures["loss"][0] / measures["loss"][1] for name, measures in
                 learner.measure_logits(logits, seen).items()}
    assert (np.asarray(logits["corrupted_ids"]) == case["corrupted_ids"]).all()
    assert off(np.asarray(logits["masked_lm"])[rows, slots], case["generator_logits"]) < 2e-5
    assert off(logits[NAME], case["discriminator_logits"], case["attention_mask"] == 1) < 2e-6
    assert float(means["masked_lm"]) == pytest.approx(float(case["generator_loss"]), rel=1e-6)
    assert float(means[NAME]) == pytest.approx(float(case["discriminator_loss"]), rel=1e-6)
    of_network = variables(Learner(learner.encoder, learner.objectives[-1:]))
    of_generator = variables(Learner(learner.generator, learner.objectives[:1]))
    grads = tape.gradient(means[NAME], [v.value for v in (*of_network.values(),
                                                         *of_generator.values())])
    found = dict(zip(of_network, grads))
    found["embeddings/word_embeddings"] = found.pop("embeddings/word_embeddings" + DIFFERENCE)
    gradients = {key.replace("gradient/", "weights/"): value for key, value in part_of(
        expected(golden, "replaced_token_detection_gradients"), "discriminator").items()}
    folder = written({**gradients, "config": part_of(case, "discriminator")["config"]},
                     tmp_path / "gradients")
    each, whole = relative(found, checkpoints.read(folder).tensors)
    assert each < 1e-5 and whole < 1e-6
    assert all(grad is None for grad in grads[len(of_network):])     # none reaches the generator


def test_what_is_saved_has_the_sums(tmp_path):
    learner = make()
    move_tables(learner)
    network = learner.parts()["model"].encoder
    ids = {"input_ids": batch()["input_ids"]}
    wanted = learner.encoder(ids)["sequence_output"]
    assert np.array_equal(network(ids)["sequence_output"], wanted)
    assert np.array_equal(network.embedding_table, learner.encoder.embedding_table)
    # A loaded model is taken apart again.
    network.embedding_table.assign(network.embedding_table + 1.0)
    before = np.array(difference(learner))
    learner.take({"model": Learner(network, [])})
    np.testing.assert_allclose(difference(learner), before + 1, atol=1e-6)


@pytest.mark.parametrize("settings", [
    {}, {"untied_generator_embeddings": True, "generator_hidden_size": 0.5},
    {"untied_generator": False}])
def test_a_saved_learner_is_the_same(tmp_path, settings):
    learner = make(**settings)
    if learner.shares:
        move_tables(learner)
    learner.save(tmp_path / "x.keras")
    again = keras.saving.load_model(tmp_path / "x.keras")
    assert len(again.weights) == len(learner.weights) and again.describe() == learner.describe()
    ours, theirs = learner(batch()), again(batch())
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_sizes_of_the_generator():
    learner = DisentangledElectra.of_terms(CONFIG, TERMS)
    assert learner.generator.config.num_hidden_layers == 2
    assert learner.generator.config.enhanced_mask_decoder and not CONFIG.enhanced_mask_decoder
    with pytest.raises(InputError, match="--generator_hidden_size must be 1"):
        make(generator_hidden_size=0.5)


def test_a_step_and_a_checkpoint(tmp_path, eagerly):
    """What a run leaves opens, is written for transformers, and begins another run."""
    learner = make()
    optimizer = make_optimizer("bert_adamw", 0.01)
    trainer = Trainer(learner, optimizer, tf.distribute.get_strategy())
    trainer.train(iter(trainer.distribute(
        lambda *_: tf.data.Dataset.from_tensor_slices(batch()).batch(2))), 1)
    assert np.abs(difference(learner)).max() > 0
    CONFIG.to_json_file(tmp_path / "bert_config.json")
    resume.write_checkpoint(str(tmp_path), resume.copy_state(trainer),
                            {"run": learner.describe()}, 1)
    ids = {"input_ids": batch()["input_ids"]}
    wanted = learner.encoder(ids)["sequence_output"]
    model = bert_tf.open_model(tmp_path)
    assert np.array_equal(model.network()(ids)["sequence_output"], wanted)
    generator = checkpoints.read(tmp_path, generator=True)
    assert generator.config == learner.generator.config
    again = make()
    checkpoints.load(tmp_path, again)
    assert off(again.encoder(ids)["sequence_output"], wanted) < 1e-5
    assert off(again.generator(ids)["sequence_output"],
               learner.generator(ids)["sequence_output"]) == 0
    convert(tmp_path, tmp_path / "hf", "huggingface")
    written_again = checkpoints.read(tmp_path / "hf")
    assert NAME in written_again.heads and written_again.config == CONFIG
    assert off(bert_tf.open_model(tmp_path / "hf").network()(ids)["sequence_output"], wanted) == 0


def test_bfloat16_is_near_float32(eagerly):
    """Two steps with the same draws; the weights and the moments stay float32."""
    config = dataclasses.replace(CONFIG, num_hidden_layers=1)
    rows = {**batch(rows=16), "draws": np.random.default_rng(3).random((16, 3), "float32")}
    losses = []
    for dtype in ("float32", "mixed_bfloat16"):
        learner = make(config, dtype, generator_layers=1.0)
        assert learner.encoder.compute_dtype == ("bfloat16" if losses else "float32")
        optimizer = make_optimizer("bert_adamw", 3e-3)
        trainer = Trainer(learner, optimizer, tf.distribute.get_strategy())
        metrics = [trainer.train(iter(trainer.distribute(
            lambda *_: tf.data.Dataset.from_tensor_slices(rows).batch(16))), 1) for _ in range(2)]
        losses.append([[one[f"{name}/loss"] for name in ("masked_lm", NAME)] for one in metrics])
        assert {variable.dtype for variable in (*learner.weights, *optimizer.variables)
                if "float" in str(variable.dtype)} == {"float32"}
        assert np.abs(difference(learner)).max() > 0
        assert all(np.isfinite(variable.numpy()).all() for variable in learner.weights)
    assert losses[0][-1][0] < losses[0][0][0]
    np.testing.assert_allclose(losses[1], losses[0], rtol=0.01)
