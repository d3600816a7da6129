"""Pre-training instances of one piece of corpus: segments and masks, held as arrays."""

import dataclasses
import itertools

import numpy as np

from bert_tf.data.corpus import Documents
from bert_tf.data.features import pack_pairs
from bert_tf.data.pairing import PAIRINGS
from bert_tf.data.python_random import PythonRandom
from bert_tf.data.static_masks import Masks, quotas, static_masks
from bert_tf.recipes import Recipe
from bert_tf.tokenization.vocabulary import Layout, Vocabulary

_BLOCK = 8192       # sequences that become arrays together


def feature_names(recipe: Recipe) -> list[str]:
    """The features of the records of a recipe, in the order in which they are written."""
    names = ["input_ids", "input_mask", "segment_ids"]
    if not recipe.corruption.dynamic:
        names += ["masked_lm_positions", "masked_lm_ids", "masked_lm_weights"]
    if recipe.corruption.choose == "ngrams" or (
            recipe.corruption.dynamic and recipe.corruption.units != "subwords"):
        names.append("token_boundary")
    if PAIRINGS[recipe.segments.pairing].num_labels:
        names.append("next_sentence_labels")
    return names


@dataclasses.dataclass
class Instances:
    """M instances over one token array; slices and choices only, 60 to 500 bytes each.

    Attributes:
        documents: the `Documents` that hold the tokens.
        slices: int32 [M, 5], see `pairing.Slices`.
        masks: `Masks`; None where masks are drawn while training.
        order: int [M], the order in which instances are written.
        names: the features of a record.
    """

    documents: Documents
    slices: np.ndarray
    masks: Masks | None
    order: np.ndarray
    names: list[str]

    def features(self, rows: np.ndarray, max_seq_length: int,
                 vocabulary: Vocabulary) -> dict[str, np.ndarray]:
        """The record features of some instances.

        Args:
            rows: int [B], which instances.
            max_seq_length: S.
            vocabulary: names the ids of [CLS], [SEP] and [MASK].

        Returns:
            dict of the arrays of `names`, [B, S], [B, P] or [B, 1].
        """
        *runs, labels = self.slices[rows].T
        found = pack_pairs(self.documents.tokens, *runs, max_seq_length, vocabulary)
        if "token_boundary" in self.names:
            found["token_boundary"] = self._boundaries(found["input_mask"], runs, vocabulary)
        if self.masks is not None:
            found |= self.masks.rows(rows).hide(found["input_ids"], vocabulary.mask_id)
        found["next_sentence_labels"] = labels[:, None]
        return {name: found[name] for name in self.names}

    def _boundaries(self, input_mask, runs, vocabulary):
        """bool [B, S]: a special token or the first of a unit."""
        marks = pack_pairs(self.documents.continues, *runs, input_mask.shape[1],
                           _Unmarked(vocabulary.layout))["input_ids"]
        return input_mask & (marks == 0)


@dataclasses.dataclass(frozen=True)
class _Unmarked:
    """A vocabulary for packing marks instead of ids: special tokens have the mark 0."""

    layout: Layout
    cls_id: int = 0
    sep_id: int = 0
    pad_id: int = 0


def create_instances(documents: Documents, vocabulary: Vocabulary, seed: int, recipe: Recipe,
                     options) -> Instances:
    """Draws all instances of a piece, for BERT as the original's `create_training_instances`.

    Args:
        documents: `Documents`; its ranges may be shuffled in place.
        vocabulary: `Vocabulary`.
        seed: of Python's random.Random, and of the lengths of n-grams.
        recipe: `Recipe`, of which the data half matters.
        options: has max_seq_length, max_predictions_per_seq, dupe_factor, short_seq_prob,
            masked_lm_prob.
    """
    stream = PythonRandom(seed)
    pairing = PAIRINGS[recipe.segments.pairing]
    room = vocabulary.layout.room(options.max_seq_length, pair=pairing.segments == 2)
    drawn = pairing.draw(documents, stream, room, options, recipe.segments)
    masks = None
    if not recipe.corruption.dynamic:
        # Where there may be one segment or two, one has the room of a separator more.
        most = room + pairing.in_order * vocabulary.layout.between
        masks = static_masks(
            recipe.corruption, documents, stream, vocabulary,
            quotas(options.max_seq_length, options.masked_lm_prob,
                   options.max_predictions_per_seq),
            options.max_predictions_per_seq, most)
    slices, parts = [np.zeros((0, 5), np.int32)], []
    more = True
    while more:
        # Masks are drawn between the draws of one sequence and of the next.
        block = []
        for found in itertools.islice(drawn, _BLOCK):
            block.append(found)
            if masks is not None:
                masks.draw(*found[:4])
        more = len(block) == _BLOCK
        slices.append(np.array(block, np.int32).reshape(-1, 5))
        if masks is not None:
            parts.append(masks.place())
    slices = np.concatenate(slices)
    order = list(range(len(slices)))
    if not pairing.in_order:
        stream.shuffle(order)
    return Instances(documents, slices, Masks.join(parts) if parts else None,
                     np.array(order, np.int64), feature_names(recipe))
