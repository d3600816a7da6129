"""Batches of like length: what comes, how often, and how much of it is padding."""

import collections

import numpy as np
import pytest

from bert_tf.data.batches import bucketing


def cases(count=60):
    """(rng, lengths [N], batch size, S) of many kinds."""
    for seed in range(count):
        rng = np.random.default_rng(seed)
        longest = int(rng.choice([4, 5, 37, 64, 128, 200, 384, 512]))
        size, batch = int(rng.integers(1, 400)), int(rng.integers(1, 40))
        yield rng, rng.integers(2, longest + 1, size), batch, longest


def test_an_epoch_has_every_example_once_but_for_less_than_a_batch():
    for _, lengths, batch, _ in cases():
        found = bucketing.epoch_batches(lengths, batch, 3, 5)
        assert found.shape == (bucketing.steps_of_epoch(len(lengths), batch), batch)
        counts = collections.Counter(found.ravel().tolist())
        if batch <= len(lengths):
            assert set(counts.values()) == {1}
            assert 0 <= len(lengths) - len(counts) < batch
        else:
            assert set(counts) == set(range(len(lengths)))
            assert max(counts.values()) - min(counts.values()) <= 1
        assert set(counts) <= set(range(len(lengths)))


def test_others_are_left_over_in_other_epochs():
    lengths = np.arange(100) % 30 + 2
    left = [set(range(100)) - set(bucketing.epoch_batches(lengths, 32, 1, epoch).ravel())
            for epoch in range(200)]
    assert {len(rows) for rows in left} == {4}
    # Each is left over 8 times on the average, whatever its length.
    counts = np.bincount([row for rows in left for row in rows], minlength=100)
    assert counts.min() >= 1 and counts.max() <= 25
    assert abs(lengths[counts > 8].mean() - lengths.mean()) < 3


def test_a_batch_is_a_function_of_seed_and_epoch():
    for _, lengths, batch, _ in cases(20):
        one = bucketing.epoch_batches(lengths, batch, 7, 2)
        np.random.default_rng().random()
        assert np.array_equal(one, bucketing.epoch_batches(lengths, batch, 7, 2))
    lengths = np.arange(300) % 50 + 2
    orders = {bucketing.epoch_batches(lengths, 8, seed, epoch).tobytes()
              for seed in range(5) for epoch in range(5)}
    assert len(orders) == 25


def test_examples_meet_others_in_other_epochs():
    lengths = np.full(320, 9)
    partners = [set() for _ in lengths]
    for epoch in range(10):
        for rows in bucketing.epoch_batches(lengths, 8, 0, epoch):
            for row in rows:
                partners[row].update(rows)
    # 70 draws of 319: of distinct ones 63 are to be expected.
    assert min(map(len, partners)) > 45


def test_long_and_short_batches_are_mixed():
    lengths = np.random.default_rng(1).integers(3, 128, 4000)
    means = lengths[bucketing.epoch_batches(lengths, 16, 0, 0)].mean(1)
    halves = np.array_split(means, 4)
    assert all(abs(half.mean() - lengths.mean()) < 12 for half in halves)
    assert abs(np.corrcoef(means[:-1], means[1:])[0, 1]) < 0.25


@pytest.mark.parametrize("longest", [4, 7, 8, 9, 63, 64, 65, 100, 128, 384, 511, 512, 4096])
def test_lengths_are_few_and_hold_their_examples(longest):
    choices = bucketing.padded_lengths(longest)
    assert len(choices) <= 8 and choices[-1] == longest
    assert np.all(np.diff(choices) > 0) and not np.any(choices[:-1] % 8)
    for length in range(1, longest + 1):
        padded = bucketing.padded_length([1, length], longest)
        assert padded in choices
        assert padded >= length and not np.any((choices >= length) & (choices < padded))


def waste(lengths, batches, longest):
    """Padding's share of what is computed."""
    computed = sum(bucketing.padded_length(lengths[rows], longest) * len(rows) for rows in batches)
    return 1 - lengths[np.concatenate(batches)].sum() / computed


@pytest.mark.parametrize("longest, median", [(128, 25), (128, 50), (384, 60), (512, 120)])
def test_little_is_padding(longest, median):
    """Lengths of texts are lognormal; of what padding to S wastes, less than 0.4 is left."""
    rng = np.random.default_rng(longest + median)
    lengths = np.clip(rng.lognormal(np.log(median), 0.5, 5000).astype(int), 4, longest)
    padded = 1 - lengths.mean() / longest
    for batches in (bucketing.epoch_batches(lengths, 32, 0, 0),
                    bucketing.sorted_batches(lengths, 32)):
        assert waste(lengths, list(batches), longest) < 0.4 * padded
    unsorted = np.arange(4992).reshape(-1, 32)
    assert waste(lengths, list(bucketing.epoch_batches(lengths, 32, 0, 0)), longest) < (
        0.5 * waste(lengths, list(unsorted), longest))


def test_prediction_goes_through_all_once_the_long_ones_first():
    for _, lengths, batch, _ in cases(20):
        batches = bucketing.sorted_batches(lengths, batch)
        order = np.concatenate(batches)
        assert sorted(order) == list(range(len(lengths)))
        assert np.all(np.diff(lengths[order]) <= 0)
        assert [len(rows) for rows in batches[:-1]] == [batch] * (len(batches) - 1)
        assert 1 <= len(batches[-1]) <= batch


def test_batches_of_long_texts_are_smaller():
    for _, lengths, batch, _ in cases(20):
        batches = bucketing.sorted_batches(lengths, batch, 12 * 64)
        assert np.array_equal(np.concatenate(batches), np.argsort(-lengths, kind="stable"))
        scores = [len(rows) * 12 * 64 * int(lengths[rows[0]]) ** 2 for rows in batches]
        assert all(count <= 2 ** 23 or len(rows) == 1 for count, rows in zip(scores, batches))
        for rows, count in zip(batches[:-1], scores):
            assert len(rows) == batch or count + count // len(rows) > 2 ** 23
    assert list(map(len, bucketing.sorted_batches([512] * 5, 32, 12))) == [2, 2, 1]    # BERT-Base
