"""Pre-training instances of one piece of corpus: pairs and masks, held as arrays."""

import dataclasses

import numpy as np

from bert_tf.data import masking
from bert_tf.data.features import pack_pairs
from bert_tf.data.pairing import next_sentence_pairs
from bert_tf.data.python_random import PythonRandom


@dataclasses.dataclass
class Instances:
    """M instances over one token array; slices and choices only, 60 to 500 bytes each.

    Attributes:
        tokens: int32 [T].
        pairs: int32 [M, 5]: start of A, length of A, start of B, length of B, random next.
        positions, replacements: [M, P], see `SubwordMasking.place`.
        counts: uint16 [M], predictions used.
        order: int [M], the order in which instances are written.
    """

    tokens: np.ndarray
    pairs: np.ndarray
    positions: np.ndarray
    replacements: np.ndarray
    counts: np.ndarray
    order: np.ndarray

    def features(self, rows, max_seq_length, vocabulary):
        """The record features of some instances.

        Args:
            rows: int [B], which instances.
            max_seq_length: S.
            vocabulary: names the ids of [CLS], [SEP] and [MASK].

        Returns:
            dict of arrays [B, S], [B, P] and [B, 1], named as in `features.PRETRAINING`.
        """
        *runs, random_next = self.pairs[rows].T
        packed = pack_pairs(self.tokens, *runs, max_seq_length, vocabulary)
        input_ids = packed["input_ids"]
        positions = self.positions[rows].astype(np.int64)
        used = np.arange(positions.shape[1])[None] < self.counts[rows][:, None]
        labels = np.take_along_axis(input_ids, positions, 1)
        replacements = self.replacements[rows]
        replacements = np.where(replacements == masking.KEEP, labels, replacements)
        replacements = np.where(replacements == masking.MASK, vocabulary.mask_id, replacements)
        row = np.broadcast_to(np.arange(len(rows))[:, None], used.shape)
        input_ids[row[used], positions[used]] = replacements[used]
        return {
            **packed,
            "masked_lm_positions": positions,
            "masked_lm_ids": np.where(used, labels, 0),
            "masked_lm_weights": used.astype(np.float32),
            "next_sentence_labels": random_next[:, None],
        }


def create_instances(documents, vocabulary, seed, options):
    """Draws all instances of a piece, as the original's `create_training_instances`.

    Args:
        documents: `Documents`; its ranges are shuffled in place.
        vocabulary: `Vocabulary`.
        seed: of Python's random.Random.
        options: has max_seq_length, max_predictions_per_seq, dupe_factor, short_seq_prob,
            masked_lm_prob, do_whole_word_mask.
    """
    stream = PythonRandom(seed)
    stream.shuffle(documents.ranges)
    max_tokens = vocabulary.layout.room(options.max_seq_length, pair=True)
    arguments = (stream, vocabulary, options.masked_lm_prob,
                 options.max_predictions_per_seq, max_tokens)
    if options.do_whole_word_mask:
        is_suffix = np.array([token.startswith("##") for token in vocabulary.tokens], np.uint8)
        masks = masking.WholeWordMasking(
            *arguments, continues_word=is_suffix[documents.tokens].tobytes())
    else:
        masks = masking.SubwordMasking(*arguments)

    pairs, parts, pending = [], [], []

    def place():
        pairs.append(np.array(pending, np.int32).reshape(-1, 5))
        parts.append(masks.place())
        pending.clear()

    stream.before_refill = place
    # A token takes 8 words on average at the very most, for its shuffle and its replacement.
    room = 1024 + 16 * max_tokens
    for _ in range(options.dupe_factor):
        for index in range(len(documents.ranges)):
            for pair in next_sentence_pairs(documents, index, stream, max_tokens,
                                            options.short_seq_prob):
                if not stream.has(room):
                    stream.refill()
                pending.append(pair)
                masks.draw(*pair[:4])
    place()
    stream.before_refill = None     # or the two would keep each other, and all these arrays, alive
    order = list(range(sum(map(len, pairs))))
    stream.shuffle(order)
    positions, replacements, counts = map(np.concatenate, zip(*parts))
    return Instances(documents.tokens, np.concatenate(pairs), positions, replacements, counts,
                     np.array(order, np.int64))
