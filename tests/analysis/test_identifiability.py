"""Effective attention, identified tokens, attribution: the paper's properties, and numbers of
independent implementations."""

import dataclasses
import json

import keras
import numpy as np
import pytest
import scipy.linalg
from sklearn.linear_model import Ridge

from bert_tf import analysis, checkpoints, networks, objectives
from bert_tf.analysis.effective_attention import correlation, effective_maps
from bert_tf.analysis.identifiability import summarize_attribution
from bert_tf.analysis.identification import LinearProbe, MlpProbe, identified
from bert_tf.analysis.statistics import KINDS
from bert_tf.config import EncoderConfig
from bert_tf.tokenization.vocabulary import Layout, Vocabulary


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


@pytest.fixture(name="golden", scope="module")
def fixture_golden(test_data):
    return lambda name: np.load(test_data / "golden" / "identifiability" / f"{name}.npz")


@pytest.fixture(name="encoder", scope="module")
def fixture_encoder(test_data):
    """BERT-tiny with the exact form of GELU, as the golden's network has it."""
    folder = test_data / "weights" / "bert-tiny-question-classifier"
    loaded = networks.build(checkpoints.read_config(folder))
    checkpoints.load(folder, loaded)
    encoder = networks.build(dataclasses.replace(loaded.config, hidden_act="gelu_erf"))
    encoder.set_weights(loaded.get_weights())
    return encoder


def features(ids, segments):
    ids = np.asarray(ids, np.int32)[None]
    return {"input_ids": ids, "segment_ids": np.asarray(segments, np.int32)[None],
            "input_mask": np.ones_like(ids)}


@pytest.mark.parametrize("n, width, planted", [(12, 5, 5), (6, 8, 6), (20, 8, 3), (33, 16, 16)])
def test_the_null_space_has_no_effect(n, width, planted):
    rng = np.random.default_rng(n)
    attention = softmax(rng.standard_normal((n, n)))
    values = rng.standard_normal((n, planted)) @ rng.standard_normal((planted, width))
    effective, rank = analysis.effective_attention(attention, values)
    basis = analysis.left_null_space(values)
    assert rank == planted == analysis.numerical_rank(values) and basis.shape == (n - rank, n)
    np.testing.assert_allclose(basis @ values, 0, atol=1e-12)
    np.testing.assert_allclose(effective @ values, attention @ values, atol=1e-12)
    np.testing.assert_allclose(analysis.effective_attention(effective, values)[0], effective,
                               atol=1e-12)
    np.testing.assert_allclose(effective, attention - attention @ basis.T @ basis, atol=1e-12)


@pytest.mark.parametrize("n, width", [(12, 5), (20, 8), (33, 16), (6, 8)])
def test_effective_attention_of_rows_that_sum_to_one(n, width):
    """It is what scipy's null space of [T, 1] leaves of a map, and its rows sum to 1."""
    rng = np.random.default_rng(n)
    attention, values = softmax(rng.standard_normal((2, n, n))), rng.standard_normal((n, width))
    space = scipy.linalg.null_space(np.concatenate([values, np.ones((n, 1))], 1).T)
    assert space.shape[1] == max(n - width - 1, 0)
    effective, rank = analysis.effective_attention(attention, values, sums_to_one=True)
    assert rank == n - space.shape[1]
    np.testing.assert_allclose(effective, attention - attention @ space @ space.T, atol=1e-12)
    np.testing.assert_allclose(effective @ values, attention @ values, atol=1e-12)
    np.testing.assert_allclose(effective.sum(-1), 1, atol=1e-12)
    basis = analysis.left_null_space(values, sums_to_one=True)
    np.testing.assert_allclose(basis.T @ basis, space @ space.T, atol=1e-12)
    maps, ranks = effective_maps(attention[None], np.stack([values] * 2)[None], sums_to_one=True)
    assert np.array_equal(maps[0], effective) and ranks[0, 0] == rank


