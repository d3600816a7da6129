"""Instances of recurrent networks: rows that go on from batch to batch."""

import dataclasses
from typing import Any, Self

import numpy as np

from bert_tf.data.instances import pretraining
from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.models.recurrent.records import make_columns, row_features
from bert_tf.recipes import Recipe
from bert_tf.tokenization.vocabulary import Vocabulary


@dataclasses.dataclass
class RowInstances(pretraining.Instances):
    """Instances in rows that go on from batch to batch."""

    columns: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)

    @classmethod
    def feature_names(cls, recipe: Recipe) -> list[str]:
        return row_features(recipe.segments, recipe.tokenizer, recipe.tokenizer_settings)

    @classmethod
    def create(cls, documents: Documents, vocabulary: Vocabulary, seed: int, recipe: Recipe,
               options: Any, rows: int) -> Self:
        columns = make_columns(documents, vocabulary, PythonRandom(seed), options, recipe.segments,
                               rows)
        ids = columns["input_ids"]
        slices = np.zeros((len(ids), 5), np.int32)
        slices[:, 1] = columns.get("input_mask", np.ones_like(ids)).sum(1)
        return cls(documents, slices, None, np.arange(len(ids)), cls.feature_names(recipe),
                   layout=pretraining.BARE, columns=columns)

    @property
    def counted_tokens(self) -> np.ndarray:
        return self.columns["input_ids"][self.columns["input_mask"] > 0]

    def features(self, rows: np.ndarray, max_seq_length: int,
                 vocabulary: Vocabulary) -> dict[str, np.ndarray]:
        return {name: self.columns[name][rows] for name in self.names}
