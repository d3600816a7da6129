"""Answers in paragraphs, as in SQuAD v1.1 and v2.0 (google-research/bert run_squad.py): records, as
its FeatureWriter writes them, answers, scores and files.
"""

import dataclasses
import functools
import hashlib
import os

import numpy as np

from bert_tf.data import features, manifest, shards, tfrecord
from bert_tf.errors import InputError
from bert_tf.options import defaults_of, settle
from bert_tf.tasks import squad, squad_scorer
from bert_tf.tasks.answer_finders import AnswerOptions
from bert_tf.tasks.answer_spans import FIRST_UNIQUE_ID, SpanOptions, cut_spans
from bert_tf.tasks.kinds.base import Kind
from bert_tf.tasks.squad import read_pieces
from bert_tf.tasks.squad_answers import find_answers, find_file_answers, write_predictions
from bert_tf.tokenization.base import Tokenizer

THRESHOLD = "null_score_diff_threshold"
_NEGATIVE = "version_2_with_negative"
# The width of the beams of each style that has a head with beams.
_BEAMS = {"albert": 5, "electra": 20}
_MOST_NOTES = 5         # that are printed
_ROWS = 1024            # spans made into bytes at a time


class Span(Kind):
    """The part of a paragraph that answers a question. An example's texts are the two.

    Options are the fields of `SpanOptions` and `AnswerOptions`, in SQuAD v2.0 the threshold
    `null_score_diff_threshold`, if one was given or found, and the width of the beams of a head
    that has any.
    """

    name, title, script = "span", "answers in paragraphs", "run_squad"
    features = features.ANSWER_SPAN + features.ANSWER_SPAN_LABELS
    smooths = measures = False
    texts = (2, 2, "a tuple of a question and a passage")

    def options(self, given, saved, is_training, path):
        """As `Kind.options`, with the defaults of the original. Training makes the threshold of the
        model void."""
        if given[_NEGATIVE] and saved and not (is_training or saved.get(_NEGATIVE)):
            raise InputError(f"{path} has not learned that a question may have no answer: leave "
                             "out --version_2_with_negative.")
        if is_training:
            saved = {name: value for name, value in saved.items() if name != THRESHOLD}
        defaults = {**defaults_of(SpanOptions), **defaults_of(AnswerOptions)}
        options = settle(given, saved, defaults)
        return {name: value for name, value in options.items() if value is not None}

    def check_options(self, options, max_seq_length, tokenizer):
        for name in ("n_best_size", "max_answer_length", "start_n_top", "end_n_top"):
            if options.get(name, 1) < 1:
                raise InputError(f"--{name} is {options[name]}; it must be at least 1.")
        _span_options(options, max_seq_length).check(tokenizer.vocabulary.layout)

    def fixed_options(self, options):
        """The style, if it is not BERT's; records and scores show where other options differ."""
        style = _style(options)
        return {} if style == SpanOptions.squad_style else {"squad_style": style}

    def head(self, task, options):
        style = _style(options)
        if style not in _BEAMS or style == "albert" and not options.get(_NEGATIVE):
            return "answer_span", {}
        starts = options.get("start_n_top") or _BEAMS[style]
        return "conditional_span", {"form": style, "num_starts": starts,
                                    "num_ends": options.get("end_n_top") or starts}

    def records(self, source, tokenizer, max_seq_length, options, output_dir):
        path = os.path.join(output_dir, f"{source.split}.tfrecord")
        return SquadRecords(source.path, path, tokenizer, source.split == "train",
                            options[_NEGATIVE], _span_options(options, max_seq_length))

    def predictions(self, source, tokenizer, max_seq_length, options, is_scored):
        return SquadPredictions(source.path, tokenizer, max_seq_length, options, is_scored)

    def headline(self, task, eval_splits):
        return f"{SquadPredictions.prefix}/{task.headline}"

    def scored_on(self, identities, options):
        return [*identities, options.get(THRESHOLD, 0.0), options["n_best_size"],
                options["max_answer_length"]] if identities else None

    def check_example(self, texts, tokenizer, where):
        if not tokenizer.encode(texts[1]):
            raise InputError(f"{where} has an empty passage; give one with a word in it.")

    def answer(self, task, examples, run, tokenizer, max_seq_length, options):
        paragraphs = []
        for index, example in enumerate(examples):
            question, passage = example.texts
            paragraphs.append(squad.Paragraph(
                squad.passage_words(passage), [squad.Question(str(index), question)], [], passage))
        span_options = _span_options(options, max_seq_length)
        spans = cut_spans(paragraphs, tokenizer, span_options)
        found = run(spans.features(0, len(spans.start), span_options, tokenizer.vocabulary))
        return [prediction.describe(options.get(THRESHOLD, 0.0)) for prediction in find_answers(
            spans, found, tokenizer, _taken(AnswerOptions, options))]


def _style(options):
    return options.get("squad_style", SpanOptions.squad_style)


