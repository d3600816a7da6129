"""Fine-tuning records in memory, without their padding, and batches of them: (seed, epoch, step)
decides which examples come at a step, as in pipeline.py."""

import copy
import os
from collections.abc import Mapping
from typing import Any

import lazy_loader
import numpy as np

from bert_tf import recipes
from bert_tf.data import masking
from bert_tf.data.batches import bucketing
from bert_tf.data.records import features, manifest, tfrecord
from bert_tf.data.records.features import RecordFormat, generated, without_autotune
from bert_tf.data.segments.pairing import find_pairing
from bert_tf.errors import InputError
from bert_tf.files import absolute, exists, file_size, join_path, tensorflow_name
from bert_tf.files.reading import check_shape

tf = lazy_loader.load("tensorflow")

_READ_RECORDS = 1 << 12     # at a time
_AGAIN = "remove the manifest and make the records again."


class ExampleSet:
    """The records of one manifest. InputError names a shard that is absent, or its damaged record.

    Shapes: N examples, B batch, S sequence, C choices; L, the length of a batch, is at most S.

    Args:
        padding: how long a batch is: "max_length", S as in the original; "longest", as its longest
            example; "buckets", the least of `bucketing.padded_lengths` that its examples fit.

    Attributes:
        lengths: int [N], the number of tokens of each example; of the longest of its choices.
    """

    def __init__(self, path: str, *, padding: str = bucketing.BUCKETS) -> None:
        if padding not in bucketing.PADDINGS:
            raise ValueError(f"padding is {padding!r}; it must be one of "
                             f"{', '.join(bucketing.PADDINGS)}.")
        self.manifest = manifest.load_manifest(path)
        described, sizes = record_features(self.manifest)
        self.max_seq_length = sizes["max_seq_length"]
        self._padding = padding
        # Features as long as the sequence are kept end to end, others as [N, length].
        self._along = {f.name for f in described if f.axis in ("S", "C*S", "L*S")}
        self._choices = {f.name for f in described if f.axis in ("C*S", "L*S")}
        form = RecordFormat(tuple(f for f in described if f.name != "is_real_example"), sizes)
        folder = os.path.dirname(absolute(path))
        shards = [(join_path(folder, shard["name"]), shard["bytes"])
                  for shard in self.manifest["shards"]]
        if not shards:
            raise InputError(f"{path} names no shard; {_AGAIN}")
        parts = [_unpadded(batch, self.max_seq_length, self._along)
                 for shard, size in shards for batch in _read_shard(shard, size, form)]
        self.lengths = np.concatenate([part[0] for part in parts])
        self.size = len(self.lengths)
        self._pads_left = any(pads_left for _, _, pads_left in parts)
        self._starts = np.cumsum(self.lengths) - self.lengths
        self._features = {name: np.concatenate([part[1][name] for part in parts])
                          for name in form.names}

    def identity(self):
        """Values that must be equal for a position in the stream to mean the same examples."""
        return [self.size, manifest.identity(self.manifest)]

    def first(self, count: int) -> "ExampleSet":
        other = copy.copy(self)
        other.lengths = self.lengths[:count]
        other.size = len(other.lengths)
        return other

    def locate_damage(self) -> None:
        """Does nothing: the constructor has read and checked all records."""

    def __getitem__(self, name):
        """All values of a feature, [N, length], padded with 0."""
        return self.batch(np.arange(self.size), self.max_seq_length)[name]

    def batch(self, rows, length):
        """Returns the features of some examples: [B, L], or [B, C, L] where there are choices, and
        others [B, 1] or [B, labels]; int32 or float32. `rows` is int [B]; ~row is example `row`
        again without weight, to fill a batch up. L, the `length`, is at least each example's."""
        is_real = rows >= 0
        rows = np.where(is_real, rows, ~rows)
        lengths, starts = self.lengths[rows], self._starts[rows]
        place = np.arange(length) - self._pads_left * (length - lengths[:, None])
        is_token = (place >= 0) & (place < lengths[:, None])
        source = (starts[:, None] + place)[is_token]
        features = {}
        for name, values in self._features.items():
            if name not in self._along:
                features[name] = values[rows]
                continue
            packed = np.zeros([len(rows), length, values.shape[1]], values.dtype)
            packed[is_token] = values[source]
            features[name] = np.moveaxis(packed, 2, 1) if name in self._choices else packed[..., 0]
        if "label_weights" in features:
            features["label_weights"] *= is_real[:, None]
        return {**features, "is_real_example": is_real[:, None].astype(np.int32)}

    def spec(self, batch_size, length=None):
        """The tf.TensorSpecs of batches of one length L, or of any if it is None."""
        if self._padding == bucketing.MAX_LENGTH:
            length = self.max_seq_length
        example = self.batch(np.zeros(1, int), self.max_seq_length)
        return {name: tf.TensorSpec([batch_size, *values.shape[1:-1],
                                     length if name in self._along else values.shape[-1]],
                                    values.dtype) for name, values in example.items()}

    def training_batches(self, seed, taken, global_batch, replicas, worker=0, workers=1,
                         length=None):
        """Returns an endless dataset of the batches of each replica of one worker, see
        `RecordSet.training_batches`; with `length`, only the batches of that length L."""
        local = replicas // workers

        def generate():
            for rows in bucketing.training_batches(self.lengths, global_batch, seed, taken):
                if length in (None, self.batch_length(rows)):
                    yield from self._parts(rows, workers * local, worker * local, local)

        return generated(generate, self.spec(global_batch // replicas, length), local)

    def batch_lengths(self, seed, taken, global_batch):
        """Yields the length L of each batch of `training_batches`."""
        return map(self.batch_length, bucketing.training_batches(
            self.lengths, global_batch, seed, taken))

    def batch_length(self, rows):
        """The length L of a batch of `rows`, int [B] as `batch` takes them."""
        rows = np.where(rows >= 0, rows, ~rows)
        return bucketing.padded_length(self.lengths[rows], self.max_seq_length, self._padding)

    def prediction_batches(self, batches, replicas, length=None):
        """Returns the dataset of `batches`, lists of examples, dealt out to one worker's replicas:
        int [B] as `batch` takes them, B a multiple of `replicas`. `length` is L, where all have the
        same and it is to be known beforehand."""
        return generated(lambda: (part for rows in batches
                                  for part in self._parts(rows, replicas, 0, replicas)),
                         self.spec(len(batches[0]) // replicas, length), replicas)

    def _parts(self, rows, parts, first, count):
        """Yields parts `first` and on of a batch that is divided into `parts`."""
        length = self.batch_length(rows)
        for part in np.split(rows, parts)[first:first + count]:
            yield self.batch(part, length)


def _read_shard(path, size, form):
    """Yields the features of a shard of `size` bytes: arrays [up to _READ_RECORDS, length]."""
    if not exists(path) or file_size(path) != size:
        raise InputError(f"{path} does not have the {size:,} bytes that its manifest states; "
                         f"{_AGAIN}")
    compression = "GZIP" * path.endswith(".gz")
    messages = tf.data.TFRecordDataset(tensorflow_name(path), compression).batch(_READ_RECORDS)
    try:
        # Parsed as they come: a function of the dataset would be traced for each shard.
        for batch in without_autotune(messages):
            yield {name: values.numpy()
                   for name, values in tf.io.parse_example(batch, form.spec).items()}
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as error:
        raise InputError(f"{_find_damage(path, form)}; {_AGAIN}") from error


def _find_damage(path, form):
    number = -1
    try:
        for message in tfrecord.read_records(path):
            number += 1
            form.check_lengths(tfrecord.parse_example(message))
    except InputError as error:
        return str(error).partition(";")[0]
    except ValueError as error:
        return f"{path}: record {number} {str(error).removesuffix('.')}"
    return f"{path} can't be read"


def _unpadded(batch, max_seq_length, along):
    """Returns the lengths, int [B]; the features of a batch, those `along` the sequence cut to the
    lengths, end to end; and whether the padding comes first."""
    masks = batch["input_mask"].reshape(len(batch["input_mask"]), -1, max_seq_length)
    lengths = masks.sum(-1).max(-1)
    pads_left = bucketing.pads_left(masks)
    place = np.arange(max_seq_length) - pads_left * (max_seq_length - lengths[:, None])
    is_kept = (place >= 0) & (place < lengths[:, None])         # [B, S]
    features = {}
    for name, values in batch.items():
        if values.dtype == np.int64:
            values = values.astype(np.int32)
        if name in along:
            rows = values.reshape(len(values), -1, max_seq_length)      # [B, C, S]
            values = np.moveaxis(rows, 1, 2)[is_kept]                   # [tokens, C]
        features[name] = values
    return lengths, features, pads_left


def record_features(manifest: Mapping[str, Any]
                    ) -> tuple[tuple[features.Feature, ...], dict[str, int]]:
    """Returns the `Feature`s of the records that a manifest describes, and the sizes that their
    `length` takes. InputError if it lacks a length, or names a feature that this version does not
    know."""
    try:
        described, sizes = _record_features(manifest)
        if not described:
            raise ValueError("there are none")
        for feature in described:
            check_shape(feature.length(**sizes) - 1, int, f"the length of {feature.name} less 1")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError("the manifest of the records does not describe their features "
                         f"({type(error).__name__}: {error}); make the records again.") from error
    return described, sizes


def _record_features(manifest):
    options, task = manifest["options"], manifest.get("task")
    sizes = {"max_seq_length": options["max_seq_length"]}
    if task:
        sizes["num_choices"], sizes["num_labels"] = task["num_choices"], len(task["labels"])
        return tuple(features.Feature(**feature) for feature in task["features"]), sizes
    if "doc_stride" in options:
        labels = features.ANSWER_SPAN_LABELS * bool(options["is_training"])
        # Of a teacher's answers there are two for each position: of the start and of the end.
        further = tuple(features.Feature(**feature)
                        for feature in manifest.get("further_features", ()))
        return features.ANSWER_SPAN + labels + further, {**sizes, "num_labels": 2}
    recipe = recipes.of_manifest(manifest)
    find_pairing(recipe.segments)       # is known
    sizes["max_predictions_per_seq"] = masking.find(recipe.corruption).slots(
        options["max_predictions_per_seq"], options["max_seq_length"])
    if "max_target_length" in options:
        sizes["max_target_length"] = options["max_target_length"]
    names = manifest["features"]
    if unknown := [name for name in names if name not in features.KNOWN]:
        raise InputError(f"the manifest of the records names {', '.join(unknown)}, which this "
                         "version does not know: a later version made the records. Update bert_tf.")
    return features.known(*names), sizes
