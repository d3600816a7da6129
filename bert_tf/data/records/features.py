"""The features of records: names, dtypes and shapes follow google-research/bert
`create_pretraining_data.py` and, for answer spans, `run_squad.py`. S is the sequence length, P the
number of predictions, C of choices, L of labels, V the vocabulary size."""

import dataclasses
from collections.abc import Callable, Iterable

import lazy_loader
import numpy as np

from bert_tf.data.records import tfrecord
from bert_tf.errors import InputError
from bert_tf.spelling import MOST_CHARACTERS, spelling_names
from bert_tf.tokenization.encoding import pack_pairs as pack_pairs
from bert_tf.tokenization.encoding import truncate_pairs as truncate_pairs
from bert_tf.tokenization.vocabulary import Layout

tf = lazy_loader.load("tensorflow")

# The length of each axis, by the name of the size in flags and manifests.
AXES = {"S": "max_seq_length", "T": "max_target_length", "P": "max_predictions_per_seq",
        "L": "num_labels"}
# Every record of a text has one of these features.
_TOKENS = {"input_ids", "input", "decoder_target_tokens"}


@dataclasses.dataclass(frozen=True)
class Feature:
    """One feature: a list of a fixed length in every record."""

    name: str
    dtype: str = "int64"    # or "float32", as stored; the model gets int32 for int64
    axis: str | int = "S"   # the length of the list: "S", "T", "P", "C*S", "L", "L*S" or a number
    # What the values must be below: "V", "S", "labels" (the number of classes of the sentence
    # objective), or None for any value.
    end: str | None = None

    def length(self, max_seq_length: int = 0, max_predictions_per_seq: int = 0,
               num_choices: int = 1, num_labels: int = 1, max_target_length: int = 0) -> int:
        return {"S": max_seq_length, "T": max_target_length, "P": max_predictions_per_seq,
                "L": num_labels, "C*S": num_choices * max_seq_length,
                "L*S": num_labels * max_seq_length}.get(self.axis, self.axis)

    def on(self, axis: str | int, dtype: str | None = None) -> "Feature":
        return dataclasses.replace(self, axis=axis, dtype=dtype or self.dtype)


KNOWN = {feature.name: feature for feature in (
    # In every record: input_ids are below V, input_mask is 1 where there is a token.
    Feature("input_ids", end="V"), Feature("input_mask"), Feature("segment_ids"),
    # Of packed rows, the number of each token's sequence, from 1.
    Feature("sequence_ids"),
    # Pre-training.
    Feature("masked_lm_positions", "int64", "P", "S"), Feature("masked_lm_ids", "int64", "P", "V"),
    Feature("masked_lm_weights", "float32", "P"),
    Feature("next_sentence_labels", "int64", 1, "labels"),
    # 1 where a token belongs to an entity, for spans that are drawn while training.
    Feature("entities"),
    # The boundary of a prediction's span, the prediction's place in the span, and 1 if the boundary
    # predicts it; 1 where a shuffled token is predicted, not a hidden one.
    Feature("span_left", "int64", "P", "S"), Feature("span_right", "int64", "P", "S"),
    Feature("span_offset", "int64", "P", "S"), Feature("span_weights", "float32", "P"),
    Feature("word_order_weights", "float32", "P"),
    # Of recipes of several tasks: the task's number, and labels of tokens with 1 where they count.
    Feature("task_ids", "int64", 1), Feature("token_label_ids"), Feature("token_label_weights"),
    # 1 where a word begins, for runs of words and for masks that are drawn while training.
    Feature("token_boundary"),
    # Of streams of text: the tokens; which are predicted; the next token of each; the segment; and
    # 1 where the second segment follows the first.
    Feature("input", end="V"), Feature("is_masked"), Feature("target", end="V"), Feature("seg_id"),
    Feature("label", "int64", 1),
    # Of an encoder and a decoder: tokens, padded with 0; the decoder's are its targets, shifted
    # right by one; 0 for targets without a loss; of packed rows the number of each token's example,
    # from 1, and its place in it; of a prefix LM 1 for tokens that see each other on both sides.
    Feature("encoder_input_tokens", end="V"), Feature("encoder_segment_ids"),
    Feature("encoder_positions"), Feature("decoder_input_tokens", "int64", "T", "V"),
    Feature("decoder_target_tokens", "int64", "T", "V"),
    Feature("decoder_loss_weights", "int64", "T"), Feature("decoder_segment_ids", "int64", "T"),
    Feature("decoder_positions", "int64", "T"), Feature("decoder_causal_attention", "int64", "T"),
    # Of language models in rows: the next token, its weight in the loss, and 1 where it begins a
    # word; 1 where a row begins with the first token of a text; the tokens of text from right to
    # left, and their next tokens.
    Feature("next_token_ids", end="V"), Feature("next_token_weights", "float32"),
    Feature("next_token_boundary"), Feature("is_start", "int64", 1),
    Feature("reverse_input_ids", end="V"), Feature("reverse_next_token_ids", end="V"),
    # The characters of words (see bert_tf/spelling.py); a word may have any number of them.
    *(Feature(prefix + name, "int64", "S") for prefix in ("", "reverse_")
      for name in spelling_names(MOST_CHARACTERS)),
    # Fine-tuning; is_real_example is 0 where a batch is filled up.
    Feature("label_ids", "int64", 1), Feature("label_weights"),
    Feature("is_real_example", "int64", 1), Feature("unique_ids", "int64", 1),
    Feature("start_positions", "int64", 1, "S"), Feature("end_positions", "int64", 1, "S"),
    Feature("is_impossible", "int64", 1),
    # The first and the last token of two marked parts.
    Feature("span_starts", "int64", 2, "S"), Feature("span_ends", "int64", 2, "S"),
)}


