"""Kinds of SuperGLUE (arXiv:1905.00537, sections 3.2 and 4.1). Candidates are judged one by one and
scored by the question: MultiRC has answers, any number of which may be right, ReCoRD entities, of
which one is taken. Two marked parts of texts are compared: a word in two sentences (WiC), a pronoun
and its possible referent (WSC). N examples, S sequence."""

import itertools
import json
import os
from collections.abc import Iterable

import numpy as np

from bert_tf import metrics
from bert_tf.data.records.features import FINETUNING, known, pack_pairs, truncate_pairs
from bert_tf.files import write_aside
from bert_tf.tasks import squad_scorer, super_glue
from bert_tf.tasks.kinds.labelled import is_flat, says_nothing, with_label_ids
from bert_tf.tasks.kinds.sentence import Classification

_ENDS = ("span_starts", "span_ends")


def group_starts(examples: list) -> np.ndarray:
    """Returns the places of the first examples of all questions."""
    groups = np.array([example.document for example in examples])
    return np.flatnonzero(np.diff(groups, prepend=groups[:1] - 1))


def _queries(examples):
    starts = group_starts(examples)
    yield from itertools.starmap(slice, zip(starts, [*starts[1:], len(examples)]))


class AnswerSet(Classification):
    """Whether an answer to a question about a paragraph is right, as in MultiRC. An example is a
    candidate; its `document` is the number of its question."""

    name, title = "answer_set", "answers to questions of which several are right"
    own_metrics: tuple = ()
    texts = (2, 2, "a tuple of the paragraph, and the question with an answer")

    def _head(self, task, options):
        return "classification", {"num_labels": len(task.labels)}

    def score(self, task, path, examples, predicted):
        """Returns F1 over all answers, and the share of questions whose answers are all right."""
        labels = self.targets(task, examples)
        groups = np.array([example.document for example in examples])
        wrong = np.unique(groups[labels != predicted])
        return {"f1": float(metrics.METRICS["f1"](labels, predicted)),
                "group_em": 1 - len(wrong) / len(np.unique(groups))}

    def write_submission(self, path, test_file, predicted):
        """Writes a JSON object for each passage, with the labels of its questions' answers."""
        labels, passages = iter(predicted.tolist()), {}
        for _, question in super_glue.read_questions(test_file):
            passages.setdefault(question.passage, []).append({"idx": question.number, "answers": [
                {"idx": number, "label": next(labels)} for number, *_ in question.answers]})
        with write_aside(path) as file:
            file.writelines(json.dumps({"idx": passage, "passage": {"questions": questions}}) + "\n"
                            for passage, questions in passages.items())

    def write_more(self, folder, source, examples, predicted, answers, is_test):
        layout = source.task.split(source.split)
        count = len(group_starts(examples) if self.is_grouped else examples)
        if not is_test or not layout.takes(source.task.name, source.path, count):
            return []
        path = os.path.join(folder, layout.submission)
        self.write_submission(path, source.path, predicted)
        return [path]


class Cloze(AnswerSet):
    """Whether a candidate fills the placeholder of a query, as in ReCoRD. The most likely candidate
    of each query is taken."""

    name, title = "cloze", "candidates for a placeholder"
    texts = (2, 2, "a tuple of the passage, and the query with a candidate")
    is_grouped = True

    def decode(self, task, answers, examples, features):
        """Returns 1 for the candidate of each query that is taken, else 0: int [N]."""
        likely = answers["probabilities"][:, 1]
        taken = np.zeros(len(examples), np.int64)
        for query in _queries(examples):
            taken[query.start + likely[query].argmax()] = 1
        return taken

    def against_ties(self, task, answers, examples, predicted):
        likely, taken = answers["probabilities"][:, 1], predicted.copy()
        is_wrong = self.targets(task, examples) == 0
        for query in _queries(examples):
            is_best = ~(likely[query] < likely[query].max())
            if is_best.sum() > 1 and (is_best & is_wrong[query]).any():
                taken[query] = 0
                taken[query.start + (is_best & is_wrong[query]).argmax()] = 1
        return taken

    def is_degenerate(self, task, answers, examples, predicted):
        """Whether no query has a preferred candidate."""
        likely, starts = answers["probabilities"][:, 1], group_starts(examples)
        return says_nothing({"values": likely}) or is_flat(
            np.maximum.reduceat(likely, starts), np.minimum.reduceat(likely, starts))

    def compared(self, task, examples, predicted):
        """See `LabelledKind.compared`: 1 for each query, and whether a right candidate is taken."""
        starts = group_starts(examples)
        is_right = np.logical_and(self.targets(task, examples), predicted)
        return np.ones(len(starts), np.int64), np.logical_or.reduceat(is_right, starts)

    def answer(self, *arguments):
        """See `Kind.answer`. Candidates are judged alone: texts do not say which share a
        question."""
        return AnswerSet().answer(*arguments)

    def score(self, task, path, examples, predicted):
        """F1 and exact match of the taken candidates' words with the best answer, as SQuAD's."""
        best = np.array([max((score(squad_scorer.normalize(answer), squad_scorer.normalize(text))
                              for answer in cloze.answers), default=0)
                         for cloze, text in self._taken(path, predicted)
                         for score in (squad_scorer.f1, squad_scorer.exact)]).reshape(-1, 2)
        return dict(zip(("f1", "em"), best.mean(0).tolist()))

    def _taken(self, path, predicted):
        start = 0
        for _, cloze in super_glue.read_clozes(path):
            if start >= len(predicted):
                return
            end = start + len(cloze.candidates)
            yield cloze, cloze.candidates[int(predicted[start:end].argmax())]
            start = end

    def write_submission(self, path, test_file, predicted):
        write_clozes(path, ((cloze.number, text)
                            for cloze, text in self._taken(test_file, predicted)))


