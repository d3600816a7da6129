"""What is true of instances on average over many seeds, and what of every single one."""

import gc
import types

import numpy as np
import pytest

from bert_tf import recipes
from bert_tf.data.instances.pretraining import create_instances
from bert_tf.data.text.corpus import Documents
from bert_tf.tokenization.vocabulary import Vocabulary

SEEDS = range(20)
WORD, SUFFIX = 1000, 500        # how many tokens begin a word, how many continue one
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = Vocabulary([*SPECIAL, *(f"w{i}" for i in range(WORD)),
                         *(f"##{i}" for i in range(SUFFIX))])
FLAGS = {"max_seq_length": 64, "max_predictions_per_seq": 20, "dupe_factor": 2,
         "short_seq_prob": 0.1, "masked_lm_prob": 0.15}


def documents(rng, count=20, sentences=(1, 30), words=(1, 25)):
    """Random `Documents`; each bound is inclusive."""
    lengths = [rng.integers(*words, rng.integers(*sentences, endpoint=True), endpoint=True)
               for _ in range(count)]
    starts = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).tolist()
    edges = np.concatenate([[0], np.cumsum(list(map(len, lengths)))]).tolist()
    tokens = rng.integers(len(SPECIAL), VOCABULARY.size, starts[-1]).astype(np.int32)
    continues = (tokens >= len(SPECIAL) + WORD).astype(np.uint8)
    return Documents(tokens, starts, list(zip(edges, edges[1:])), continues)


def instances(seed, text=None, do_whole_word_mask=False, **flags):
    recipe = recipes.find("bert_wwm" if do_whole_word_mask else "bert")
    flags = types.SimpleNamespace(**{**FLAGS, **flags})
    text = text or documents(np.random.default_rng(seed))
    made = create_instances(text, VOCABULARY, seed, recipe, flags)
    return made, made.features(np.arange(len(made.slices)), flags.max_seq_length, VOCABULARY)


def is_share(hits, draws, share):
    """Whether `hits` of `draws` is what a coin of this share gives, within 5 deviations."""
    return abs(hits - draws * share) < 5 * np.sqrt(draws * share * (1 - share)) + 1


@pytest.mark.parametrize("flags", [
    {}, {"do_whole_word_mask": True}, {"max_seq_length": 8, "max_predictions_per_seq": 3},
    {"masked_lm_prob": 0.9, "max_predictions_per_seq": 64}, {"short_seq_prob": 1.0}])
def test_every_instance_is_well_formed(flags):
    size = flags.get("max_seq_length", 64)
    for seed in SEEDS:
        made, f = instances(seed, **flags)
        assert sorted(made.order) == list(range(len(made.slices))) != made.order.tolist()
        length, column = f["input_mask"].sum(1, keepdims=True), np.arange(size)
        a_length = made.slices[:, 1:2]
        ends = (column == 0) | (column == a_length + 1) | (column == length - 1)
        assert length.min() >= 5 and length.max() <= size
        assert (f["input_mask"] == (column < length)).all()
        assert (f["segment_ids"] == ((column > a_length + 1) & (column < length))).all()
        assert not (f["input_ids"] * (column >= length)).any()
        assert (f["input_ids"][:, 0] == VOCABULARY.cls_id).all()
        separators = f["input_ids"][ends & (column > 0)]
        assert (separators == VOCABULARY.sep_id).all() and len(separators) == 2 * len(length)

        used, positions = f["masked_lm_weights"] > 0, f["masked_lm_positions"]
        assert (np.sort(~used, 1) == ~used).all()       # used slots first
        assert not positions[~used].any() and not f["masked_lm_ids"][~used].any()
        assert (np.diff(positions, axis=1)[used[:, 1:]] > 0).all()
        rows = np.nonzero(used)[0]
        assert not ends[rows, positions[used]].any()
        assert f["input_mask"][rows, positions[used]].all()
        assert (f["masked_lm_ids"][used] >= len(SPECIAL)).all()


@pytest.mark.parametrize("flags", [
    {}, {"masked_lm_prob": 0.5, "max_predictions_per_seq": 15}, {"masked_lm_prob": 1e-6},
    {"masked_lm_prob": 1.0, "max_predictions_per_seq": 64}])
def test_how_many_are_predicted(flags):
    share, most = flags.get("masked_lm_prob", 0.15), flags.get("max_predictions_per_seq", 20)
    for seed in SEEDS:
        made, f = instances(seed, **flags)
        for length, count in zip(f["input_mask"].sum(1).tolist(), made.masks.counts.tolist()):
            assert count == min(most, max(1, round(length * share)), length - 3)


