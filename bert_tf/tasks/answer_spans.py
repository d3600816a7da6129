"""Questions about paragraphs as sequences: a long paragraph is cut into overlapping spans. These,
their labels, order and records follow google-research/bert run_squad.py. A paragraph is tokenised
once for all its questions, see `passages`."""

import dataclasses
import functools
import os
import typing

import numpy as np

from bert_tf.data.records import features, manifest, shards, tfrecord
from bert_tf.data.records.features import Feature, pack_pairs
from bert_tf.errors import InputError, counted
from bert_tf.files import absolute
from bert_tf.tasks.passages import PiecePassages, WordPassages, passages_of
from bert_tf.tasks.squad import PIECE_QUESTIONS, identify, read_pieces
from bert_tf.tokenization import coverage
from bert_tf.tokenization.base import Tokenizer
from bert_tf.tokenization.vocabulary import Layout

FIRST_UNIQUE_ID = 1000000000
_PAD_SEGMENT = 3        # of padding, in XLNet's spans
_MOST_NOTES = 5         # that are printed
_ROWS = 1024            # spans made into bytes at a time


@dataclasses.dataclass(frozen=True)
class SpanOptions:
    """The settings for cutting questions and paragraphs. `squad_style`, a key of
    `passages.PASSAGES`, is the system whose code is followed. For ALBERT and XLNet a span without
    the learned answer is impossible to answer; for the others a question is. In XLNet the passage
    precedes the question."""

    max_seq_length: int = 384       # S, special tokens included
    doc_stride: int = 128           # tokens from a span's start to the next one's, at most
    max_query_length: int = 64      # longer questions lose their last tokens
    squad_style: str = "bert"

    @property
    def passage_first(self) -> bool:
        return self.squad_style == "xlnet"

    def check(self, layout: Layout) -> None:
        """Raises InputError for values that cannot work in sequences of this layout."""
        if self.doc_stride < 1 or self.max_query_length < 1:
            raise InputError(f"--doc_stride is {self.doc_stride} and --max_query_length "
                             f"{self.max_query_length}; both must be at least 1.")
        special = layout.special(pair=True)
        least = self.max_query_length + special + 1
        if self.max_seq_length < least:
            raise InputError(
                f"--max_seq_length is {self.max_seq_length}, but a question of "
                f"--max_query_length={self.max_query_length} tokens and {special} special tokens "
                f"leave no room for a paragraph; give at least {least}.")


@dataclasses.dataclass
class AnswerSpans:
    """N questions cut into M spans, over one array of T tokens."""

    questions: list
    passages: WordPassages | PiecePassages
    asked: np.ndarray           # int [N], the number of each question's paragraph
    tokens: np.ndarray          # int32 [T], of all paragraphs, then of all questions
    query_start: np.ndarray     # int [N], the question in `tokens`
    query_length: np.ndarray    # int [N]
    query_cut: np.ndarray       # bool [N], whether the question was cut
    doc_start: np.ndarray       # int [N], the paragraph in `tokens`
    answers: np.ndarray         # int [N, 2], first and last token within the paragraph, or -1
    first_span: np.ndarray      # int [N + 1], the first span of each question, and M
    start: np.ndarray           # int [M], the span within its paragraph's tokens
    length: np.ndarray          # int [M]
    passage_first: bool = False     # see `SpanOptions`

    def offset(self, questions, layout: Layout):
        """Returns the position of the passage's first token in the spans of some questions."""
        length = self.query_length[questions]
        return 0 * length + layout.before if self.passage_first else layout.b_offset(length)

    def no_answer(self, layout: Layout) -> np.ndarray:
        """Returns the position that means no answer in each span, the class token's: int [M]."""
        if not layout.cls_last:
            return 0 * self.length
        return layout.length(self.query_length[self.question], self.length) - 1

    @property
    def question(self):
        """int [M], the question that each span belongs to."""
        return np.repeat(np.arange(len(self.questions)), np.diff(self.first_span))

    def features(self, first: int, last: int, options: SpanOptions, vocabulary) -> dict:
        """Returns the record features of the spans `first` to `last` (exclusive), without
        unique_ids: int and bool [B, S] and [B, 1], named as in `features.ANSWER_SPAN` and
        `features.ANSWER_SPAN_LABELS`. A span that lacks a part of the answer has [CLS]'s position.
        `options` are those that the spans were cut with."""
        row = self.question[first:last]
        start, length = self.start[first:last], self.length[first:last]
        query_length = self.query_length[row]
        layout = vocabulary.layout
        offset = self.offset(row, layout)
        answer = self.answers[row]
        inside = (answer[:, :1] >= start[:, None]) & (answer[:, 1:] < (start + length)[:, None])
        cls = self.no_answer(layout)[first:last]
        positions = np.where(inside, answer + (offset - start)[:, None], cls[:, None])
        impossible = np.array([question.is_impossible for question in self.questions], bool)[row]
        if options.squad_style in ("albert", "xlnet"):
            impossible |= ~inside[:, 0]
        runs = [self.query_start[row], query_length, self.doc_start[row] + start, length]
        if self.passage_first:
            runs = [*runs[2:], *runs[:2]]
        a_start, a_length, b_start, b_length = runs
        packed = pack_pairs(self.tokens, a_start, a_length, b_start, b_length,
                            options.max_seq_length, vocabulary, all_pairs=True)
        if self.passage_first:
            packed["segment_ids"][~packed["input_mask"]] = _PAD_SEGMENT
        return {
            **packed,
            "start_positions": positions[:, :1],
            "end_positions": positions[:, 1:],
            "is_impossible": impossible[:, None],
        }

    def most_context(self, question: int) -> np.ndarray:
        """Returns which of a question's spans, from 0, gives each token the most context: int [n]
        for the paragraph's n tokens. Memory grows with n alone."""
        spans = slice(*self.first_span[question:question + 2])
        start, length = self.start[spans], self.length[spans]
        most = np.full((start + length).max(initial=0), -1.0)
        numbers = np.zeros(len(most), np.int64)
        for number, (first, size) in enumerate(zip(start.tolist(), length.tolist())):
            part, token = slice(first, first + size), np.arange(size)
            score = np.minimum(token, size - 1 - token) + 0.01 * size
            numbers[part] = np.where(score > most[part], number, numbers[part])
            most[part] = np.maximum(score, most[part])
        return numbers


