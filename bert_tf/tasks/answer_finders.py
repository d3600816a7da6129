"""Chooses answers from a head's scores of starts and ends.

As google-research/bert run_squad.py (write_predictions); with beams as google-research/albert
squad_utils.py (write_predictions_v2), google-research/electra finetune/qa/qa_metrics.py and
zihangdai/xlnet run_squad.py.
"""

import dataclasses
import math
import operator

import numpy as np

_MOST_EXPONENT = 700.0
_NO_SPAN = 1e6          # the logit of no answer where a question has no span


@dataclasses.dataclass(frozen=True)
class Prediction:
    """The answers to one question.

    Attributes:
        id: of the question.
        text: the best answer; "" if only "no answer" was found.
        n_best: dicts of text, probability, start_logit, end_logit, best first.
        null_odds: the score of no answer minus the score of `text`, or the score itself if `text`
            is ""; the logit of a head that classifies answerability; None where there must be an
            answer.
        is_strict: whether odds equal to the threshold mean no answer (ALBERT).
    """

    id: str
    text: str
    n_best: list
    null_odds: float | None = None
    is_strict: bool = False

    def answer(self, null_score_diff_threshold: float = 0.0) -> str:
        """Returns the answer, or "" if the odds of no answer exceed the threshold."""
        if self.null_odds is None:
            return self.text
        exceeds = operator.ge if self.is_strict else operator.gt
        return "" if exceeds(self.null_odds, null_score_diff_threshold) else self.text

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
    """The settings for choosing answers.

    Attributes:
        n_best_size: starts and ends considered in each span, and answers kept for each question.
        max_answer_length: most tokens of an answer.
        version_2_with_negative: whether questions may have no answer.
        squad_style: the system whose code is followed for heads with beams.
    """

    n_best_size: int = 20
    max_answer_length: int = 30
    version_2_with_negative: bool = False
    squad_style: str = "bert"


class Finder:
    """Finds the passage's parts between a question's best starts and ends.

    Args:
        spans: `AnswerSpans` with M spans.
        outputs: the head's, `start_logits` and `end_logits`, float [M, S].
        tokenizer: the tokenizer that made the spans.
    """

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
        null = self._null_logits(question)
        n_best = self._distinct(question, [*candidates, (*null, None, None)])
        n_best.setdefault("", null)
        text = next(filter(None, n_best), "")
        odds = null[0] + null[1]
        if text:
            odds = odds - n_best[text][0] - n_best[text][1]
        return Prediction(identity, text, entries(n_best), odds)

    def _rows(self, question):
        return slice(*self._spans.first_span[question:question + 2])

    def _null_logits(self, question):
        """Returns the start and end logit of no answer, from the span where it is least likely."""
        logits = self._null[self._rows(question)]
        return tuple(logits[logits.sum(1).argmin()].tolist()) if len(logits) else (0.0, 0.0)

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
    `end_top_log_probs` [M, K, E], and `answerable_logits` [M], high where there is no answer.
    """

    def __init__(self, spans, outputs, tokenizer, options):
        self._spans, self._tokenizer, self._options = spans, tokenizer, options
        # XLNet's code leaves out the last token of a passage that precedes its question.
        self._left_out = int(spans.passage_first)
        self._outputs = {name: values if "index" in name else values.astype(np.float64)
                         for name, values in outputs.items()}

    def predict(self, question):
        identity, options = self._spans.questions[question].id, self._options
        n_best = self._distinct(question, self._candidates(question))
        negative = options.version_2_with_negative
        if not n_best:
            n_best = {"": (0.0, 0.0)} if negative else {"empty": (0.0, 0.0)}
            if options.squad_style in ("albert", "xlnet"):
                n_best = {"": (-_NO_SPAN, -_NO_SPAN)}
        logits = self._outputs["answerable_logits"][self._rows(question)]
        odds = logits.min(initial=_NO_SPAN).item() if negative else None
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
