"""The records of a SQuAD file, as google-research/bert run_squad.py (FeatureWriter) writes them."""

import dataclasses
import functools
import os
import typing

import numpy as np

from bert_tf.data.records import features, manifest, shards, tfrecord
from bert_tf.data.records.features import Feature
from bert_tf.errors import InputError, counted
from bert_tf.files import absolute
from bert_tf.tasks.answer_spans import FIRST_UNIQUE_ID, AnswerSpans, SpanOptions, cut_spans
from bert_tf.tasks.squad import PIECE_QUESTIONS, identify, read_pieces
from bert_tf.tokenization import coverage
from bert_tf.tokenization.base import Tokenizer

_MOST_NOTES = 5         # that are printed
_ROWS = 1024            # spans made into bytes at a time


@dataclasses.dataclass(frozen=True)
class SquadRecords:
    """Records to make of a SQuAD file; picklable, for the worker processes.

    Attributes:
        output_file: the TFRecord file; several for a large input, named as `manifest.shard_name`.
        is_training: whether the records have answers to learn. Otherwise there is a record for
            every span of every question, in the file's order.
        version_2_with_negative: whether questions may have no answer.
        piece_questions: least number of questions per shard, except the last.
        features: the records' `Feature`s.
    """

    input_file: str
    output_file: str
    tokenizer: Tokenizer
    is_training: bool
    version_2_with_negative: bool = False
    options: SpanOptions = SpanOptions()

    piece_questions: typing.ClassVar[int] = PIECE_QUESTIONS

    @property
    def features(self) -> tuple[Feature, ...]:
        return features.ANSWER_SPAN + (features.ANSWER_SPAN_LABELS if self.is_training else ())

    def further_fingerprint(self) -> dict:
        """Values that the records depend on beside the file, the vocabulary and the options."""
        return {}

    def make(self, num_workers: int = 0, may_replace: bool = True) -> tuple[dict, bool]:
        """Writes the records and their manifest; see `SplitRecords.make`. The manifest's `notes`
        are sentences about questions left out or cut.

        The file is read twice: a record's unique_ids count the spans before it, and must be known
        before several processes start.
        """
        vocabulary = self.tokenizer.vocabulary
        self.options.check(vocabulary.layout)
        path = manifest.manifest_path(self.output_file)
        settings = {"is_training": self.is_training, "do_lower_case": self.tokenizer.do_lower_case,
                    "version_2_with_negative": self.version_2_with_negative,
                    **dataclasses.asdict(self.options), **self.tokenizer.told}
        counts = [len(cut_spans(piece, self.tokenizer, self.options).start)
                  for piece in self._pieces()]
        if not sum(counts):
            raise InputError(f"{self.input_file} gives no record: its paragraphs are blank, or "
                             "hold none of the answers; give another file.")
        digest, size = identify(self.input_file)
        return shards.make_shards(
            path, {"options": settings, "vocabulary": vocabulary.hash, "input": digest,
                   "output_file": [os.path.basename(self.output_file)], "pieces": counts,
                   **self.further_fingerprint()},
            ((len(counts), first_id, piece) for first_id, piece in zip(
                (FIRST_UNIQUE_ID + np.cumsum([0, *counts])).tolist(), self._pieces())),
            self._write_piece, num_workers,
            functools.partial(self._describe, settings, size), may_replace)

    def report(self, record: dict, was_there: bool) -> None:
        """Prints the report in the manifest `record`, the first of its notes in full."""
        name, counts, notes = os.path.basename(self.output_file), record["counts"], record["notes"]
        name = name.removesuffix(".tfrecord")
        print(f"{name}: {counted(counts['questions'], 'question')}, "
              f"{counted(counts['records'], 'record')}, {counted(counts['skipped'], 'question')} "
              f"left out, {counts['cut']:,} cut to fit{', there already' * was_there}", flush=True)
        for note in notes[:_MOST_NOTES]:
            print(f"  note: {note}")
        coverage.Coverage(record["coverage"]).report(name)
        if len(notes) > _MOST_NOTES:
            print(f"  and {len(notes) - _MOST_NOTES:,} more notes, in {name}{manifest.SUFFIX}",
                  flush=True)

    def _pieces(self):
        return read_pieces(self.input_file, self.is_training, self.version_2_with_negative,
                           self.piece_questions, squad_style=self.options.squad_style)

    def _write_piece(self, index, numbered_piece):
        """Writes one shard; returns its entry, counts and notes for the manifest."""
        count, first_id, piece = numbered_piece
        seen = coverage.Coverage()
        spans = cut_spans(piece, seen.watch(self.tokenizer), self.options)
        path = absolute(manifest.shard_name(self.output_file, index, count))
        try:
            shard = tfrecord.write_shard(path, os.path.dirname(path), self._blocks(spans, first_id))
        except OSError as error:
            raise InputError(f"{path} cannot be written ({error}); make room and run the command "
                             "again: finished pieces are kept.") from error
        skipped = [sentence for paragraph in piece for sentence in paragraph.skipped]
        cut = [question.id for question, is_cut in zip(spans.questions, spans.query_cut) if is_cut]
        notes = skipped + [
            f"{self.input_file}: question {name!r} is cut to --max_query_length="
            f"{self.options.max_query_length} tokens; raise it to keep all." for name in cut]
        return {"shards": [shard], "notes": notes, "coverage": seen.totals(),
                "counts": {"questions": len(spans.questions),
                           "impossible": sum(q.is_impossible for q in spans.questions),
                           "skipped": len(skipped), "cut": len(cut),
                           "records": shard["records"]}}

    def _blocks(self, spans, first_id):
        for first in range(0, len(spans.start), _ROWS):
            last = min(first + _ROWS, len(spans.start))
            block = self.encode(spans, first, last)
            block["unique_ids"] = np.arange(first_id + first, first_id + last)[:, None]
            yield {feature.name: block[feature.name] for feature in self.features}

    def encode(self, spans: AnswerSpans, first: int, last: int) -> dict[str, np.ndarray]:
        """Returns the features of the spans `first` to `last` (exclusive), without unique_ids."""
        return spans.features(first, last, self.options, self.tokenizer.vocabulary)

    def _describe(self, settings, size, results):
        further = self.features[len(SquadRecords.features.fget(self)):]
        return {
            "format": "bert_tf answer span records 1",
            "options": settings,
            **({"further_features": list(map(dataclasses.asdict, further))} if further else {}),
            "vocabulary": self.tokenizer.vocabulary.describe(),
            "inputs": [{"name": self.input_file, "bytes": size}],
            "counts": {name: sum(result["counts"][name] for result in results)
                       for name in results[0]["counts"]},
            "coverage": coverage.join(result["coverage"] for result in results),
            "notes": [note for result in results for note in result["notes"]],
        }
