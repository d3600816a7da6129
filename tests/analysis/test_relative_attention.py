"""Attention by relative positions, and what it has no effect on: slow loops over the weights of the
originals' files, whose outputs it gives."""

import json

import keras
import numpy as np
import pytest

from bert_tf import analysis, checkpoints
from bert_tf.analysis.effective_attention import effective_maps
from bert_tf.checkpoints.weights import variables
from bert_tf.config import T5Config, XLNetConfig
from bert_tf.models.t5.network import T5
from bert_tf.models.xlnet.network import XLNet
from bert_tf.networks import build
from tests.goldens import at_hand
from tests.original_t5 import config_of as t5_config
from tests.original_t5 import our_weights
from tests.original_xlnet import config_of, weights_of, write_checkpoint
from tests.rounding import ROUNDED, off

pytestmark = pytest.mark.usefixtures("eagerly")


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def pad(rows):
    """Texts of several lengths as a batch, padded on the right."""
    length = max(map(len, rows))
    return np.array([np.pad(row, (0, length - len(row))) for row in rows], np.int32)


def features(ids, segments):
    return {"input_ids": pad(ids), "input_mask": pad([np.ones_like(row) for row in ids]),
            "segment_ids": pad(segments)}


def maps_without_null_space(reading):
    """Effective attention of any maps, and of those whose rows sum to 1; its null spaces have the
    dimensions n - rank of T and of [T, 1]. Heads of n tokens and width D: n - D and n - D - 1."""
    (free, ranks), (summing, ranks_of_sums) = (
        effective_maps(reading.attention, reading.values, constrained)
        for constrained in (False, True))
    for head in np.ndindex(*ranks.shape):
        values = reading.values[head].astype(np.float64)
        with_ones = np.append(values, np.ones((len(values), 1)), 1)
        assert ranks[head] == np.linalg.matrix_rank(values) == min(values.shape)
        assert ranks_of_sums[head] == np.linalg.matrix_rank(with_ones) == min(with_ones.shape)
    np.testing.assert_allclose(summing.sum(-1), 1, rtol=1e-5)
    return free, summing


def xlnet_texts(file):
    """(ids, segments, first layer's input, [what attention gave]) of each text of the file."""
    for row in range(len(file["in/input_ids"])):
        real = file["in/input_mask"][row] == 0
        yield (file["in/input_ids"][row, real], file["in/segment_ids"][row, real],
               [file["out/word_emb/0"][real, row], file["out/ffn/0"][real, row]],
               [file[f"out/attention_h/{layer}"][real, row] for layer in range(2)])


