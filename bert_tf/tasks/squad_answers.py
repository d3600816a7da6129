"""Answers from a model's scores of spans, and the files that hold them, as google-research/bert
run_squad.py (write_predictions); with beams as google-research/albert squad_utils.py
(write_predictions_v2), electra finetune/qa/qa_metrics.py and zihangdai/xlnet run_squad.py."""

import collections
import dataclasses
import itertools
import math
import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from bert_tf.errors import InputError
from bert_tf.files import write_json
from bert_tf.tasks.answer_spans import cut_spans
from bert_tf.tasks.squad import read_pieces

_MOST_EXPONENT = 700.0
_NO_SPAN = 1e6          # the logit of no answer where a question has no span
_logits = operator.itemgetter("start_logit", "end_logit")      # of an entry of an n-best list


@dataclasses.dataclass(frozen=True)
class Prediction:
    """The answers to one question."""

    id: str             # of the question
    text: str           # the best answer; "" if only "no answer" was found
    n_best: list        # dicts of text, probability, start_logit, end_logit, best first
    # The score of no answer minus that of `text`, or the score itself if `text` is ""; the logit of
    # a head that classifies answerability; None where there must be an answer.
    null_odds: float | None = None
    is_strict: bool = False     # odds equal to the threshold mean no answer (ALBERT)

    def answer(self, null_score_diff_threshold: float = 0.0) -> str:
        """Returns the answer, or "" if the odds of no answer exceed the threshold."""
        if self.null_odds is not None and (
                self.null_odds > null_score_diff_threshold
                or self.is_strict and self.null_odds == null_score_diff_threshold):
            return ""
        return self.text

    def describe(self, null_score_diff_threshold: float = 0.0) -> dict:
        """Returns `answer`, its `probability`, `n_best` and, in v2.0, `null_odds`."""
        answer = self.answer(null_score_diff_threshold)
        likely = {entry["text"]: entry["probability"] for entry in self.n_best}
        if answer not in likely:        # then a logit of its own decides
            likely[answer] = 1 / (1 + math.exp(-max(self.null_odds or 0.0, -_MOST_EXPONENT)))
        described = {"answer": answer, "probability": likely[answer], "n_best": self.n_best}
        if self.null_odds is not None:
            described["null_odds"] = self.null_odds
        return described


@dataclasses.dataclass(frozen=True)
class AnswerOptions:
    """The settings for choosing answers, in tokens; the style decides for heads with beams."""

    n_best_size: int = 20       # starts and ends of each span, and answers kept for each question
    max_answer_length: int = 30
    version_2_with_negative: bool = False       # whether questions may have no answer
    squad_style: str = "bert"


class Finder:
    """Finds the passage's parts between a question's best starts and ends, in `AnswerSpans` of M
    spans, from the head's `start_logits` and `end_logits`, float [M, S]."""

    _left_out = 0       # last tokens of a passage

    def __init__(self, spans, outputs, tokenizer, options):
        self._spans, self._tokenizer, self._options = spans, tokenizer, options
        start_logits, end_logits = outputs["start_logits"], outputs["end_logits"]
        self._starts, self._ends = (_best(logits, options.n_best_size)
                                    for logits in (start_logits, end_logits))
        # Added in double precision, as in the original, so that ties are the same.
        at = np.arange(len(start_logits)), spans.no_answer(tokenizer.vocabulary.layout)
        self._null = np.stack([start_logits[at], end_logits[at]], 1).astype(np.float64)

    def predict(self, question):
        """Returns the `Prediction` of question number `question`."""
        identity = self._spans.questions[question].id
        candidates = self._candidates(question)
        if not self._options.version_2_with_negative:
            n_best = self._distinct(question, candidates) or {"empty": (0.0, 0.0)}
            return Prediction(identity, next(iter(n_best)), entries(n_best))
        logits = self._null[self._rows(question)]       # of the span where it is least likely
        null = tuple(logits[logits.sum(1).argmin()].tolist()) if len(logits) else (0.0, 0.0)
        n_best = self._distinct(question, [*candidates, (*null, None, None)])
        n_best.setdefault("", null)
        text = next(filter(None, n_best), "")
        odds = null[0] + null[1]
        if text:
            odds = odds - n_best[text][0] - n_best[text][1]
        return Prediction(identity, text, entries(n_best), odds)

    def _rows(self, question):
        return slice(*self._spans.first_span[question:question + 2])

    def _candidates(self, question):
        """Returns (start logit, end logit, first token, last token) of all allowed answers, in the
        order of spans, starts and ends."""
        rows = self._rows(question)
        starts, start_logits = (part[rows, :, None] for part in self._starts)
        ends, end_logits = (part[rows, None, :] for part in self._ends)
        return self._allowed(question, starts, ends, start_logits, end_logits)

    def _allowed(self, question, starts, ends, start_logits, end_logits):
        """Returns the candidates among positions and logits, arrays that broadcast to
        [K, starts, ends] for the question's K spans."""
        spans, rows = self._spans, self._rows(question)
        if rows.start == rows.stop:
            return []
        begin, length = (part[rows, None, None] for part in (spans.start, spans.length))
        offset = spans.offset(question, self._tokenizer.vocabulary.layout)
        first, last = starts - offset, ends - offset        # within the span
        allowed = (first >= 0) & (first <= last) & (last < length - self._left_out)
        allowed &= last - first < self._options.max_answer_length
        context = spans.most_context(question)
        at = np.clip(first + begin, 0, len(context) - 1)
        allowed &= context[at] == np.arange(len(begin))[:, None, None]
        parts = np.broadcast_arrays(start_logits, end_logits, first + begin, last + begin)
        return list(zip(*(part[allowed].tolist() for part in parts)))

    def _distinct(self, question, candidates):
        """Returns text -> (start logit, end logit) of the best candidates, best first."""
        best = {}
        text_of = self._spans.passages.text_of(self._spans.asked[question], self._tokenizer)
        for start_logit, end_logit, first, last in sorted(
                candidates, key=lambda candidate: candidate[0] + candidate[1], reverse=True):
            if len(best) >= self._options.n_best_size:
                break
            text = "" if first is None else text_of(first, last)
            best.setdefault(text, (start_logit, end_logit))
        return best


