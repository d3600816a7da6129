"""Tasks on two marked parts of texts: a word in two sentences (WiC), a pronoun and its possible
referent (WSC); arXiv:1905.00537, sections 3.2 and 4.1.

Shapes: N examples, S sequence.
"""

import numpy as np

from bert_tf.data.records.features import FINETUNING, known, pack_pairs, truncate_pairs
from bert_tf.tasks.kinds.labelled import with_label_ids
from bert_tf.tasks.kinds.sentence import Classification

_ENDS = ("span_starts", "span_ends")


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
