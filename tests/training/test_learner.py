"""Learner: sums and counts, gradients, fit, saving."""


import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf import objectives
from bert_tf.bert.objective import MaskedLM, SentencePrediction
from bert_tf.config import EncoderConfig
from bert_tf.data.batches.row_layout import plan
from bert_tf.errors import InputError
from bert_tf.heads import HEADS
from bert_tf.models.electra.objective import ReplacedToken
from bert_tf.models.gpt.objective import TiedLM
from bert_tf.models.spanbert.objective import SpanBoundary
from bert_tf.models.structbert.objective import WordOrderLM
from bert_tf.models.xlnet.objective import PermutationLM
from bert_tf.networks.encoder import BertEncoder
from bert_tf.objectives.base import Objective
from bert_tf.objectives.classification import Classification, MultiLabel, Regression
from bert_tf.objectives.tagging import Tagging
from bert_tf.training.learners.learner import Learner

CONFIG = EncoderConfig.preset(
    "tiny", vocab_size=50, hidden_size=32, intermediate_size=64, max_position_embeddings=16,
    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, initializer_range=0.2)


def make_learner(config=CONFIG, **options):
    keras.utils.set_random_seed(3)
    return Learner(BertEncoder(config, **options),
                   [MaskedLM(config, **options), SentencePrediction(config, loss_weight=2.0,
                                                                    **options)])


def make_batch(batch=4, length=12, predictions=3):
    rng = np.random.default_rng(1)
    features = {
        "input_ids": rng.integers(0, 50, (batch, length)),
        "input_mask": np.arange(length) < rng.integers(6, length + 1, (batch, 1)),
        "segment_ids": rng.integers(0, 2, (batch, length)),
        "masked_lm_positions": rng.integers(0, 6, (batch, predictions)),
        "masked_lm_ids": rng.integers(0, 50, (batch, predictions)),
        "next_sentence_labels": rng.integers(0, 2, (batch, 1))}
    weights = np.arange(predictions) < rng.integers(1, predictions + 1, (batch, 1))
    return {**{name: tf.constant(value.astype("int32")) for name, value in features.items()},
            "masked_lm_weights": tf.constant(weights.astype("float32"))}


def split(batch, at):
    return [{name: value[part] for name, value in batch.items()}
            for part in (slice(None, at), slice(at, None))]


FORMS_OF_ROWS = [
    {}, {"num_hidden_groups": 1}, {"model_type": "distilbert", "pooler_type": "first_token_relu"},
    {"pruned_heads": {1: [0]}, "intermediate_sizes": [64, 5]},
    {"pruned_heads": {1: range(2)}}, {"directionality": "left_to_right"}]


@pytest.mark.parametrize("head, form", [
    *[(lambda config: Classification(config, 3), form) for form in FORMS_OF_ROWS],
    (lambda config: Regression(config), {}), (lambda config: Classification(
        config, 3, reader_size=2), {}), (lambda config: Tagging(config, 3), {})])
def test_a_last_layer_that_computes_only_what_is_read_changes_nothing(head, form):
    """Logits and gradients are those of a network that computes all tokens."""
    config = EncoderConfig(**{**CONFIG.to_dict(), **form})
    keras.utils.set_random_seed(3)
    learner = Learner(BertEncoder(config), [head(config)])
    is_short = compare_with_all_tokens(learner, make_batch())
    reads_all = config.is_causal or learner.objectives[0].reads_tokens
    assert is_short == (not reads_all and len(form.get("pruned_heads", {}).get(1, ())) < 2)


def compare_with_all_tokens(learner, batch):
    """Checks the loss's logits and gradients; returns whether fewer tokens were computed."""
    results, lacks = [], []
    for how in ({}, learner.network_options(batch)):
        with tf.GradientTape() as tape:
            outputs = learner.run_network(batch, options=how)
            logits = [*learner.read_outputs(outputs, batch, [None] * 2).values()]
            loss = sum(tf.reduce_sum(tf.sin(values)) for values in logits)
        gradients = tape.gradient(loss, learner.trainable_variables)
        results.append([*logits, *(tf.convert_to_tensor(g) for g in gradients if g is not None)])
        lacks.append("sequence_output" not in outputs)
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)
    return lacks == [False, True]


@pytest.mark.parametrize("packs", [False, True])
@pytest.mark.parametrize("heads, form", [
    *[([MaskedLM, SentencePrediction], form) for form in FORMS_OF_ROWS], ([WordOrderLM], {}),
    ([MaskedLM], {"embedding_size": 8}), ([SpanBoundary, MaskedLM], {})])
