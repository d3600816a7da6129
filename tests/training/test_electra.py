"""ELECTRA's learner: against the original's outputs, and against slow references."""

import dataclasses
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from sklearn.metrics import roc_auc_score

from bert_tf import recipes
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.models.electra.learner import Electra, sample, scatter_update
from bert_tf.models.electra.masks import hide_with_repeats
from bert_tf.models.electra.objective import area_under_curve, logit_histogram, written
from bert_tf.models.electra.settings import GeneratorSettings
from bert_tf.training import Learner, make_optimizer
from bert_tf.training.optimizers.adam import WarmupLinearDecay
from bert_tf.training.trainer import Trainer
from tests.goldens import at_hand
from tests.rounding import ROUNDED, off

SIZES = {"type_vocab_size": 2, "hidden_act": "gelu_erf", "model_type": "electra",
         "pooler_type": "first_token"}
VARIANTS = ["small_generator", "embedding_is_generator_width", "no_projection_half_depth",
            "untied_embeddings", "all_tied", "uniform_generator", "masked_lm_only"]
# Their variables, by the beginning of the original's names.
PREFIXES = {"electra/": "bert/", "generator_predictions/output_bias": "masked_lm/output_bias",
            "generator_predictions/": "masked_lm/transform/",
            "discriminator_predictions/": "replaced_token/"}


def of_options(text):
    options = json.loads(str(text))
    options.pop("mask_prob", None)
    config = EncoderConfig.from_dict({
        "vocab_size": 96, "embedding_size": options.pop("embedding_size"), **SIZES,
        **options.pop("model_hparam_overrides")})
    return Electra.of_terms(config, recipes.find("electra").terms,
                            settings=GeneratorSettings(**options))


def our_name(theirs):
    prefix = next((p for p in PREFIXES if theirs.startswith(p)), "")
    return PREFIXES.get(prefix, "") + theirs.removeprefix(prefix)


def golden_weights(golden, folder):
    return {our_name(key.removeprefix(folder)): golden[key] for key in golden
            if key.startswith(folder)}


def load(learner, golden):
    named = {v.path: v for v in learner.weights if "seed" not in v.path}
    values = golden_weights(golden, "weights/")
    assert named.keys() == values.keys()
    for name, value in values.items():
        named[name].assign(value)


def masked_batch(golden, draws, mask_prob=0.15):
    batch = {name: tf.constant(golden[f"batch/{name}"])
             for name in ("input_ids", "input_mask", "segment_ids")}
    batch |= hide_with_repeats(
        batch["input_ids"], batch["input_mask"], tf.constant(golden[f"{draws}/positions"]),
        tf.constant(golden[f"{draws}/keep"]), mask_prob, 0.85, int(golden["special/mask_id"]))
    return {**batch, "draws": tf.constant(golden[f"{draws}/noise"])}


def gradients(learner, batch):
    with tf.GradientTape() as tape:
        logits = learner(batch)
        measures = learner.measure_logits(logits, batch)
        total = learner.total_loss(measures, learner.counts(batch))
    found = tape.gradient(total, [v.value for v in learner.trainable_variables],
                          unconnected_gradients="zero")
    return logits, measures, float(total), found


def means(measures):
    return {f"{name}/{kind}": float(total / count) for name, kinds in measures.items()
            for kind, (total, count) in kinds.items() if kind != "histogram"}


