"""The record features that writers, readers and the model agree on.

The names, dtypes and shapes of pre-training records are those of google-research/bert
`create_pretraining_data.py`, those of answer spans of its `run_squad.py`. S is the sequence length,
P the number of predictions.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Feature:
    """One feature: a list of a fixed length in every record.

    Attributes:
        name: the key in the `tf.train.Example`.
        dtype: "int64" or "float32", as stored; the model gets int32 for int64.
        axis: "S", "P" or 1: the length of the list.
    """

    name: str
    dtype: str
    axis: str | int

    def length(self, max_seq_length, max_predictions_per_seq):
        """The number of values in a record."""
        return {"S": max_seq_length, "P": max_predictions_per_seq}.get(self.axis, self.axis)


PRETRAINING = (
    Feature("input_ids", "int64", "S"),
    Feature("input_mask", "int64", "S"),
    Feature("segment_ids", "int64", "S"),
    Feature("masked_lm_positions", "int64", "P"),
    Feature("masked_lm_ids", "int64", "P"),
    Feature("masked_lm_weights", "float32", "P"),
    Feature("next_sentence_labels", "int64", 1),
)

ANSWER_SPAN = (
    Feature("unique_ids", "int64", 1),
    Feature("input_ids", "int64", "S"),
    Feature("input_mask", "int64", "S"),
    Feature("segment_ids", "int64", "S"),
)
# What records to train on have besides.
ANSWER_SPAN_LABELS = (
    Feature("start_positions", "int64", 1),
    Feature("end_positions", "int64", 1),
    Feature("is_impossible", "int64", 1),
)