class BeamFinder(Finder):
    """Chooses among the beams of a head that predicts ends from starts, and answerability.

    `outputs` has `start_top_index` and `start_top_log_probs` [M, K], `end_top_index` and
    `end_top_log_probs` [M, K, E], and `answerable_logits` [M], high where there is no answer."""

    def __init__(self, spans, outputs, tokenizer, options):
        self._spans, self._tokenizer, self._options = spans, tokenizer, options
        # XLNet's code leaves out the last token of a passage that precedes its question.
        self._left_out = int(spans.passage_first)
        self._outputs = {name: values if "index" in name else values.astype(np.float64)
                         for name, values in outputs.items()}

    def predict(self, question):
        identity, options = self._spans.questions[question].id, self._options
        odds = None
        if options.version_2_with_negative:
            logits = self._outputs["answerable_logits"][self._rows(question)]
            odds = logits.min(initial=_NO_SPAN).item()
        n_best = self._distinct(question, self._candidates(question))
        if not n_best:
            n_best = {"empty": (0.0, 0.0)}
            if options.squad_style in ("albert", "xlnet"):
                n_best = {"": (-_NO_SPAN, -_NO_SPAN)}
        return Prediction(identity, next(iter(n_best)), entries(n_best), odds,
                          options.squad_style == "albert")

    def _candidates(self, question):
        rows = self._rows(question)
        starts, start_logits = (self._outputs[f"start_top_{name}"][rows, :, None]
                                for name in ("index", "log_probs"))
        ends, end_logits = (self._outputs[f"end_top_{name}"][rows]
                            for name in ("index", "log_probs"))
        if self._options.squad_style == "albert":
            start_logits, end_logits = (_mean_of_equals(starts, ends, part)
                                        for part in (start_logits, end_logits))
        return self._allowed(question, starts, ends, start_logits, end_logits)


def _mean_of_equals(starts, ends, logits):
    """Returns the logits [M, K, E] with their mean where a beam holds a start and end several
    times, as ALBERT's code counts them."""
    starts, ends, logits = np.broadcast_arrays(starts, ends, logits)
    means = np.empty(logits.shape)
    for row, pairs in enumerate(zip(starts, ends)):
        _, place, count = np.unique(np.stack([part.ravel() for part in pairs], 1), axis=0,
                                    return_inverse=True, return_counts=True)
        sums = np.bincount(place.ravel(), logits[row].ravel())
        means[row] = (sums / count)[place.ravel()].reshape(means.shape[1:])
    return means


def _best(logits, count):
    """Returns positions and values of each row's largest logits; the first of equals is first."""
    positions = np.argsort(-logits, 1, kind="stable")[:, :count]
    return positions, np.take_along_axis(logits, positions, 1).astype(np.float64)


def entries(n_best):
    """Returns the n-best list as JSON, with the softmax of the sums of logits."""
    scores = [start + end for start, end in n_best.values()]
    powers = [math.exp(score - max(scores)) for score in scores]
    total = 0.0
    for power in powers:    # not sum(), which rounds otherwise from Python 3.12 on
        total += power
    return [{"text": text, "probability": power / total, "start_logit": start, "end_logit": end}
            for power, (text, (start, end)) in zip(powers, n_best.items())]