def _taken(kind, options):
    """A dataclass of those options that are its fields."""
    return kind(**{field.name: options[field.name] for field in dataclasses.fields(kind)
                   if field.name in options})


def _span_options(options, max_seq_length):
    return _taken(SpanOptions, {**options, "max_seq_length": max_seq_length})


class SquadPredictions:
    """The answers to the questions of a SQuAD file: found, scored and written, as
    `SplitPredictions` does it for other kinds.

    Args:
        path: the file.
        tokenizer, max_seq_length: those of the model.
        options: see `Span`; `choose` adds to them.
        is_scored: whether the file must hold the correct answers.

    Raises:
        InputError: it does not hold them.
    """

    prefix = "squad"

    def __init__(self, path, tokenizer, max_seq_length, options, is_scored):
        self._path, self._tokenizer, self._options = path, tokenizer, options
        self._span_options = _span_options(options, max_seq_length)
        self._answers = None
        if squad.holds_answers(path):
            self._answers = squad.read_answers(path)
            if not options[_NEGATIVE]:
                squad_scorer.score_v1(self._answers, {})    # raises where a question has none
        elif is_scored:
            raise InputError(f"--do_eval: {path} holds no answers to score by; give --do_predict "
                             "alone, or a file that does.")

    def is_scored(self, is_wanted):
        """Whether there are correct answers: without --do_eval they are used too."""
        if self._answers is None:
            print(f"no scores: {self._path} holds no answers", flush=True)
        return self._answers is not None

    @property
    def _threshold(self):
        return self._options.get(THRESHOLD, 0.0)

    def decode(self, answers, records):
        """list of `Prediction`, in the order of the file."""
        return list(find_file_answers(self._path, answers, self._tokenizer, self._span_options,
                                      _taken(AnswerOptions, self._options)))

    def _texts_and_odds(self, predicted):
        return ({prediction.id: prediction.text for prediction in predicted},
                {prediction.id: prediction.null_odds for prediction in predicted})

    def score(self, predicted):
        """The scores in percent, the headline first."""
        texts, odds = self._texts_and_odds(predicted)
        if self._options[_NEGATIVE]:
            scores = squad_scorer.score_v2(self._answers, texts, odds, self._threshold)
        else:
            scores = squad_scorer.score_v1(self._answers, texts)
        names = ["f1", *(name for name in scores if name != "f1" and not name.endswith("total"))]
        return {name: scores[name] for name in names}

    def is_degenerate(self, predicted):
        """Whether all questions are given one answer although their correct answers differ."""
        given = {prediction.answer(self._threshold) for prediction in predicted}
        return len(given) == 1 < len(set(map(tuple, self._answers.values())))

    def choose(self, predicted):
        """In v2.0, the threshold of the best F1, unless a flag or the model names one."""
        if not self._options[_NEGATIVE] or THRESHOLD in self._options:
            return {}
        texts, odds = self._texts_and_odds(predicted)
        f1 = {name: pair[1] for name, pair in squad_scorer.question_scores(
            self._answers, texts).items()}
        found = squad_scorer.reachable_threshold(self._answers, texts, odds, f1)
        if predicted[0].is_strict:      # the question with these odds is to be answered too
            found = float(np.nextafter(found, np.inf))
        self._options[THRESHOLD] = found
        print(f"--{THRESHOLD}={found} makes the F1 of {self._path} best; it is kept with the model "
              "and used from now on", flush=True)
        return {THRESHOLD: found}

    def describe_scores(self):
        applied = {THRESHOLD: self._threshold} if self._options[_NEGATIVE] else {}
        return {"predict_file": self._path, **applied}

    def write(self, folder, answers, predicted, is_test):
        """Writes predictions.json, nbest_predictions.json and, in v2.0, null_odds.json."""
        write_predictions(folder, predicted, self._threshold)
        names = ["predictions", "nbest_predictions", *["null_odds"] * self._options[_NEGATIVE]]
        return [os.path.join(folder, f"{name}.json") for name in names]


