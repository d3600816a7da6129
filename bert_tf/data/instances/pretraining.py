"""Pre-training instances of one piece of a text: segments and masks, held as arrays."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np

from bert_tf.data import masking
from bert_tf.data.masking.base import KEEP, MASK, Masks
from bert_tf.data.records.features import SpecialIds, pack_pairs
from bert_tf.data.segments.pairing import SWAPPED, find_pairing, num_labels
from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.files import file_size
from bert_tf.recipes import Recipe, load
from bert_tf.tokenization.vocabulary import Layout, Vocabulary

BARE = Layout(0, 0, 0)      # no special tokens
_BLOCK = 8192       # sequences that become arrays together


def instances_of(recipe: Recipe) -> type["Instances"]:
    """The class of a recipe's instances: that of its segments, else the recipe's own."""
    return load(find_pairing(recipe.segments).instances or recipe.instances)


def feature_names(recipe: Recipe) -> list[str]:
    return instances_of(recipe).feature_names(recipe)


def describe_records(recipe: Recipe, options: dict[str, Any], vocabulary: Vocabulary,
                     inputs: Iterable[str]) -> dict[str, Any]:
    """Returns the entries that the manifests of all pre-training records have; `inputs` are the
    files that the records are made from."""
    return {
        "format": "bert_tf pre-training records 1",
        "recipe": recipe.describe(),
        "features": feature_names(recipe),
        "options": options,
        "vocabulary": {"size": vocabulary.size, "sha256": vocabulary.hash,
                       "cls_id": vocabulary.cls_id, "sep_id": vocabulary.sep_id,
                       "mask_id": vocabulary.mask_id},
        "inputs": [{"name": name, "bytes": file_size(name)} for name in inputs]}


@dataclasses.dataclass
class Instances:
    """M instances over one token array; slices and choices only, 60 to 500 bytes each.

    Attributes:
        slices: int32 [M, 5], see `pairing.Slices`.
        masks: None where training draws them.
        order: int [M], the order of writing the instances.
        left_out: how many sequences were too long.
        num_labels: classes of the labels; 0 if there are none.
        cut: how many predictions had no room; where training draws masks, how many have none in an
            epoch.
        joins: uint8 [T], 0 where a unit begins.
    """

    documents: Documents
    slices: np.ndarray
    masks: Masks | None
    order: np.ndarray
    names: list[str]
    left_out: int = 0
    num_labels: int = 0
    next_label: int = 0
    cut: int = 0
    joins: np.ndarray | None = None
    layout: Layout = Layout()

    @classmethod
    def feature_names(cls, recipe: Recipe) -> list[str]:
        names = ["input_ids", "input_mask", "segment_ids",
                 *masking.find(recipe.corruption).features()]
        return [*names, "next_sentence_labels"] if num_labels(recipe.segments) else names

    @classmethod
    def create(cls, documents: Documents, vocabulary: Vocabulary, seed: int, recipe: Recipe,
               options: Any, rows: int) -> Self:
        stream = PythonRandom(seed)
        pairing = find_pairing(recipe.segments)
        layout = BARE if recipe.segments.bare else vocabulary.layout
        room = layout.room(options.max_seq_length, pair=pairing.segments == 2)
        assert pairing.draw is not None
        drawn = pairing.draw(documents, stream, room, options, recipe.segments)
        # Where there may be one segment or two, one has the room of a separator more.
        most = room + pairing.in_order * layout.between
        dynamic, masks_of = recipe.corruption.dynamic, masking.find(recipe.corruption)
        masks = None
        if masks_of.counts_cut or not dynamic:
            masks = masks_of.static_masks(documents, vocabulary, stream, options, most)
        slices, parts, left_out = _place(
            documents, drawn, masks, most,
            cls.change_of(recipe, vocabulary.layout, seed, options))
        order = list(range(len(slices)))
        if not pairing.in_order:
            stream.shuffle(order)
        units = recipe.corruption.units
        return cls(documents, slices, Masks.join(parts) if parts and not dynamic else None,
                   np.array(order, np.int64), feature_names(recipe), left_out,
                   num_labels(recipe.segments), recipe.segments.next_label,
                   getattr(masks, "cut", 0),
                   documents.joins(units if units != "subwords" else "words"), layout)

    @classmethod
    def change_of(cls, recipe: Recipe, layout: Layout, seed: int, options: Any
                  ) -> Callable[[np.ndarray, np.ndarray, Masks | None], Masks | None]:
        """Returns a function of tokens [T], slices [M, 5] and masks, or None, which may change the
        slices in place and returns the masks. BERT's changes nothing."""
        return lambda tokens, slices, masks: masks

    @property
    def counted_tokens(self) -> np.ndarray:
        """The tokens that `token_counts` counts."""
        return self.documents.tokens

    def features(self, rows: np.ndarray, max_seq_length: int,
                 vocabulary: Vocabulary) -> dict[str, np.ndarray]:
        """Returns the record features of some instances: arrays of `names`, [B, S], [B, P] or [B,
        1]."""
        def marked(marks):
            return pack_pairs(marks, *runs, max_seq_length,
                              SpecialIds(self.layout))["input_ids"] > 0

        *runs, labels = self.slices[rows].T
        arrays = pack_pairs(self.documents.tokens, *runs, max_seq_length, SpecialIds(
            self.layout, *(getattr(vocabulary, f"{role}_id") for role in (
                "cls", "sep", "pad", "start"))))
        if "token_boundary" in self.names:
            # A special token or the first of a unit.
            arrays["token_boundary"] = arrays["input_mask"] & ~marked(self.joins)
        if "entities" in self.names:
            arrays["entities"] = marked(self.documents.entities)
        if self.masks is not None:
            arrays |= self.masks.rows(rows).hide(arrays["input_ids"], vocabulary.mask_id)
        arrays["next_sentence_labels"] = labels[:, None] ^ self.next_label
        return {name: arrays[name] for name in self.names if name in arrays}

    def label_counts(self) -> dict[str, int]:
        labels = self.slices[:, 4]
        if "next_sentence_labels" not in self.names:
            return {"instance_tokens": int(self.slices[:, [1, 3]].sum())}
        counts = {"random_next": int((labels == max(1, self.num_labels - 1)).sum())}
        if self.num_labels > 2:
            counts["swapped_next"] = int((labels == SWAPPED).sum())
        return counts

    def mask_counts(self, masks: Masks) -> dict[str, int]:
        return count_replacements(masks.replacements[masks.used])


