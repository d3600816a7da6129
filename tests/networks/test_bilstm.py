"""The bidirectional LSTM equals PyTorch's equations, text by text, and is saved and loaded."""

import keras
import numpy as np
import pytest

from bert_tf.config import BiLstmConfig
from bert_tf.models.recurrent.network import BiLstm

pytestmark = pytest.mark.usefixtures("eagerly")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def run(words, kernel, bias, units):
    """The last output of an LSTM over vectors of words."""
    cell = output = np.zeros(units)
    for word in words:
        i, j, f, o = np.split(np.concatenate([word, output]) @ kernel + bias, 4)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(j)
        output = sigmoid(o) * np.tanh(cell)
    return output


@pytest.mark.parametrize("pairs", [False, True])
def test_both_directions_end_at_the_texts_own_ends(pairs):
    config = BiLstmConfig(vocab_size=12, embedding_size=4, lstm_size=3, hidden_size=5, pairs=pairs)
    keras.utils.set_random_seed(1)
    network = BiLstm(config)
    rng = np.random.default_rng(0)
    weights = {v.path.partition("/")[2]: rng.normal(size=v.shape) for v in network.weights}
    for variable in network.weights:
        variable.assign(weights[variable.path.partition("/")[2]])
    ids = rng.integers(1, 12, (3, 7))
    lengths, seconds = [7, 4, 5], [3, 2, 4]
    mask = np.arange(7) < np.array(lengths)[:, None]
    segments = (np.arange(7) >= np.array(seconds)[:, None]) & mask
    outputs = network({"input_ids": ids, "input_mask": mask.astype(int),
                       "segment_ids": segments.astype(int)})

    def ends(row):
        words = weights["embeddings/word_embeddings"][row]
        return np.concatenate([
            run(one, weights[f"encoder/{way}/kernel"], weights[f"encoder/{way}/bias"], 3)
            for way, one in (("forward", words), ("backward", words[::-1]))])

    for row, length, second, found in zip(ids, lengths, seconds, outputs["pooled_output"]):
        expected = ends(row[:length])
        if pairs:
            a, b = ends(row[:second]), ends(row[second:length])
            expected = np.concatenate([a, b, np.abs(a - b), a * b])
        hidden = expected @ weights["pooler/dense/kernel"] + weights["pooler/dense/bias"]
        assert np.allclose(found, np.maximum(hidden, 0), atol=1e-5)
