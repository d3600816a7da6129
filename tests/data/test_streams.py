"""XLNet's streams: pairs, predictions and orders are those of the original."""

import gzip
import json
import random

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data import masking
from bert_tf.models.xlnet import records as xlnet_records
from bert_tf.models.xlnet.masks import Permutations
from bert_tf.recipes import find


def test_golden_pairs(test_data):
    path = test_data / "golden/xlnet/split_a_and_b_seed1.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        calls = [json.loads(line) for line in file]
    for call in calls:
        flags, draws = np.array(list(call["sent_ids"])) == "1", random.Random(call["python_seed"])
        edges = [0, *(np.flatnonzero(flags[1:] != flags[:-1]) + 1).tolist(), call["length"]]
        pair = xlnet_records.split_a_and_b(edges, call["begin_idx"], call["tot_len"], draws)
        assert draws.random() == call["next_random"]
        data, result = np.arange(100, 100 + call["length"]), call["result"]
        if pair is None:
            assert result is None or not call["extend_target"]
        else:
            assert [data[pair.a].tolist(), data[pair.b].tolist(), pair.label] == [
                result["a"], result["b"], result["label"]]


def test_golden_predictions(test_data):
    golden = np.load(test_data / "golden/xlnet/sample_mask_seed1.npz")
    for index, size in enumerate(golden["length"]):
        alpha, beta, most, goal = (int(golden[name][index]) for name in (
            "alpha", "beta", "max_gram", "goal"))
        draws = np.random.RandomState(golden["np_seed"][index])
        shape = xlnet_records.Shape(size, size // 2, None, 2, mask_alpha=alpha, mask_beta=beta,
                                    max_gram=most)
        mask = xlnet_records.MaskSampler(shape, ~golden["is_start_piece"], draws).sample(
            golden["segs"][index, :size], bool(golden["reverse"][index]),
            None if goal < 0 else goal)
        np.testing.assert_array_equal(mask, golden["mask"][index, :size])
        assert draws.randint(2**31 - 1) == golden["next_draw"][index]


@pytest.mark.parametrize("goal", [None, 9])
def test_whole_grams_end_where_words_do(goal):
    """What the original means to do: a run ends before a word, but for one that reaches the goal;
    single tokens fill it up."""
    rng = np.random.default_rng(0)
    continues = np.arange(40) >= 20
    shape = xlnet_records.Shape(64, 32, goal, 2, whole_grams=True)
    for seed in range(30):
        ids = rng.integers(0, 40, 48)
        mask = xlnet_records.MaskSampler(shape, continues, np.random.RandomState(seed)).sample(
            ids, False, goal)
        if goal is None:
            edges = np.flatnonzero(np.diff(mask.astype(int))) + 1
            assert not continues[ids[edges]].any()
        else:
            assert mask.sum() == goal


