"""Models that take raw strings: the tokenizer is in the graph.

They give what the Python model gives, or refuse a string with an error that names it.
"""

import tensorflow as tf

from bert_tf.errors import InputError
from bert_tf.export.ids_model import answers
from bert_tf.export.packing import Packer
from bert_tf.tokenization.vocabulary import check_fits
from bert_tf.tokenization.wordpiece_graph import WordpieceGraph


class TextModel(tf.Module):
    """Takes one text (`text`) or, in the signature `pair`, two (`text_a`, `text_b`), strings [B].

    An empty second text is none. Gives the model's answers and the `input_ids`; with labels, also
    the `label` of the highest probability (string).

    Attributes:
        functions: the signatures of a SavedModel by name.
    """

    def __init__(self, model, vocabulary, do_lower_case=True, max_seq_length=128, labels=()):
        """
        Args:
            model: the model.
            vocabulary: its `Vocabulary`.
            do_lower_case: whether text is lower-cased and stripped of accents.
            max_seq_length: most tokens; what is longer is cut.
            labels: the names of the classes, in the order of their ids.

        Raises:
            InputError: the vocabulary is that of another model, or the length is larger than the
                model's.
        """
        super().__init__()
        config = getattr(model, "encoder", model).config
        check_fits(vocabulary, config.vocab_size)
        if not 8 <= max_seq_length <= config.max_position_embeddings:
            raise InputError(f"max_seq_length is {max_seq_length}; it must be from 8 to the "
                             f"model's {config.max_position_embeddings}.")
        self._weights = [v.value for v in model.weights]    # what the SavedModel keeps
        self._answers = lambda features: self._named(answers(model, features))
        self._labels = list(labels)
        self._tokenizer = WordpieceGraph(vocabulary, do_lower_case)
        self._pack = Packer(vocabulary, max_seq_length)
        self.functions = self._make_functions()

    def _make_functions(self):
        return {"serving_default": _served(lambda text: self._read(text, tf.fill(
                    tf.shape(text), "")), "text"),
                "pair": _served(self._read, "text_a", "text_b")}

    def _read(self, text_a, text_b):
        a, b = (self._tokenizer.ids(self._tokenizer.checked(text)) for text in (text_a, text_b))
        return self._answer(a, b)

    def _answer(self, a, b):
        """From ids, ragged [B, pieces], to answers."""
        features = self._pack(a, b)
        return {**self._answers(features), "input_ids": features["input_ids"]}

    def _named(self, outputs):
        if self._labels:
            best = tf.argmax(outputs["probabilities"], axis=-1)
            outputs["label"] = tf.gather(tf.constant(self._labels), best)
        return outputs


class TaggerModel(TextModel):
    """Takes `text`, string [B]; gives, for each token [B, S], the tagger's answers, the first byte
    of the text that went into it (`start`) and the byte after the last (`end`), both -1 for special
    tokens, and `is_word_start`, 1 for the first piece of a word, whose label counts.

    A text that is too long is refused.
    """

    def _make_functions(self):
        return {"serving_default": _served(self._tag, "text")}

    def _tag(self, text):
        text = self._tokenizer.checked(text)
        ids, start, end = self._tokenizer.with_offsets(text)
        outputs = self._answer(_all_fit(ids, self._pack.room(ids[:, :0])), ids[:, :0])
        begins = ids.with_values(tf.cast(self._tokenizer.starts_word(ids.values), tf.int32))

        before = self._pack.layout.before

        def placed(ragged, other):    # special tokens and padding around
            dense = ragged.to_tensor(other)
            after = tf.shape(outputs["input_ids"])[1] - tf.shape(dense)[1] - before
            return tf.pad(dense, [[0, 0], [before, after]], constant_values=other)

        return {**outputs, "start": placed(start, -1), "end": placed(end, -1),
                "is_word_start": placed(begins, 0)}


class AnswerModel(TextModel):
    """Takes `question` and `passage`, strings [B]; gives `answer`, the text of the passage between
    the most likely start and end, `score`, the sum of their logits, and `no_answer_score`, that of
    [CLS], which a model trained on SQuAD 2.0 raises where the passage holds no answer; and
    the model's answers.

    A question loses what is over `max_query_length` tokens, as in the original; a passage that is
    empty or too long is refused.
    """

    def __init__(self, *args, max_query_length=64, max_answer_length=30, **options):
        """The same as for `TextModel`, and the most tokens of a question and of an answer."""
        self._max_query_length, self._max_answer_length = max_query_length, max_answer_length
        super().__init__(*args, **options)

    def _make_functions(self):
        return {"serving_default": _served(self._find, "question", "passage")}

    def _find(self, question, passage):
        asked = self._tokenizer.ids(self._tokenizer.checked(question))[:, :self._max_query_length]
        passage = self._tokenizer.checked(passage)
        ids, starts, ends = self._tokenizer.with_offsets(passage)
        room = self._pack.room(ids) - asked.row_lengths()
        outputs = self._answer(asked, _all_fit(ids, room, least=1))

        # Only pieces of the passage, of which the last comes no earlier than the first.
        first, last = outputs["start_logits"], outputs["end_logits"]
        length = tf.shape(first, tf.int64)[1]
        offset = self._pack.layout.b_offset(asked.row_lengths())
        positions = tf.range(length)
        places = positions - offset[:, None]
        inside = (places >= 0) & (places < ids.row_lengths()[:, None])
        further = positions - positions[:, None]
        near = (further >= 0) & (further < self._max_answer_length)
        allowed = inside[:, :, None] & inside[:, None, :] & near
        scores = tf.where(allowed, first[:, :, None] + last[:, None, :], first.dtype.min)
        scores = tf.reshape(scores, [-1, length * length])
        best = tf.argmax(scores, axis=1)
        start = tf.gather(starts.to_tensor(), best // length - offset, batch_dims=1)
        end = tf.gather(ends.to_tensor(), best % length - offset, batch_dims=1)
        return {**outputs, "answer": tf.strings.substr(passage, start, end - start),
                "score": tf.reduce_max(scores, axis=1), "no_answer_score": first[:, 0] + last[:, 0]}


def _served(function, *names):
    """A tf.function of strings [B] called `names`."""
    return tf.function(function, autograph=False, input_signature=[
        tf.TensorSpec([None], tf.string, name) for name in names])


def _all_fit(ids, room, least=0):
    """`ids`, ragged [B, pieces], with an error if a row has more than `room` [B] or too few."""
    counts = ids.row_lengths()
    check = tf.debugging.Assert(
        tf.reduce_all((counts >= least) & (counts <= room)),
        ["a text is empty or too long; cut it into several. Pieces, and room for them:", counts,
         room], summarize=64)
    with tf.control_dependencies([check]):
        return tf.identity(ids)