@pytest.mark.parametrize("name", at_hand("golden/electra/pretraining_{}.npz", VARIANTS))
def test_the_original_outputs(test_data, name):
    golden = np.load(test_data / f"golden/electra/pretraining_{name}.npz")
    outputs = {key.removeprefix("outputs/"): golden[key] for key in golden if "outputs/" in key}
    learner = of_options(golden["options"])
    load(learner, golden)
    logits, measures, total, grads = gradients(learner, masked_batch(
        golden, "draws", json.loads(str(golden["options"])).get("mask_prob", 0.15)))
    found = means(measures)
    assert total == pytest.approx(float(outputs["loss"]), rel=ROUNDED)
    # The original clips by a norm that counts the rows of a lookup one by one, where no softmax
    # over the same table makes the gradient dense.
    rows = name in ("untied_embeddings", "uniform_generator")
    norm = tf.linalg.global_norm(grads if rows else list(map(tf.convert_to_tensor, grads)))
    assert float(norm) == pytest.approx(float(outputs["gradient_norm"]), rel=1e-5)
    if "masked_lm" in logits:
        assert off(logits["masked_lm"], outputs["generator_logits"]) < ROUNDED
        assert found["masked_lm/loss"] == pytest.approx(
            float(outputs["generator_loss"]), rel=ROUNDED)
    if "is_fake" in outputs:
        used, real = outputs["masked_lm_weights"] > 0, golden["batch/input_mask"] > 0
        assert (np.asarray(logits["sampled_ids"]) == outputs["sampled_ids"])[used].all()
        corrupted, original = (np.asarray(logits[f"{kind}_ids"])
                               for kind in ("corrupted", "original"))
        assert (corrupted == outputs["corrupted_input_ids"]).all()
        assert ((corrupted != original) == outputs["is_fake"]).all()
        assert off(tf.sigmoid(logits["replaced_token"])[real],
                   outputs["discriminator_probabilities"][real]) < ROUNDED
        assert found["replaced_token/loss"] == pytest.approx(
            float(outputs["discriminator_loss"]), rel=ROUNDED)
        predicted, fake = outputs["discriminator_predictions"][real], outputs["is_fake"][real]
        assert found["replaced_token/accuracy"] == pytest.approx((predicted == fake).mean())
        assert found["replaced_token/recall"] == pytest.approx(predicted[fake == 1].mean())
        assert found["replaced_token/precision"] == pytest.approx(fake[predicted == 1].mean())


def test_the_original_steps(test_data):
    golden = np.load(test_data / "golden/electra/pretraining_steps.npz")
    settings = json.loads(str(golden["settings"]))
    learner = of_options(golden["options"])
    load(learner, golden)
    optimizer = make_optimizer("bert_adamw", WarmupLinearDecay(
        settings["learning_rate"], settings["num_train_steps"], settings["num_warmup_steps"],
        recipes.find("electra").defaults["learning_rate_schedule"]),
        weight_decay=settings["weight_decay_rate"])
    optimizer.build(learner.trainable_variables)
    for step, (total, generator, discriminator) in enumerate(golden["losses"]):
        _, measures, found, grads = gradients(learner, masked_batch(golden, f"draws_{step}"))
        assert found == pytest.approx(total, rel=ROUNDED)
        assert means(measures)["masked_lm/loss"] == pytest.approx(generator, rel=ROUNDED)
        assert means(measures)["replaced_token/loss"] == pytest.approx(discriminator, rel=ROUNDED)
        optimizer.apply(grads, learner.trainable_variables)
    named = {v.path: v for v in learner.weights}
    for name, value in golden_weights(golden, "after_4/").items():
        np.testing.assert_allclose(named[name], value, rtol=1e-6, atol=1e-6)


# Without the original's files

VOCAB, ROWS, SIZE, SLOTS = 40, 6, 16, 4
CONFIG = EncoderConfig.from_dict({
    **SIZES, "vocab_size": VOCAB, "hidden_size": 16, "num_hidden_layers": 1,
    "num_attention_heads": 2, "intermediate_size": 32, "embedding_size": 8,
    "max_position_embeddings": SIZE, "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0,
    "initializer_range": 0.5})


def make(**settings):
    keras.utils.set_random_seed(1)
    return Electra.of_terms(CONFIG, recipes.find("electra").terms,
                            settings=GeneratorSettings(**settings))


