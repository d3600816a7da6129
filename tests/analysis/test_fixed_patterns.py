"""Fixed patterns: rows computed by hand, the golden file, and an encoder made of them."""

import keras
import numpy as np
import pytest

from bert_tf import analysis
from bert_tf.analysis.fixed_patterns import FixedPatternEncoder
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.layers import padding_bias
from bert_tf.layers.fixed_patterns import PATTERNS, FixedPatternAttention, fixed_patterns
from bert_tf.networks import BertEncoder

CONFIG = EncoderConfig(30, 32, 2, 8, 64, type_vocab_size=2, max_position_embeddings=16)


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
            np.testing.assert_allclose(maps[name][row], [*weights, 0, 0], atol=1e-7)
        assert not maps[name][4:].any() and not maps[name][:, 4:].any()
    empty = np.array(fixed_patterns(masks([4], 6), ("previous", "left"), "zero")[0])
    assert not empty[0, 0].any() and not empty[1, :2].any() and empty[1, 2].sum() == 1


def test_maps_and_a_layer_equal_the_golden_ones(test_data):
    golden = np.load(test_data / "golden" / "fixed_patterns" / "patterns_seed1.npz")
    assert tuple(golden["names"]) == PATTERNS
    for name in golden.files:
        if name.endswith("_f64"):
            length, size, empty, _ = name.split("_")
            found = fixed_patterns(masks([int(length[1:])], int(size[1:])), PATTERNS, empty)
            np.testing.assert_allclose(found[0], golden[name], rtol=0, atol=1e-6)
    attention = FixedPatternAttention(CONFIG, 7)
    attention.build()
    for part in ("query", "key", "value"):
        getattr(attention, part).set_weights([golden[f"layer/{part}_kernel"],
                                              golden[f"layer/{part}_bias"]])
    mask = masks(golden["layer/lengths"], golden["layer/x"].shape[1])
    context, _ = attention(golden["layer/x"], (padding_bias(mask), fixed_patterns(mask)))
    projected = np.array(context) @ golden["layer/output_kernel"] + golden["layer/output_bias"]
    np.testing.assert_allclose(projected, golden["layer/projected"], rtol=0, atol=1e-5)


def test_learned_heads_are_those_of_bert(tmp_path):
    """With no head fixed, and the same weights, the encoder is BERT's; saving keeps the patterns.
    """
    inputs = {"input_ids": np.arange(20, dtype="int32").reshape(2, 10),
              "input_mask": masks([10, 7], 10)}
    plain, none_fixed = BertEncoder(CONFIG), FixedPatternEncoder(CONFIG, fixed_heads=())
    none_fixed.set_weights(plain.get_weights())
    np.testing.assert_allclose(none_fixed(inputs)["sequence_output"],
                               plain(inputs)["sequence_output"], atol=1e-5)
    encoder = FixedPatternEncoder(CONFIG, empty_rows="zero")
    assert plain.count_params() - encoder.count_params() == 2 * 2 * (32 + 1) * 28
    encoder.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    outputs = [model(inputs, return_attention=True) for model in (encoder, again)]
    np.testing.assert_array_equal(*(found["sequence_output"] for found in outputs))
    maps = np.array(outputs[0]["attention_probs"][1])
    np.testing.assert_allclose(maps[:, :7], fixed_patterns(inputs["input_mask"], PATTERNS, "zero"),
                               atol=1e-6)
    np.testing.assert_allclose(maps[0, 7].sum(-1), 1, atol=1e-5)
    with analysis.disabled(encoder, [(0, 7)]):
        found = np.array(encoder(inputs, return_attention=True)["attention_probs"][0])
        np.testing.assert_allclose(found[0, 7], 0.1, atol=1e-6)
    with pytest.raises(InputError, match="head 3 is fixed"), analysis.disabled(encoder, [(0, 2)]):
        pass
    all_fixed = FixedPatternEncoder(CONFIG, fixed_heads=(*PATTERNS, "end"))
    assert not [weight for weight in all_fixed.weights if "query" in weight.path]
    assert np.isfinite(np.array(all_fixed(inputs, training=True)["sequence_output"])).all()


def test_what_can_not_be_is_refused():
    for options in ({"fixed_heads": ("sideways",)}, {"fixed_heads": ("end",) * 9},
                    {"empty_rows": "middle"}):
        with pytest.raises(InputError):
            FixedPatternEncoder(CONFIG, **options)
