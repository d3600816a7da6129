"""Pre-training instances of one piece of a text: segments and masks, held as arrays."""

import array
import collections
import dataclasses
import itertools
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np

from bert_tf import recipes
from bert_tf.data import masking
from bert_tf.data.masking.base import KEEP, MASK, Masks
from bert_tf.data.records.features import SpecialIds, pack_pairs
from bert_tf.data.segments.pairing import PAIRINGS, SWAPPED, find_pairing, num_labels
from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.errors import counted
from bert_tf.files import file_size
from bert_tf.recipes import Recipe, load
from bert_tf.tokenization.coverage import Coverage
from bert_tf.tokenization.vocabulary import Layout, Vocabulary

BARE = Layout(0, 0, 0)      # no special tokens
_BLOCK = 8192       # sequences that become arrays together
_LENGTH_BINS = 8
_LINE_SAMPLE = 64       # one line in so many is compared across pieces
# Shares of the tokens: that continue a unit if whole units are worth masking, and that may be cut.
_FEW_JOINED, _MOST_CUT = 0.01, 0.05
# Counts, and the counts that they are a share of.
_RATES = {"unknown_tokens": "tokens", "one_sentence_documents": "documents",
          "random_next": "instances", "swapped_next": "instances", "full_length": "instances",
          "predictions": "positions", "masked": "predictions", "kept": "predictions",
          "replaced": "predictions", "shuffled": "visible"}


def instances_of(recipe: Recipe) -> type["Instances"]:
    """The class of a recipe's instances: that of its segments, else the recipe's own."""
    return load(find_pairing(recipe.segments).instances or recipe.instances)


def describe_records(recipe: Recipe, options: dict[str, Any], vocabulary: Vocabulary,
                     inputs: Iterable[str]) -> dict[str, Any]:
    """Returns the entries that the manifests of all pre-training records have; `inputs` are the
    files that the records are made from."""
    return {
        "format": "bert_tf pre-training records 1",
        "recipe": recipe.describe(),
        "features": instances_of(recipe).feature_names(recipe),
        "options": options,
        "vocabulary": {"size": vocabulary.size, "sha256": vocabulary.hash,
                       "cls_id": vocabulary.cls_id, "sep_id": vocabulary.sep_id,
                       "mask_id": vocabulary.mask_id},
        "inputs": [{"name": name, "bytes": file_size(name)} for name in inputs]}


