"""A label of two texts without order, which a left-to-right model reads in both orders (Radford et
al. 2018, section 3.3).
"""

from bert_tf.data.records.features import FINETUNING
from bert_tf.tasks.kinds.encoding import encode_pairs, with_label_ids
from bert_tf.tasks.kinds.sentence import Classification


class Similarity(Classification):
    """One label of a pair of texts. A record holds a sequence for each order of the two; the head
    reads the sum of both outputs."""

    name, title = "similarity", "classification of pairs in both orders"
    features = FINETUNING["multiple_choice"]
    texts = (2, 2, "a tuple of two texts")

    def _head(self, task, options):
        return "classification", {"num_labels": len(task.labels), "orders": 2}

    def encode(self, task, examples, tokenizer, max_seq_length, options=None):
        pairs = [pair for e in examples for pair in (e.texts, e.texts[::-1])]
        features, is_cut = encode_pairs(pairs, tokenizer, max_seq_length)
        features = {name: rows.reshape(len(examples), -1) for name, rows in features.items()}
        return (with_label_ids(features, examples, self.label_dtype),
                int(is_cut.reshape(len(examples), -1).any(1).sum()))

    def num_choices(self, example):
        return 2