def xlnet_head(weights, layer, head, x, segments, sinusoids):
    """A head's map and values, one score after the other. `sinusoids` are those of the distances
    S, S - 1, ... of a key to the left."""
    def of(name):
        return weights[f"model/transformer/{name}"]

    query, key, value, position = (of(f"layer_{layer}/rel_attn/{part}/kernel")[:, head]
                                   for part in "qkvr")
    word, relative, segment = (of(f"r_{part}_bias")[layer, head] for part in "wrs")
    scores = np.array([[
        (q + word) @ (x[j] @ key) + (q + relative) @ (sinusoids[len(sinusoids) // 2 - i + j]
                                                      @ position)
        + (q + segment) @ of("seg_embed")[layer, int(segments[i] != segments[j]), head]
        for j in range(len(x))] for i, q in enumerate(x @ query)])
    return softmax(scores / len(word) ** 0.5), x @ value


def test_maps_and_values_of_xlnet(test_data, tmp_path):
    file = np.load(test_data / "golden" / "xlnet" / "finetune_classify_last_seed1.npz")
    config, weights = config_of(file), weights_of(file)
    write_checkpoint(tmp_path, weights, config)
    network = XLNet(config)
    checkpoints.load(tmp_path, network)
    ids, segments, *_ = zip(*xlnet_texts(file))
    for reading, (_, kinds, inputs, outputs) in zip(
            analysis.read(network, [features(ids, segments)]), xlnet_texts(file)):
        assert off(reading.hidden[0], inputs[0]) < ROUNDED
        for layer in range(2):
            prefix = f"model/transformer/layer_{layer}/rel_attn"
            for head in range(3):
                attention, values = xlnet_head(weights, layer, head, inputs[layer], kinds,
                                               file["out/pos_emb/0"][:, 0])
                assert np.abs(reading.attention[layer, head] - attention).max() < 1e-5
                assert off(reading.values[layer, head], values) < ROUNDED
            for maps in (reading.attention, *maps_without_null_space(reading)):
                sums = inputs[layer] + np.einsum("nij,njd,hnd->ih", maps[layer],
                                                 reading.values[layer],
                                                 weights[f"{prefix}/o/kernel"])
                sums -= sums.mean(-1, keepdims=True)
                sums /= np.sqrt((sums ** 2).mean(-1, keepdims=True) + 1e-12)
                assert off(sums * weights[f"{prefix}/LayerNorm/gamma"]
                           + weights[f"{prefix}/LayerNorm/beta"], outputs[layer]) < ROUNDED


@pytest.mark.parametrize("version", at_hand("golden/t5/{}_seed1.npz", ("t5_v1_0", "t5_v1_1")))
def test_maps_and_values_of_t5s_encoder(version, test_data):
    folder = test_data / "golden" / "t5"
    file = np.load(folder / f"{version}_seed1.npz")
    buckets = np.load(folder / "relative_position_buckets.npz")
    bucket = dict(zip(buckets["relative_position"], buckets["both_32_128"]))
    network = T5(t5_config(json.loads(str(file["config"]))))
    weights = our_weights(file)
    for path, variable in variables(network).items():
        variable.assign(weights[path])
    ids = [row[row != 0] for row in file["inputs"]]
    for number, reading in enumerate(analysis.read(network, [features(ids, ids)])):
        length = len(ids[number])
        bias = np.array([[weights["encoder/relative_attention_bias/weight"][:, bucket[j - i]]
                          for j in range(length)] for i in range(length)])
        for layer in range(2):
            before, after = (file[f"eval/encoder_layer/{2 * layer + part}"][number, :length]
                             for part in (0, 1))
            of = f"encoder/layer_{layer}/attention"
            normed = before / np.sqrt((before ** 2).mean(-1, keepdims=True) + 1e-6)
            normed *= weights[f"{of}/layer_norm/scale"]
            query, key, value = (
                (normed @ weights[f"{of}/{part}/kernel"]).reshape(length, 3, 6)
                for part in ("query", "key", "value"))
            for head in range(3):
                scores = query[:, head] @ key[:, head].T + bias[:, :, head]
                # Rounding moves a weight by less than the scores, which T5 does not scale.
                assert (np.abs(reading.attention[layer, head] - softmax(scores)).max()
                        < ROUNDED * np.abs(scores).max())
                assert off(reading.values[layer, head], value[:, head]) < ROUNDED
            for maps in (reading.attention, *maps_without_null_space(reading)):
                context = np.concatenate(list(maps[layer] @ reading.values[layer]), -1)
                assert off(before + context @ weights[f"{of}/output/kernel"], after) < ROUNDED
            assert off(reading.hidden[layer], before) < ROUNDED
        assert off(reading.hidden[2], file["eval/encoder_layer/4"][number, :length]) < ROUNDED


@pytest.mark.parametrize("config", [
    T5Config(vocab_size=128, d_model=4, d_kv=2, d_ff=6, num_layers=2, num_heads=2),
    XLNetConfig(vocab_size=20, d_model=4, d_inner=6, n_layer=2, n_head=2, d_head=2,
                initializer_range=0.5)], ids=["t5", "xlnet"])
def test_attribution_by_differences(config):
    """The words of a text differ, so that a row of the table is one token's input."""
    keras.utils.set_random_seed(1)
    network, text = build(config), features([[7, 3, 9]], [[0, 0, 0]])

    def layers():
        return np.array(network(text)["layer_outputs"])[:, 0]           # [L, n, H]

    table, step = network.embedding_table, 1e-2
    whole, squares = table.numpy(), np.zeros((2, 3, 3))
    for token, word in enumerate(text["input_ids"][0]):
        for part in range(4):
            found = []
            for sign in (1, -1):
                changed = whole.copy()
                changed[word, part] += sign * step
                table.assign(changed)
                found.append(layers())
            squares[:, :, token] += (((found[0] - found[1]) / (2 * step)) ** 2).sum(-1)
    table.assign(whole)
    norms = np.sqrt(squares)
    for by in ("embeddings", "words"):
        np.testing.assert_allclose(analysis.token_attribution(network, text, by=by),
                                   norms / norms.sum(-1, keepdims=True), atol=2e-3)