@pytest.mark.parametrize("sums_to_one", [False, True])
def test_effective_attention_from_left_to_right(sums_to_one):
    """It is the smallest row of the same output, and of the same sum, whose weights are all on the
    left: by numpy's least squares. A token on the right gets no weight."""
    rng = np.random.default_rng(3)
    n, values = 14, rng.standard_normal((14, 4))
    attention = np.tril(rng.random((2, n, n)))
    attention /= attention.sum(-1, keepdims=True)
    effective, ranks = analysis.effective_attention(attention, values, sums_to_one, causal=True)
    assert not np.triu(effective, 1).any()
    kept = np.append(values, np.ones((n, 1)), 1) if sums_to_one else values
    for row in range(n):
        seen = kept[:row + 1]
        least = [np.linalg.lstsq(seen.T, seen.T @ weights[row, :row + 1])[0]
                 for weights in attention]
        np.testing.assert_allclose(effective[:, row, :row + 1], least, atol=1e-12)
        assert ranks[row] == np.linalg.matrix_rank(seen)
    lower = np.tril_indices(n)
    expected = [np.corrcoef(raw[lower], part[lower])[0, 1]
                for raw, part in zip(attention, effective)]
    np.testing.assert_allclose(correlation(attention, effective, causal=True), expected, atol=1e-12)


def test_maps_of_a_network_from_left_to_right_keep_their_side():
    """The first rows of a text are those of its beginning, since later tokens change nothing."""
    encoder = networks.build(EncoderConfig(
        40, 16, 2, 2, 32, type_vocab_size=2, max_position_embeddings=12, initializer_range=0.2,
        directionality="left_to_right"))
    ids = np.random.default_rng(0).integers(5, 40, 12)
    texts = [features(ids[:length], np.zeros(length)) for length in (12, 7)]
    vocabulary = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(str, range(35))])
    readings = list(analysis.read(encoder, texts))
    maps = [effective_maps(one.attention, one.values, causal=True) for one in readings]
    np.testing.assert_allclose(maps[0][0][..., :7, :7], maps[1][0], atol=1e-5)
    assert np.array_equal(maps[0][1][..., :7], maps[1][1])
    found = analysis.compare_maps(readings[:1], vocabulary, causal=True)
    np.testing.assert_allclose(found["null_space"], (np.arange(1, 13) - maps[0][1]).mean(-1))


def test_probabilities_are_not_identifiable():
    """Another map with rows of probabilities gives the same output where n > D + 1."""
    rng = np.random.default_rng(1)
    attention, values = softmax(rng.standard_normal((20, 20))), rng.standard_normal((20, 8))
    basis = scipy.linalg.null_space(np.append(values, np.ones((20, 1)), 1).T).T
    assert len(basis) == 20 - 8 - 1
    change = rng.standard_normal((20, len(basis))) @ basis
    other = attention + change * (attention.min() / 2 / np.abs(change).max())
    assert other.min() > 0 and np.abs(other - attention).max() > 1e-4
    np.testing.assert_allclose(other.sum(1), 1, atol=1e-12)
    np.testing.assert_allclose(other @ values, attention @ values, atol=1e-12)


def test_projections_equal_the_golden_ones(golden):
    cases = golden("matrices_seed1")
    for case in range(4):
        def item(name, case=case):
            return cases[f"case{case}/{name}"]
        effective, rank = analysis.effective_attention(item("A"), item("T_f64"))
        np.testing.assert_allclose(effective, item("effective"), rtol=0, atol=1e-7)
        assert rank == item("rank")
        assert len(analysis.left_null_space(item("T_f64"))) == item("null_dimension")
        assert correlation(item("A"), effective) == pytest.approx(item("pearson"), abs=1e-6)


def test_maps_of_a_network_equal_the_golden_ones(golden, encoder):
    cases = golden("bert_tiny_seed1")
    texts = [features(cases[f"text{i}/input_ids"], cases[f"text{i}/segment_ids"]) for i in range(4)]
    for i, reading in enumerate(analysis.read(encoder, texts, ("attention", "values"))):
        effective, ranks = effective_maps(reading.attention, reading.values)
        correlations = correlation(reading.attention, effective)
        for layer, head in np.ndindex(2, 2):
            prefix = f"text{i}/layer{layer}_head{head}"
            assert ranks[layer, head] == cases[f"{prefix}/rank"]
            assert abs(correlations[layer, head] - cases[f"{prefix}/pearson"]) < 1e-5
            if not i:
                for found, name in ((reading.attention, "raw"), (effective, "effective")):
                    np.testing.assert_allclose(found[layer, head], cases[f"{prefix}/{name}"],
                                               rtol=0, atol=1e-5)