def test_a_row_goes_on_where_it_stopped():
    """Also where the text runs backward; a second of two cores has rows of its own."""
    text = xlnet_records.Stream(np.arange(10, 410), np.arange(400) // 7 % 2 == 0)
    ids, flags = xlnet_records.cut_rows(text, 8, 2, True)
    assert ids.shape == flags.shape == (8, 100)
    backward = xlnet_records.is_backward(np.arange(8), 8, 2, True)
    assert backward.tolist() == [False, False, True, True] * 2
    np.testing.assert_array_equal(ids[backward], ids[~backward][:, ::-1])
    np.testing.assert_array_equal(ids[~backward].ravel(), text.ids)
    shape = xlnet_records.Shape(16, 8, 4, 8, 2)
    batches = list(xlnet_records.make_records(
        ids, flags, shape, 3, 4, xlnet_records.MaskSampler(
            shape, np.zeros(410, bool), np.random.RandomState(0)), random.Random(0)))
    assert len(batches) == 11
    for number, batch in enumerate(batches):
        np.testing.assert_array_equal(batch["input"][:, :8], ids[:, 8 * number:8 * number + 8])
        np.testing.assert_array_equal(batch["target"][:, :8], ids[:, 8 * number + 1:8 * number + 9])
        assert (batch["is_masked"].sum(1) == 4).all()


@pytest.mark.parametrize("name", ["s32", "s32_window8", "s48_all"])
def test_golden_orders(test_data, name):
    golden = np.load(test_data / f"golden/xlnet/perm_{name}_seed1.npz")
    rows, size = golden["record_input"].shape
    slots = int(golden["num_predict"])
    slots = size if slots < 0 else slots
    draw = Permutations(size, int(golden["reuse_len"]), int(golden["perm_size"]), slots, 3, 4,
                        4, 2, True)
    records = {name: tf.constant(golden[f"record_{name}"], tf.int32)
               for name in ("input", "is_masked", "seg_id", "label")}
    found = draw.order(records, tf.constant(golden["permutation"], tf.int32))
    found = {name: value.numpy() for name, value in found.items()}
    np.testing.assert_array_equal(
        found["query_order"][:, :, None] <= found["key_order"][:, None], golden["perm_mask"])
    mapping = np.eye(size)[found["masked_lm_positions"]] * found["masked_lm_weights"][..., None]
    np.testing.assert_array_equal(mapping.sum(1), golden["input_q"])
    if "target_mapping" in golden:
        np.testing.assert_array_equal(mapping, golden["target_mapping"])
        np.testing.assert_array_equal(found["masked_lm_ids"], golden["target"])
    for ours, theirs in (("input_ids", "input_k"), ("segment_ids", "seg_id"),
                         ("next_sentence_labels", "label")):
        np.testing.assert_array_equal(found[ours], golden[theirs])
    # A record's order depends on its number alone, and is another in another epoch.
    whole = draw(records, 5, tf.range(rows, dtype=tf.int64))
    part = draw({name: value[3:5] for name, value in records.items()}, 5,
                tf.range(3, 5, dtype=tf.int64))
    assert all(np.array_equal(whole[name][3:5], value) for name, value in part.items())
    assert whole["is_backward"][:4, 0].numpy().tolist() == [0, 1, 0, 1]
    assert not np.array_equal(whole["key_order"], draw(
        records, 5, tf.range(rows, 2 * rows, dtype=tf.int64))["key_order"])


def test_denoising_hides_tokens_as_bert_does():
    """15% of each record, whichever tokens the records predict; <sep> and <cls> stay."""
    rng, rows, size = np.random.default_rng(0), 64, 100
    ids = rng.integers(10, 90, (rows, size))
    ids[:, [70, 98]], ids[:, 99] = 4, 3
    records = {"input": ids, "is_masked": ids % 2, "seg_id": ids % 3, "label": ids[:, :1] % 2}
    records = {name: tf.constant(value, tf.int32) for name, value in records.items()}
    draw = masking.find(find("xlnet").corruption).dynamic_masks(
        {"vocabulary": {"size": 90, "mask_id": 6, "cls_id": 3, "sep_id": 4},
         "options": {"masked_lm_prob": 0.15, "bsz_per_host": 4, "num_core_per_host": 2,
                     "bi_data": True}}, size, 20)
    found = {name: value.numpy() for name, value in draw(
        records, 5, tf.range(rows, dtype=tf.int64)).items()}
    places, used = found["masked_lm_positions"], found["masked_lm_weights"] > 0
    assert (used.sum(1) == 15).all() and not found.keys() & {"query_order", "key_order"}
    chosen = np.zeros((rows, size), bool)
    np.put_along_axis(chosen, places, used, 1)      # empty slots are behind, at position 0
    chosen[:, 0] = (used & (places == 0)).any(1)
    assert chosen.sum() == used.sum() and not chosen[np.isin(ids, (3, 4))].any()
    assert 0.3 < (ids % 2)[chosen].mean() < 0.7
    np.testing.assert_array_equal(found["input_ids"][~chosen], ids[~chosen])
    np.testing.assert_array_equal(np.take_along_axis(ids, places, 1)[used],
                                  found["masked_lm_ids"][used])
    hidden = found["input_ids"][chosen]
    error = 3 * np.sqrt(0.8 * 0.2 / used.sum())
    assert abs((hidden == 6).mean() - 0.8) < error
    assert abs((hidden == ids[chosen]).mean() - 0.1) < error
    for name, value in (("segment_ids", ids % 3), ("next_sentence_labels", ids[:, :1] % 2)):
        np.testing.assert_array_equal(found[name], value)
    assert found["is_backward"][:4, 0].tolist() == [0, 1, 0, 1]
    part = draw({name: value[3:5] for name, value in records.items()}, 5,
                tf.range(3, 5, dtype=tf.int64))
    assert all(np.array_equal(found[name][3:5], value) for name, value in part.items())
