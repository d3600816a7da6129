"""Packed sequences of several layouts, beside the same packing done token by token."""

import types

import numpy as np
import pytest

from bert_tf.data import masking
from bert_tf.data.records.features import pack_pairs, truncate_pairs
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.recipes.recipe import MaskTokens
from bert_tf.tokenization.vocabulary import Layout

CLS, SEP, PAD = 90, 91, 92
LAYOUTS = {"bert": Layout(1, 1, 1), "roberta": Layout(1, 2, 1),
           "xlnet": Layout(0, 1, 2, cls_last=True), "t5": Layout(0, 0, 1)}


def written_out(name, a, b):
    """(ids, segments) of one sequence, from what the paper of each model shows."""
    if name == "bert":
        ids = [CLS, *a, SEP] + ([*b, SEP] if b else [])
        return ids, [0] * (len(a) + 2) + [1] * (len(ids) - len(a) - 2)
    if name == "roberta":
        ids = [CLS, *a, SEP] + ([SEP, *b, SEP] if b else [])
        return ids, [0] * (len(a) + 3 if b else len(ids)) + [1] * (len(b) + 1 if b else 0)
    if name == "xlnet":
        ids = [*a, SEP] + ([*b, SEP] if b else []) + [CLS]
        return ids, [0] * (len(a) + 1) + ([1] * (len(b) + 1) if b else []) + [2]
    return [*a, *b, SEP], [0] * len(a) + ([1] * (len(b) + 1) if b else [0])


def packed(name, rng, longest=20):
    """Random runs as `pack_pairs` packs them, and as lists (a, b) that fit."""
    vocabulary = types.SimpleNamespace(layout=LAYOUTS[name], cls_id=CLS, start_id=CLS, sep_id=SEP,
                                       pad_id=PAD)
    tokens = np.arange(80, dtype=np.int32) + 1
    lengths = rng.integers(0, 20, [30, 2])
    lengths[::3, 1] = 0
    starts = rng.integers(0, 60, [30, 2])
    a, b = truncate_pairs(*lengths.T, longest, LAYOUTS[name])
    features = pack_pairs(tokens, starts[:, 0], a, starts[:, 1], b, longest, vocabulary)
    runs = [(tokens[s:s + m].tolist(), tokens[t:t + n].tolist())
            for (s, t), m, n in zip(starts.tolist(), a.tolist(), b.tolist())]
    return features, runs, lengths


@pytest.mark.parametrize("name", LAYOUTS)
def test_sequences_are_those_written_out(name):
    rng = np.random.default_rng(1)
    for _ in range(10):
        features, runs, lengths = packed(name, rng)
        for row, (a, b) in enumerate(runs):
            ids, segments = written_out(name, a, b)
            filled = 20 - len(ids)
            assert filled >= 0 and (filled == 0 or (len(a), len(b)) == tuple(lengths[row]))
            assert features["input_ids"][row].tolist() == ids + [PAD] * filled
            assert features["input_mask"][row].tolist() == [1] * len(ids) + [0] * filled
            assert features["segment_ids"][row].tolist() == segments + [0] * filled


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_knows_where_the_texts_are(name):
    layout = LAYOUTS[name]
    for a, b in (([1, 2, 3], []), ([1, 2, 3], [7, 8])):
        ids, _ = written_out(name, a, b)
        assert layout.length(len(a), len(b)) == len(ids)
        assert layout.room(len(ids), bool(b)) == len(a) + len(b)
        assert ids.index(1) == layout.before
        if b:
            assert ids.index(7) == layout.b_offset(len(a))


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("whole_words", [False, True])
def test_masks_never_fall_on_special_tokens(name, whole_words):
    layout = LAYOUTS[name]
    vocabulary = types.SimpleNamespace(ids={str(i): i for i in range(80)}, layout=layout,
                                       cls_id=CLS, start_id=CLS, sep_id=SEP, pad_id=PAD)
    room = layout.room(16, pair=True)
    options = types.SimpleNamespace(max_seq_length=16, masked_lm_prob=0.9,
                                    max_predictions_per_seq=16)
    masks = masking.find(MaskTokens(units="words" if whole_words else "subwords")).static_masks(
        types.SimpleNamespace(joins=lambda units: np.zeros(80, np.uint8)), vocabulary,
        PythonRandom(1), options, room)
    a = np.arange(1, room)
    for length in a:
        masks.draw(0, int(length), 30, int(room - length))
    placed = masks.place()
    positions, counts = placed.positions, placed.counts
    features = pack_pairs(np.arange(1, 81, dtype=np.int32), 0 * a, a, 0 * a + 30, room - a, 16,
                          vocabulary)
    assert (counts == min(room, round(16 * 0.9))).all()
    for row, count in enumerate(counts):
        chosen = features["input_ids"][row, positions[row, :count]]
        assert len(set(chosen)) == count and (chosen < CLS).all()
