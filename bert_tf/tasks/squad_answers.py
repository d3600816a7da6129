"""Answers from a model's scores of spans, and the files that hold them."""

import collections
import dataclasses
import itertools
import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from bert_tf.errors import InputError
from bert_tf.files import write_json
from bert_tf.tasks.answer_finders import AnswerOptions, BeamFinder, Finder, Prediction, entries
from bert_tf.tasks.answer_spans import cut_spans
from bert_tf.tasks.squad import read_pieces


def find_answers(spans, outputs: Mapping[str, np.ndarray], tokenizer,
                 options: AnswerOptions) -> list[Prediction]:
    """Chooses the answers to all questions of some spans, in the order of the questions.

    Args:
        spans: `AnswerSpans` with M spans.
        outputs: the head's arrays [M, ...], in the spans' order: see `Finder` and `BeamFinder`.

    Raises:
        InputError: the arrays do not fit these spans, or hold no finite numbers.
    """
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
    """Yields the `Prediction`s of a SQuAD file in its order, a piece in memory at a time.

    Args:
        path: the file that the records to predict were made from.
        outputs: the head's, in the order of the records; see `find_answers`.
        tokenizer, span_options: those that made the records.
    """
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
    return [dataclasses.replace(group[0], id=name) if len(group) == 1 else
            _join(name, group, n_best_size) for name, group in groups.items()]


_logits = operator.itemgetter("start_logit", "end_logit")      # of an entry of an n-best list


def _join(name, group, n_best_size):
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
    return [_combine(predictions, n_best_size) for predictions in zip(*members, strict=True)]


def _combine(predictions, n_best_size):
    entries = collections.defaultdict(list)
    for prediction in predictions:
        for entry in prediction.n_best:
            entries[entry["text"]].append(entry)
    n_best = [{"text": text,
               "probability": sum(entry["probability"] for entry in same) / len(predictions),
               **{name: sum(entry[name] for entry in same) / len(same)
                  for name in ("start_logit", "end_logit")}} for text, same in entries.items()]
    n_best.sort(key=lambda entry: -entry["probability"])
    first, odds, text = predictions[0], None, n_best[0]["text"]
    if first.null_odds is not None:     # of no answer, a threshold decides
        odds = sum(prediction.null_odds for prediction in predictions) / len(predictions)
        text = next((entry["text"] for entry in n_best if entry["text"]), "")
    return dataclasses.replace(first, text=text, n_best=n_best[:n_best_size], null_odds=odds)


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