def count_replacements(replacements: np.ndarray) -> dict[str, int]:
    """How many predicted tokens [N] are hidden, kept and replaced."""
    return {"predictions": len(replacements),
            "masked": int((replacements == MASK).sum()),
            "kept": int((replacements == KEEP).sum()),
            "replaced": int((replacements >= 0).sum())}


def create_instances(documents: Documents, vocabulary: Vocabulary, seed: int, recipe: Recipe,
                     options, rows: int = 0) -> Instances:
    """Draws all instances of a piece, for BERT as the original's `create_training_instances`.

    Args:
        documents: its ranges may be shuffled in place.
        options: has max_seq_length, max_predictions_per_seq, dupe_factor, short_seq_prob,
            masked_lm_prob.
        rows: of a batch, for recipes whose sequences continue from batch to batch.
    """
    return instances_of(recipe).create(documents, vocabulary, seed, recipe, options, rows)


def _place(documents, drawn, masks, most, change):
    """Returns the slices [M, 5] of at most `most` tokens, the masks placed in them by block, and
    how many slices are longer. The masks of a sequence are drawn before the next sequence."""
    slices, parts, left_out, count = [np.zeros((0, 5), np.int32)], [], 0, _BLOCK
    while count == _BLOCK:
        count, fitting = 0, []
        for cut in itertools.islice(drawn, _BLOCK):
            if masks is not None:
                masks.draw(*cut[:4])
            count += 1
            if cut[1] + cut[3] <= most:
                fitting.append(cut)
        left_out += count - len(fitting)
        slices.append(np.array(fitting, np.int32).reshape(-1, 5))
        placed = change(documents.tokens, slices[-1], masks and masks.place())
        if placed is not None:
            parts.append(placed)
    return np.concatenate(slices), parts, left_out
