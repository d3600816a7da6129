"""Ranking of the candidates that answer a question, from files with a line for each candidate
(arXiv:1901.11504, section 3.1, relevance ranking; namisan/mt-dnn v0.1, glue_utils.py load_qnnli).
"""

import typing

import numpy as np

from bert_tf.data.records.features import pack_pairs, truncate_pairs
from bert_tf.errors import InputError
from bert_tf.tasks.kinds.labelled import label_id
from bert_tf.tasks.kinds.sentence import MultipleChoice

_LINES = 2      # of a question, one for each candidate


class Ranking(MultipleChoice):
    """The candidate that answers a question. An example's texts are the question and its
    candidates; its label is the right one's place. The first label marks right candidates.

    Predictions are integer [N, C], each candidate's rank: the number of candidates with a higher
    score. Targets are [N]. Files name the first of several best; scores count what chance gives."""

    name, title = "ranking", "relevance ranking"
    own_metrics = ("candidate_accuracy", "precision_at_1", "mrr")
    needs_choices = labels_are_classes = False
    has_labels = may_turn_pairs = takes_ties = True     # `metrics` know equal ranks
    texts = (3, None, "a tuple of the question and two candidates or more")

    def _head(self, task, options):
        return "multiple_choice", {}

    def gather(self, task, rows, path, omissions):
        rows, count = iter(rows), 0
        for line, texts, raw, document in rows:
            other = next(rows, (line, [None], raw, document))
            is_pair = texts[0] == other[1][0]
            if raw is None and not is_pair:
                raise InputError(f"{path}, line {line}: the next line has another question, so the "
                                 "two can't be ranked; give a file with two lines per question, or "
                                 "use a classification task.")
            if is_pair and (raw is None or raw != other[2]):
                count += 1
                yield line, [*texts, other[1][1]], raw and [raw, other[2]], document
            else:
                omissions.unpaired += _LINES
        if not count:
            raise InputError(f"{path} has no two successive lines with one question and different "
                             "labels; give a file that has, or use a classification task.")

    def label_of(self, task, ids, texts, raw, where):
        return [label_id(one, ids, where) for one in raw].index(0)

    def counted(self, label):
        return range(_LINES)        # each label once

    def _encode_sequences(self, examples, tokenizer, max_seq_length, options):
        if not options.get("hypothesis_first"):
            return super()._encode_sequences(examples, tokenizer, max_seq_length, options)
        return encode_candidates([e.texts for e in examples], tokenizer, max_seq_length)

    def decode(self, task, answers, examples, features):
        scores = answers["logits"]
        return (scores[:, None] > scores[:, :, None]).sum(-1)

    def compared(self, task, examples, predicted):
        """See `LabelledKind.compared`. Where several candidates are the best, none is taken: -1."""
        is_best = predicted == 0
        return (self.targets(task, examples),
                np.where(is_best.sum(-1) == 1, is_best.argmax(-1), -1))

    def describe(self, task, example, prediction, probabilities):
        return super().describe(task, example, int(prediction.argmin()), probabilities)

    def submission(self, task: typing.Any, predictions: np.ndarray) -> list[str]:
        """Returns the label of each line of the file; one line of a question is right."""
        right, wrong = task.labels
        is_first = (predictions == 0).cumsum(-1) == 1
        return [right if taken else wrong for taken in (is_first & (predictions == 0)).ravel()]


def encode_candidates(texts: list, tokenizer, max_seq_length: int) -> tuple[dict, np.ndarray]:
    """Encodes a sequence for each candidate, which precedes the question. A question that is cut
    for a candidate stays so for the next ones (namisan/mt-dnn v0.1, prepro.py build_qnnli). `texts`
    are N lists of the question and its C candidates.

    Returns input_ids, input_mask, segment_ids [N, C * S], and whether an example was cut, bool [N].
    """
    tokens, lengths = tokenizer.encode_lines([text for row in texts for text in row])
    lengths = lengths.reshape(len(texts), -1)
    starts = np.cumsum(lengths).reshape(lengths.shape) - lengths
    vocabulary, question, packed = tokenizer.vocabulary, lengths[:, 0], []
    is_cut = np.zeros(len(texts), bool)
    for number in range(1, lengths.shape[1]):
        before = question
        question, answer = truncate_pairs(
            question, lengths[:, number], max_seq_length - (lengths[:, number] == 0),
            vocabulary.layout)
        is_cut |= (question < before) | (answer < lengths[:, number])
        packed.append(pack_pairs(tokens, starts[:, number], answer, starts[:, 0], question,
                                 max_seq_length, vocabulary, vocabulary.layout.pads_left,
                                 all_pairs=True))
    return {name: np.concatenate([one[name] for one in packed], 1) for name in packed[0]}, is_cut