def known(*names: str) -> tuple[Feature, ...]:
    return tuple(KNOWN[name] for name in names)


INPUTS = known("input_ids", "input_mask", "segment_ids")
MASKS = known("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
ANSWER_SPAN = (KNOWN["unique_ids"], *INPUTS)
# Further features of records to train on.
ANSWER_SPAN_LABELS = known("start_positions", "end_positions", "is_impossible")


def _finetuning(*labels, axis="S"):
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
class SpecialIds:
    """Where `pack_pairs` puts special tokens, and their ids: 0 in rows of marks, not ids."""

    layout: Layout
    cls_id: int = 0
    sep_id: int = 0
    pad_id: int = 0
    start_id: int = 0


@dataclasses.dataclass(frozen=True)
class RecordFormat:
    """Format of each record of a set."""

    features: tuple[Feature, ...]   # in the order of `KNOWN`
    sizes: dict[str, int]   # the lengths S and P of their axes, by the names of the flags
    vocab_size: int | None = None   # V, which ids must be below; None while it is not known
    num_labels: int | None = 2  # what labels must be below; None where they are floats or absent

    @classmethod
    def of_file(cls, path: str, names: list[str] | None = None) -> "RecordFormat":
        """Returns the format of a TFRecord file, whose axes are as long as its first record's: of
        the features `names`, or of all known ones of that record. InputError if it holds no
        text."""
        message = next(tfrecord.read_records(path), None)
        if message is None:
            raise InputError(f"{path} holds no record; make the file again.")
        try:
            example = tfrecord.parse_example(message)
            if not _TOKENS & example.keys():
                raise ValueError("it has no input_ids")
        except ValueError as error:
            raise InputError(f"{path}: record 0 is not a pre-training record ({error}); make the "
                             "file with bert-create-pretraining-data.") from error
        features = [feature for name, feature in KNOWN.items()
                    if name in (example if names is None else names)]
        sizes: dict[str, int] = {}
        for feature in features:
            if feature.axis in AXES and feature.name in example:
                sizes.setdefault(AXES[feature.axis], len(example[feature.name]))
        return cls(tuple(features), sizes)

    @property
    def names(self) -> set[str]:
        return {feature.name for feature in self.features}

    @property
    def is_masked(self) -> bool:
        return "masked_lm_positions" in self.names

    def ends(self) -> dict[str, int]:
        """Returns the bound that the values of each feature must be below, by its name."""
        most = np.iinfo(np.int32).max
        ends = {"V": self.vocab_size or most, "labels": self.num_labels or most,
                "S": self.sizes.get("max_seq_length", most)}
        return {feature.name: ends[feature.end] for feature in self.features if feature.end}

    def check_lengths(self, example: dict[str, np.ndarray]) -> None:
        """Raises ValueError if a parsed record lacks a feature or holds it in another form."""
        for feature in self.features:
            values, length = example.get(feature.name), feature.length(**self.sizes)
            if values is None:
                raise ValueError(f"has no {feature.name}.")
            if getattr(values, "dtype", None) != feature.dtype:
                raise ValueError(f"has no list of {feature.dtype} as {feature.name}.")
            if len(values) != length:
                raise ValueError(f"has {len(values)} values in {feature.name}, not {length}.")

    def check(self, example: dict[str, np.ndarray]) -> None:
        """Raises ValueError unless a parsed record has this format; the message ends a sentence."""
        self.check_lengths(example)
        for name, end in self.ends().items():
            wrong = example[name][(example[name] < 0) | (example[name] >= end)]
            if len(wrong):
                raise ValueError(f"has {wrong[0]} in {name}, which must be below {end}: were the "
                                 "records made with another vocabulary?")

    @property
    def spec(self) -> dict[str, "tf.io.FixedLenFeature"]:
        return {feature.name: tf.io.FixedLenFeature([feature.length(**self.sizes)], feature.dtype)
                for feature in self.features}

    def parse(self, messages: "tf.Tensor") -> dict[str, "tf.Tensor"]:
        """From serialised records [B] to their features, int32 and float32 [B, length]."""
        batch = tf.io.parse_example(messages, self.spec)
        # On a GPU a lookup takes any id without an error.
        asserts = [tf.debugging.Assert(tf.reduce_all((batch[name] >= 0) & (batch[name] < end)),
                                       [f"{name} must be below {end}"])
                   for name, end in self.ends().items()]
        with tf.control_dependencies(asserts):
            return {name: tf.cast(value, tf.int32) if value.dtype == tf.int64 else
                    tf.identity(value) for name, value in batch.items()}

    def blank(self) -> bytes:
        return tfrecord.serialize_examples({
            feature.name: np.zeros([1, feature.length(**self.sizes)], feature.dtype)
            for feature in self.features})[0]


def without_autotune(dataset: "tf.data.Dataset") -> "tf.data.Dataset":
    """Returns the dataset without autotuning: parallel operations have one thread a core.

    With autotuning, tf.data sometimes waits up to a minute when an iterator is discarded: the
    tuning thread checks for cancellation before the cancellation is written down, and then sleeps.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.map_parallelization = True    # the default of autotuning
    return dataset.with_options(options)


def generated(generate: Callable[[], Iterable[dict]], spec: dict[str, "tf.TensorSpec"],
              replicas: int) -> "tf.data.Dataset":
    """Returns the dataset of the batches that a function yields for each of some replicas."""
    return without_autotune(tf.data.Dataset.from_generator(
        generate, output_signature=spec).prefetch(2 * replicas))
