"""Batches of examples of similar length, whose padding wastes little of the work, and their padded
lengths."""

import numpy as np

# The length of a batch: the most that an example may have, as in the original; its longest example;
# or the least of a few lengths that holds it, because XLA and TPUs compile a program for each.
PADDINGS = MAX_LENGTH, LONGEST, BUCKETS = "max_length", "longest", "buckets"
_LENGTHS = 8            # at most so many different lengths
_MULTIPLE = 8           # lengths are multiples of this, which vector units like
POOL_BATCHES = 32       # so many batches are sorted at a time: short ones shall not meet forever
# Arrays above 32 MiB of float32 do not stay in glibc's heap: Linux clears their memory each time.
_SCORES = 1 << 23


def padded_lengths(max_seq_length):
    """The lengths of `BUCKETS`: integer [at most 8], ascending, the last the longest."""
    step = -(-max_seq_length // (_LENGTHS * _MULTIPLE)) * _MULTIPLE
    return np.append(np.arange(step, max_seq_length, step), max_seq_length)


def padded_length(lengths, max_seq_length, padding=BUCKETS):
    """Returns the length of a batch of examples with these lengths, int [B]."""
    if padding == MAX_LENGTH:
        return max_seq_length
    if padding == LONGEST:
        return int(np.max(lengths))
    choices = padded_lengths(max_seq_length)
    return int(choices[np.searchsorted(choices, np.max(lengths))])


def pads_left(input_mask):
    """Returns whether padding comes before the tokens in any of the rows [..., S]."""
    mask = np.asarray(input_mask)
    return bool((mask[..., 0] < mask[..., -1]).any())


def sorted_batches(lengths, batch_size, num_heads=0):
    """Returns batches that cover all examples of lengths int [N] once: list of int [up to B], long
    examples first.

    Args:
        num_heads: heads whose scores are in memory at once, [B, heads, L, L] if the longest example
        has L tokens. Batches of long examples are smaller, so that one array of scores has at most
        2**23 numbers; a batch has at least one example. 0: only B counts.
    """
    lengths = np.asarray(lengths)
    order, batches = np.argsort(-lengths, kind="stable"), []
    while len(order):
        scores = num_heads * int(lengths[order[0]]) ** 2
        rows = min(batch_size, max(_SCORES // max(scores, 1), 1))
        batches.append(order[:rows])
        order = order[rows:]
    return batches


def epoch_batches(lengths, batch_size, seed, epoch):
    """Returns the batches of an epoch of training, int [steps, B], of examples of lengths int [N];
    the arguments decide them.

    Every example comes once, except for a rest of less than a batch, which differs between epochs.
    Fewer examples than B come again until one batch is full. Examples are shuffled, sorted by
    length within pools of batches, and the batches are shuffled again.
    """
    lengths = np.asarray(lengths)
    rng = np.random.Generator(np.random.PCG64([seed, epoch]))
    order = np.concatenate([rng.permutation(len(lengths))
                            for _ in range(-(-batch_size // len(lengths)))])
    steps = steps_of_epoch(len(lengths), batch_size)
    order = order[:steps * batch_size]
    pool = POOL_BATCHES * batch_size
    pools = [order[first:first + pool] for first in range(0, len(order), pool)]
    order = np.concatenate([pool[np.argsort(lengths[pool], kind="stable")] for pool in pools])
    return rng.permutation(order.reshape(steps, batch_size))


def training_batches(lengths, batch_size, seed, taken):
    """Yields the batches of one epoch after the other, int [B], without end, after the `taken`
    examples that were taken before; see `epoch_batches`."""
    epoch, step = divmod(taken // batch_size, steps_of_epoch(len(lengths), batch_size))
    while True:
        yield from epoch_batches(lengths, batch_size, seed, epoch)[step:]
        epoch, step = epoch + 1, 0


def steps_of_epoch(examples, batch_size):
    return max(examples // batch_size, 1)