@pytest.mark.parametrize("whole_words", [False, True])
def test_replacements_are_80_10_10(whole_words):
    draws, masked, kept, replaced = 0, 0, 0, []
    for seed in SEEDS:
        made, f = instances(seed, do_whole_word_mask=whole_words, dupe_factor=5)
        used = f["masked_lm_weights"] > 0
        label = f["masked_lm_ids"][used]
        shown = f["input_ids"][np.nonzero(used)[0], f["masked_lm_positions"][used]]
        draws += len(label)
        masked += (shown == VOCABULARY.mask_id).sum()
        kept += (shown == label).sum()
        replaced += shown[(shown != VOCABULARY.mask_id) & (shown != label)].tolist()
    # One random replacement in VOCABULARY.size is [MASK] or the token itself.
    assert draws > 30_000
    assert is_share(masked, draws, 0.8 + 0.1 / VOCABULARY.size)
    assert is_share(kept, draws, 0.1 + 0.1 / VOCABULARY.size)
    for low, high in ((0, len(SPECIAL)), (0, 500), (500, 1000), (1000, VOCABULARY.size)):
        hits = sum(low <= token < high for token in replaced)
        assert is_share(hits, len(replaced), (high - low) / VOCABULARY.size)


def test_every_place_is_predicted_equally_often():
    hits = np.zeros(61)
    for seed in SEEDS:
        made, f = instances(seed, dupe_factor=5)
        full = (f["input_mask"].sum(1) == 64)[:, None] & (f["masked_lm_weights"] > 0)
        rows = np.nonzero(full)[0]
        position = f["masked_lm_positions"][full]
        np.add.at(hits, position - 1 - (position > made.slices[rows, 1]), 1)
    draws = int(hits.sum())
    assert draws > 30_000
    assert all(is_share(count, draws, 1 / 61) for count in hits)


def test_whole_words_are_never_split():
    split_without = 0
    for whole_words in (False, True):
        for seed in SEEDS:
            made, f = instances(seed, do_whole_word_mask=whole_words, max_predictions_per_seq=9)
            for row, (a, a_length, b, b_length, _) in enumerate(made.slices):
                tokens = np.concatenate([made.documents.tokens[start:start + length]
                                         for start, length in ((a, a_length), (b, b_length))])
                begins = tokens < len(SPECIAL) + WORD
                begins[0] = True
                word = np.cumsum(begins)
                positions = f["masked_lm_positions"][row, :made.masks.counts[row]]
                chosen = np.zeros(len(tokens), bool)
                chosen[positions - 1 - (positions > a_length)] = True
                split = set(word[chosen]) & set(word[~chosen])
                assert not (whole_words and split)
                split_without += len(split)
                assert len(positions) <= min(9, max(1, round((len(tokens) + 3) * 0.15)))
    assert split_without > 1000     # so that the test would notice


def test_half_of_the_next_sentences_are_random():
    pairs = hits = 0
    for seed in SEEDS:
        text = documents(np.random.default_rng(seed), 4, (300, 300), (2, 5))
        made, _ = instances(seed, text)
        ends = sorted(text.sentence_starts[end] for _, end in text.ranges)
        for a, a_length, b, _, is_random in made.slices:
            same_document = np.searchsorted(ends, a, "right") == np.searchsorted(ends, b, "right")
            assert is_random != same_document
            assert is_random or a + a_length <= b
        pairs += len(made.slices)
        hits += int(made.slices[:, 4].sum())
    assert pairs > 4000
    assert is_share(hits, pairs, 0.5)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_how_often_sequences_are_aimed_shorter(share):
    draws = full = 0
    shorter = []
    for seed in SEEDS:
        # Sentences of one token are cut nowhere: a document's instances show what was aimed at.
        text = documents(np.random.default_rng(seed), 50, (200, 200), (1, 1))
        made, f = instances(seed, text, short_seq_prob=share, dupe_factor=1)
        document = made.slices[:, 0] // 200
        aims = np.zeros(50, int)
        np.maximum.at(aims, document, f["input_mask"].sum(1) - 3)
        draws += 50
        full += (aims == 61).sum()
        shorter += aims[aims < 61].tolist()
    assert is_share(full, draws, 1 - share + share / 60)        # one of the 60 shorter aims is 61
    assert not shorter or min(shorter) >= 2
    assert is_share(sum(aim <= 31 for aim in shorter), len(shorter), 30 / 59)


def test_the_longer_side_is_cut_at_either_end():
    text = documents(np.random.default_rng(1), 50, (1, 1), (300, 300))
    made, _ = instances(1, text, dupe_factor=20, short_seq_prob=0.0)
    assert set(made.slices[:, 1]) == {31} and set(made.slices[:, 3]) == {30}
    # A keeps 31 of 300 tokens, and each of the 269 cut is at the front half of the time.
    front = made.slices[:, 0] % 300
    assert is_share(front.sum(), 269 * len(front), 0.5)


def test_seeds_differ():
    shuffled = set()
    for seed in SEEDS:
        text = documents(np.random.default_rng(0))
        _, f = instances(seed, text)
        shuffled.add(f["input_ids"].tobytes())
    assert len(shuffled) == len(SEEDS)


def test_nothing_of_a_piece_outlives_it():
    # What only the garbage collector frees would be in memory beside the next piece.
    instances(0)
    gc.collect()
    gc.freeze()     # what other tests left
    gc.disable()
    try:
        instances(0)
        assert gc.collect() == 0
    finally:
        gc.enable()
