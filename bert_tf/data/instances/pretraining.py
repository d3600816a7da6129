"""Pre-training instances of one piece of corpus: segments and masks, held as arrays."""

import dataclasses
import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from bert_tf.data import masking
from bert_tf.data.masking.masks import Masks
from bert_tf.data.records.features import SpecialIds, pack_pairs
from bert_tf.data.segments.pairing import PAIRINGS
from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.data.text.token_labels import in_rest_of_document
from bert_tf.files import file_size
from bert_tf.models.recurrent.records import make_columns, row_features
from bert_tf.models.structbert.masks import WordOrder, num_labels
from bert_tf.models.t5 import records as text_pairs
from bert_tf.recipes import Recipe
from bert_tf.tokenization.vocabulary import Layout, Vocabulary

BARE = Layout(0, 0, 0)      # no special tokens
_BLOCK = 8192       # sequences that become arrays together
# Functions from documents and slices to the labels of tokens; None if the text gives the labels.
TOKEN_LABELS = {"": None, "capitalization": None, "token_document": in_rest_of_document}


def feature_names(recipe: Recipe) -> list[str]:
    """The features of the records of a recipe, in the order of writing."""
    if PAIRINGS[recipe.segments.pairing].in_streams:
        return ["input", "is_masked", "target", "seg_id", "label"]
    if PAIRINGS[recipe.segments.pairing].in_rows:
        return row_features(recipe.segments, recipe.tokenizer, recipe.tokenizer_settings)
    if recipe.denoising:
        return text_pairs.feature_names(recipe.denoising.converter, recipe.denoising.pack)
    names = ["input_ids", "input_mask", "segment_ids"]
    if recipe.tasks:
        return [*names, "masked_lm_positions", "masked_lm_ids", "masked_lm_weights",
                "next_sentence_labels", "task_ids", "token_label_ids", "token_label_weights"]
    names += masking.find(recipe.corruption).features()
    if PAIRINGS[recipe.segments.pairing].num_labels:
        names.append("next_sentence_labels")
    return names


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
        names: the features of a record.
        left_out: how many sequences were too long.
        num_labels: classes of the labels; 0 if there are none.
        next_label: the label of a pair in order.
        cut: how many predictions had no room; where training draws masks, how many have none in an
            epoch.
        joins: uint8 [T], 0 where a unit begins.
        task_id: number of the records' task, if the recipe has several.
        slots: P.
        layout: the places of special tokens.
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
    task_id: int = 0
    slots: int = 0
    layout: Layout = Layout()

    @property
    def counted_tokens(self) -> np.ndarray:
        """The tokens that `token_counts` counts."""
        return self.documents.tokens

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
        def marked(marks):
            return pack_pairs(marks, *runs, max_seq_length,
                              SpecialIds(self.layout))["input_ids"] > 0

        *runs, labels = self.slices[rows].T
        found = pack_pairs(self.documents.tokens, *runs, max_seq_length, SpecialIds(
            self.layout, *(getattr(vocabulary, f"{role}_id") for role in (
                "cls", "sep", "pad", "start"))))
        if "token_boundary" in self.names:
            # A special token or the first of a unit.
            found["token_boundary"] = found["input_mask"] & ~marked(self.joins)
        if "entities" in self.names:
            found["entities"] = marked(self.documents.entities)
        if self.masks is not None:
            found |= self.masks.rows(rows).hide(found["input_ids"], vocabulary.mask_id)
        if "task_ids" in self.names:
            found = {**self._of_task(found["input_mask"], marked), **found}
        found["next_sentence_labels"] = labels[:, None] ^ self.next_label
        return {name: found[name] for name in self.names}

    def _of_task(self, input_mask, marked):
        """The features of a recipe with tasks; masks without predictions."""
        count, labels = len(input_mask), self.documents.labels
        ids, weights = np.zeros((2, *input_mask.shape), bool)
        if labels is not None:
            ids, weights = marked(labels), marked(np.ones_like(labels))
        none = np.zeros((count, self.slots), np.int64)
        return {"masked_lm_positions": none, "masked_lm_ids": none,
                "masked_lm_weights": none.astype(np.float32), "token_label_ids": ids,
                "token_label_weights": weights, "task_ids": np.full((count, 1), self.task_id)}