def test_pretraining_computes_only_the_tokens_it_reads(heads, packs, form):
    """The first and the masked ones, in the last layer."""
    config, batch = EncoderConfig(**{**CONFIG.to_dict(), **form}), make_batch()
    keras.utils.set_random_seed(3)
    learner = Learner(BertEncoder(config), [head(config) for head in heads])
    batch |= dict.fromkeys(("span_left", "span_right", "span_offset"), batch["masked_lm_positions"])
    if packs:
        rows = plan(batch["input_mask"].numpy().sum(1), 12, 4)
        batch |= dict(zip(("packed_from", "packed_at"), map(tf.constant, rows)))
    is_short = compare_with_all_tokens(learner, batch)
    assert is_short == (heads[0] is not SpanBoundary and not config.is_causal
                        and len(form.get("pruned_heads", {}).get(1, ())) < 2)
    del batch["masked_lm_ids"]
    assert not learner.network_options(batch)


def test_measures_of_parts_add_up_to_those_of_the_whole():
    learner, batch = make_learner(), make_batch()
    whole = learner.measure(batch)
    parts = [learner.measure(part) for part in split(batch, 1)]
    added = tf.nest.map_structure(lambda *x: sum(x), *parts)
    for one, other in zip(tf.nest.flatten(added), tf.nest.flatten(whole)):
        assert np.allclose(one, other, rtol=1e-5)
    counts = learner.counts(batch)
    assert set(counts) == {"masked_lm", "next_sentence"}
    for name, count in counts.items():
        assert float(count) == float(whole[name]["loss"][1]) == float(whole[name]["accuracy"][1])
    # Divided by the counts of all devices, the totals of the devices add up too.
    totals = [float(learner.total_loss(part, counts)) for part in parts]
    assert sum(totals) == pytest.approx(float(learner.total_loss(whole)), rel=1e-5)


def test_objectives_of_one_name_are_refused():
    with pytest.raises(InputError, match="2 objectives have the name 'masked_lm'"):
        Learner(BertEncoder(CONFIG), [MaskedLM(CONFIG), MaskedLM(CONFIG)])


def test_total_weighs_the_objectives():
    learner, batch = make_learner(), make_batch()
    measures = learner.measure(batch)
    (masked, slots), (sentence, examples) = (measures[name]["loss"] for name in measures)
    assert float(learner.total_loss(measures)) == pytest.approx(
        float(masked / slots + 2 * sentence / examples), rel=1e-4)


def gradients(learner, batch):
    with tf.GradientTape() as tape:
        loss = learner.total_loss(learner.measure(batch, training=True))
    return loss, tape.gradient(loss, [v.value for v in learner.trainable_variables])


def test_gradients_equal_finite_differences():
    learner, batch = make_learner(), make_batch()
    _, found = gradients(learner, batch)
    assert all(gradient is not None for gradient in found)
    rng = np.random.default_rng(0)
    # Traced once, since there are two losses of every variable.
    loss = tf.function(lambda: learner.total_loss(learner.measure(batch)), autograph=False)
    for variable, gradient in zip(learner.trainable_variables, found):
        value, direction = np.array(variable), rng.normal(size=variable.shape)
        direction /= np.linalg.norm(direction)
        losses = []
        for step in (1e-2, -1e-2):
            variable.assign(value + step * direction)
            losses.append(float(loss()))
        variable.assign(value)
        slope = np.sum(np.array(tf.convert_to_tensor(gradient)) * direction)
        assert slope == pytest.approx((losses[0] - losses[1]) / 2e-2, rel=2e-2, abs=2e-4)


def test_fit_takes_the_same_steps_as_a_plain_loop():
    config = EncoderConfig.from_dict({**CONFIG.to_dict(), "num_hidden_layers": 1})
    batch, plain, fitted = make_batch(), make_learner(config), make_learner(config)
    losses = []
    for _ in range(3):
        loss, found = gradients(plain, batch)
        losses.append(float(loss))
        for variable, gradient in zip(plain.trainable_variables, found):
            variable.assign_sub(0.1 * tf.convert_to_tensor(gradient))
    fitted.compile(keras.optimizers.SGD(0.1), jit_compile=False)
    history = fitted.fit({name: value.numpy() for name, value in batch.items()}, batch_size=4,
                         epochs=3, shuffle=False, verbose=0).history
    assert np.allclose(history["loss"], losses, rtol=1e-4)
    for a, b in zip(plain.trainable_variables, fitted.trainable_variables):
        assert np.allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("name", ["next_sentence_labels", "masked_lm_ids"])
