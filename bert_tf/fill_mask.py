"""A masked language model that is asked for the words behind masks. B batch, P masks, K guesses."""

import dataclasses
import itertools
import operator
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf import checkpoints, networks, objectives, recipes
from bert_tf.data.batches.bucketing import sorted_batches
from bert_tf.errors import InputError, check_least, check_process, opened_again
from bert_tf.files import absolute, is_folder
from bert_tf.opening import Model, open_model
from bert_tf.tokenization import Tokenizer
from bert_tf.tokenization.base import as_tuple, listed
from bert_tf.tokenization.coverage import Coverage
from bert_tf.tokenization.encoding import pack_parts
from bert_tf.tokenization.vocabulary import MASK, Vocabulary
from bert_tf.training.distribution import compiled, counted_heads
from bert_tf.training.learners.learner import Learner

_ROWS = 1 << 12     # sequences that are sorted by length at a time


@dataclasses.dataclass(frozen=True)
class _Row:
    """The ids of two texts, the positions [P] to predict, and the tokens [P] to score there."""

    first: Sequence[int]
    second: Sequence[int] = ()
    positions: Sequence[int] = ()
    tokens: Sequence[int] = ()


class FillMask:
    """Answers texts with a pre-trained model: predicts masked tokens and next sentences.

        fill = bert_tf.FillMask("run")                  # the output of bert-run-pretraining
        fill("The [MASK] is open.")                     # a dict
        fill(["The [MASK] is [MASK].", "A [MASK]."])    # a list of dicts in their order
        fill.next_sentence(("He left.", "He came back."))
        fill.pseudo_perplexity("The door is open.")

    A text is a str, or a tuple of two, and has one mask or several. Its answer is a dict: `masks`
    has, for each mask in the order of the text, its likeliest tokens, each with its `id`, its
    `token` in the vocabulary, its `text` as a reader writes it, and its `probability`. Masks are
    predicted independently of each other.

    Attributes:
        coverage: what the vocabulary knows of all texts so far; a warning comes after the first
            ones of which it knows too little.

    A mask is written "[MASK]", or as the vocabulary's own token, such as "<mask>". Everything else
    is plain text, as in training. The probabilities equal the probabilities of the pipeline
    "fill-mask" of Hugging Face's transformers.
    """

    def __init__(self, path: str | os.PathLike, batch_size: int = 32, dtype: str | None = None,
                 vocab_file: str | None = None, do_lower_case: bool | None = None,
                 mask: str | None = None):
        """Opens the model in a folder.

        Args:
            path: a folder or file of any format that `bert_tf.open_model` reads, with a masked LM.
                If ELECTRA was pre-trained there, the generator is opened.
            batch_size: sequences that the model reads at a time.
            dtype: Keras's name of the policy, such as "bfloat16"; its default if None.
            vocab_file, do_lower_case: None: as the files next to the model say.
            mask: the text of a mask, for texts where "[MASK]" is plain text.

        Raises:
            InputError: the model has no masked LM or no vocabulary.
        """
        check_process()
        check_least("batch_size", batch_size)
        if mask == "":
            raise InputError("mask is empty; give the text that marks a masked word, such as ___.")
        model = open_masked_lm(path, vocab_file, do_lower_case)
        self._opened = (absolute(path), batch_size, dtype, vocab_file and absolute(vocab_file),
                        do_lower_case, mask)
        self.tokenizer: Tokenizer = model.tokenizer
        self.coverage = Coverage()
        self._vocabulary, self._path = model.tokenizer.vocabulary, os.fspath(path)
        if self._vocabulary.mask_id is None:
            raise InputError(f"{path}: its vocabulary has no mask token; give a model that was "
                             "trained with one.")
        self._shown = mask or MASK
        marks = {mask or MASK, mask or self._vocabulary.special["mask"]}
        self._mark = re.compile("|".join(map(re.escape, marks)))
        self._longest = model.config.max_position_embeddings
        self._network = _Network(build(model, dtype), self._vocabulary, batch_size)

    def __reduce__(self):
        return opened_again, (type(self), *self._opened)    # a copy opens the files again

    def __repr__(self) -> str:
        return (f"FillMask({self._path!r}: {self._vocabulary.size:,} tokens, mask {self._shown}, "
                f"texts of up to {self._longest} tokens)")

    def __call__(self, texts: str | tuple | list, top_k: int = 5) -> dict | list[dict]:
        """The `top_k` likeliest tokens of each mask: a dict, or for a list of texts a list of dicts
        in their order. InputError, which names the index, if a text has no mask or is too long."""
        texts = listed(texts)
        if isinstance(texts, list):
            return list(self.stream(texts, top_k))
        return next(self.stream([texts], top_k, lambda _: "the text"))

    def stream(self, texts: Iterable, top_k: int = 5,
               where: Callable[[int], str] = "text {}".format) -> Iterator[dict]:
        """Yields the dict of each text, some thousand texts after they were taken. `where` names a
        text in errors, given its index."""
        try:
            count = operator.index(top_k)
        except TypeError:       # no whole number
            count = 0
        if not 1 <= count <= self._vocabulary.size:
            raise InputError(f"top_k is {top_k!r}; it must be a whole number from 1 to the "
                             f"{self._vocabulary.size:,} tokens of the vocabulary.")
        rows = (self._masked_row(text, where(number)) for number, text in enumerate(texts))
        for row, (likely, tokens) in self._network.run(
                lambda batch: self._network.guess(*batch[:2], count), rows):
            yield {"masks": [
                [{"id": index, "token": self._vocabulary.tokens[index],
                  "text": self.tokenizer.readable(index), "probability": probability}
                 for index, probability in zip(ids.tolist(), probabilities.tolist())]
                for ids, probabilities, _ in zip(tokens, likely, row.positions)]}
        self.coverage.warn_once(("do_lower_case",))

    def next_sentence(self, pairs: tuple | list, where: Callable[[int], str] = "pair {}".format
                      ) -> float | list[float]:
        """Returns the probability that the second text of a tuple follows the first. A list or an
        array of tuples gives one probability per tuple. A model that learned the order of
        sentences, such as ALBERT, gives the probability of this order. `where` names a pair in
        errors, given its index."""
        if not self._network.follows:
            raise InputError(f"{self._path} was not trained to predict the next sentence; give a "
                             "model that was, such as BERT.")
        pairs = listed(pairs)
        if not isinstance(pairs, list):
            return self.next_sentence([pairs], where)[0]        # type: ignore[index]
        probabilities = [float(value) for _, (value,) in self._network.run(
            lambda batch: [self._network.follows(batch[0])],
            (self._pair_row(pair, where(number)) for number, pair in enumerate(pairs)))]
        self.coverage.warn_once(("do_lower_case",))
        return probabilities

    def pseudo_perplexity(self, texts: str | list, where: Callable[[int], str] = "text {}".format
                          ) -> float | list[float]:
        """Returns exp(-mean of log p) over the tokens of a text, or of each text in a list or an
        array. p is the probability of a token that alone is masked (arXiv:1910.14659). "[MASK]" is
        plain text here. `where` names a text in errors, given its index."""
        texts = listed(texts)
        if not isinstance(texts, list):
            return self.pseudo_perplexity([texts], where)[0]    # type: ignore[index]
        owned = ((number, row) for number, text in enumerate(texts)
                 for row in self._rows_of_tokens(text, where(number)))
        (owners, rows), sums = itertools.tee(owned), np.zeros((2, len(texts)))
        scored = self._network.run(lambda batch: [self._network.score(*batch)],
                                   (row for _, row in rows))
        for (owner, _), (_, (logs,)) in zip(owners, scored):
            sums[:, owner] += logs[0], 1
        self.coverage.warn_once(("do_lower_case",))
        return np.exp(-sums[0] / sums[1]).tolist()

    # From texts to rows

    def _masked_row(self, example, where):
        texts = as_tuple(example)
        if not 1 <= len(texts) <= 2:
            raise InputError(f"{where} has {len(texts)} parts; give a text, or a tuple of two "
                             "texts.")
        (first, masks), (second, more) = (self._encode(text, where) for text in (*texts, "")[:2])
        layout = self._vocabulary.layout
        positions = [*(layout.before + place for place in masks),
                     *(layout.b_offset(len(first)) + place for place in more)]
        if not positions:
            raise InputError(f"{where} has no {self._shown}; write {self._shown} in place of each "
                             "word to guess.")
        return self._checked(_Row(first, second, positions), where)

    def _encode(self, text, where):
        """Returns the ids of a text, and the places of the masks among them."""
        ids: list[int] = []
        places = []
        *parts, last = self._mark.split(_checked_text(text, where))
        for part in parts:
            # A mask replaces a word and the blank before it.
            ids += self.tokenizer.encode(part.rstrip())
            places.append(len(ids))
            ids.append(self._vocabulary.mask_id)
        ids += self.tokenizer.encode(last)
        # Masks are not tokens of the text; a text of masks alone, or an absent second one, is none.
        known = [index for place, index in enumerate(ids) if place not in places]
        self.coverage.add(self.tokenizer, [" ".join([*parts, last])], known, [len(known)])
        return ids, places

    def _encode_plain(self, text, where):
        """Returns the ids of a text in which "[MASK]" is plain text."""
        ids = self.tokenizer.encode(_checked_text(text, where))
        self.coverage.add(self.tokenizer, [text], ids, [len(ids)])
        return ids

    def _pair_row(self, pair, where):
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise InputError(f"{where} must be a tuple of two texts.")
        return self._checked(_Row(*(self._encode_plain(text, where) for text in pair)), where)

    def _rows_of_tokens(self, text, where):
        """Yields a row for each token, which alone is masked."""
        if isinstance(text, tuple):     # of a line of two texts, too
            raise InputError(f"{where} has {len(text)} parts; give one text, whose tokens are "
                             "masked one at a time.")
        ids = self._encode_plain(text, where)
        if not ids:
            raise InputError(f"{where} has no token; give a text of at least one word.")
        for place, token in enumerate(ids):
            yield self._checked(_Row(
                [*ids[:place], self._vocabulary.mask_id, *ids[place + 1:]],
                positions=[self._vocabulary.layout.before + place], tokens=[token]), where)

    def _checked(self, row, where):
        length = self._vocabulary.layout.length(len(row.first), len(row.second))
        if length > self._longest:
            raise InputError(f"{where} has {length:,} tokens, but the model reads at most "
                             f"{self._longest:,}; shorten the text.")
        return row


