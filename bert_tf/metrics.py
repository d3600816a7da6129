"""Scores of predictions, as the official scorers of the tasks compute them, from 0 (or -1) to 1.

Labels and predictions are, by the kind of task, integer [N], float [N], 0 or 1 [N, L] where an
example may have several labels, and for tagged words a list of sentences, each a list of str.

Entities of tagged sentences follow conlleval (CoNLL-2003, bin/conlleval). A tag is
"O", "B-" with a type, which begins an entity, or "I-" with a type, which continues an entity of
that type or else begins one. IOB1, where "B-" appears only between neighbours of one type, and BIO,
where "B-" begins every entity, are therefore read alike.
"""

import collections
import itertools
import math
import warnings
from collections.abc import Callable, Sequence

import lazy_loader
import numpy as np

from bert_tf.errors import InputError

_scipy, _sacrebleu = lazy_loader.load("scipy"), lazy_loader.load("sacrebleu")


def perplexity(loss: float) -> float:
    """Returns the exponential of a mean loss per token; of a loss above 700, of 700."""
    return math.exp(min(loss, 700))


def _scikit_learn(name, **options):
    def score(labels, predictions):
        with warnings.catch_warnings():     # of labels that are all equal
            warnings.simplefilter("ignore", UserWarning)
            from sklearn import metrics  # a lazy module would be executed by Keras's import
            return getattr(metrics, name)(labels, predictions, **options)
    return score


def mean_f1(classes: int) -> Callable:
    """The mean over labels 0 to `classes` - 1 of their F1; one that occurs nowhere counts 0."""
    return _scikit_learn("f1_score", labels=range(classes), average="macro", zero_division=0)


def _f1_of_labels(average):
    """F1 of any number of labels; scikit-learn would take a single one, [N, 1], for two labels."""
    of_several = _scikit_learn("f1_score", average=average, zero_division=0)

    def score(labels, predictions):
        if np.shape(labels)[1:] == (1,):
            return METRICS["f1"](np.ravel(labels), np.ravel(predictions))
        return of_several(labels, predictions)
    return score


def by_label(labels, predictions, names: Sequence) -> np.ndarray:
    """Returns precision, recall, F1 and the number of examples of each of L names, float [L, 4]; a
    score of nothing is 0. Labels are one of the names for each example, or 0 or 1 [N, L]."""
    if np.ndim(labels) == 2:        # scikit-learn would take a single column for two labels
        labels, predictions = (np.pad(one, [(0, 0), (0, 1)]) for one in (labels, predictions))
    score = _scikit_learn("precision_recall_fscore_support", labels=names, zero_division=0)
    return np.transpose(score(labels, predictions))


def confusion(labels, predictions, classes: int) -> np.ndarray:
    """Returns how many examples of each label are taken for each, int [L, L]."""
    return _scikit_learn("confusion_matrix", labels=range(classes))(labels, predictions)


def _correlation(name):
    def score(labels, predictions):
        if len(labels) < 2 or np.ptp(labels) == 0 or np.ptp(predictions) == 0:
            return 0.0              # not defined where either is constant
        return getattr(_scipy.stats, name)(labels, predictions)[0]
    return score


def is_entity_tag(tag: str) -> bool:
    """Whether a tag is "B-" or "I-" with a type; parts of speech such as I---------, are none."""
    return tag[:2] in ("B-", "I-") and bool(tag[2:].strip("-"))


def entities(tags: list[str]) -> list[tuple[int, int, str]]:
    """The entities of one sentence: list of (first word, last word + 1, type)."""
    spans, start, kind = [], 0, None
    for position, tag in enumerate([*tags, "O"]):
        new = tag[2:] if is_entity_tag(tag) else None
        if kind is not None and (new != kind or tag[0] == "B"):
            spans.append((start, position, kind))
            kind = None
        if kind is None and new is not None:
            start, kind = position, new
    return spans


def to_bio(tags: list[str]) -> list[str]:
    """Returns the same entities with "B-" at the first word of each. Tags of other kinds, such as
    parts of speech, stay; InputError if some tags name entities and others, as S-PER, do not."""
    if any(map(is_entity_tag, tags)):
        for tag in tags:
            if tag != "O" and not is_entity_tag(tag):
                raise InputError(f"the tag {tag!r} is neither O nor B- or I- with a type; convert "
                                 "the file to IOB1 or BIO.")
    bio = list(tags)
    for start, _, kind in entities(tags):
        bio[start] = f"B-{kind}"
    return bio


def count_entities(labels: list, predictions: list) -> dict[str, collections.Counter]:
    """Counts the correct, predicted and labelled entities of each type as conlleval: one is right
    if its first and last word and its type are."""
    counts: dict = collections.defaultdict(collections.Counter)
    for gold, predicted in zip(labels, predictions, strict=True):
        gold, predicted = entities(gold), entities(predicted)
        for name, group in (("labelled", gold), ("predicted", predicted),
                            ("correct", set(gold) & set(predicted))):
            for *_, kind in group:
                counts[kind][name] += 1
    return dict(counts)


