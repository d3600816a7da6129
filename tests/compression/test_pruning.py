"""Heads, units and layers: how much each is needed, and models from which some were cut."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import checkpoints, networks, objectives
from bert_tf.analysis import disabled, p_value
from bert_tf.checkpoints.conversion import Changes, convert
from bert_tf.checkpoints.names import is_range
from bert_tf.checkpoints.weights import variables
from bert_tf.compression import (
    attention_entropy,
    cut,
    dead_heads,
    importance,
    normalised,
    order_of,
    steps_of,
    to_unit_range,
)
from bert_tf.compression.hessian import LayerHessian
from bert_tf.compression.pruning import FORMS, mask_gradients
from bert_tf.compression.students import take_layers
from bert_tf.config import EncoderConfig, FixedPatternConfig, read_config
from bert_tf.config.quantisation import Quantisation
from bert_tf.errors import InputError
from bert_tf.layers.changes import masked
from bert_tf.training.learners.learner import Learner
from bert_tf.training.train import save_model
from tests.rounding import ROUNDED, off

HEADS = [(layer, head) for layer in range(4) for head in range(4)]


def classifier(config):
    return Learner(networks.build(config), [objectives.Classification(config, num_labels=2)])


@pytest.fixture(name="golden", scope="module")
def fixture_golden(test_data):
    """The golden file of the small model, and the model."""
    golden = np.load(test_data / "golden/pruning/heads_random_seed1.npz")
    learner = classifier(EncoderConfig.from_dict(json.loads(str(golden["config"]))))
    for name, variable in variables(learner).items():
        head = {"classification/dense/kernel": "output_weights",
                "classification/dense/bias": "output_bias"}.get(name)
        value = golden[f"w/{head or f'bert/{name}'}"]
        variable.assign(value.T if head == "output_weights" else value)
    return golden, learner


@pytest.fixture(name="made", scope="module")
def fixture_made():
    """A few rows, and a model of the same kind with random weights."""
    rng = np.random.default_rng(0)
    learner = classifier(EncoderConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=4, num_attention_heads=4,
        intermediate_size=48, max_position_embeddings=8, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0))
    for name, variable in variables(learner).items():
        variable.assign(rng.normal("gamma" in name, 0.3, variable.shape))
    mask = np.arange(8) < np.array([[8], [5], [3]])
    return {"input_ids": rng.integers(1, 20, mask.shape) * mask, "input_mask": mask.astype("int32"),
            "segment_ids": 0 * mask, "label_ids": np.array([0, 1, 1])}, learner


def features(golden):
    return {name: golden[name] for name in ("input_ids", "input_mask", "segment_ids", "label_ids")}


def batches(golden):
    size, rows = int(golden["batch_size"]), features(golden)
    for start in range(0, 48, size):
        yield {name: values[start:start + size] for name, values in rows.items()}


def logits(learner, golden):
    return learner(features(golden))["classification"].numpy()


def test_importance_as_in_the_paper_and_in_its_code(golden, eagerly):
    golden, learner = golden
    found = mask_gradients(learner, "head")(
        {name: tf.constant(values) for name, values in features(golden).items()})
    wanted = golden["gradient_by_example"]
    np.testing.assert_allclose(np.stack(found, 1), wanted, atol=1e-5 * np.abs(wanted).max())
    np.testing.assert_allclose(np.stack(importance(learner, batches(golden))),
                               golden["paper_importance"], rtol=1e-5)
    by_code = importance(learner, batches(golden), form="code")
    np.testing.assert_allclose(np.stack(by_code), golden["are16_importance"], rtol=1e-5)
    np.testing.assert_allclose(np.stack(normalised(by_code)),
                               golden["are16_importance_layer_normalised"], rtol=1e-5)


def test_the_log_is_quiet_about_tracing(golden, monkeypatch, caplog):
    monkeypatch.setattr(tf.get_logger(), "filters", [])
    mask_gradients(golden[1], "head")
    for _ in range(12):
        tf.function(lambda x: x)(tf.constant(1))
    assert "retracing" not in caplog.text


@pytest.mark.parametrize("size", [1, 8])
def test_importance_and_entropy_of_run_bertology(golden, size):
    golden, learner = golden
    rows = features(golden)
    parts = [{name: values[start:start + size] for name, values in rows.items()}
             for start in range(0, 48, size)]
    found = importance(learner, parts, form="bertology")
    for scores, name in ((found, "_raw"), (to_unit_range(normalised(found)), "")):
        np.testing.assert_allclose(
            np.stack(scores), golden[f"bertology_importance_batch{size}{name}"], rtol=1e-4,
            atol=1e-6)
    if size == 8:       # of any batches
        np.testing.assert_allclose(np.stack(attention_entropy(learner, parts)),
                                   golden["bertology_entropy"], rtol=1e-4)


@pytest.mark.parametrize("examples, choices", [(1, 3), (3, 1), (2, 2)])
def test_entropy_of_choices_is_that_of_single_texts(examples, choices, made, eagerly):
    rows, learner = made
    rows = {name: np.concatenate([values] * 2)[:examples * choices]
            for name, values in rows.items() if name != "label_ids"}
    several = Learner(learner.encoder, [objectives.MultipleChoice(learner.encoder.config)])
    found = attention_entropy(several, [{name: values.reshape(examples, choices, 8)
                                         for name, values in rows.items()}])
    np.testing.assert_array_equal(found, attention_entropy(learner, [rows]))


def test_importance_of_units_is_that_of_a_slow_loop(made, eagerly):
    """Of two units: the loss of one example, differentiated by a factor by hand."""
    rows, learner = made
    batch = {name: values[:1] for name, values in rows.items()}
    found = importance(learner, [batch], "unit")
    step = 1e-2

    def loss(layer, unit, factor):
        masks = [np.ones((1, 1, 48), "float32") for _ in range(4)]
        masks[layer][..., unit] = factor
        return float(learner.measure({**batch, "unit_mask": masks})["classification"]["loss"][0])

    for layer, unit in ((1, 7), (3, 40)):
        slope = (loss(layer, unit, 1 + step) - loss(layer, unit, 1 - step)) / (2 * step)
        assert found[layer][unit] == pytest.approx(abs(slope), rel=0.02, abs=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_importance_of_a_model_whose_layer_lost_all_heads(form, made, eagerly):
    rows, learner = made
    gone = [(1, head) for head in range(4)]
    smaller = cut(learner, gone)
    found = importance(smaller, [rows], form=form)
    with disabled(learner.encoder, gone, "zero"):
        expected = importance(learner, [rows], form=form)
    assert list(map(len, found)) == [4, 0, 4, 4]
    for layer in (0, 2, 3):
        np.testing.assert_allclose(found[layer], expected[layer], rtol=1e-5)


def test_the_hessian_of_a_layer_without_heads(made, eagerly):
    """The second difference of the loss."""
    rows, learner = made
    smaller = cut(learner, [(1, head) for head in range(4)])
    block, step = LayerHessian(smaller, 1), 0.1
    batch = {name: tf.constant(values) for name, values in rows.items()}
    way = np.random.default_rng(2).standard_normal(block.size)
    way /= np.linalg.norm(way)
    weights = smaller.encoder.layers_[1].trainable_variables
    first = [weight.numpy() for weight in weights]

    def loss(factor):
        start = 0
        for weight, value in zip(weights, first):
            weight.assign(value + factor * way[start:start + value.size].reshape(value.shape))
            start += value.size
        total, count = smaller.measure(batch)["classification"]["loss"]
        return float(total / count)

    slope = (loss(step) - 2 * loss(0) + loss(-step)) / step ** 2
    assert way @ block.product([batch], way) == pytest.approx(slope, rel=0.05)


@pytest.mark.parametrize("is_exact", [False, True])
def test_iterative_pruning(is_exact, golden, eagerly):
    golden, learner = golden
    steps = json.loads(str(golden["iterative_exact" if is_exact else "iterative"]))
    gone, scores = [], None
    counts = steps_of(steps["percents"], [4] * 4)[:2 if is_exact else None]
    for count, wanted in zip(counts, steps["pruned"]):
        if is_exact or not scores:
            with disabled(learner.encoder, gone, "zero"):
                scores = normalised(importance(learner, batches(golden), form="code"))
        new = order_of(scores, gone)[:count - len(gone)]
        assert sorted(map(list, new)) == sorted(wanted)
        gone += new


def test_order_with_ties_and_protected_heads(test_data):
    for case in json.loads((test_data / "golden/pruning/what_to_prune_seed1.json").read_text()):
        least = case["at_least_heads_a_layer"]
        counts = steps_of(case["percents"], [case["heads"]] * case["layers"], least)
        assert list(np.diff([0, *counts])) == case["heads_a_step"]
        order = order_of(case["importance"], (), least)
        assert [sorted(map(list, order[:count])) for count in counts] == [
            sorted(pruned) for pruned in case["pruned_after"]]


def test_heads_that_are_gone_are_not_those_that_stay():
    """By exact --orders=reverse, heads that are off have the highest score, 0."""
    scores = [np.array([0.0, -0.2, -0.1]), np.array([-0.3, -0.5, -0.4])]
    assert order_of(scores, [(0, 0)], at_least=1) == [(1, 1), (1, 2), (0, 1)]
    assert steps_of([50, 100], [1, 4], at_least=2) == [2, 2]


def test_cut_equals_masked_and_golden(golden, eagerly, tmp_path):
    """Also after a second cut, without any head, and from the file that is written."""
    golden, learner = golden
    heads = [(int(layer), head) for layer, of_layer in json.loads(str(golden["cut"])).items()
             for head in of_layer]
    smaller = cut(learner, heads)
    assert off(logits(smaller, golden), golden["cut_logits"]) < ROUNDED
    assert smaller.count_params() == golden["cut_parameters"]
    assert smaller.encoder.config.to_dict()["pruned_heads"] == json.loads(str(golden["cut"]))
    others = [pair for pair in HEADS if pair not in heads]
    for more in (others[:5], others):
        units = [(0, 3), (2, 47)]
        left = cut(smaller, more, units)
        save_model(str(tmp_path), left)
        again = classifier(read_config(tmp_path / "bert_config.json"))
        assert not checkpoints.load(tmp_path, again).missing
        with disabled(learner.encoder, heads + more, "zero", units):
            masked = logits(learner, golden)
        assert off(logits(again, golden), masked) < ROUNDED
    with pytest.raises(InputError, match="layer 1 has no head 2"):
        cut(smaller, [(0, 1)])
    for form in ("google", "huggingface"):
        with pytest.raises(InputError, match="pruned_heads"):
            convert(str(tmp_path), str(tmp_path / form), form, Changes(hidden_act="gelu"))


def test_cut_layers_are_numbered_anew(made, eagerly):
    rows, learner = made
    left = cut(cut(learner, [(3, 1)]), layers=[0, 2])
    config = left.encoder.config
    assert config.num_hidden_layers == 2 and config.to_dict()["pruned_heads"] == {"1": [1]}
    encoder = learner.encoder
    x = encoder.embeddings(rows["input_ids"], rows["segment_ids"])
    for number, mask in ((1, None), (3, np.array([1, 0, 1, 1]))):
        x, _ = masked(encoder.layers_[number], mask, None)(x, encoder.make_bias(rows, None))
    assert off(left.encoder(rows)["sequence_output"], x) < ROUNDED


def test_heads_that_give_nothing(made):
    _, learner = made
    with disabled(learner.encoder, [(1, 2)], "zero"):
        assert dead_heads(learner.encoder) == [(1, 2)]
    assert not dead_heads(learner.encoder)


def test_configuration():
    sizes = {"vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 4,
             "intermediate_size": 6}
    config = EncoderConfig(**sizes, pruned_heads={"1": [3, 0], "0": []}, intermediate_sizes=[6, 2])
    assert config.kept_heads(1) == [1, 2] and config.feed_forward_size(1) == 2
    assert EncoderConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert "pruned_heads" not in EncoderConfig(**sizes, intermediate_sizes=[6, 6]).to_dict()
    assert hash(config) != hash(dataclasses.replace(config, pruned_heads=()))
    for change, message in (({"pruned_heads": {"2": [0]}}, "layer 2 has no separate attention"),
                            ({"pruned_heads": {"0": [4]}}, "no head 4"),
                            ({"pruned_heads": [1]}, "must map"),
                            ({"intermediate_sizes": [6]}, "2 whole numbers"),
                            ({"intermediate_sizes": [7, 6]}, "from 1 to")):
        with pytest.raises(InputError, match=message):
            EncoderConfig(**sizes, **change)
    with pytest.raises(InputError, match="network with fixed_heads"):
        FixedPatternConfig(**{**sizes, "hidden_size": 16, "num_attention_heads": 8},
                           pruned_heads={"0": [0]})


def test_p_values():
    """Of the sign test as computed by hand; of numbers, small where one model is much better."""
    labels = np.zeros(20, int)
    second = np.arange(20) < 3
    assert p_value(labels, labels, second.astype(int)) == pytest.approx(2 * 0.5**3)
    assert p_value(labels, labels, labels) == 1.0
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=60)
    good, bad = (numbers + scale * rng.normal(size=60) for scale in (0.1, 2.0))
    assert p_value(numbers, good, bad, "spearman") < 0.01
    assert p_value(numbers, good, good + 1e-9 * bad, "pearson") > 0.05
    assert p_value(numbers, good, 1 + 9 * good, "pearson") == 1.0       # scale is no difference


def test_a_rounded_network_keeps_the_ranges_of_its_numbers(eagerly):
    learner = classifier(EncoderConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=48, max_position_embeddings=8, quantisation=Quantisation()))
    for number, (name, variable) in enumerate(variables(learner).items()):
        if is_range(name):
            variable.assign(float(number))
    whole = variables(learner)
    for options in ({"heads": [(0, 1)], "units": [(1, 3)]}, {"layers": [0]}):
        for name, variable in variables(cut(learner, **options)).items():
            source = name.replace("layer_0", "layer_1") if "layers" in options else name
            assert not is_range(name) or np.array_equal(variable, whole[source])


def test_layers_that_stay_keep_their_bits():
    sizes = {"vocab_size": 20, "hidden_size": 16, "num_attention_heads": 4, "intermediate_size": 48,
             "max_position_embeddings": 8}
    learner = classifier(EncoderConfig(
        **sizes, num_hidden_layers=3, quantisation=Quantisation(weight_bits=(8, 4, 2))))
    smaller = cut(learner, layers=[1]).encoder, take_layers(learner.encoder, [2, 0])
    assert [one.config.quantisation.weight_bits for one in smaller] == [(8, 2), (2, 8)]
    assert [[layer.attention.value.bits for layer in one.layers_] for one in smaller] == [
        [8, 2], [2, 8]]
