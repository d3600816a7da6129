"""Models that take raw strings: the tokenizer is in the graph. Results equal the Python model's, or
a string is refused with an error that names it. Shapes: B batch, C choices, S sequence."""

import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import tensorflow as tf

from bert_tf.errors import InputError
from bert_tf.export.ids_model import answers, check_length, heads_of
from bert_tf.export.packing import Packer, ends, joined, repeated, windows
from bert_tf.tokenization.encoding import HEAD_TAIL, LONG_TEXTS, MAX, MEAN, TRUNCATE
from bert_tf.tokenization.vocabulary import MASK, Vocabulary, check_fits
from bert_tf.tokenization.wordpiece_graph import WordpieceGraph

_GUESSES = 10       # tokens for each mask


class TextModel(tf.Module):
    """Takes one text (`text`) or, in the signature `pair`, two (`text_a`, `text_b`), strings [B].
    An empty second text counts as none.

    Returns the model's answers and `input_ids`; with labels also `label`, the likeliest one,
    string. `functions` has the signatures by name. If long texts are read in windows, `input_ids`
    has a row for each window, and the answers include `windows`, int32 [B], the number of windows
    of each example.
    """

    def __init__(self, model, vocabulary: Vocabulary, do_lower_case: bool = True,
                 max_seq_length: int = 128, labels: Sequence[str] = (),
                 tokenizer_settings: Mapping[str, bool] = MappingProxyType({}),
                 long_text: str = TRUNCATE, line_break: str = "",
                 left_out: Collection[str] = ()):
        """
        Args:
            model: an encoder or a Learner of one objective.
            max_seq_length: longer texts are read as `long_text` says.
            labels: names of the classes, in the order of their ids.
            tokenizer_settings: further settings of `WordpieceTokenizer`.
            long_text: one of `encoding.LONG_TEXTS`. Values other than "truncate" are for models
                that give a text one label, several labels, a number or a choice.
            line_break: a mark within texts or pairs that is read as a blank, as in `Split`.
            left_out: names of outputs that are not returned.

        InputError for another model's vocabulary, a length outside 8 to the model's, or a
        `long_text` that is not for this model.
        """
        super().__init__()
        config = getattr(model, "encoder", model).config
        check_fits(vocabulary, config.vocab_size)
        check_length(model, max_seq_length, least=8)
        heads = heads_of(model)
        if long_text not in LONG_TEXTS or long_text != TRUNCATE and not (
                heads and all(head.reads_windows for head in heads)):
            raise InputError(f"long_text is {long_text!r}; it must be one of "
                             f"{', '.join(LONG_TEXTS)}, and {TRUNCATE} if the model does not give "
                             "a text one answer.")
        self._weights = [v.value for v in model.weights]    # for the SavedModel
        self._answers = lambda features: answers(model, features, left_out)
        self._long_text, self._line_break = long_text, re.escape(line_break)
        self._labels_exclude = "multi_label" not in [head.name for head in heads]
        self._labels = list(labels)
        self._tokenizer = WordpieceGraph(vocabulary, do_lower_case, **tokenizer_settings)
        self._pack = Packer(vocabulary, max_seq_length)
        self.functions = self._make_functions()

    def _make_functions(self):
        return {"serving_default": served(lambda text: self._read(text, tf.fill(
                    tf.shape(text), "")), "text"),
                "pair": served(self._read, "text_a", "text_b")}

    def _read(self, text_a, text_b):
        tf.debugging.assert_equal(tf.size(text_a), tf.size(text_b),
                                  "give as many second texts as first ones")
        texts = map(self._tokenizer.checked, (text_a, text_b))
        if self._line_break:
            texts = (tf.strings.regex_replace(text, self._line_break, " ") for text in texts)
        return self._answer(*map(self._tokenizer.ids, texts))

    def _answer(self, a, b, choices=None):
        """Ragged ids [B, pieces], or [B * C, pieces] with the number of `choices` C -> answers."""
        counts = None
        if self._long_text == HEAD_TAIL:
            a, b = ends(a, b, self._pack)
        elif self._long_text in (MEAN, MAX):
            a, b, counts = windows(a, b, self._pack, 1 if choices is None else choices)
        features = self._pack(a, b)
        if choices is not None:
            features = {name: tf.reshape(values, [-1, choices, tf.shape(values)[1]])
                        for name, values in features.items()}
        outputs = self._answers(features)
        if counts is not None:
            outputs = joined(outputs, counts, self._long_text, self._labels_exclude)
            outputs["windows"] = tf.cast(counts, tf.int32)
        if self._labels:
            best = tf.argmax(outputs["probabilities"], axis=-1)
            outputs["label"] = tf.gather(tf.constant(self._labels), best)
        return {**outputs, "input_ids": features["input_ids"]}