@dataclasses.dataclass
class Instances:
    """M instances over one token array; slices and choices only, 60 to 500 bytes each."""

    documents: Documents
    slices: np.ndarray  # int32 [M, 5], see `pairing.Slices`
    masks: Masks | None     # None where training draws them
    order: np.ndarray   # int [M], the order of writing the instances
    names: list[str]
    left_out: int = 0   # how many sequences were too long
    num_labels: int = 0     # classes of the labels; 0 if there are none
    next_label: int = 0
    # How many predictions had no room; where training draws masks, how many have none in an epoch.
    cut: int = 0
    joins: np.ndarray | None = None     # uint8 [T], 0 where a unit begins
    layout: Layout = Layout()

    @classmethod
    def feature_names(cls, recipe: Recipe) -> list[str]:
        names = ["input_ids", "input_mask", "segment_ids",
                 *masking.find(recipe.corruption).features()]
        return names + ["next_sentence_labels"] * bool(num_labels(recipe.segments))

    @classmethod
    def create(cls, documents: Documents, vocabulary: Vocabulary, seed: int, recipe: Recipe,
               options: Any, rows: int) -> Self:
        stream = PythonRandom(seed)
        pairing = find_pairing(recipe.segments)
        layout = BARE if recipe.segments.bare else vocabulary.layout
        room = layout.room(options.max_seq_length, pair=pairing.segments == 2)
        drawn = load(pairing.draw)(documents, stream, room, options, recipe.segments)
        # Where there may be one segment or two, one has the room of a separator more.
        most = room + pairing.in_order * layout.between
        dynamic, masks_of = recipe.corruption.dynamic, masking.find(recipe.corruption)
        masks = None
        if masks_of.counts_cut or not dynamic:
            masks = masks_of.static_masks(documents, vocabulary, stream, options, most)
        slices, parts, left_out = _place(
            documents, drawn, masks, most,
            cls.change_of(recipe, vocabulary.layout, seed, options))
        order = array.array("q", range(len(slices)))
        if not pairing.in_order:
            stream.shuffle(order)
        units = recipe.corruption.units
        return cls(documents, slices, Masks.join(parts) if parts and not dynamic else None,
                   np.array(order, np.int64), cls.feature_names(recipe), left_out,
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
        count, fitting = 0, []      # numbers: tuples would cost passes of the garbage collector
        for cut in itertools.islice(drawn, _BLOCK):
            if masks is not None:
                masks.draw(*cut[:4])
            count += 1
            if cut[1] + cut[3] <= most:
                fitting += cut
        left_out += count - len(fitting) // 5
        slices.append(np.array(fitting, np.int32).reshape(-1, 5))
        placed = change(documents.tokens, slices[-1], masks and masks.place())
        if placed is not None:
            parts.append(placed)
    return np.concatenate(slices), parts, left_out


def count_text(lines: Sequence[str], documents: Documents, vocabulary: Vocabulary,
               by_document: bool = False, units: str = "words") -> tuple[dict[str, int], list[int]]:
    """Returns the counts of one piece of text, to be summed over pieces, and hashes of a
    sixty-fourth of its lines, to find lines repeated in several pieces. With `by_document`,
    documents that no blank line ends are left out, and counted; for `units` see `MaskTokens`."""
    lines = [line for line in map(str.strip, lines) if line]
    lengths = np.array([end - first for first, end in documents.ranges])
    unknown = vocabulary.is_unknown(documents.tokens)
    encoded = (line.encode("utf-8") for line in lines)
    joins = documents.joins(units)
    counts = {
        "documents": len(documents.ranges),
        "one_sentence_documents": int((lengths == 1).sum()),
        "sentences": int(lengths.sum()),
        "tokens": len(documents.tokens),
        **({"open_documents": 1} if documents.is_open and by_document else {}),
        "unknown_tokens": int(unknown.sum()),
        **({} if joins is None else {"joined_tokens": int(joins.sum())}),
        "lines": len(lines),
        "repeated_lines_within_pieces": len(lines) - len(set(lines)),
    }
    return counts, [h << 32 | zlib.adler32(line) for line in encoded
                    if (h := zlib.crc32(line)) % _LINE_SAMPLE == 0]


def count_instances(instances: Instances, max_seq_length: int, layout: Layout) -> dict[str, Any]:
    """Returns the counts of the `Instances` of one piece, and a histogram of their lengths. Parts
    that a recipe does not have (labels, masks in the records) are not counted."""
    lengths = layout.length(*instances.slices[:, [1, 3]].T)
    bins = np.minimum(lengths * _LENGTH_BINS // (max_seq_length + 1), _LENGTH_BINS - 1)
    counts = {"instances": len(lengths)}
    counts |= instances.label_counts()
    if instances.cut:
        counts["cut_predictions"] = instances.cut
    if instances.left_out:
        counts["left_out"] = instances.left_out
    counts["positions"] = int(lengths.sum())
    counts["full_length"] = int((lengths == max_seq_length).sum())
    if instances.masks is not None:
        counts |= instances.mask_counts(instances.masks)
    return {**counts, "length_histogram": np.bincount(bins, minlength=_LENGTH_BINS).tolist()}


def count_cut(instances: Instances, room: int, has_ends: bool) -> dict[str, int]:
    """Counts what no record of a piece has: `cut_tokens` of its text, those of them that are in
    `long_lines`, which are longer than a sequence of `room` tokens of text, as `long_cut_tokens`.
    `has_ends`: whether each sentence ends with a separator, which is not text."""
    documents = instances.documents
    starts, total = np.array(documents.sentence_starts), len(documents.tokens)
    steps, one = np.zeros(total + 1, np.int32), np.int32(1)     # one type: `at` is fast then
    for segment in (0, 2):
        begins, lengths = instances.slices[:, segment:segment + 2].T.astype(int)
        np.add.at(steps, begins, one)
        np.subtract.at(steps, begins + lengths, one)
    is_used = np.cumsum(steps, dtype=np.int32, out=steps)[:total] > 0
    is_left = ~is_used[:starts[-1]]
    copied = documents.origins[is_used[starts[-1]:]]
    is_left[copied[copied >= 0]] = False
    if has_ends:
        is_left[starts[1:] - 1] = False
    if len(starts) == 1:
        return {}
    left = np.cumsum(is_left, dtype=np.int32, out=steps[:len(is_left)])
    left, is_long = np.diff(left[starts[1:] - 1], prepend=0), np.diff(starts) - has_ends > room
    return {"cut_tokens": int(left.sum()), "long_lines": int(is_long.sum()),
            "long_cut_tokens": int(left[is_long].sum())}


def merge(results: Sequence[dict]) -> tuple[dict[str, Any], dict[str, float]]:
    """Sums the counts of all pieces, {"counts": dict, "line_sample": list} each, and derives their
    shares. The share of repeated lines is exact for one piece. For more it is the larger of two
    shares: within pieces, which finds the few lines that come again and again, and in the sample,
    which finds documents that are in several pieces."""
    counts = collections.Counter()
    histogram = np.zeros(_LENGTH_BINS, int)
    for result in results:
        counts.update({k: v for k, v in result["counts"].items() if k != "length_histogram"})
        histogram += result["counts"]["length_histogram"]

    sample = [h for result in results for h in result["line_sample"]]
    repeated = counts["repeated_lines_within_pieces"] / max(counts["lines"], 1)
    if len(results) > 1 and sample:
        repeated = max(repeated, 1 - len(set(sample)) / len(sample))
    rates = {"repeated_lines": repeated} | {
        {"predictions": "predicted_positions"}.get(part, part):
        counts[part] / max(counts[whole], 1) for part, whole in _RATES.items() if part in counts}
    return {**counts, "length_histogram": histogram.tolist()}, rates


def _instances(record):
    counts, rates, options = record["counts"], record["rates"], record["options"]
    line = (f"{counted(counts['instances'], 'instance')} of up to "
            f"{options['max_seq_length']} tokens "
            f"({counts['positions'] / counts['instances']:.0f} on average)")
    if "random_next" in rates:
        random_next = "a random next sentence"
        if _is_swapped(record):
            random_next = "A and B swapped or a random B"
        line += f", {rates['random_next']:.1%} with {random_next}"
        if "swapped_next" in rates:
            line += f", {rates['swapped_next']:.1%} with A and B swapped"
    if counts.get("left_out"):
        longer = counted(counts["left_out"] // options["dupe_factor"], "longer sentence")
        line += f"; {longer} left out"
    return line


def report(record: dict[str, Any]) -> str:
    counts, rates, options = record["counts"], record["rates"], record["options"]
    coverage = Coverage(record["coverage"])
    lines = [
        f"{counted(counts['documents'], 'document')}, {counted(counts['sentences'], 'sentence')}, "
        f"{counts['tokens']:,} tokens, {coverage.shares}, "
        f"{rates['repeated_lines']:.1%} repeated lines", _instances(record)]
    if counts.get("cut_tokens"):
        lines.append(f"{counts['cut_tokens']:,} tokens, "
                     f"{counts['cut_tokens'] / counts['tokens']:.1%} of the text, are cut and in "
                     "no record")
        if counts["long_lines"] and not counts.get("left_out"):
            lines[-1] += f"; longer than a sequence: {counted(counts['long_lines'], 'line')}"
    if "pairs" in counts:
        length, share = (counts[name] / counts[of] for name, of in (
            ("target_tokens", "pairs"), ("pairs", "instances")))
        lines.append(f"{counted(counts['pairs'], 'target')} of {length:.1f} tokens, {share:.1f} in "
                     f"a row of up to {options['max_target_length']}")
    labels = [count for name, count in counts.items() if name.startswith("label_")]
    if len(labels) > 1:
        lines.append("labels: " + ", ".join(f"{label / sum(labels):.1%}" for label in labels))
    if "predicted_positions" in rates:
        lines.append(
            f"{counted(counts['predictions'], 'prediction')}, "
            f"{rates['predicted_positions']:.1%} of the tokens: {rates['masked']:.1%} [MASK], "
            f"{rates['kept']:.1%} kept, {rates['replaced']:.1%} replaced")
    if "shuffled" in rates:
        lines.append(f"{counts['shuffled']:,} more tokens are shuffled, three neighbours at a "
                     f"time: {rates['shuffled']:.2%} of those that are not predicted")
    if counts.get("cut_predictions"):
        share = counts["cut_predictions"] / max(counts["positions"], 1)
        lines.append(f"{counts['cut_predictions']:,} predictions, {share:.2%} of the tokens, are "
                     "more than --max_predictions_per_seq has room for and left out"
                     + ("" if "predictions" in counts else " in an epoch"))
    return "\n".join(lines + [f"warning: {text}" for text in _warnings(record)])


def _is_swapped(record):
    return recipes.of_manifest(record).segments.negatives == "swapped"


def _warnings(record):
    rates = record["rates"]
    # A network of spelled words reads any word.
    if "spelling_0" not in record["features"]:
        yield from Coverage(record["coverage"]).warnings(
            ("vocab_file", "do_lower_case", "strip_accents"))
    is_labelled = PAIRINGS[recipes.of_manifest(record).segments.pairing].is_labelled
    if rates["repeated_lines"] > 0.1 and not is_labelled:      # a text may be in many pairs
        yield "many lines are repeated: the model will learn them by heart; remove them first."
    yield from (_warnings_on_pairs if "random_next" in rates else _warnings_on_texts)(record)
    yield from _warnings_on_units(record)
    yield from record["notes"]


def _warnings_on_units(record):
    counts, units = record["counts"], recipes.of_manifest(record).corruption.units
    share = counts.get("joined_tokens", counts["tokens"]) / max(counts["tokens"], 1)
    if share > _FEW_JOINED:
        return
    almost = "almost " if share else ""
    if units == "words":
        yield (f"{almost}no word of the text has two tokens, so whole-word masks are "
               "masks of single tokens. In Chinese and other text whose words are runs of "
               "characters, say which characters are a word: give --input_format=columns and a "
               "file with one word per line, or --masking_units=phrases and a --phrase_file with "
               "one word per line.")
    elif units == "phrases":
        yield (f"{almost}no phrase of --phrase_file is in the text, so masks are masks "
               "of single tokens: give the phrases of this text, as it writes them.")


def _warnings_on_pairs(record):
    counts, rates, swapped = record["counts"], record["rates"], _is_swapped(record)
    if (cut := counts.get("long_cut_tokens", 0) / max(counts["tokens"], 1)) > _MOST_CUT:
        yield (f"{cut:.0%} of the tokens are cut from lines that are longer than a sequence: raise "
               "--max_seq_length, or give one sentence per line.")
    if rates["one_sentence_documents"] > 0.1:
        yield (f"{rates['one_sentence_documents']:.0%} of the documents have one sentence, so "
               "their next sentence is always a random one. Put blank lines between documents "
               "only, not between their sentences.")
    if counts["documents"] < 2 and not swapped:
        yield ("there is one document only: random next sentences come from it too, so next "
               "sentence prediction can't be learned. Put blank lines between documents.")
    if rates["random_next"] > 0.65:
        yield (f"most {'pairs are not in order' if swapped else 'next sentences are random'}: "
               "documents or sentences are short or long for --max_seq_length; a model can "
               "guess the label from the base rate.")


def _warnings_on_texts(record):
    counts, segments = record["counts"], recipes.of_manifest(record).segments
    # The text of a stream is written once, whatever the flag says.
    copies = 1 if segments.pairing == "text_stream" else record["options"]["dupe_factor"]
    ends = segments.sentence_ends       # the last one of a sequence is its own separator
    used = (counts["instance_tokens"] + ends * counts["instances"]) / (counts["tokens"] * copies)
    pairing = PAIRINGS[segments.pairing]
    # Where a sequence may end with a part of a sentence, some is left out of any text.
    if used < (0.7 if pairing.in_order else 0.95) and (not ends or counts.get("left_out")):
        ending = " and in documents that no blank line ends" if counts.get("open_documents") else ""
        place = (f"in sentences that are longer than --max_seq_length{ending}: raise it, or give "
                 "shorter sentences, one per line.")
        if pairing.in_rows:
            place = ("in the last batch, which is not full: give more text, or a smaller "
                     "--bsz_per_host.")
        yield f"{1 - used:.0%} of the tokens are left out, {place}"
    if not {"predictions", "label_1", "pairs"} & counts.keys() and copies > 1:
        yield ("the records repeat each other, since neither their masks nor their segments "
               "are drawn at random: --dupe_factor=1 is enough.")
