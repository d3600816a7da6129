"""Fixed patterns: rows computed by hand, the golden file, and an encoder made of them."""

import dataclasses

import keras
import numpy as np
import pytest

from bert_tf import analysis, checkpoints, networks
from bert_tf.bert.layers import padding_bias
from bert_tf.checkpoints import conversion
from bert_tf.config import PATTERNS, EncoderConfig, FixedPatternConfig
from bert_tf.errors import InputError
from bert_tf.models.fixed_patterns.layers import FixedPatternAttention, fixed_patterns

PLAIN = EncoderConfig(30, 32, 2, 8, 64, type_vocab_size=2, max_position_embeddings=16)
CONFIG = FixedPatternConfig.from_dict(PLAIN.to_dict())


def masks(lengths, size):
    return (np.arange(size) < np.reshape(lengths, (-1, 1))).astype("int32")


def test_rows_computed_by_hand():
    maps = dict(zip(PATTERNS, np.array(fixed_patterns(masks([4], 6))[0])))
    expected = {"current": {2: [0, 0, 1, 0]}, "previous": {0: [1, 0, 0, 0], 2: [0, 1, 0, 0]},
                "next": {2: [0, 0, 0, 1], 3: [0, 0, 0, 1]},
                "left": {1: [1, 0, 0, 0], 3: [1 / 9, 8 / 9, 0, 0]},
                "right": {0: [0, 0, 8 / 9, 1 / 9], 2: [0, 0, 0, 1]},
                "end": {1: np.array([1, 8, 27, 64]) / 100},
                "start": {0: np.array([64, 27, 8, 1]) / 100}}
    for name, rows in expected.items():
        for row, weights in rows.items():
            np.testing.assert_allclose(maps[name][row], [*weights, 0, 0], rtol=1e-7, atol=1e-7)
        assert not maps[name][4:].any() and not maps[name][:, 4:].any()
    empty = np.array(fixed_patterns(masks([4], 6), ("previous", "left"), "zero")[0])
    assert not empty[0, 0].any() and not empty[1, :2].any() and empty[1, 2].sum() == 1


def slow_word_map(pattern, words, empty_rows):
    """The map of a text whose tokens are of these words, from the definition for words."""
    count = max(words) + 1
    rows = np.zeros((len(words), len(words)))
    for place, i in enumerate(words):
        weights = np.array([{
            "current": i == j, "previous": j == i - 1, "next": j == i + 1,
            "left": (j <= i - 2) * (j + 1) ** 3, "right": (j >= i + 2) * (count - j) ** 3,
            "end": (j + 1) ** 3, "start": (count - j) ** 3}[pattern] for j in range(count)], float)
        if not weights.any() and empty_rows == "end":
            weights[0 if pattern in ("previous", "left") else -1] = 1
        weights /= max(weights.sum(), 1)
        for other, j in enumerate(words):
            rows[place, other] = weights[j] / words.count(j)
    return rows


@pytest.mark.parametrize("empty_rows", ["end", "zero"])
def test_patterns_of_words_by_a_slow_loop(empty_rows):
    texts = [[0, 1, 1, 2, 3, 3, 3, 4], [0, 0, 1], [0, 1, 2, 3, 4]]
    boundary = np.zeros((3, 9), "int32")
    for row, words in enumerate(texts):
        boundary[row, [words.index(word) for word in set(words)]] = 1
    found = np.array(fixed_patterns(masks([8, 3, 5], 9), PATTERNS, empty_rows, boundary))
    for row, words in enumerate(texts):
        for number, pattern in enumerate(PATTERNS):
            expected = np.zeros((9, 9))
            expected[:len(words), :len(words)] = slow_word_map(pattern, words, empty_rows)
            np.testing.assert_allclose(found[row, number], expected, rtol=1e-6, atol=1e-6)
    # Where every token is a word, patterns of words are those of tokens.
    tokens = np.array(fixed_patterns(masks([8, 3, 5], 9), PATTERNS, empty_rows))
    every = fixed_patterns(masks([8, 3, 5], 9), PATTERNS, empty_rows, np.ones((3, 9), "int32"))
    np.testing.assert_allclose(every, tokens, rtol=1e-6, atol=1e-6)