def cut_spans(paragraphs: list, tokenizer, options: SpanOptions) -> AnswerSpans:
    """Tokenises `tasks.squad.Paragraph`s and their questions, and cuts them into spans."""
    passages = passages_of(options.squad_style, tokenizer)(paragraphs, tokenizer)
    questions = [question for p in paragraphs for question in p.questions]
    query_ids, query_lengths = tokenizer.encode_lines([question.text for question in questions])

    asked = np.repeat(np.arange(len(paragraphs)), [len(p.questions) for p in paragraphs])
    doc_start = passages.first_tokens[asked]
    doc_length = passages.first_tokens[asked + 1] - doc_start
    query_start = len(passages.ids) + np.cumsum(query_lengths) - query_lengths
    whole = tokenizer.vocabulary.layout.room(options.max_seq_length, pair=True)
    # A question leaves room for a token of the passage.
    query_length = np.minimum(query_lengths, min(options.max_query_length, whole - 1))

    room = whole - query_length
    step = np.minimum(room, options.doc_stride)
    counts = np.where(doc_length > 0, 1 + -(-np.maximum(doc_length - room, 0) // step), 0)
    first_span = np.concatenate([[0], np.cumsum(counts)])
    row = np.repeat(np.arange(len(questions)), counts)
    start = (np.arange(len(row)) - first_span[row]) * step[row]
    return AnswerSpans(
        questions=questions, passages=passages, asked=asked,
        tokens=np.concatenate([passages.ids, query_ids]),
        query_start=query_start, query_length=query_length, query_cut=query_length < query_lengths,
        doc_start=doc_start, answers=passages.answers(list(zip(asked.tolist(), questions))),
        first_span=first_span, start=start, length=np.minimum(room[row], doc_length[row] - start),
        passage_first=options.passage_first)


@dataclasses.dataclass(frozen=True)
class SquadRecords:
    """Records to make of a SQuAD file; picklable, for the worker processes."""

    input_file: str
    output_file: str        # several for a large input, named as `manifest.shard_name`
    tokenizer: Tokenizer
    is_training: bool       # with answers; else a record for every span, in the file's order
    version_2_with_negative: bool = False       # questions may have no answer
    options: SpanOptions = SpanOptions()

    piece_questions: typing.ClassVar[int] = PIECE_QUESTIONS     # at least, of each shard but one
    workers: typing.ClassVar[int] = 0       # that make them; 0: as many as the caller says

    @property
    def features(self) -> tuple[Feature, ...]:
        return features.ANSWER_SPAN + features.ANSWER_SPAN_LABELS * self.is_training

    def further_fingerprint(self) -> dict:
        """Values that the records depend on beside the file, the vocabulary and the options."""
        return {}

    def make(self, num_workers: int = 0, may_replace: bool = True) -> tuple[dict, bool]:
        """Writes the records and their manifest; see `SplitRecords.make`. The manifest's `notes`
        are sentences about questions left out or cut. The file is read twice: a record's unique_ids
        count the spans before it, and must be known before several processes start."""
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
            self._write_piece, self.workers or num_workers,
            functools.partial(self._describe, settings, size), may_replace)

    def report(self, record: dict, was_there: bool) -> None:
        """Prints the report in the manifest `record`, the first of its notes in full."""
        name, counts, notes = os.path.basename(self.output_file), record["counts"], record["notes"]
        name = name.removesuffix(".tfrecord")
        print(f"{name}: {counted(counts['questions'], 'question')}, "
              f"{counted(counts['records'], 'record')}, {counted(counts['skipped'], 'question')} "
              f"left out, {counts['cut']:,} cut to fit{', there already' if was_there else ''}",
              flush=True)
        for note in notes[:_MOST_NOTES]:
            print(f"  note: {note}")
        coverage.Coverage(record["coverage"]).report(name)
        if len(notes) > _MOST_NOTES:
            more = counted(len(notes) - _MOST_NOTES, "more note")
            print(f"  and {more}, in {name}{manifest.SUFFIX}", flush=True)

    def _pieces(self):
        return read_pieces(self.input_file, self.is_training, self.version_2_with_negative,
                           self.piece_questions, squad_style=self.options.squad_style)

    def _write_piece(self, index, numbered_piece):
        count, first_id, piece = numbered_piece
        seen = coverage.Coverage()
        spans = cut_spans(piece, seen.watch(self.tokenizer), self.options)
        path = absolute(manifest.shard_name(self.output_file, index, count))
        shard = tfrecord.write_shard(path, os.path.dirname(path), self._blocks(spans, first_id))
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
            **{name: coverage.join(result[name] for result in results)
               for name in ("counts", "coverage")},
            "notes": [note for result in results for note in result["notes"]],
        }