def test_fit_names_the_feature_that_the_data_lack(name):
    learner, batch = make_learner(), make_batch()
    learner.compile("sgd", run_eagerly=True)
    del batch[name]
    with pytest.raises(InputError, match=f"the data have no feature '{name}', which the objective"):
        learner.fit(batch, verbose=0)


def test_the_training_step_compiles_under_xla():
    """In bfloat16; tests/training/test_trainer.py compiles one of float64."""
    config = EncoderConfig.from_dict({**CONFIG.to_dict(), "num_hidden_layers": 1,
                                      "hidden_dropout_prob": 0.1})
    learner, batch = make_learner(config, dtype="mixed_bfloat16"), make_batch()

    @tf.function(jit_compile=True, autograph=False)
    def step(seed):
        with tf.GradientTape() as tape:
            loss = learner.total_loss(learner.measure(batch, training=True, dropout_seed=seed))
        return loss, tape.gradient(loss, learner.encoder.embedding_table.value)

    losses = [float(step(tf.constant(seed))[0]) for seed in ([1, 2], [1, 2], [1, 3])]
    assert losses[0] == losses[1] != losses[2] and np.isfinite(losses[0])


@pytest.mark.filterwarnings("error")
def test_fit_takes_labels_apart():
    batch = {name: np.asarray(value) for name, value in make_batch().items()
             if name in ("input_ids", "input_mask", "segment_ids")}
    labels, losses = np.array([1, 0, 2, 1]), []
    for arguments in ((batch, labels), ({**batch, "label_ids": labels},),
                      (batch, labels, np.array([1, 1, 0, 1]))):
        keras.utils.set_random_seed(3)
        learner = Learner(BertEncoder(CONFIG), [Classification(CONFIG, 3, dropout_rate=0.0)])
        learner.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
        names = dict(zip(("x", "y", "sample_weight"), arguments))
        losses.append(learner.fit(**names, batch_size=4, epochs=2, verbose=0,
                                  shuffle=False).history["loss"])
    assert losses[0] == losses[1] != losses[2] and losses[0][1] < losses[0][0]
    with pytest.raises(InputError, match="one task"):
        make_learner().compute_loss(make_batch(), labels)


def classifier(objective=Classification):
    """A learner of 3 labels, and features of 4 examples."""
    keras.utils.set_random_seed(3)
    batch = make_batch()
    return Learner(BertEncoder(CONFIG), [objective(CONFIG, 3, dropout_rate=0.0)]), {
        name: np.asarray(batch[name]) for name in ("input_ids", "input_mask", "segment_ids")}


@pytest.mark.parametrize("wrong", [
    {"loss": "mse"}, {"loss": keras.losses.SparseCategoricalCrossentropy()},
    {"loss": {"classification": "mse"}}, {"loss_weights": {"classification": 2.0}}])
def test_compile_refuses_losses_and_is_as_before(wrong):
    labels, found = np.array([1, 0, 2, 1]), []
    for is_refused in (False, True):
        learner, batch = classifier()
        if is_refused:
            with pytest.raises(InputError, match=f"leave out {next(iter(wrong))} in compile"):
                learner.compile("sgd", run_eagerly=True, **wrong)
        learner.compile("sgd", metrics=["accuracy"], run_eagerly=True)
        found.append(learner.fit(batch, labels, verbose=0).history)
    assert found[0] == found[1] and set(found[0]) == {"loss", "accuracy"}


@pytest.mark.filterwarnings("error:.compile")
@pytest.mark.parametrize("optimizer", [lambda: bert_tf.AdamWeightDecay(0.1), lambda: "adam"])
def test_a_saved_learner_continues_as_it_would_have(optimizer, tmp_path):
    learner, batch = classifier()
    labels, path = np.array([1, 0, 2, 1]), tmp_path / "learner.keras"
    learner.compile(optimizer(), metrics=["accuracy"], run_eagerly=True)
    learner.fit(batch, labels, verbose=0)
    learner.save(path)
    loaded = keras.models.load_model(path)
    histories = [each.fit(batch, labels, epochs=2, verbose=0).history for each in (learner, loaded)]
    assert histories[0] == histories[1] and set(histories[0]) == {"loss", "accuracy"}
    assert all(map(np.array_equal, learner.get_weights(), loaded.get_weights()))


def test_keras_leaves_the_sentence_of_an_error_as_it_is():
    class Refusing(keras.layers.Layer):
        def call(self, x):
            raise InputError("a tensor is wrong; mend it.")

    with pytest.raises(InputError, match="^a tensor is wrong; mend it.$"):
        Refusing()(np.ones(2))