def test_maps_and_a_layer_equal_the_golden_ones(test_data):
    golden = np.load(test_data / "golden" / "fixed_patterns" / "patterns_seed1.npz")
    assert tuple(golden["names"]) == PATTERNS
    for name in golden.files:
        if name.endswith("_f64"):
            length, size, empty, _ = name.split("_")
            found = fixed_patterns(masks([int(length[1:])], int(size[1:])), PATTERNS, empty)
            np.testing.assert_allclose(found[0], golden[name], rtol=0, atol=1e-6)
    attention = FixedPatternAttention(CONFIG)
    attention.build()
    for part in ("query", "key", "value"):
        getattr(attention, part).set_weights([golden[f"layer/{part}_kernel"],
                                              golden[f"layer/{part}_bias"]])
    mask = masks(golden["layer/lengths"], golden["layer/x"].shape[1])
    context, _ = attention(golden["layer/x"], (padding_bias(mask), fixed_patterns(mask)))
    projected = np.array(context) @ golden["layer/output_kernel"] + golden["layer/output_bias"]
    np.testing.assert_allclose(projected, golden["layer/projected"], rtol=0, atol=1e-5)


def changed(**values):
    return networks.build(dataclasses.replace(CONFIG, **values))


def test_learned_heads_are_those_of_bert():
    """With no head fixed, and the same weights, the encoder is BERT's."""
    inputs = {"input_ids": np.arange(20, dtype="int32").reshape(2, 10),
              "input_mask": masks([10, 7], 10)}
    plain, none_fixed = networks.build(PLAIN), changed(fixed_heads=())
    none_fixed.set_weights(plain.get_weights())
    np.testing.assert_allclose(none_fixed(inputs)["sequence_output"],
                               plain(inputs)["sequence_output"], rtol=1e-5, atol=1e-5)
    encoder = changed(empty_rows="zero")
    assert plain.count_params() - encoder.count_params() == 2 * 2 * (32 + 1) * 28
    maps = np.array(encoder(inputs, return_attention=True)["attention_probs"][1])
    np.testing.assert_allclose(maps[:, :7], fixed_patterns(inputs["input_mask"], PATTERNS, "zero"),
                               rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(maps[0, 7].sum(-1), 1, rtol=1e-5, atol=1e-5)
    with analysis.disabled(encoder, [(0, 7)]):
        found = np.array(encoder(inputs, return_attention=True)["attention_probs"][0])
        np.testing.assert_allclose(found[0, 7], 0.1, rtol=1e-6, atol=1e-6)
    with pytest.raises(InputError, match="head 3 looks"), analysis.disabled(encoder, [(0, 2)]):
        pass
    all_fixed = changed(fixed_heads=(*PATTERNS, "end"))
    assert not [weight for weight in all_fixed.weights if "query" in weight.path]
    assert np.isfinite(np.array(all_fixed(inputs, training=True)["sequence_output"])).all()
    words = changed(pattern_units="words")
    found, other = (words({**inputs, "token_boundary": boundary})["sequence_output"]
                    for boundary in (np.ones((2, 10), "int32"), np.eye(2, 10, dtype="int32")))
    words_off = changed()
    words_off.set_weights(words.get_weights())
    np.testing.assert_allclose(found, words_off(inputs)["sequence_output"], rtol=1e-5, atol=1e-5)
    assert np.abs(np.array(found) - np.array(other)).max() > 1e-3
    with pytest.raises(InputError, match="token_boundary"):
        words(inputs)


@pytest.mark.parametrize("fixed_heads", [PATTERNS, (*PATTERNS, "end")])
def test_a_saved_encoder_is_read_again(fixed_heads, tmp_path):
    encoder = changed(fixed_heads=fixed_heads)
    encoder.save(tmp_path / "model.keras")
    again, loaded = keras.models.load_model(tmp_path / "model.keras"), changed(
        fixed_heads=fixed_heads)
    assert checkpoints.read_config(tmp_path / "model.keras") == encoder.config == again.config
    assert not checkpoints.load(tmp_path, loaded).missing
    inputs = {"input_ids": np.arange(10, dtype="int32").reshape(2, 5)}
    for other in (again, loaded):
        np.testing.assert_array_equal(other(inputs)["sequence_output"],
                                      encoder(inputs)["sequence_output"])
    with pytest.raises(InputError, match="fixed_heads"):
        checkpoints.load(tmp_path, networks.build(PLAIN))
    for form in ("google", "huggingface", "model_garden", "keras_hub"):
        with pytest.raises(InputError, match="fixed_patterns"):
            conversion.convert(str(tmp_path), str(tmp_path / form), form, dry_run=True)


@pytest.mark.parametrize("values", [
    {"fixed_heads": ["sideways"]}, {"fixed_heads": ["end"] * 9}, {"fixed_heads": "end"},
    {"empty_rows": "middle"}, {"pattern_units": "letters"}])
def test_what_can_not_be_is_refused(values):
    with pytest.raises(InputError, match=next(iter(values))):
        FixedPatternConfig.from_dict({**PLAIN.to_dict(), **values})
