"""StructBERT's records: BERT's, with segments that change places and trigrams that are shuffled."""

import itertools
import types

import numpy as np
import pytest

from bert_tf import recipes
from bert_tf.data.instances import pretraining
from bert_tf.data.instances.pretraining import create_instances
from bert_tf.data.masking import find
from bert_tf.data.segments.pairing import RANDOM, SWAPPED
from bert_tf.data.text.corpus import Documents
from bert_tf.tokenization.vocabulary import Vocabulary

SIZE, SLOTS = 128, 20
VOCABULARY = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
                         *(f"w{i}" for i in range(60_000))])


def documents(seed, count=60):
    """Of words that come once each, so that they show where they are from."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 40, count * 15)
    tokens = 5 + np.arange(sizes.sum(), dtype=np.int32) % 60_000
    return Documents(tokens, [0, *np.cumsum(sizes).tolist()],
                     [(i * 15, i * 15 + 15) for i in range(count)],
                     (rng.random(len(tokens)) < 0.2).astype(np.uint8))


def make(recipe, seed=1, dupe_factor=2, segments=None, **corruption):
    recipe = recipes.find(recipe).vary(segments, corruption)
    return create_instances(documents(seed), VOCABULARY, seed, recipe, types.SimpleNamespace(
        max_seq_length=SIZE, max_predictions_per_seq=SLOTS, dupe_factor=dupe_factor,
        short_seq_prob=0.1, masked_lm_prob=0.15))


def features(made):
    return made.features(made.order, SIZE, VOCABULARY)


def restored(found):
    """The ids before they were masked and shuffled."""
    ids, used = found["input_ids"].copy(), found["masked_lm_weights"] > 0
    ids[np.nonzero(used)[0], found["masked_lm_positions"][used]] = found["masked_lm_ids"][used]
    return ids


def segments_of(found, row, values):
    """Those of `values` [S] in A and in B."""
    length, in_b = found["input_mask"][row].sum(), found["segment_ids"][row] > 0
    split = int(np.flatnonzero(in_b)[0])
    return values[1:split - 1], values[split:length - 1]


FOLDED = {"random_share": 0.5, "swapped_share": 0.0}


@pytest.mark.parametrize("units", ["subwords", "words"])
def test_without_its_choices_the_records_are_those_of_bert(units):
    one = features(make("bert", units=units))
    two = features(make("structbert", segments=FOLDED, units=units, shuffle_prob=0.0))
    two["next_sentence_labels"] //= 2       # a random B has the label 2
    assert list(one) == list(two)
    assert all(np.array_equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize("units", ["subwords", "words"])
def test_a_pair_that_is_swapped_back_is_that_of_bert(units):
    one = features(make("bert", units=units))
    two = features(make("structbert", segments={"random_share": 0.5}, units=units,
                        shuffle_prob=0.0))
    labels = two["next_sentence_labels"][:, 0]
    assert np.array_equal(labels == RANDOM, one["next_sentence_labels"][:, 0] == 1)
    swapped = labels == SWAPPED
    for name in one:
        if name != "next_sentence_labels":
            assert np.array_equal(one[name][~swapped], two[name][~swapped])
    for row in np.flatnonzero(swapped):
        for values in ("input_ids", "restored"):
            a, b = (segments_of(found, row, found.get(values, restored(found))[row])
                    for found in (one, two))
            assert np.array_equal(a[0], b[1]) and np.array_equal(a[1], b[0])
        assert np.array_equal(*(np.sort(found["masked_lm_ids"][row]) for found in (one, two)))


def test_the_three_orders():
    found = features(make("structbert", dupe_factor=8, shuffle_prob=0.0))
    labels, ids = found["next_sentence_labels"][:, 0], restored(found)
    count = len(labels)
    # Chunks of one sentence always have a random B: in BERT's records all but twice the others.
    single = 2 * features(make("bert", dupe_factor=8))["next_sentence_labels"].mean() - 1
    assert 0.05 < single < 0.2
    share, error = (labels == RANDOM).mean(), np.sqrt(2 / 9 / count)
    assert abs(share - (single + (1 - single) / 3)) < 6 * error
    in_order = labels != RANDOM
    assert abs((labels[in_order] == SWAPPED).mean() - 0.5) < 1.5 / np.sqrt(in_order.sum())
    for row in range(count):
        first, second = segments_of(found, row, ids[row])
        if labels[row] == SWAPPED:
            first, second = second, first
        # Truncation may have taken from either end of both.
        follows = 0 < int(second[0]) - int(first[-1]) < SIZE
        assert follows or labels[row] == RANDOM


@pytest.fixture(name="shuffled", scope="module")
def fixture_shuffled():
    made = make("structbert", dupe_factor=24)
    return made, features(made)


def test_trigrams_are_shuffled_among_what_is_seen(shuffled):
    """Their tokens are neighbours in one segment, neither special nor predicted, and each
    trigram holds what was there."""
    _, found = shuffled
    plain = features(make("structbert", dupe_factor=24, shuffle_prob=0.0))
    assert found["masked_lm_ids"].shape[1] == 26       # 20 and 6
    ids, whole = found["input_ids"], restored(found)
    is_order, used = found["word_order_weights"] > 0, found["masked_lm_weights"] > 0
    assert np.array_equal(whole, restored(plain)) and (used | ~is_order).all()
    for row in range(len(ids)):
        masked = found["masked_lm_positions"][row][used[row] & ~is_order[row]]
        was = plain["masked_lm_weights"][row] > 0
        assert np.array_equal(masked, plain["masked_lm_positions"][row][was])
        places = found["masked_lm_positions"][row][is_order[row]].reshape(-1, 3)
        assert not set(masked) & set(places.ravel())
        for place in places:
            assert np.array_equal(np.diff(place), [1, 1])
            assert (whole[row][place] >= 5).all()
            assert np.array_equal(np.sort(whole[row][place]), np.sort(ids[row][place]))


def test_shares_of_what_is_shuffled(shuffled):
    made, found = shuffled
    ids, whole = found["input_ids"], restored(found)
    is_order, used = found["word_order_weights"] > 0, found["masked_lm_weights"] > 0
    rows, places = np.nonzero(is_order)[0], found["masked_lm_positions"][is_order]
    before, after = (values[rows, places].reshape(-1, 3) for values in (whole, ids))
    orders = (after[:, None, :] == before[:, :, None]).argmax(1)
    drawn = np.array([(orders == order).all(1).sum() for order in itertools.permutations(range(3))])
    share, count = drawn / drawn.sum(), drawn.sum()
    assert count > 7000 and (np.abs(share - 1 / 6) < 3 * np.sqrt(5 / 36 / count)).all()
    visible = (whole >= 5).sum() - (used & ~is_order).sum()
    assert visible > 400_000 and abs(is_order.sum() / visible - 0.05) < 0.002
    counts = pretraining.count_instances(made, SIZE, VOCABULARY.layout)
    assert counts["shuffled"] == is_order.sum() and counts["visible"] == visible
    assert counts["predictions"] == (used & ~is_order).sum()
    assert counts["masked"] + counts["kept"] + counts["replaced"] == counts["predictions"]
    labels = found["next_sentence_labels"]
    assert (counts["random_next"], counts["swapped_next"]) == (
        (labels == RANDOM).sum(), (labels == SWAPPED).sum())


def test_full_sequences_have_room_for_their_trigrams():
    masking = find(recipes.find("structbert").corruption)
    assert [masking.slots(*sizes) for sizes in ((77, 512), (20, 128))] == [77 + 24, 20 + 6]
    made = features(make("structbert", shuffle_prob=0.9))
    # As many as fit between the predictions.
    assert (made["word_order_weights"].sum(1) % 3 == 0).all()
    assert made["word_order_weights"].mean() > 0.3