def test_compile_refuses_what_learns_nothing_in_bfloat16():
    learner = make_learner(dtype="bfloat16")
    for optimizer in ("adam", keras.optimizers.AdamW(0.1), keras.optimizers.Lamb(0.1),
                      keras.optimizers.Nadam(0.1)):
        with pytest.raises(InputError, match="in bfloat16, where its beta_2 of 0.999 is 1: make"):
            learner.compile(optimizer)
    make_learner(dtype="mixed_bfloat16").compile("adam")
    learner.compile(keras.optimizers.AdamW(0.1, beta_2=0.99), run_eagerly=True)
    before = learner.get_weights()
    learner.fit(make_batch(), verbose=0)
    assert any(np.any(old != new) for old, new in zip(before, learner.get_weights()))


@pytest.mark.parametrize("labels, part", [
    (np.array(["a", "b", "c", "a"]), "not numbers"), (["a", "b", "c"], "a list; give an array"),
    (np.array(["a", "b", "c", "a"], object), "not numbers"), (np.array([1, 0, 3, 1]), "label 3"),
    (np.array([1, 0, -1, 1]), "label -1"), (np.array([1.5, 0, 2, 1]), "label 1.5"),
    (np.eye(4)[:, :3], r"the shape \(4, 3\); give one number for each example")])
def test_fit_names_labels_that_it_can_not_learn(labels, part):
    learner, batch = classifier()
    learner.compile("sgd", run_eagerly=True)
    for method in (learner.fit, learner.evaluate):
        for name, arguments in (("y", (batch, labels)),
                                ("label_ids", ({**batch, "label_ids": labels},))):
            with pytest.raises(InputError, match=rf"\b{name}\b.*{part}" if "label " not in part
                               else f"{name} has the {part}"):
                method(*arguments, verbose=0)
    with pytest.raises(InputError, match=part):
        learner.fit(batch, np.array([1, 0, 2, 1]), validation_data=(batch, labels), verbose=0)


def test_fit_takes_rows_of_labels_and_labels_of_tokens():
    for objective, labels, further in (
            (MultiLabel, np.eye(4)[:, :3], {}), (Regression, np.full((4, 3), 7.5), {}),
            (Tagging, np.full((4, 12), 2), {"label_weights": np.ones((4, 12))})):
        learner, batch = classifier(objective)
        learner.compile("sgd", run_eagerly=True)
        losses = learner.fit({**batch, **further, "label_ids": labels}, verbose=0).history["loss"]
        assert np.isfinite(losses[0])


def test_the_summary_shows_the_shapes_that_are_returned():
    learner = Learner(BertEncoder(CONFIG), [MaskedLM(CONFIG), Classification(CONFIG, 3)])
    lines, logits = [], learner(make_batch())
    before = learner.encoder.get_build_config()
    for model in (learner, learner.encoder):
        model.summary(print_fn=lines.append, line_length=120)
    said = "\n".join(lines)
    assert "?" not in said and learner.encoder.get_build_config() == before
    for name, shown in (("masked_lm", "(None, None, {})"), ("classification", "(None, {})")):
        row, = (line for line in said.splitlines() if f" {name} (" in line)
        assert shown.format(logits[name].shape[-1]) in row
        assert logits[name].ndim == shown.count(",") + 1
    assert said.count(f"(None, None, {CONFIG.hidden_size})") == 1 + 1 + CONFIG.num_hidden_layers


@pytest.mark.parametrize("objective", [ReplacedToken, SpanBoundary, TiedLM, PermutationLM])
def test_rare_heads_tell_the_shape_that_they_return(objective):
    rng = np.random.default_rng(2)
    head, batch = objective(CONFIG), make_batch()
    batch |= dict.fromkeys(("span_left", "span_right"), batch["masked_lm_positions"])
    batch |= {"span_offset": tf.zeros((4, 3), tf.int32)}
    outputs = {name: tf.constant(rng.normal(size=(4, length, CONFIG.hidden_size)), "float32")
               for name, length in (("sequence_output", 12), ("query_output", 3))}
    table = tf.constant(rng.normal(size=(CONFIG.vocab_size, CONFIG.hidden_size)), "float32")
    shape = tuple(head(outputs, batch, table).shape)
    assert len(head.output_shape) == len(shape) and all(
        told in (None, size) for told, size in zip(head.output_shape, shape))
    lines = []
    Learner(BertEncoder(CONFIG), [head]).summary(print_fn=lines.append, line_length=120)
    assert "?" not in "\n".join(lines)


def test_every_head_tells_a_shape():
    assert [name for name, row in HEADS.items()
            if getattr(objectives, row.objective).output_shape is Objective.output_shape] == []
