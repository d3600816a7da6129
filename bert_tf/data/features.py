"""The record features that writers, readers and the model agree on.

The names, dtypes and shapes of pre-training records are those of google-research/bert
`create_pretraining_data.py`, those of answer spans of its `run_squad.py`. S is the sequence length,
P the number of predictions, C the number of choices, L the number of labels, V the vocabulary size.
"""

import dataclasses

import lazy_loader
import numpy as np

from bert_tf.data import tfrecord
from bert_tf.errors import InputError

tf = lazy_loader.load("tensorflow")

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


@dataclasses.dataclass(frozen=True)
class RecordFormat:
    """What each record of a set holds.

    Attributes:
        features: the `Feature`s, in the order of `KNOWN`.
        sizes: the lengths S and P of their axes, by the names of the flags; P only where there are
            features along it.
        vocab_size: V, what ids must be below; None while it is not known.
        num_labels: what the labels of the sentence objective must be below.
    """

    features: tuple[Feature, ...]
    sizes: dict[str, int]
    vocab_size: int | None = None
    num_labels: int = 2

    @classmethod
    def of_file(cls, path: str, names: list[str] | None = None) -> "RecordFormat":
        """The format of a file, whose axes are as long as those of its first record.

        Args:
            path: the TFRecord file, which holds a record.
            names: of the features; all known ones of the first record if None.

        Raises:
            InputError: the first record holds no text.
        """
        try:
            example = tfrecord.parse_example(next(tfrecord.read_records(path)))
            if "input_ids" not in example:
                raise ValueError("it has no input_ids")
        except ValueError as error:
            raise InputError(f"{path}: record 0 is not a pre-training record ({error}); make it "
                             "with create_pretraining_data.") from error
        found = [feature for name, feature in KNOWN.items()
                 if name in (example if names is None else names)]
        sizes = {}
        for feature in found:
            if feature.axis in AXES and feature.name in example:
                sizes.setdefault(AXES[feature.axis], len(example[feature.name]))
        return cls(tuple(found), sizes)

    def length(self, feature: Feature) -> int:
        """The number of its values in a record."""
        return feature.length(**self.sizes)

    def ends(self) -> dict[str, int]:
        """What the values of a feature must be below, by its name."""
        ends = {"V": self.vocab_size or np.iinfo(np.int32).max, "labels": self.num_labels,
                "S": self.sizes["max_seq_length"]}
        return {feature.name: ends[feature.end] for feature in self.features if feature.end}

    def check(self, example: dict[str, np.ndarray]) -> None:
        """Raises ValueError if a parsed record is not of this format; the message ends a sentence.
        """
        for feature in self.features:
            length = self.length(feature)
            values = example.get(feature.name)
            if getattr(values, "dtype", None) != feature.dtype or len(values) != length:
                raise ValueError(f"has no {feature.name} of {length} {feature.dtype} values; make "
                                 "it with create_pretraining_data.")
        for name, end in self.ends().items():
            wrong = example[name][(example[name] < 0) | (example[name] >= end)]
            if len(wrong):
                raise ValueError(f"has {wrong[0]} in {name}, which must be below {end}: was it "
                                 "made with another vocabulary?")

    def parse(self, messages: tf.Tensor) -> dict[str, tf.Tensor]:
        """From serialised records [B] to their features, int32 and float32 [B, length]."""
        batch = tf.io.parse_example(messages, {
            feature.name: tf.io.FixedLenFeature([self.length(feature)], feature.dtype)
            for feature in self.features})
        # On a GPU a lookup takes any id without an error.
        asserts = [tf.debugging.Assert(tf.reduce_all((batch[name] >= 0) & (batch[name] < end)),
                                       [f"{name} must be below {end}"])
                   for name, end in self.ends().items()]
        with tf.control_dependencies(asserts):
            return {name: tf.cast(value, tf.int32) if value.dtype == tf.int64 else
                    tf.identity(value) for name, value in batch.items()}

    def blank(self) -> bytes:
        """The message of a record that is all zeros."""
        return tfrecord.serialize_examples({
            feature.name: np.zeros([1, self.length(feature)], feature.dtype)
            for feature in self.features})[0]
