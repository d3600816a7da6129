"""The packing inside a graph, beside `pack_pairs`, in several layouts."""

import types

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data.records.features import pack_pairs, truncate_pairs
from bert_tf.export.packing import Packer
from bert_tf.tokenization.vocabulary import Layout


@pytest.mark.parametrize("layout", [Layout(), Layout(1, 2, 1), Layout(0, 1, 2, cls_last=True)])
def test_packs_as_outside_the_graph(layout):
    vocabulary = types.SimpleNamespace(layout=layout, cls_id=90, start_id=90, sep_id=91, pad_id=92)
    rng = np.random.default_rng(1)
    lengths = rng.integers(0, 15, [40, 2])
    lengths[::3, 1] = 0
    tokens = rng.integers(1, 80, lengths.sum()).astype(np.int32)
    a, b = (tf.ragged.constant([tokens[end - n:end].tolist() for end, n in zip(ends, column)],
                               dtype=tf.int32)
            for ends, column in zip(np.cumsum(lengths).reshape(-1, 2).T.tolist(),
                                    lengths.T.tolist()))
    starts = np.cumsum(lengths).reshape(-1, 2) - lengths
    kept = truncate_pairs(*lengths.T, 16, layout)
    expected = pack_pairs(tokens, starts[:, 0], kept[0], starts[:, 1], kept[1], 16, vocabulary)
    found = Packer(vocabulary, 16)(a, b)
    for name, rows in expected.items():
        np.testing.assert_array_equal(found[name], rows)