class _Network:
    """The compiled functions of a Learner, and rows in batches of similar length.

    Attributes:
        guess: function of ids, positions int32 [B, P] and a number K; returns the probabilities and
            the ids of the likeliest tokens, float32 and int32 [B, P, K].
        score: function of ids, positions and tokens int32 [B, P]; returns the logarithms of the
            tokens' probabilities, float32 [B, P].
        follows: function of ids; returns the probability of the next sentence, float32 [B]; None
            without that head.
    """

    def __init__(self, learner: Learner, vocabulary: Vocabulary, batch_size: int):
        encoder = learner.encoder
        self._reads = getattr(encoder, "text_reads", encoder.reads)
        self._vocabulary, self._batch_size = vocabulary, batch_size
        self._heads = counted_heads(encoder.config)
        masked_lm, *others = learner.objectives

        def logits(head, ids, **features):
            outputs = encoder(dict(zip(self._reads, ids)))
            return head(outputs, features, encoder.embedding_table)

        def log_probabilities(ids, positions):
            scores = logits(masked_lm, ids, masked_lm_positions=positions)
            # Further rows only pad the table of words.
            return tf.nn.log_softmax(scores[:, :, :vocabulary.size])

        ids, places = [_ids(name) for name in self._reads], _ids("masked_lm_positions")
        self.guess = compiled(lambda ids, positions, count: tf.math.top_k(
            tf.exp(log_probabilities(ids, positions)), count),
            input_signature=[ids, places, tf.TensorSpec([], tf.int32)])
        self.score = compiled(lambda ids, positions, tokens: tf.gather(
            log_probabilities(ids, positions), tokens, batch_dims=2),
            input_signature=[ids, places, places])
        row, label = recipes.RECIPES.get(encoder.config.model_type), 0
        if row:
            label = row.segments.next_label     # says that B follows A
        self.follows = None
        if others:
            self.follows = compiled(lambda ids: tf.nn.softmax(logits(others[0], ids))[:, label],
                                    input_signature=[ids])

    def run(self, function: Callable[[tuple], Iterable], rows: Iterable[_Row]
            ) -> Iterator[tuple[_Row, list[np.ndarray]]]:
        """Yields each row with its part of the arrays that `function` returns for a batch."""
        check_process()
        rows = iter(rows)
        while piece := list(itertools.islice(rows, _ROWS)):
            results: list[Any] = [None] * len(piece)
            lengths = [len(row.first) + len(row.second) for row in piece]
            for batch in sorted_batches(lengths, self._batch_size, self._heads):
                arrays = map(np.asarray, function(self._pack([piece[index] for index in batch])))
                for index, parts in zip(batch, zip(*arrays)):
                    results[index] = parts
            yield from zip(piece, results)

    def _pack(self, rows):
        packed = pack_parts([(row.first, row.second) for row in rows], None, self._vocabulary)
        return ([packed[name].astype(np.int32) for name in self._reads],
                _filled([row.positions for row in rows]), _filled([row.tokens for row in rows]))