def find_answers(spans, outputs: Mapping[str, np.ndarray], tokenizer,
                 options: AnswerOptions) -> list[Prediction]:
    """Chooses the answers to all questions of some spans, in the order of the questions. `spans`:
    `AnswerSpans` with M spans. `outputs`: the head's arrays [M, ...], in the spans' order: see
    `Finder` and `BeamFinder`. Raises InputError if the arrays do not fit these spans, or hold no
    finite numbers."""
    for values in outputs.values():
        _check_count(len(spans.start), values)
        if not np.isfinite(values).all():
            raise InputError("the model's logits are infinite or NaN; take an earlier checkpoint, "
                             "or train with a lower --learning_rate.")
    kind = BeamFinder if "start_top_index" in outputs else Finder
    finder = kind(spans, outputs, tokenizer, options)
    return [finder.predict(question) for question in range(len(spans.questions))]


def find_file_answers(path: str, outputs: Mapping[str, np.ndarray], tokenizer, span_options,
                      options: AnswerOptions) -> Iterator[Prediction]:
    """Yields the `Prediction`s of a SQuAD file in its order, a piece in memory at a time. The
    outputs of `find_answers` are in the order of the file's records, which were made with the same
    tokenizer and `span_options`."""
    first = 0
    for piece in read_pieces(path, False, squad_style=span_options.squad_style):
        spans = cut_spans(piece, tokenizer, span_options)
        last = first + len(spans.start)
        of_piece = {name: values[first:last] for name, values in outputs.items()}
        yield from find_answers(spans, of_piece, tokenizer, options)
        first = last
    _check_count(first, next(iter(outputs.values())))


def _check_count(spans, values):
    if len(values) != spans:
        raise InputError(f"there are logits for {len(values)} windows, but the questions have "
                         f"{spans}; predict with the file and the flags that made the records.")


def join_documents(predictions: Iterable[Prediction], official: Mapping[str, str],
                   n_best_size: int) -> list[Prediction]:
    """Returns one prediction for each official id: of several documents the answer with the highest
    sum of logits, of equal ones the first. `official` has the official id of each id."""
    groups: dict[str, list[Prediction]] = {}
    for prediction in predictions:
        groups.setdefault(official[prediction.id], []).append(prediction)
    return [_join(name, group, n_best_size) for name, group in groups.items()]


def _join(name, group, n_best_size):
    if len(group) == 1:
        return dataclasses.replace(group[0], id=name)
    # A document without a span has one entry, whose logits are 0.
    group = [one for one in group if any(map(any, map(_logits, one.n_best)))] or group
    texts: dict[str, tuple[float, float]] = {}
    for entry in sorted((entry for prediction in group for entry in prediction.n_best),
                        key=lambda entry: sum(_logits(entry)), reverse=True):
        texts.setdefault(entry["text"], _logits(entry))
    best = max(group, key=lambda one: (bool(one.text), max(
        sum(_logits(entry)) for entry in one.n_best if entry["text"] == one.text)))
    return dataclasses.replace(best, id=name, n_best=entries(
        dict(itertools.islice(texts.items(), n_best_size))))


def combine_predictions(members: Sequence[Sequence[Prediction]],
                        n_best_size: int) -> list[Prediction]:
    """Returns several models' common answers to the same questions. An answer's probability is the
    mean over all n-best lists, 0 where it is absent; its logits are means over the models that have
    it; the odds of no answer are the mean of all."""
    combined = []
    for predictions in zip(*members, strict=True):
        of_text = collections.defaultdict(list)
        for entry in itertools.chain(*(prediction.n_best for prediction in predictions)):
            of_text[entry["text"]].append(entry)
        n_best = [{"text": text,
                   "probability": sum(entry["probability"] for entry in same) / len(predictions),
                   **{name: sum(entry[name] for entry in same) / len(same)
                      for name in ("start_logit", "end_logit")}} for text, same in of_text.items()]
        n_best.sort(key=lambda entry: -entry["probability"])
        first, odds, text = predictions[0], None, n_best[0]["text"]
        if first.null_odds is not None:     # of no answer, a threshold decides
            odds = sum(prediction.null_odds for prediction in predictions) / len(predictions)
            text = next((entry["text"] for entry in n_best if entry["text"]), "")
        combined.append(dataclasses.replace(first, text=text, n_best=n_best[:n_best_size],
                                            null_odds=odds))
    return combined


def write_predictions(folder: str, predictions, null_score_diff_threshold: float = 0.0) -> None:
    """Writes predictions.json, nbest_predictions.json and, in v2.0, null_odds.json. Question ids
    must differ. See `Prediction.answer` for the threshold."""
    predictions = list(predictions)
    (name, count), = collections.Counter(p.id for p in predictions).most_common(1)
    if count > 1:
        raise InputError(f"the id {name!r} is {count} times in the file to predict; give each "
                         "question a different id.")
    files = {"predictions": {p.id: p.answer(null_score_diff_threshold) for p in predictions},
             "nbest_predictions": {p.id: p.n_best for p in predictions}}
    if any(p.null_odds is not None for p in predictions):
        files["null_odds"] = {p.id: p.null_odds for p in predictions}
    for name, content in files.items():
        write_json(os.path.join(folder, f"{name}.json"), content)