def entity_scores(counts: collections.Counter) -> tuple[float, float, float]:
    """(precision, recall, F1) of a Counter of `count_entities`; 0 where there are no entities."""
    correct, predicted, labelled = (counts[key] for key in ("correct", "predicted", "labelled"))
    return (correct / max(predicted, 1), correct / max(labelled, 1),
            2 * correct / max(predicted + labelled, 1))


def _entity_score(index):
    def score(labels, predictions):
        total = sum(count_entities(labels, predictions).values(), collections.Counter())
        return entity_scores(total)[index]
    return score


def _tag_accuracy(labels, predictions):
    flat = [np.array(list(itertools.chain.from_iterable(tags))) for tags in (labels, predictions)]
    return np.mean(flat[0] == flat[1])


def _right_ranks(labels, ranks):
    """The rank of each example's right candidate, from 0, and the number of candidates that have
    this rank, both [N]. Several candidates with one rank are in no order: a score is then its mean
    over all their orders, which is what chance gives."""
    right = np.take_along_axis(ranks, labels[:, None], 1)
    return right[:, 0], (ranks == right).sum(1)


def _chance_of_first(labels, ranks):
    """The probability that the right candidate comes first, [N]."""
    rank, ties = _right_ranks(labels, ranks)
    return (rank == 0) / ties


def _candidate_accuracy(labels, ranks):
    """Returns the share of candidates that are rightly taken for the right one or not. Where a
    wrong one is taken, two are wrong."""
    wrong = 2 * (1 - _chance_of_first(labels, ranks))
    return np.sum(ranks.shape[1] - wrong) / ranks.size


def _mrr(labels, ranks):
    """Returns the mean of 1 / place of the right candidate, from 1."""
    rank, ties = (part[:, None] for part in _right_ranks(labels, ranks))
    places = np.arange(ranks.shape[1])
    is_possible = (places >= rank) & (places < rank + ties)
    return np.mean((is_possible / (1 + places)).sum(1) / ties[:, 0])


def _gender_parity(labels, predictions):
    """Returns the share of pairs of successive examples that have one prediction: in AX-g the two
    differ in the gender of a pronoun alone (arXiv:1905.00537)."""
    pairs = np.reshape(predictions[:len(predictions) // 2 * 2], (-1, 2))
    return np.mean(pairs[:, 0] == pairs[:, 1]) if len(pairs) else 0.0


def bleu_counts(labels: Sequence[str], predictions: Sequence[str]) -> np.ndarray:
    """Returns the counts of each translation, int [n, 10]: its words; the label's words; its right
    n-grams of 1 to 4 words; and all its n-grams of 1 to 4 words."""
    scorer = _sacrebleu.BLEU(tokenize="intl", effective_order=True)
    scores = [scorer.sentence_score(text, [label]) for label, text in zip(
        labels, predictions, strict=True)]
    return np.array([[one.sys_len, one.ref_len, *one.counts, *one.totals] for one in scores])


def bleu_of_counts(counts: np.ndarray) -> float:
    """Returns BLEU of a corpus whose sentences' `bleu_counts` have the sum `counts`, int [10]."""
    words, of_label, *others = map(int, counts)
    return _sacrebleu.BLEU.compute_bleu(others[:4], others[4:], words, of_label,
                                        smooth_method="exp").score / 100


METRICS = {
    "accuracy": _scikit_learn("accuracy_score"),
    "matthews": _scikit_learn("matthews_corrcoef"),
    "f1": _scikit_learn("f1_score", zero_division=0),       # of label 1, as in GLUE
    "macro_f1": _f1_of_labels("macro"),
    "micro_f1": _f1_of_labels("micro"),
    "exact_match": _scikit_learn("accuracy_score"),         # all labels of an example are right
    "pearson": _correlation("pearsonr"),
    "spearman": _correlation("spearmanr"),
    "entity_precision": _entity_score(0),
    "entity_recall": _entity_score(1),
    "entity_f1": _entity_score(2),
    "tag_accuracy": _tag_accuracy,
    "gender_parity": _gender_parity,
    # Of a corpus of texts, with the international tokenization (T5's t5/evaluation/metrics.py).
    "bleu": lambda labels, predictions: _sacrebleu.corpus_bleu(
        predictions, [labels], tokenize="intl").score / 100,
    # Of candidates by their ranks, integer [N, C] from 0; labels are the places of the right ones.
    # A candidate's rank is the number of better ones, so that equally good ones share a rank.
    "candidate_accuracy": _candidate_accuracy,
    "precision_at_1": lambda labels, ranks: np.mean(_chance_of_first(labels, ranks)),
    "mrr": _mrr,
}


def compute(names, labels, predictions) -> dict[str, float]:
    """dict of metric -> float, in the order of `names`: the headline first."""
    return {name: float(METRICS[name](labels, predictions)) for name in names}