def batch(seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(8, SIZE + 1, ROWS)
    mask = (np.arange(SIZE) < lengths[:, None]).astype(np.int32)
    positions = rng.integers(1, 8, (ROWS, SLOTS)).astype(np.int32)
    positions[0, :3] = 5                    # one position three times
    weights = np.ones((ROWS, SLOTS), np.float32)
    positions[1, 2:] = weights[1, 2:] = 0
    ids = rng.integers(4, VOCAB, (ROWS, SIZE)).astype(np.int32) * mask
    labels = np.where(weights > 0, np.take_along_axis(ids, positions, 1), 0).astype(np.int32)
    hidden = ids.copy()
    for row, slot in np.argwhere(weights > 0):
        hidden[row, positions[row, slot]] = 3
    return {"input_ids": hidden, "input_mask": mask, "segment_ids": np.zeros_like(ids),
            "masked_lm_positions": positions, "masked_lm_ids": labels,
            "masked_lm_weights": weights,
            "draws": rng.random((ROWS, SLOTS), dtype=np.float32)}, ids


def test_ids_are_written_as_the_floor_of_their_mean():
    rng = np.random.default_rng(3)
    ids, updates = rng.integers(0, 30000, (2, 50, SIZE))
    positions = rng.integers(0, SIZE, (50, 9))
    found = np.asarray(scatter_update(ids.astype(np.int32), updates[:, :9], positions))
    for row in range(50):
        for column in range(SIZE):
            hits = updates[row, :9][positions[row] == column]
            expected = hits.sum() // len(hits) if column and len(hits) else ids[row, column]
            assert found[row, column] == expected


@pytest.mark.parametrize("temperature, excluded", [(1.0, None), (0.5, 2)])
@pytest.mark.parametrize("form", ["cumulative", "noise"])
def test_tokens_are_drawn_by_their_probability(form, temperature, excluded):
    rng, count = np.random.default_rng(4), 40_000
    logits = rng.normal(size=6).astype(np.float32)
    weights = np.exp(logits / temperature)
    if excluded is not None:
        weights[excluded] = 0
    draws = rng.random((1, count) if form == "cumulative" else (1, count, 6), dtype=np.float32)
    found = np.asarray(sample(
        np.tile(logits, (1, count, 1)), draws, temperature,
        None if excluded is None else np.full((1, count), excluded)))
    share = np.bincount(found[0], minlength=6) / count
    np.testing.assert_allclose(share, weights / weights.sum(), atol=0.01)


def test_draws_at_their_ends():
    logits = np.array([[[-200.0, 0, 0, -200]]], np.float32)
    for draw, token in ((0.0, 1), (np.nextafter(np.float32(1), np.float32(0)), 2)):
        assert int(sample(logits, np.array([[draw]], np.float32))[0, 0]) == token


def test_draws_from_many_tokens_are_those_of_float64():
    rng = np.random.default_rng(5)
    logits = 3 * rng.normal(size=(4, 50, 1000)).astype(np.float32)
    draws = rng.random((4, 50), dtype=np.float32)
    shares = np.exp(logits.astype(float)).cumsum(-1)
    np.testing.assert_array_equal(sample(logits, draws), (
        shares <= draws[..., None] * shares[..., -1:]).sum(-1))


def reference_targets(discriminator, logits, ids, features):
    """(labels, weights, logits) of the network's loss, one position at a time."""
    corrupted = np.asarray(logits["corrupted_ids"])
    places = {(row, position) for row, position in zip(
        np.repeat(np.arange(ROWS), SLOTS), features["masked_lm_positions"].ravel()) if position}
    total = count = 0.0
    for row in range(ROWS):
        for column in range(SIZE):
            is_written = (row, column) in places
            assert is_written or corrupted[row, column] == ids[row, column]
            if not (is_written if "written" in discriminator
                    else features["input_mask"][row, column]):
                continue
            if discriminator == "all_tokens_mlm":
                total -= logits["all_tokens_lm"][row, column, ids[row, column]]
            else:
                z = float(logits["replaced_token"][row, column])
                total += np.log1p(np.exp(-z if corrupted[row, column] != ids[row, column] else z))
            count += 1
    return total / count


@pytest.mark.parametrize("discriminator", [
    "replaced_token", "replaced_token_written", "all_tokens_mlm"])
def test_the_losses_of_the_network(discriminator):
    features, ids = batch()
    learner = make(discriminator=discriminator)
    logits, measures, _, _ = gradients(learner, features)
    assert (np.asarray(logits["original_ids"]) == ids).all()
    name = learner.objectives[-1].name
    assert means(measures)[f"{name}/loss"] == pytest.approx(float(reference_targets(
        discriminator, logits, ids, features)), rel=1e-4)
    assert float(learner.counts(features)[name]) == float(measures[name]["loss"][1])


def test_all_tokens_can_be_copied():
    """The gate mixes the softmax with the token that is seen."""
    features, _ = batch()
    learner = make(discriminator="all_tokens_mlm")
    logits = learner(features)
    found = np.exp(logits["all_tokens_lm"])
    np.testing.assert_allclose(found.sum(-1), 1, rtol=1e-5)
    head = learner.objectives[-1]
    outputs = learner.encoder({**features, "input_ids": logits["corrupted_ids"]})
    x = outputs["sequence_output"]
    drawn = tf.nn.softmax(head.predict(x, learner.encoder.embedding_table))
    gate = tf.sigmoid(head.copy(x))
    seen = tf.one_hot(logits["corrupted_ids"], VOCAB)
    np.testing.assert_allclose(found, gate * seen + (1 - gate) * drawn, rtol=1e-4, atol=1e-7)


def test_replaced_tokens_can_be_predicted():
    features, _ = batch()
    learner = make(discriminator="replace_mlm", disc_weight=2.0)
    head = learner.objectives[-1]
    assert [o.name for o in learner.objectives] == ["masked_lm", "replaced_lm"]
    assert (head.loss_weight, head.config.hidden_size) == (2.0, 16)
    logits = learner(features)
    outputs = learner.encoder({**features, "input_ids": logits["corrupted_ids"]})
    np.testing.assert_allclose(
        logits["replaced_lm"], head(outputs, features, learner.encoder.embedding_table), rtol=1e-5)


def error_of_bins(labels, logits):
    """Half the share of pairs of both labels that lie within 1/2048 of a logit."""
    bins = np.floor(np.clip(logits.astype(float), -16, 15.9999) * 2048)
    shared = sum((labels[bins == one] == 0).sum() * (labels[bins == one] == 1).sum()
                 for one in np.unique(bins))
    return shared / 2 / (labels == 0).sum() / (labels == 1).sum()


@pytest.mark.parametrize("center, width", [(0, 1), (-2, 0.05), (-15, 3), (3, 0)])
def test_the_area_under_the_curve(center, width):
    rng = np.random.default_rng(8)
    labels = rng.random(5000) < 0.1
    logits = (center + width * (rng.normal(size=5000) + labels)).astype(np.float32)
    used = rng.random(5000) < 0.9
    area = area_under_curve(logit_histogram(logits, labels, used * np.float32(1)))
    bound = error_of_bins(labels[used], logits[used])
    assert abs(area - roc_auc_score(labels[used], logits[used])) <= bound + 1e-12
    assert bound < 0.03 or not width
    assert np.isnan(area_under_curve(logit_histogram(logits, labels | True, used * np.float32(1))))


def test_evaluation_has_the_area_over_batches_and_replicas(eagerly, mirrored):
    parts = [batch(seed)[0] for seed in range(3)]
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    for strategy in (tf.distribute.get_strategy(), mirrored):
        with strategy.scope():
            learner = make()
        trainer = Trainer(learner, None, strategy, trains=False)
        # One row a replica, so that the rows' 6 x 3 parts are all added up.
        found = trainer.evaluate(trainer.distribute(
            lambda *_: tf.data.Dataset.from_tensor_slices(whole).batch(3)))
        logits = learner(whole)
        used = whole["input_mask"] > 0
        labels = np.asarray(logits["corrupted_ids"] != logits["original_ids"])[used].astype(int)
        replaced = np.asarray(logits["replaced_token"])[used]
        assert found["replaced_token/auc"] == pytest.approx(
            roc_auc_score(labels, replaced), abs=error_of_bins(labels, replaced) + 1e-6)
        assert found["replaced_token/recall"] == pytest.approx(
            ((replaced > 0) & (labels == 1)).sum() / labels.sum(), rel=1e-5)


def test_gradients_reach_the_generator_through_the_embeddings_alone():
    features, _ = batch()
    learner = make(gen_weight=0.0)
    grads = gradients(learner, features)[3]
    named = {v.path: grad for v, grad in zip(learner.trainable_variables, grads)}
    reached = {name for name, value in named.items() if np.any(tf.convert_to_tensor(value))}
    assert reached >= {name for name in named if name.startswith("bert/embeddings/")}
    assert not any(name.startswith(("generator/", "masked_lm/")) for name in reached)


def test_written_positions():
    features, _ = batch()
    found = np.asarray(written(features))
    assert found[0].nonzero()[0].tolist() == sorted(set(features["masked_lm_positions"][0]))
    assert not found[:, 0].any() and found.max() == 1


def test_whatever_changes_the_training_is_noticed_when_a_run_goes_on():
    learners = [make(**settings) for settings in (
        {}, {"discriminator": "replaced_token_written"}, {"discriminator": "replace_mlm"},
        {"discriminator": "all_tokens_mlm"}, {"temperature": 0.7}, {"disallow_correct": True},
        {"gen_weight": 2.0}, {"disc_weight": 2.0}, {"generator_hidden_size": 0.5},
        {"untied_generator_embeddings": True}, {"uniform_generator": True})]
    found = [json.dumps(learner.describe(), sort_keys=True) for learner in learners]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("settings", [
    {}, {"untied_generator_embeddings": True}, {"untied_generator": False},
    {"uniform_generator": True}, {"discriminator": "all_tokens_mlm", "temperature": 0.7}])
def test_a_saved_learner_is_the_same(tmp_path, settings):
    features, _ = batch()
    learner = make(**settings)
    learner.save(tmp_path / "x.keras")
    again = keras.saving.load_model(tmp_path / "x.keras")
    assert len(again.weights) == len(learner.weights) and again.describe() == learner.describe()
    ours, theirs = learner(features), again(features)
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)
    assert list(learner.parts()) == (
        ["model"] if "uniform_generator" in settings or "untied_generator" in settings
        else ["model", "generator"])


