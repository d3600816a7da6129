"""From the logits of spans to answers and the files that hold them.

Answers are chosen as in google-research/bert run_squad.py (write_predictions).
"""

import bisect
import collections
import dataclasses
import json
import math
import os
from collections.abc import Iterator

import numpy as np

from bert_tf.errors import InputError
from bert_tf.files import write_json
from bert_tf.tasks.answer_spans import cut_spans
from bert_tf.tasks.squad import read_pieces


@dataclasses.dataclass(frozen=True)
class Prediction:
    """The answers to one question.

    Attributes:
        id: of the question.
        text: the best answer; "" if only none was found.
        n_best: list of dicts text, probability, start_logit, end_logit, best first.
        null_odds: by how much the score of no answer exceeds that of `text`, or the score itself
            if `text` is ""; None where there must be an answer.
    """

    id: str
    text: str
    n_best: list
    null_odds: float | None = None

    def answer(self, null_score_diff_threshold: float = 0.0) -> str:
        """The answer: "" if the odds of there being none exceed the threshold."""
        if self.null_odds is not None and self.null_odds > null_score_diff_threshold:
            return ""
        return self.text

    def describe(self, null_score_diff_threshold: float = 0.0) -> dict:
        """A dict of the `answer`, its `probability`, `n_best` and, in v2.0, `null_odds`."""
        answer = self.answer(null_score_diff_threshold)
        found = {"answer": answer, "probability": next(
            entry["probability"] for entry in self.n_best if entry["text"] == answer),
            "n_best": self.n_best}
        return found if self.null_odds is None else {**found, "null_odds": self.null_odds}


@dataclasses.dataclass(frozen=True)
class AnswerOptions:
    """How answers are chosen.

    Attributes:
        n_best_size: starts and ends looked at in each span, and answers kept for each question.
        max_answer_length: most tokens of an answer.
        version_2_with_negative: whether there may be no answer.
    """

    n_best_size: int = 20
    max_answer_length: int = 30
    version_2_with_negative: bool = False


def predict_answers(spans, start_logits: np.ndarray, end_logits: np.ndarray, tokenizer,
                    options: AnswerOptions) -> list[Prediction]:
    """Chooses the answers to all questions of some spans.

    Args:
        spans: `AnswerSpans` with M spans.
        start_logits, end_logits: float [M, S], in the order of the spans.
        tokenizer: the one that the spans were made with.
        options: `AnswerOptions`.

    Returns:
        list of `Prediction`, in the order of the questions.

    Raises:
        InputError: the logits are not those of these spans, or no numbers.
    """
    for logits in (start_logits, end_logits):
        _check_count(len(spans.start), logits)
        if not np.isfinite(logits).all():
            raise InputError("the model gives logits that are infinite or no numbers; take an "
                             "earlier checkpoint, or train with a smaller --learning_rate.")
    finder = _Finder(spans, start_logits, end_logits, tokenizer, options)
    return [finder.predict(question) for question in range(len(spans.questions))]


def predict_file(path: str, start_logits: np.ndarray, end_logits: np.ndarray, tokenizer,
                 span_options, options: AnswerOptions) -> Iterator[Prediction]:
    """Chooses the answers to all questions of a SQuAD file, a piece of it in memory at a time.

    Args:
        path: the file that the records were made of, to predict.
        start_logits, end_logits: float arrays [M, S], in the order of the records.
        tokenizer, span_options: those that the records were made with.
        options: `AnswerOptions`.

    Yields:
        `Prediction`, in the order of the file.

    Raises:
        InputError: the logits are not those of this file.
    """
    first = 0
    for piece in read_pieces(path, is_training=False):
        spans = cut_spans(piece, tokenizer, span_options)
        last = first + len(spans.start)
        yield from predict_answers(spans, start_logits[first:last], end_logits[first:last],
                                   tokenizer, options)
        first = last
    _check_count(first, start_logits)


def _check_count(spans, logits):
    if len(logits) != spans:
        raise InputError(f"there are logits of {len(logits)} spans, but the questions have "
                         f"{spans}; predict with the file and flags that the records were made "
                         "with.")