def test_tokens_are_identified_as_in_the_golden_counts(golden, encoder):
    cases = golden("bert_tiny_seed1")
    texts = [features(json.loads(str(ids)), json.loads(str(segments))) for ids, segments in zip(
        cases["identify/input_ids"], cases["identify/segment_ids"])]
    readings = list(analysis.read(encoder, texts, ("hidden",)))
    found = analysis.identify(readings)
    for layer in range(2):
        for measure in ("cosine", "l2"):
            right, total = cases[f"identify/layer{layer}_{measure}"]
            assert found.tokens[measure] == total
            assert round(found.shares[measure][layer + 1] * total) == right
    assert found.shares["linear"][0] == 1.0


def test_attribution_equals_the_golden_one(golden, encoder):
    cases = golden("bert_tiny_seed1")
    text = features(cases["attribution/input_ids"], cases["attribution/segment_ids"])
    for by, reading, name in (("embeddings", "jacobian", "jacobian_norm"),
                              ("words", "sum", "summed_gradient")):
        found = analysis.token_attribution(encoder, text, reading, by)
        np.testing.assert_allclose(found.sum(-1), 1, rtol=1e-5, atol=1e-5)
        for layer in range(2):      # in the file, rows are input tokens and columns hidden tokens
            np.testing.assert_allclose(
                found[layer].T, cases[f"attribution/layer{layer}/{by}_{name}"], rtol=0, atol=1e-5)


def test_random_projections_estimate_the_jacobian():
    keras.utils.set_random_seed(1)
    config = EncoderConfig(50, 16, 2, 2, 32, type_vocab_size=2, max_position_embeddings=12,
                           embedding_size=8)
    encoder = networks.build(config)
    text = features(np.arange(6), np.zeros(6))
    exact = analysis.token_attribution(encoder, text)
    found = analysis.token_attribution(encoder, text, projections=400)
    np.testing.assert_allclose(found, exact, atol=0.04)


def test_probes_across_layers_by_a_slow_loop():
    """Every pair of layers by scikit-learn's regression; the MLP finds what no affine map does."""
    rng = np.random.default_rng(5)
    turn = rng.standard_normal((6, 6))
    readings = []
    for _ in range(20):
        inputs = rng.standard_normal((25, 6))
        hidden = np.stack([inputs, inputs @ turn + 1, np.abs(inputs) * [1, 1, 1, 1, 0.2, 0.2]])
        readings.append(analysis.Reading(np.arange(25), np.zeros(25), hidden=hidden))
    found = analysis.identify(readings, mlp_epochs=1)
    learned, tested = 14, 17
    for layer in range(3):
        x, y = (np.concatenate([reading.hidden[i] for reading in readings[:learned]])
                for i in (layer, 0))
        share = np.trace(x.T @ x) / 6 * 1e-4
        fitted = Ridge(alpha=share).fit(x, y)
        for other in range(3):
            right = [max(range(25), key=lambda j, p=p, t=t: p @ t[j] / np.linalg.norm(t[j])) == i
                     for reading in readings[tested:] for t in [reading.hidden[0]]
                     for i, p in enumerate(fitted.predict(reading.hidden[other]))]
            assert found.across[layer, other] == pytest.approx(np.mean(right))
    np.testing.assert_array_equal(np.diag(found.across), found.shares["linear"])
    assert found.tokens == {"cosine": 500, "l2": 500, "linear": 75, "mlp": 75}
    assert list(found.shares["mlp"].shape) == [3]


def test_an_mlp_finds_what_is_not_linear():
    """From (|x|, sign of x, in one number each) back to x."""
    rng = np.random.default_rng(6)
    texts = []
    for _ in range(12):
        x = rng.standard_normal((100, 3))
        texts.append((np.concatenate([np.abs(x), np.sign(x) * 0.5], 1), x))
    linear = LinearProbe(6, 3)
    for text in texts[:8]:
        linear.add(*text)
    probe = MlpProbe(6, 3, units=64, epochs=50, seed=1)
    shares = [np.mean([identified(found(x), y).mean() for x, y in texts[10:]])
              for found in (linear.solve(), probe.fit(texts[:8], texts[8:10]))]
    assert shares[1] > 2 * shares[0]
    first = probe(texts[0][0])
    np.testing.assert_array_equal(probe.fit(texts[:8], texts[8:10])(texts[0][0]), first)


