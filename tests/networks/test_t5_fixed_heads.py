"""T5's encoder with heads that look at fixed places, against a network of learned heads."""

import dataclasses

import keras
import numpy as np
import pytest

from bert_tf.checkpoints.weights import variables
from bert_tf.config import PATTERNS, T5Config, config_from_dict
from bert_tf.errors import InputError
from bert_tf.models.fixed_patterns.layers import fixed_patterns
from bert_tf.models.t5 import huggingface as huggingface_t5
from bert_tf.models.t5.network import T5

pytestmark = pytest.mark.usefixtures("eagerly")
LEARNED = T5Config(vocab_size=20, d_model=8, d_kv=3, d_ff=12, num_layers=2, num_decoder_layers=1,
                   num_heads=3)
FIXED = dataclasses.replace(LEARNED, fixed_heads=("previous", "end"))
BATCH = {"encoder_input_tokens": np.array([[5, 6, 7, 8, 1], [9, 4, 1, 0, 0]], "int32"),
         "decoder_input_tokens": np.array([[0, 3, 4], [0, 7, 0]], "int32")}


def test_fixed_heads_have_the_given_maps():
    """The encoder's layer by its formula, in which two of three heads have given maps."""
    network = T5(FIXED)
    outputs = network(BATCH, return_attention=True)
    maps = np.array(fixed_patterns(BATCH["encoder_input_tokens"] != 0, FIXED.fixed_heads))
    for probs in outputs["encoder_attention_probs"]:
        np.testing.assert_allclose(np.array(probs)[:, :2], maps, rtol=1e-6, atol=1e-6)
    weights = {name: np.array(value) for name, value in variables(network).items()}
    x = weights["embeddings/word_embeddings"][BATCH["encoder_input_tokens"]]
    layer = "encoder/layer_0/attention"
    normed = x / np.sqrt((x ** 2).mean(-1, keepdims=True) + 1e-6)
    value = (normed @ weights[f"{layer}/value/kernel"]).reshape(2, 5, 3, 3)
    learned = np.array(outputs["encoder_attention_probs"][0])[:, 2:]
    context = np.einsum("bnqs,bsnd->bqnd", np.concatenate([maps, learned], 1), value)
    wanted = x + context.reshape(2, 5, 9) @ weights[f"{layer}/output/kernel"]
    found = network.encode(BATCH["encoder_input_tokens"])["layers"][0]["attention"]
    is_token = BATCH["encoder_input_tokens"] != 0
    np.testing.assert_allclose(np.array(found)[is_token], wanted[is_token], rtol=1e-5, atol=1e-5)
    query = (normed @ weights[f"{layer}/query/kernel"])[:, :, None]       # of the learned head
    key = (normed @ weights[f"{layer}/key/kernel"])[:, :, None]
    bias = np.array(network.encoder_stack.relative_bias(np.arange(5), np.arange(5)))[:, 2:]
    scores = np.einsum("bqnd,bsnd->bnqs", query, key) + bias
    scores = np.where(is_token[:, None, None], scores, -1e9)
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose((scores / scores.sum(-1, keepdims=True))[0], learned[0],
                               rtol=1e-5, atol=1e-5)


def test_the_learned_head_alone_is_that_of_a_network_without_fixed_ones():
    """Where the fixed heads are masked, the outputs are those of learned heads that are masked."""
    network, learned = T5(FIXED), T5(LEARNED)
    ours = {name: value.numpy() for name, value in variables(network).items()}
    for name, variable in variables(learned).items():
        value = ours[name]
        if value.shape != variable.shape:           # queries and keys of the encoder
            value = np.concatenate([np.ones((8, 6)), value], 1)
        variable.assign(value)
    mask = np.ones((4, 3), "float32")
    mask[:2, :2] = 0
    np.testing.assert_allclose(*(np.array(each(BATCH, head_mask=mask)["sequence_output"])
                                 for each in (network, learned)), atol=1e-5)
    assert learned.count_params() - network.count_params() == 2 * 2 * 8 * 6
    text = {"input_ids": BATCH["encoder_input_tokens"],
            "input_mask": BATCH["encoder_input_tokens"] != 0}
    np.testing.assert_allclose(network(text)["sequence_output"], network(BATCH)["encoder_output"])


def test_configurations(tmp_path):
    assert "fixed_heads" not in LEARNED.to_dict()
    FIXED.to_json_file(tmp_path / "config.json")
    assert config_from_dict(FIXED.to_dict()) == FIXED == T5Config.from_json_file(
        tmp_path / "config.json")
    T5(FIXED).save(tmp_path / "model.keras")
    assert keras.models.load_model(tmp_path / "model.keras").config == FIXED
    for change, part in (({"fixed_heads": ["odd"]}, "no pattern 'odd'"),
                         ({"fixed_heads": PATTERNS[:3]}, "fewer than num_heads"),
                         ({"architecture": "language_model", "num_decoder_layers": None,
                           "fixed_heads": ["next"]}, "none without an encoder")):
        with pytest.raises(InputError, match=part):
            dataclasses.replace(LEARNED, **change)
    with pytest.raises(InputError, match="one example"):
        T5(FIXED)({**BATCH, "encoder_segment_ids": BATCH["encoder_input_tokens"]})
    weights = type("", (), {"config": FIXED, "source": "here"})
    with pytest.raises(InputError, match="here: Hugging Face's T5 has no fixed_heads"):
        huggingface_t5.table_for(weights)