def write_clozes(path: str, answers: Iterable[tuple[int, str]]) -> None:
    with write_aside(path) as file:
        file.writelines(json.dumps({"idx": number, "label": text}, ensure_ascii=False) + "\n"
                        for number, text in answers)


class WordInContext(Classification):
    """Whether a word means the same in two texts. For each, an example has the text before the
    word, the word, and the text after it. The head reads the vectors of [CLS] and of the words."""

    name, title = "word_in_context", "a word in two texts"
    features = (*FINETUNING["classification"], *known(*_ENDS))
    own_metrics: tuple = ()
    texts = (6, 6, "a tuple of six: what stands before the word, the word, and what follows, twice")
    labels_may_be_far = False
    reads_cls = True

    def _head(self, task, options):
        return "span_comparison", {"num_labels": len(task.labels), "reads_cls": self.reads_cls}

    def sequences(self, examples):
        return [[("".join(e.texts[:3]), "".join(e.texts[3:]))] for e in examples]

    def encode(self, task, examples, tokenizer, max_seq_length, options=None):
        """Makes a row per example: `span_starts` and `span_ends` [N, 2] are the first and the last
        token of both parts. An example counts as cut if a text lost tokens; a part that was lost is
        the last token that was kept."""
        layout, tokens = tokenizer.vocabulary.layout, []
        places = np.zeros((len(examples), 2, 2), np.int64)      # example, part, end
        lengths = np.zeros((len(examples), 2), np.int64)
        for row, example in enumerate(examples):
            (texts,), parts = self.sequences([example])[0], example.texts
            encoded = [tokenizer.encode_with_offsets(text) for text in texts]
            for number in range(2):
                first = len(parts[3 * number])
                places[row, number] = _touched(encoded[number % len(texts)][1], first,
                                               first + len(parts[3 * number + 1]))
            lengths[row, :len(texts)] = [len(ids) for ids, _ in encoded]
            tokens += [index for ids, _ in encoded for index in ids]
        sizes = np.stack(truncate_pairs(lengths[:, 0], lengths[:, 1], max_seq_length, layout), 1)
        starts = (np.cumsum(lengths) - lengths.ravel()).reshape(lengths.shape)
        packed = pack_pairs(np.array(tokens, np.int32), starts[:, 0], sizes[:, 0], starts[:, 1],
                            sizes[:, 1], max_seq_length, tokenizer.vocabulary)
        is_second = np.arange(2) * (lengths[:, 1:] > 0)     # [N, 2]: the text that has each part
        last = np.maximum(np.take_along_axis(sizes, is_second, 1) - 1, 0)
        offset = np.where(is_second, layout.b_offset(sizes[:, :1]), layout.before)
        ends = np.minimum(places, last[..., None]) + offset[..., None]
        spans = dict(zip(_ENDS, np.moveaxis(ends, 2, 0)))
        return {**with_label_ids(packed, examples), **spans}, int((sizes < lengths).any(1).sum())


class Coreference(WordInContext):
    """Whether a pronoun refers to a part of its text. An example has the text before that part, the
    part, the text after it, and the same three for the pronoun. The head reads the vectors of the
    part and of the pronoun."""

    name, title = "coreference", "a pronoun and what it may refer to"
    texts = (6, 6, "a tuple of six: what stands before the part, the part, and what follows, then "
             "the same of the pronoun")
    reads_cls = False

    def sequences(self, examples):
        return [[("".join(e.texts[:3]),)] for e in examples]

    def submission(self, task, predictions):
        """Returns "True" and "False", which the server has in capitals for this task alone."""
        return [task.labels[index] for index in predictions]


def _touched(offsets, start, end):
    """Returns the first and the last of the tokens that share characters with a part of the text;
    if no token does, the token before the part twice."""
    tokens = [place for place, (first, last) in enumerate(offsets) if first < end and start < last]
    before = max((place for place, (first, _) in enumerate(offsets) if first < start), default=0)
    return (tokens[0], tokens[-1]) if tokens else (before, before)