class ChoiceModel(TextModel):
    """Takes `context`, string [B], and `choices`, string [B, C]. Returns `choice`, int32 [B], the
    likeliest choice from 0; the model's answers [B, C]; and `input_ids` [B, C, S], or with windows
    as `TextModel`, each [C, S]."""

    def _make_functions(self):
        return {"serving_default": tf.function(self._choose, autograph=False, input_signature=[
            tf.TensorSpec([None], tf.string, "context"),
            tf.TensorSpec([None, None], tf.string, "choices")])}

    def _choose(self, context, choices):
        rows, count = tf.unstack(tf.shape(choices))
        tf.debugging.assert_equal(tf.size(context), rows,
                                  "give as many contexts as rows of choices")
        contexts = self._tokenizer.ids(self._tokenizer.checked(context))
        a = tf.gather(contexts, tf.repeat(tf.range(rows), count))
        b = self._tokenizer.ids(self._tokenizer.checked(tf.reshape(choices, [-1])))
        outputs = self._answer(a, b, count)
        return {**outputs, "choice": tf.argmax(outputs["logits"], axis=-1, output_type=tf.int32)}


class MaskModel(TextModel):
    """Takes `text`, string [B], with [MASK] for each of P words to guess. Returns the likeliest
    tokens of each, at most 10: `ids`, `tokens` and `probabilities`, [B, P, 10]; and `masks`, int32
    [B], the number of masks of each text, since rows are filled up. Overlong texts are refused."""

    def __init__(self, model, vocabulary: Vocabulary, **options):
        self._model, self._vocabulary = model, vocabulary
        super().__init__(model, vocabulary, **options)

    def _make_functions(self):
        return {"serving_default": served(self._guess, "text")}

    def _guess(self, text):
        size, mask = self._vocabulary.size, self._vocabulary.mask_id
        parts = tf.strings.split(text, MASK)                            # ragged [B, parts]
        pieces = self._tokenizer.ids(self._tokenizer.checked(parts.values))
        counts = tf.ones_like(pieces.row_lengths())         # a mask after each part but the last
        counts = tf.tensor_scatter_nd_update(
            counts, parts.row_limits()[:, None] - 1, tf.zeros_like(parts.row_limits()))
        ids = tf.concat([pieces, repeated(mask, counts)], axis=1)
        ids = parts.with_values(ids).merge_dims(1, 2)                   # ragged [B, pieces]
        none = ids[:, :0]
        features = self._pack(_all_fit(ids, self._pack.room(none)), none)
        is_mask = features["input_ids"] == mask                         # [B, S]
        places = tf.ragged.boolean_mask(tf.zeros_like(features["input_ids"]) + tf.range(
            tf.shape(is_mask)[1]), is_mask)
        logits, = self._model({**features, "masked_lm_positions": places.to_tensor()}).values()
        probabilities, best = tf.math.top_k(tf.nn.softmax(tf.cast(
            logits[:, :, :size], tf.float32)), min(_GUESSES, size))
        return {"ids": best, "tokens": tf.gather(tf.constant(self._vocabulary.tokens), best),
                "probabilities": probabilities,
                "masks": tf.cast(places.row_lengths(), tf.int32)}


class TaggerModel(TextModel):
    """Takes `text`, string [B]. Returns for each token [B, S] the tagger's answers, its first byte
    in the text (`start`) and the byte after its last (`end`), both -1 for special tokens, and
    `is_word_start`, 1 for the first token of a word between white space, whose label is the word's,
    as in `Predictor`. Labels of `bioes` stay so, where `Predictor` gives `bio`. Overlong texts are
    refused."""

    def _make_functions(self):
        return {"serving_default": served(self._tag, "text")}

    def _tag(self, text):
        text = self._tokenizer.checked(text)
        ids, start, end, begins = self._tokenizer.word_offsets(text)
        outputs = self._answer(_all_fit(ids, self._pack.room(ids[:, :0])), ids[:, :0])
        before = self._pack.layout.before

        def placed(ragged, other):    # special tokens and padding around
            dense = ragged.to_tensor(other)
            after = tf.shape(outputs["input_ids"])[1] - tf.shape(dense)[1] - before
            return tf.pad(dense, [[0, 0], [before, after]], constant_values=other)

        return {**outputs, "start": placed(start, -1), "end": placed(end, -1),
                "is_word_start": placed(begins, 0)}


def served(function, *names):
    """Returns a tf.function of strings [B] called `names`."""
    return tf.function(function, autograph=False, input_signature=[
        tf.TensorSpec([None], tf.string, name) for name in names])


def _all_fit(ids, room):
    """Returns `ids`, ragged [B, pieces], after a check that no row has more than `room` pieces."""
    counts = ids.row_lengths()
    check = tf.debugging.Assert(
        tf.reduce_all(counts <= room),
        ["a text is too long; cut it into several. Pieces, and room for them:", counts, room],
        summarize=64)
    with tf.control_dependencies([check]):
        return tf.identity(ids)
