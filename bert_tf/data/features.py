"""The record features that writers, readers and the model agree on.

The names, dtypes and shapes of pre-training records are those of google-research/bert
`create_pretraining_data.py`, those of answer spans of its `run_squad.py`. S is the sequence length,
P the number of predictions, C the number of choices, L the number of labels, V the vocabulary size.
"""

import dataclasses

# The size, as flags and manifests call it, that each axis is as long as.
AXES = {"S": "max_seq_length", "P": "max_predictions_per_seq", "L": "num_labels"}


@dataclasses.dataclass(frozen=True)
class Feature:
    """One feature: a list of a fixed length in every record.

    Attributes:
        name: the key in the `tf.train.Example`.
        dtype: "int64" or "float32", as stored; the model gets int32 for int64.
        axis: "S", "P", "C*S", "L" or 1: the length of the list.
        end: what the values must be below: "V", "S", "labels" (as many as the sentence objective
            tells apart) or None, where any value can be.
    """

    name: str
    dtype: str
    axis: str | int
    end: str | None = None

    def length(self, max_seq_length: int, max_predictions_per_seq: int = 0, num_choices: int = 1,
               num_labels: int = 1) -> int:
        """The number of values in a record."""
        return {"S": max_seq_length, "P": max_predictions_per_seq, "L": num_labels,
                "C*S": num_choices * max_seq_length}.get(self.axis, self.axis)

    def on(self, axis: str, dtype: str | None = None) -> "Feature":
        """This feature along another axis, or of another dtype."""
        return dataclasses.replace(self, axis=axis, dtype=dtype or self.dtype)


KNOWN = {feature.name: feature for feature in (
    # What every record holds: input_ids are below V, input_mask is 1 where there is a token.
    Feature("input_ids", "int64", "S", "V"),
    Feature("input_mask", "int64", "S"),
    Feature("segment_ids", "int64", "S"),
    # Pre-training.
    Feature("masked_lm_positions", "int64", "P", "S"),
    Feature("masked_lm_ids", "int64", "P", "V"),
    Feature("masked_lm_weights", "float32", "P"),
    Feature("next_sentence_labels", "int64", 1, "labels"),
    # Fine-tuning; is_real_example is 0 where a batch is filled up.
    Feature("label_ids", "int64", 1),
    Feature("label_weights", "int64", "S"),
    Feature("is_real_example", "int64", 1),
    Feature("unique_ids", "int64", 1),
    Feature("start_positions", "int64", 1, "S"),
    Feature("end_positions", "int64", 1, "S"),
    Feature("is_impossible", "int64", 1),
)}


def known(*names: str) -> tuple[Feature, ...]:
    """The features of these names."""
    return tuple(KNOWN[name] for name in names)


INPUTS = known("input_ids", "input_mask", "segment_ids")
MASKS = known("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
PRETRAINING = (*INPUTS, *MASKS, KNOWN["next_sentence_labels"])
ANSWER_SPAN = (KNOWN["unique_ids"], *INPUTS)
# What records to train on have besides.
ANSWER_SPAN_LABELS = known("start_positions", "end_positions", "is_impossible")


def _finetuning(*labels, axis="S"):
    """Inputs along `axis`, labels, and the weight of the example."""
    return (*(feature.on(axis) for feature in INPUTS), *labels, KNOWN["is_real_example"])


_LABEL = KNOWN["label_ids"]
# By the kind of task; the choices of a multiple choice follow each other.
FINETUNING = {
    "classification": _finetuning(_LABEL),
    "multi_label": _finetuning(_LABEL.on("L")),
    "regression": _finetuning(_LABEL.on(1, "float32")),
    "multiple_choice": _finetuning(_LABEL, axis="C*S"),
    "tagging": _finetuning(_LABEL.on("S"), KNOWN["label_weights"]),
}