def _ids(name):
    return tf.TensorSpec([None, None], tf.int32, name)


def _filled(lists):
    """Returns lists of ints as int32 [B, the longest], filled up with 0."""
    return np.array(list(zip(*itertools.zip_longest(*lists, fillvalue=0))), np.int32).reshape(
        len(lists), -1)


def _checked_text(text, where):
    if not isinstance(text, str):
        raise InputError(f"{where}: found a value of type {type(text).__name__} in place of a "
                         "text; give a str.")
    return text


def open_masked_lm(path: str | os.PathLike, vocab_file: str | None = None,
                   do_lower_case: bool | None = None) -> Model:
    """Opens the model at `path`, of any format, or the generator next to it, which has a masked LM;
    InputError if there is none."""
    model = open_model(path, None, vocab_file, do_lower_case)
    weights = model.weights
    beside = os.path.join(path, "generator")
    if weights and "masked_lm" not in weights.heads:
        if weights.origin and weights.origin.generator:
            weights = checkpoints.read(weights.source, generator=True)
        elif is_folder(beside):
            model = open_model(beside, None, vocab_file, do_lower_case)
            weights = model.weights
    config, ways = model.config, "in both directions"
    if weights:
        config = weights.config
    if config.is_causal:
        ways = "from left to right"
    if config.is_causal or config.model_type == "elmo":
        raise InputError(f"{os.fspath(path)} reads {ways} and predicts next words, not masked "
                         "words; give a model that was trained with masks.")
    if not weights or "masked_lm" not in weights.heads:
        raise InputError(f"{os.fspath(path)} has no masked LM, which predicts masked words; give a "
                         "model or a generator that was pre-trained with masks and not fine-tuned.")
    config.check_reads_texts(weights.source)
    return dataclasses.replace(model, weights=weights, config=config)


def build(model: Model, dtype: str | None = None) -> Learner:
    """Builds the Learner of `open_masked_lm`: its masked LM, and its next sentence head if any."""
    assert model.weights
    tensors = model.weights.tensors
    heads = [objectives.MaskedLM(model.config, dtype=dtype,
                                 tied="masked_lm/output_weights" not in tensors)]
    if "next_sentence" in model.weights.heads:
        heads.append(objectives.SentencePrediction(
            model.config, tensors["next_sentence/dense/bias"].shape[0], dtype=dtype))
    learner = Learner(networks.build(model.config, dtype=dtype), heads)
    model.load(learner)
    return learner
