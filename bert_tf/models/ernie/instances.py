"""Instances of ERNIE 2.0's tasks: all have the same features (arXiv:1907.12412, section 4)."""

import dataclasses
from typing import Any, Self

import numpy as np

from bert_tf.data.instances import pretraining
from bert_tf.data.records.features import SpecialIds, pack_pairs
from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.token_labels import in_rest_of_document
from bert_tf.recipes import Recipe
from bert_tf.tokenization.vocabulary import Vocabulary


@dataclasses.dataclass
class TaskInstances(pretraining.Instances):
    """Instances of a recipe of tasks."""

    task_id: int = 0
    slots: int = 0

    @classmethod
    def feature_names(cls, recipe: Recipe) -> list[str]:
        return ["input_ids", "input_mask", "segment_ids", "masked_lm_positions", "masked_lm_ids",
                "masked_lm_weights", "next_sentence_labels", "task_ids", "token_label_ids",
                "token_label_weights"]

    @classmethod
    def create(cls, documents: Documents, vocabulary: Vocabulary, seed: int, recipe: Recipe,
               options: Any, rows: int) -> Self:
        made = super().create(documents, vocabulary, seed, recipe, options, rows)
        made.task_id, made.slots = recipe.task_id, options.max_predictions_per_seq
        if recipe.token_labels == "token_document":     # those of capitals come with the text
            documents.labels = in_rest_of_document(documents, made.slices).view(np.uint8)
        return made

    def features(self, rows: np.ndarray, max_seq_length: int,
                 vocabulary: Vocabulary) -> dict[str, np.ndarray]:
        def marked(marks):
            runs = self.slices[rows].T[:4]
            return pack_pairs(marks, *runs, max_seq_length, SpecialIds(self.layout)
                              )["input_ids"] > 0

        count, labels = len(rows), self.documents.labels
        ids, weights = np.zeros((2, count, max_seq_length), bool)
        if labels is not None:
            ids, weights = marked(labels), marked(np.ones_like(labels))
        none = np.zeros((count, self.slots), np.int64)      # where there are no masks
        arrays = {"masked_lm_positions": none, "masked_lm_ids": none,
                  "masked_lm_weights": none.astype(np.float32),
                  **super().features(rows, max_seq_length, vocabulary),
                  "token_label_ids": ids, "token_label_weights": weights,
                  "task_ids": np.full((count, 1), self.task_id)}
        return {name: arrays[name] for name in self.names}

    def label_counts(self) -> dict[str, int]:
        counts = {f"label_{label}": count
                  for label, count in enumerate(np.bincount(self.slices[:, 4]).tolist())}
        counts["instance_tokens"] = int(self.slices[:, [1, 3]].sum())
        if self.documents.labels is not None:
            counts["token_labels"] = int(self.documents.labels.sum())
        return counts
