"""RoBERTa's static masks, drawn as fairseq's data/mask_tokens_dataset.py draws them.

A mask is a function of the seed, the epoch and the number of the block. Special tokens are masked
and predicted like any other.
"""

from collections.abc import Sequence

import numpy as np

from bert_tf.data.masking.masks import KEEP, MASK, Masks
from bert_tf.data.records.features import Marks, pack_pairs
from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.recipes.corruption import MaskTokens
from bert_tf.tokenization.vocabulary import Vocabulary

# fairseq at its last commit, and fairseq 0.9 to 0.12.
GENERATORS = {"default_rng": np.random.default_rng, "random_state": np.random.RandomState}
_SEEDS = 1e6        # a float, so that the remainder is one of floats


def block_seed(seed: int, epoch: int, index: int) -> int:
    """The seed of one block's generator, the same in all versions of Python since 3.8."""
    return int(hash((seed, epoch, index)) % _SEEDS)


def drawable(vocab_size: int, excluded: Sequence[int]) -> np.ndarray:
    """float [V], the shares of the ids up to each one where all but some are equally likely."""
    shares = np.ones(vocab_size)
    shares[list(excluded)] = 0
    shares = (shares / shares.sum()).cumsum()
    return shares / shares[-1]      # as numpy.random.choice does


def mask_block(block: np.ndarray, seed: int, epoch: int, index: int, *, limits: np.ndarray,
               mask_id: int, pad_id: int = 1, masked_lm_prob: float = 0.15,
               shares: tuple[float, float] = (0.8, 0.1), begins: np.ndarray | None = None,
               generator: str = "default_rng") -> tuple[np.ndarray, np.ndarray]:
    """One block with some of its tokens masked.

    Args:
        block: int [n], the ids, the first of them that of a special token.
        seed: of the data set.
        epoch: from 1.
        index: the number of the block in the data set, from 0.
        limits: of the ids of random tokens, see `drawable`; fairseq excludes the first four.
        mask_id, pad_id: of <mask> and <pad>.
        masked_lm_prob: share of the tokens, or of the words, to predict.
        shares: share of these that become <mask>, and share that become a random token.
        begins: bool [n], where a word begins, if words are masked as a whole; None for single
            tokens. Special tokens begin words, and a line's first word goes on with the one before
            it, because no blank begins it.
        generator: a key of `GENERATORS`.

    Returns:
        The masked block, and the tokens to predict, `pad_id` where none is; int [n] both.
    """
    rng = GENERATORS[generator](block_seed(seed, epoch, index))
    uniforms = rng.random if generator == "default_rng" else rng.random_sample
    starts = np.arange(len(block)) if begins is None else np.flatnonzero(begins)
    lengths = np.diff(starts, append=len(block))
    count = len(starts)
    chosen = np.zeros(count, bool)
    chosen[rng.choice(count, int(masked_lm_prob * count + uniforms()), replace=False)] = True
    # Of the chosen ones: those that are not hidden, then of these, those that stay.
    random = shares[1]
    keep = round(1 - shares[0] - random, 12)
    touched = kept = np.zeros(count, bool)
    if random + keep > 0:
        touched = kept = chosen & (uniforms(count) < random + keep)
        if not keep:
            kept = np.zeros(count, bool)
        elif random:
            kept = touched & (uniforms(count) < keep / (random + keep))
    chosen, hidden, drawn = (np.repeat(units, lengths) for units in (
        chosen, chosen & ~kept, touched & ~kept))
    source = block.copy()
    source[hidden] = mask_id
    if drawn.any():
        # What rng.choice(V, size, p=shares) gives.
        source[drawn] = np.searchsorted(limits, uniforms(drawn.sum()), "right")
    return source, np.where(chosen, block, pad_id)


class BlockMasks:
    """Draws the masks of sequences, as `StaticMasks` does, with `mask_block`.

    Sequences are numbered from 0 in the order of the text. Where it begins again, so does another
    epoch, the first being 1.

    Args: see `StaticMasks`.
    """

    def __init__(self, masking: MaskTokens, documents: Documents, stream: PythonRandom,
                 vocabulary: Vocabulary, masked_lm_prob: float, max_predictions_per_seq: int,
                 room: int) -> None:
        self._masking, self._prob, self._room = masking, masked_lm_prob, room
        self._documents, self._vocabulary = documents, vocabulary
        self._joins = documents.joins(masking.units)
        self._slots, self._seed = max_predictions_per_seq, stream.seed
        self._limits = drawable(vocabulary.size, vocabulary.special_ids)
        self._epoch, self._index, self._last_start = 1, -1, -1
        self._drawn: list[tuple[np.ndarray, np.ndarray]] = []

    def draw(self, a_start: int, a_length: int, b_start: int, b_length: int) -> None:
        """Draws the predictions of one sequence; of a longer one than `room`, which is left out,
        it takes the number only."""
        self._index += 1
        if a_start <= self._last_start:
            self._epoch, self._index = self._epoch + 1, 0
        self._last_start = a_start
        if a_length + b_length > self._room:
            return
        layout, begins = self._vocabulary.layout, None
        runs = [[a_start], [a_length], [b_start], [b_length], layout.length(a_length, b_length)]
        block = pack_pairs(self._documents.tokens, *runs, self._vocabulary)["input_ids"][0]
        if self._joins is not None:
            marks = pack_pairs(self._joins, *runs, Marks(layout))["input_ids"][0]
            begins = marks == 0
        source, target = mask_block(
            block, self._seed, self._epoch, self._index, limits=self._limits,
            mask_id=self._vocabulary.mask_id, pad_id=-1, masked_lm_prob=self._prob,
            shares=self._masking.shares, begins=begins)
        positions = np.flatnonzero(target >= 0)[:self._slots]
        shown = source[positions]
        shown = np.where(shown == self._vocabulary.mask_id, MASK, shown)
        self._drawn.append((positions, np.where(shown == block[positions], KEEP, shown)))

    def place(self) -> Masks:
        """The predictions of the sequences drawn since the last call."""
        shape = len(self._drawn), self._slots
        masks = Masks(np.zeros(shape, np.uint16), np.full(shape, KEEP, np.int32),
                      np.array([len(positions) for positions, _ in self._drawn], np.uint16))
        if self._drawn:
            masks.positions[masks.used], masks.replacements[masks.used] = map(
                np.concatenate, zip(*self._drawn))
        self._drawn.clear()
        return masks