def test_nothing_comes_from_what_is_not_seen():
    """From left to right, later tokens contribute nothing."""
    keras.utils.set_random_seed(1)
    config = EncoderConfig(50, 16, 1, 2, 32, type_vocab_size=2, max_position_embeddings=12,
                           directionality="left_to_right", use_task_id=True)
    encoder = networks.build(config)
    text = features(np.arange(6), np.zeros(6))
    found = analysis.token_attribution(encoder, text, projections=4)[0]
    assert not np.triu(found, 1).any() and (np.tril(found)[np.tril_indices(6)] > 0).all()
    batch = {**text, "masked_lm_positions": np.array([[2]]), "masked_lm_ids": np.array([[7]]),
             "masked_lm_weights": np.ones((1, 1), "float32")}
    weights, gradients = analysis.attention_gradients(encoder, objectives.MaskedLM(config), batch)
    assert not np.triu(weights[0, 0], 1).any() and gradients[0, 0, :, 2].any()


def test_padding_does_not_matter():
    keras.utils.set_random_seed(2)
    config = EncoderConfig(50, 16, 2, 2, 32, type_vocab_size=2, max_position_embeddings=24)
    encoder = networks.build(config)
    alone = features(np.arange(5, 17), np.zeros(12))
    padded = {name: np.pad(rows, ((0, 1), (0, 7))) for name, rows in alone.items()}
    padded["input_mask"][1, :3] = 1
    first, second = (next(iter(analysis.read(encoder, [batch]))) for batch in (alone, padded))
    for part in ("attention", "hidden", "values"):
        np.testing.assert_allclose(getattr(first, part), getattr(second, part), atol=1e-5)
    assert first.attention.shape == (2, 2, 12, 12) and first.values.shape == (2, 2, 12, 8)


def test_equal_words_have_one_vector():
    inputs = np.eye(3)[[0, 1, 0, 2]]
    for measure in ("cosine", "l2"):
        found = identified(np.eye(3)[[0, 1, 0, 1]], inputs, measure)
        assert found.tolist() == [True, True, True, False]


def test_special_tokens_are_left_out_of_attribution():
    shares = np.random.default_rng(4).random((1, 1, 7, 7))
    for layout in (Layout(), Layout(0, 0, 1), Layout(0, 1, 2)):
        found = summarize_attribution(list(shares), 2, layout)
        inner = range(layout.before, 7 - layout.after)
        assert found["own"][0] == pytest.approx(np.mean([shares[0, 0, i, i] for i in inner]))
        assert found["by_distance"][0, 3] == pytest.approx(
            np.mean([shares[0, 0, i, i + 1] for i in inner if i + 1 in inner]))


def test_a_linear_probe_finds_a_linear_map():
    rng = np.random.default_rng(3)
    inputs, turn = rng.standard_normal((200, 8)), np.linalg.qr(rng.standard_normal((8, 8)))[0]
    hidden = inputs @ turn + 3.0
    assert identified(hidden, inputs).mean() < 0.5
    probe = LinearProbe(8, 8, ridge=1e-9)
    probe.add(hidden, inputs)
    np.testing.assert_allclose(probe.solve()(hidden), inputs, rtol=1e-5, atol=1e-5)
    assert identified(probe(hidden), inputs, "l2").all()


def test_a_head_whose_values_are_0_has_no_share_of_tokens(encoder):
    """As where its gate is closed; other heads have the whole of theirs."""
    value = encoder.layers_[0].attention.value
    kept = value.get_weights()
    value.set_weights([np.concatenate([0 * part[..., :64], part[..., 64:]], -1) for part in kept])
    vocabulary = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "a"])
    found = analysis.compare_maps(analysis.read(
        encoder, [features([2, 6, 5, 3], [0] * 4)], ("attention", "values")), vocabulary)
    value.set_weights(kept)
    total = sum(found[f"share {kind}"] for kind in KINDS)
    np.testing.assert_allclose(total, [[0, 1], [1, 1]], atol=1e-6)