@dataclasses.dataclass
class RowInstances(Instances):
    """Instances in rows that go on from batch to batch.

    Attributes:
        columns: their features, {name: [M, ...]}.
    """

    columns: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, documents: Documents, names: list[str], columns: dict[str, np.ndarray]
           ) -> "RowInstances":
        """The instances of `columns`, in their order."""
        ids = columns["input_ids"]
        slices = np.zeros((len(ids), 5), np.int32)
        slices[:, 1] = columns.get("input_mask", np.ones_like(ids)).sum(1)
        return cls(documents, slices, None, np.arange(len(ids)), names, layout=BARE,
                   columns=columns)

    @property
    def counted_tokens(self) -> np.ndarray:
        return self.columns["input_ids"][self.columns["input_mask"] > 0]

    def features(self, rows: np.ndarray, max_seq_length: int,
                 vocabulary: Vocabulary) -> dict[str, np.ndarray]:
        return {name: self.columns[name][rows] for name in self.names}


def create_instances(documents: Documents, vocabulary: Vocabulary, seed: int, recipe: Recipe,
                     options, rows: int = 0) -> Instances:
    """Draws all instances of a piece, for BERT as the original's `create_training_instances`.

    Args:
        documents: its ranges may be shuffled in place.
        options: has max_seq_length, max_predictions_per_seq, dupe_factor, short_seq_prob,
            masked_lm_prob.
        rows: of a batch, for recipes whose sequences continue from batch to batch.
    """
    stream = PythonRandom(seed)
    pairing = PAIRINGS[recipe.segments.pairing]
    if pairing.in_rows:
        return RowInstances.of(documents, feature_names(recipe), make_columns(
            documents, vocabulary, stream, options, recipe.segments, rows))
    layout = BARE if recipe.segments.bare else vocabulary.layout
    room = layout.room(options.max_seq_length, pair=pairing.segments == 2)
    assert pairing.draw is not None
    drawn = pairing.draw(documents, stream, room, options, recipe.segments)
    # Where there may be one segment or two, one has the room of a separator more.
    most = room + pairing.in_order * layout.between
    dynamic, found = recipe.corruption.dynamic, masking.find(recipe.corruption)
    masks = found.static_masks(documents, vocabulary, stream, options, most) if (
        found.counts_cut or not dynamic) else None
    order_of_words = WordOrder(recipe, vocabulary.layout, seed, options.max_seq_length,
                               options.max_predictions_per_seq)
    slices, parts, left_out = _place(documents, _blocks(drawn, masks), masks, order_of_words, most)
    units = recipe.corruption.units
    if label := TOKEN_LABELS[recipe.token_labels]:
        documents.labels = label(documents, slices).view(np.uint8)
    order = list(range(len(slices)))
    if not pairing.in_order:
        stream.shuffle(order)
    return Instances(documents, slices, Masks.join(parts) if parts and not dynamic else None,
                     np.array(order, np.int64), feature_names(recipe), left_out, num_labels(recipe),
                     recipe.segments.next_label, getattr(masks, "cut", 0),
                     documents.joins(units if units != "subwords" else "words"),
                     recipe.task_id if recipe.task else 0, options.max_predictions_per_seq,
                     layout)


def _place(documents, blocks, masks, order_of_words, most):
    """Returns the slices [M, 5] of at most `most` tokens, the masks placed in them by block, and
    how many slices are longer."""
    slices, parts, left_out = [np.zeros((0, 5), np.int32)], [], 0
    for block in blocks:
        fitting = [found for found in block if found[1] + found[3] <= most]
        left_out += len(block) - len(fitting)
        slices.append(np.array(fitting, np.int32).reshape(-1, 5))
        placed = order_of_words.change(documents.tokens, slices[-1], masks and masks.place())
        if placed is not None:
            parts.append(placed)
    return np.concatenate(slices), parts, left_out


def _blocks(drawn, masks):
    """Yields the `Slices` of `drawn` in lists, at least one. The masks of a sequence are drawn
    before the next sequence."""
    more = True
    while more:
        block = []
        for found in itertools.islice(drawn, _BLOCK):
            if masks is not None:
                masks.draw(*found[:4])
            block.append(found)
        yield block
        more = len(block) == _BLOCK
