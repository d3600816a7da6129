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
        axis: "S", "P", "C*S", "L" or 1: the length of the list.
    """

    name: str
    dtype: str
    axis: str | int

    def length(self, max_seq_length, max_predictions_per_seq=0, num_choices=1, num_labels=1):
        """The number of values in a record."""
        return {"S": max_seq_length, "P": max_predictions_per_seq, "L": num_labels,
                "C*S": num_choices * max_seq_length}.get(self.axis, self.axis)


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


def _finetuning(axis, *labels):
    """Input of the length `axis`, labels, and a weight that is 0 where a batch is filled up."""
    inputs = (Feature(name, "int64", axis) for name in ("input_ids", "input_mask", "segment_ids"))
    return (*inputs, *labels, Feature("is_real_example", "int64", 1))


# By the kind of task; of a multiple choice, the choices stand one after the other.
FINETUNING = {
    "classification": _finetuning("S", Feature("label_ids", "int64", 1)),
    "multi_label": _finetuning("S", Feature("label_ids", "int64", "L")),
    "regression": _finetuning("S", Feature("label_ids", "float32", 1)),
    "multiple_choice": _finetuning("C*S", Feature("label_ids", "int64", 1)),
    "tagging": _finetuning("S", Feature("label_ids", "int64", "S"),
                           Feature("label_weights", "int64", "S")),
}
