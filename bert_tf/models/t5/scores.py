"""Scores of a model's texts, in percent (google-research's text-to-text-transfer-transformer,
t5/data/postprocessors.py, t5/evaluation/metrics.py and qa_utils.py).
"""

import collections
from collections.abc import Callable, Sequence

import numpy as np

from bert_tf import metrics
from bert_tf.models.t5.tasks import TextExample, TextTask
from bert_tf.tasks import squad_scorer

_NO_LABEL, _NO_NUMBER = -1, -1.0
_DETERMINERS = frozenset(
    "a an few her his each every many much my our some that the their these this those which whose "
    "your".split())
Score = Callable[[Sequence, Sequence], float]


def label_of(text: str, words: Sequence[str]) -> int:
    """Returns a text's place among words; -1 for other texts, such as one with an extra blank."""
    return words.index(text) if text in words else _NO_LABEL


def number_of(text: str) -> float:
    """Returns a text as a number, as Python reads it; -1.0 for any other text."""
    try:
        return float(text)
    except ValueError:
        return _NO_NUMBER


def _f1(labels, predictions):
    """F1 of label 1. A prediction that is not a label counts as wrong."""
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    is_label = (predictions == 0) | (predictions == 1)
    return metrics.METRICS["f1"](labels, np.where(is_label, predictions, 1 - labels))


def _answers(overlap, normalize):
    """Returns the score of answers: the mean over questions of the best over their answers."""
    def score(answers, predictions):
        return np.mean([
            max(overlap(normalize(answer), normalize(prediction)) for answer in texts)
            for texts, prediction in zip(answers, predictions)])
    return score


def is_named(prediction: str, referent: str) -> bool | None:
    """Whether two texts name the same referent: except for determiners, all words of one are in the
    other, and both texts are possessive or neither is (t5/data/postprocessors.py, wsc_simple).
    None if the prediction is empty."""
    texts = [" ".join(word for word in text.strip().lower().split(" ") if word not in _DETERMINERS)
             for text in (prediction, referent)]
    if not texts[0]:
        return None
    if len({"'" in text for text in texts}) > 1:
        return False
    words = [set(text.split(" ")) for text in texts]
    return words[0] <= words[1] or words[1] <= words[0]


def _referent_accuracy(targets, predictions):
    """The share of texts that name the referent exactly where the label says that it is right."""
    return np.mean([is_named(text, referent) == (label == "True")
                    for (label, referent), text in zip(targets, predictions, strict=True)])


def _grouped(examples, labels):
    """Returns the labels of each group of examples, such as the answers to a question."""
    groups = collections.defaultdict(list)
    for example, label in zip(examples, labels, strict=True):
        groups[example.group].append(label)
    return list(groups.values())


def _equal(targets, predictions):
    return np.mean([one == other for one, other in zip(targets, predictions, strict=True)])


def _entity_f1(targets, predictions):
    """Entity F1 of texts of tags: missing tags are O, tags beyond the last word are dropped."""
    labels = [text.split() for text in targets]
    tags = [[*text.split(), *["O"] * len(row)][:len(row)] for text, row in zip(predictions, labels)]
    return metrics.METRICS["entity_f1"](labels, tags)


METRICS: dict[str, Score] = {
    # Where all numbers are equal a correlation is 0; the original's is not a number.
    **{name: metrics.METRICS[name] for name in (
        "accuracy", "matthews", "pearson", "spearman", "bleu")},
    "exact_match": metrics.METRICS["accuracy"],     # of texts
    "f1": _f1,
    "group_em": _equal,         # of groups: MultiRC's exact match over questions
    "mean_f1_of_3": metrics.mean_f1(3),
    "entity_f1": _entity_f1,
    "referent_accuracy": _referent_accuracy,
    "em": _answers(squad_scorer.exact, squad_scorer.normalize),
    "answer_f1": _answers(squad_scorer.f1, squad_scorer.normalize),
    "trivia_em": _answers(squad_scorer.exact, squad_scorer.normalize_trivia),
    "trivia_f1": _answers(squad_scorer.f1, squad_scorer.normalize_trivia),
}


def read_texts(task: TextTask, texts: Sequence[str]) -> list:
    """Returns the labels, numbers or texts that a model has written, in the form that is scored."""
    if task.words:
        return [label_of(text, task.words) for text in texts]
    return [number_of(text) for text in texts] if task.is_number else list(texts)


def score(task: TextTask, examples: Sequence[TextExample], predictions: Sequence[str]
          ) -> dict[str, float]:
    """The official scores of a model's texts for examples with targets, the headline first."""
    targets: Sequence = [example.answers for example in examples]
    if not any(targets):
        targets = read_texts(task, [example.target for example in examples])
    predicted = read_texts(task, predictions)
    sides = {"group_em": [_grouped(examples, side) for side in (targets, predicted)]}
    return {name: 100.0 * float(METRICS[name](*sides.get(name, (targets, predicted))))
            for name in task.metrics}