class _Finder:
    """Finds the parts of the paragraph that a question's best starts and ends enclose."""

    def __init__(self, spans, start_logits, end_logits, tokenizer, options):
        self._spans, self._tokenizer, self._options = spans, tokenizer, options
        self._starts, self._ends = (_best(logits, options.n_best_size)
                                    for logits in (start_logits, end_logits))
        # Added in double precision, as the original does, so that ties are the same.
        self._null = np.stack([start_logits[:, 0], end_logits[:, 0]], 1).astype(np.float64)

    def predict(self, question):
        """The `Prediction` of question number `question`."""
        identity = self._spans.questions[question].id
        candidates = self._candidates(question)
        if not self._options.version_2_with_negative:
            n_best = self._distinct(question, candidates) or {"empty": (0.0, 0.0)}
            return Prediction(identity, next(iter(n_best)), _entries(n_best))
        null = self._null_logits(question)
        n_best = self._distinct(question, [*candidates, (*null, None, None)])
        n_best.setdefault("", null)
        text = next(filter(None, n_best), "")
        odds = null[0] + null[1]
        if text:
            odds = odds - n_best[text][0] - n_best[text][1]
        return Prediction(identity, text, _entries(n_best), odds)

    def _rows(self, question):
        return slice(*self._spans.first_span[question:question + 2])

    def _null_logits(self, question):
        """Start and end logit of no answer, in the span where that is least likely."""
        logits = self._null[self._rows(question)]
        return tuple(logits[logits.sum(1).argmin()].tolist()) if len(logits) else (0.0, 0.0)

    def _candidates(self, question):
        """(start logit, end logit, first token, last token) of all allowed answers, in the order
        of spans, starts and ends."""
        spans, rows = self._spans, self._rows(question)
        if rows.start == rows.stop:
            return []
        starts, start_logits = (part[rows, :, None] for part in self._starts)
        ends, end_logits = (part[rows, None, :] for part in self._ends)
        begin, length = (part[rows, None, None] for part in (spans.start, spans.length))
        offset = self._tokenizer.vocabulary.layout.b_offset(spans.query_length[question])
        first, last = starts - offset, ends - offset        # within the span
        allowed = (first >= 0) & (first <= last) & (last < length)
        allowed &= last - first < self._options.max_answer_length
        context = spans.most_context(question)
        at = np.clip(first + begin, 0, context.shape[1] - 1)
        allowed &= np.take_along_axis(context[:, :, None], at, 1)
        parts = np.broadcast_arrays(start_logits, end_logits, first + begin, last + begin)
        return list(zip(*(part[allowed].tolist() for part in parts)))

    def _distinct(self, question, candidates):
        """text -> (start logit, end logit) of the best candidates, best first."""
        found, text_of = {}, self._texts(question)
        for start_logit, end_logit, first, last in sorted(
                candidates, key=lambda candidate: candidate[0] + candidate[1], reverse=True):
            if len(found) >= self._options.n_best_size:
                break
            text = "" if first is None else text_of(first, last)
            found.setdefault(text, (start_logit, end_logit))
        return found

    def _texts(self, question):
        """A function of first and last token: the text of the paragraph that they come from."""
        spans, rows = self._spans, self._rows(question)
        start = spans.doc_start[question]
        end = start + (spans.start[rows] + spans.length[rows]).max(initial=0)
        words = spans.words[question]
        tokens, places = (part[start:end].tolist() for part in (spans.tokens, spans.token_words))

        def text(first, last):
            first_word, last_word = places[first], places[last]
            return self._tokenizer.excerpt(
                words[first_word:last_word + 1], tokens[first:last + 1],
                first - bisect.bisect_left(places, first_word),
                bisect.bisect_right(places, last_word) - last - 1)

        return text


def _best(logits, count):
    """The positions and values of each row's largest logits, the first of equals first."""
    positions = np.argsort(-logits, 1, kind="stable")[:, :count]
    return positions, np.take_along_axis(logits, positions, 1).astype(np.float64)


def _entries(n_best):
    """The n-best list as JSON, with the softmax of the sums of logits."""
    scores = [start + end for start, end in n_best.values()]
    powers = [math.exp(score - max(scores)) for score in scores]
    total = 0.0
    for power in powers:    # not sum(), which rounds otherwise from Python 3.12 on
        total += power
    return [{"text": text, "probability": power / total, "start_logit": start, "end_logit": end}
            for power, (text, (start, end)) in zip(powers, n_best.items())]


def write_predictions(folder: str, predictions, null_score_diff_threshold: float = 0.0) -> None:
    """Writes predictions.json, nbest_predictions.json and, in v2.0, null_odds.json.

    Args:
        folder: where to.
        predictions: the `Prediction`s of a file.
        null_score_diff_threshold: see `Prediction.answer`.

    Raises:
        InputError: two questions have one id.
    """
    predictions = list(predictions)
    (name, count), = collections.Counter(p.id for p in predictions).most_common(1)
    if count > 1:
        raise InputError(f"question {name!r} is {count} times in the file to predict; give "
                         "every question an id of its own.")
    files = {"predictions": {p.id: p.answer(null_score_diff_threshold) for p in predictions},
             "nbest_predictions": {p.id: p.n_best for p in predictions}}
    if any(p.null_odds is not None for p in predictions):
        files["null_odds"] = {p.id: p.null_odds for p in predictions}
    for name, content in files.items():
        write_json(os.path.join(folder, f"{name}.json"), content)


def read_predictions(path: str) -> dict:
    """Reads predictions.json or null_odds.json: an object of question id -> text or number.

    The scorer checks what it holds.

    Raises:
        InputError: the file is not a JSON object.
    """
    try:
        with open(path, encoding="utf-8") as file:
            predictions = json.load(file)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as JSON ({error}); give the predictions that "
                         "run_squad wrote.") from error
    if not isinstance(predictions, dict):
        raise InputError(f"{path} is not an object of question ids and answers; give the "
                         "predictions that run_squad wrote.")
    return predictions