def test_without_draws_they_follow_the_seed():
    features, _ = batch()
    learner = make()
    del features["draws"]

    def drawn(**options):
        return np.asarray(learner(features, **options)["sampled_ids"])
    assert (drawn() == drawn()).all()
    seeds = [np.array([1, step], np.int32) for step in (1, 1, 2)]
    one, same, other = (drawn(training=True, dropout_seed=seed) for seed in seeds)
    assert (one == same).all() and (one != other).any()


@pytest.mark.parametrize("size, scale, expected", [
    (256, 0.25, (64, 1, 256)), (768, 0.33333, (256, 4, 1024)), (1024, 0.25, (256, 4, 1024))])
def test_the_sizes_of_the_generator(size, scale, expected):
    from bert_tf.models.electra.learner import generator_config
    config = dataclasses.replace(CONFIG, hidden_size=size, num_attention_heads=size // 64,
                                 embedding_size=None if size > 256 else 128, num_hidden_layers=12)
    found = generator_config(config, GeneratorSettings(generator_hidden_size=scale,
                                                       generator_layers=0.5))
    assert (found.hidden_size, found.num_attention_heads, found.intermediate_size) == expected
    assert (found.num_hidden_layers, found.embedding_width) == (6, config.embedding_width)


def test_a_generator_shares_the_embeddings_of_a_plain_network():
    features, _ = batch()
    config = dataclasses.replace(CONFIG, embedding_size=None, pooler_type="first_token_transform")
    learner = Electra.of_terms(config, recipes.find("electra").terms)
    assert type(learner.encoder).__name__ == "Bert"
    assert learner.generator.embeddings is learner.encoder.embeddings
    assert np.isfinite(np.asarray(learner(features)["replaced_token"])).all()


def test_refusals():
    with pytest.raises(InputError, match="--generator_hidden_size"):
        make(generator_hidden_size=0.01)
    with pytest.raises(InputError, match="--uniform_generator"):
        Electra.of_terms(CONFIG, recipes.find("electra").terms[1:])
    assert type(Electra.of_terms(CONFIG, recipes.find("electra").terms[:1])) is Learner