@dataclasses.dataclass(frozen=True)
class SquadRecords:
    """Records to make of a SQuAD file; picklable, for the worker processes.

    Attributes:
        input_file: the SQuAD file.
        output_file: the TFRecord file; several for a large input, named as `manifest.shard_name`.
        tokenizer: the tokenizer.
        is_training: whether the records have answers to learn. Otherwise there is a record for
            every span of every question, in the file's order.
        version_2_with_negative: whether questions may have no answer.
        options: `SpanOptions`.
    """

    input_file: str
    output_file: str
    tokenizer: Tokenizer
    is_training: bool
    version_2_with_negative: bool = False
    options: SpanOptions = SpanOptions()

    def make(self, num_workers: int = 0, may_replace: bool = True) -> tuple[dict, bool]:
        """Writes the records and their manifest; nothing that is there is made again.

        The file is read twice, because the unique_ids of a record count the spans before it: these
        must be known before several processes start.

        Args:
            num_workers: processes, 0 for one a core; the records do not depend on it.
            may_replace: whether other records of the same name may be removed.

        Returns:
            The manifest, a dict whose `notes` are sentences about questions left out or cut; and
            whether all was there already.

        Raises:
            InputError: the options cannot work, the file is not SQuAD, or other records are there
                and must not be removed.
        """
        vocabulary = self.tokenizer.vocabulary
        self.options.check(vocabulary.layout)
        path = manifest.manifest_path(self.output_file)
        settings = {"is_training": self.is_training, "do_lower_case": self.tokenizer.do_lower_case,
                    "version_2_with_negative": self.version_2_with_negative,
                    **dataclasses.asdict(self.options)}
        counts = [self._count_spans(piece) for piece in self._pieces()]
        if not sum(counts):
            raise InputError(f"{self.input_file} gives no record: its paragraphs are blank or "
                             "hold none of the answers; give another file.")
        with open(self.input_file, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return shards.make_shards(
            path, {"options": settings, "vocabulary": vocabulary.hash, "input": digest,
                   "output_file": [os.path.basename(self.output_file)], "pieces": counts},
            self._numbered_pieces(counts), self._write_piece, num_workers,
            functools.partial(self._describe, settings), may_replace, defaults_of(SpanOptions))

    def report(self, record: dict, was_there: bool) -> None:
        """Prints what the manifest `record` reports, the first of its notes in full."""
        name, counts, notes = os.path.basename(self.output_file), record["counts"], record["notes"]
        name = name.removesuffix(".tfrecord")
        print(f"{name}: {counts['questions']:,} questions, {counts['records']:,} records, "
              f"{counts['skipped']:,} questions left out, {counts['cut']:,} cut to fit"
              f"{', there already' * was_there}", flush=True)
        for note in notes[:_MOST_NOTES]:
            print(f"  note: {note}")
        if len(notes) > _MOST_NOTES:
            print(f"  and {len(notes) - _MOST_NOTES:,} notes more, in "
                  f"{name}{manifest.SUFFIX}", flush=True)

    def _pieces(self):
        return read_pieces(self.input_file, self.is_training, self.version_2_with_negative,
                           squad_style=self.options.squad_style)

    def _count_spans(self, piece):
        return len(cut_spans(piece, self.tokenizer, self.options).start)

    def _numbered_pieces(self, counts):
        """Yields (number of pieces, first unique id, paragraphs)."""
        first_ids = FIRST_UNIQUE_ID + np.cumsum([0, *counts])
        for first_id, piece in zip(first_ids.tolist(), self._pieces()):
            yield len(counts), first_id, piece

    def _write_piece(self, index, numbered_piece):
        """Writes one shard; returns its entry, counts and notes for the manifest."""
        count, first_id, piece = numbered_piece
        spans = cut_spans(piece, self.tokenizer, self.options)
        path = os.path.abspath(manifest.shard_name(self.output_file, index, count))
        try:
            shard = tfrecord.write_shard(path, os.path.dirname(path), self._blocks(spans, first_id))
        except OSError as error:
            raise InputError(f"{path} cannot be written ({error}); make room and start the command "
                             "again, finished pieces are kept.") from error
        skipped = [sentence for paragraph in piece for sentence in paragraph.skipped]
        cut = [question.id for question, is_cut in zip(spans.questions, spans.query_cut) if is_cut]
        notes = skipped + [
            f"{self.input_file}: question {name!r} is cut to --max_query_length="
            f"{self.options.max_query_length} tokens; raise it to keep all." for name in cut]
        return {"shards": [shard], "notes": notes,
                "counts": {"questions": len(spans.questions),
                           "impossible": sum(q.is_impossible for q in spans.questions),
                           "skipped": len(skipped), "cut": len(cut),
                           "records": shard["records"]}}

    def _blocks(self, spans, first_id):
        wanted = features.ANSWER_SPAN + (features.ANSWER_SPAN_LABELS if self.is_training else ())
        for first in range(0, len(spans.start), _ROWS):
            last = min(first + _ROWS, len(spans.start))
            block = spans.features(first, last, self.options, self.tokenizer.vocabulary)
            block["unique_ids"] = np.arange(first_id + first, first_id + last)[:, None]
            yield {feature.name: block[feature.name] for feature in wanted}

    def _describe(self, settings, results):
        return {
            "format": "bert_tf answer span records 1",
            "options": settings,
            "vocabulary": {"size": self.tokenizer.vocabulary.size,
                           "sha256": self.tokenizer.vocabulary.hash},
            "inputs": [{"name": self.input_file, "bytes": os.path.getsize(self.input_file)}],
            "counts": {name: sum(result["counts"][name] for result in results)
                       for name in results[0]["counts"]},
            "notes": [note for result in results for note in result["notes"]],
        }
