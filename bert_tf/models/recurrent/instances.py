"""Texts in rows that are read side by side: row r of each batch continues row r of the last batch.

Sequences follow semi-supervised sequence learning (tensorflow/models research/adversarial_text,
data/data_utils.py), ELMo's sentences, and Transformer-XL's stream. Shapes: N tokens of a text, its
end included; T steps of a sequence; R rows, S steps of a batch, M records: R for each batch, in
their order.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from bert_tf.data.instances import pretraining
from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.models.recurrent.tokenizer import MAX_CHARACTERS, ElmoTokenizer, SpelledVocabulary
from bert_tf.recipes import Recipe
from bert_tf.spelling import spelling_names
from bert_tf.tokenization.vocabulary import Vocabulary


class TokenSequence(NamedTuple):
    """A text as T steps: ids, the predicted tokens, and the weights of predictions, all [T]."""

    ids: np.ndarray
    labels: np.ndarray
    weights: np.ndarray


def reverse(ids: np.ndarray) -> np.ndarray:
    """The tokens from right to left; the end of the text stays last."""
    return np.concatenate([ids[:-1][::-1], ids[-1:]])


def language_model(ids: np.ndarray) -> TokenSequence:
    """Each token predicts the next; the last predicts itself and does not count."""
    weights = np.ones(len(ids), np.float32)
    weights[-1] = 0
    return TokenSequence(ids, np.append(ids[1:], ids[-1]), weights)


def autoencoder(ids: np.ndarray) -> TokenSequence:
    """Reads the text, then reads it again and predicts it: 2 N - 1 steps; the last N count."""
    count = len(ids)
    labels = np.concatenate([np.zeros(count - 1, ids.dtype), ids])
    weights = np.repeat(np.array([0, 1], np.float32), [count - 1, count])
    return TokenSequence(np.concatenate([ids, ids[:-1]]), labels, weights)


def fill_rows(lengths: Sequence[int], rows: int, steps: int) -> list[list[int]]:
    """The numbers of the sentences that each row reads, end to end: a row whose sentence has ended
    takes the next one (allenai/bilm-tf, bilm/data.py, _get_batch). `lengths` are the steps of each
    sentence, in the order of use.

    Rows have as many sentences as whole batches need; the last sentence may not end with them. A
    batch that lacks a sentence is left out.
    """
    taken: list[list[int]] = [[] for _ in range(rows)]
    left, following = [0] * rows, 0
    while True:
        before = [len(row) for row in taken]
        for row in range(rows):
            place = left[row]
            while place < steps:
                if following == len(lengths):
                    for numbers, count in zip(taken, before):
                        del numbers[count:]
                    return taken
                taken[row].append(following)
                place += lengths[following]
                following += 1
            left[row] = place - steps


def sentence_rows(documents: Documents, vocabulary: Vocabulary, order: Sequence[int], rows: int,
                  steps: int, reverse: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The tokens that ELMo reads, and the tokens that follow them: two int32 [M, S].

    A sentence is <S> w1 ... wn </S>, or reversed, </S> wn ... w1 <S>; the last is only predicted.
    The vocabulary's `cls_id` is <S>, `sep_id` </S>.
    """
    starts, tokens = documents.sentence_starts, documents.tokens
    lengths = [starts[number + 1] - starts[number] + 1 for number in order]
    sentences = fill_rows(lengths, rows, steps)
    size = min((sum(lengths[number] for number in row) // steps for row in sentences),
               default=0) * steps
    first, last = (np.array([index], np.int32) for index in (vocabulary.cls_id, vocabulary.sep_id))
    step = 1
    if reverse:
        first, last, step = last, first, -1
    read, following = [], []
    for row in sentences:
        parts = [tokens[starts[order[i]]:starts[order[i] + 1]][::step] for i in row]
        none = [np.zeros(0, np.int32)]
        read.append(np.concatenate([*none, *(x for words in parts for x in (first, words))])[:size])
        following.append(np.concatenate(
            [*none, *(x for words in parts for x in (words, last))])[:size])
    return _by_batch(np.stack(read), steps), _by_batch(np.stack(following), steps)


def _by_batch(values, steps):
    """[R, batches * S] -> [M, S]."""
    return values.reshape(len(values), -1, steps).swapaxes(0, 1).reshape(-1, steps)


def texts_of(documents: Documents, end_id: int, by_line: bool) -> list[np.ndarray]:
    """The texts, each with its end: documents, or their lines."""
    starts = documents.sentence_starts
    bounds = [(starts[first], starts[last]) for first, last in documents.ranges]
    if by_line:
        bounds = list(zip(starts, starts[1:]))
    return [np.append(documents.tokens[start:end], end_id) for start, end in bounds if end > start]


def _deal(texts, rows, steps):
    """Yields the content of each row of each batch: a text and its first step, or None."""
    left: list[list] = [[] for _ in range(rows)]
    while True:
        for row in left:
            if not row and (text := next(texts, None)) is not None:
                row.extend((text, place) for place in range(0, len(text.ids), steps))
        if not any(left):
            return
        yield from [row.pop(0) if row else None for row in left]


def text_rows(texts: Iterator[TokenSequence], rows: int, steps: int) -> dict[str, np.ndarray]:
    """The records of texts that may be longer than a batch: each is cut into parts, which follow
    each other in one row. A row whose text has ended takes the next one; rows that no text is left
    for are 0. Returns `input_ids`, `input_mask`, `next_token_ids` and `next_token_weights`, [M, S],
    and `is_start`, [M, 1], 1 where a text begins."""
    parts = list(_deal(texts, rows, steps))
    features = {name: np.zeros((len(parts), steps), np.int32) for name in (
        "input_ids", "input_mask", "next_token_ids")}
    features["next_token_weights"] = np.zeros((len(parts), steps), np.float32)
    features["is_start"] = np.zeros((len(parts), 1), np.int32)
    for record, part in enumerate(parts):
        if part is None:
            continue
        text, place = part
        count = min(steps, len(text.ids) - place)
        for name, values in zip(("input_ids", "next_token_ids", "next_token_weights"), text):
            features[name][record, :count] = values[place:place + count]
        features["input_mask"][record, :count] = 1
        features["is_start"][record] = place == 0
    return features


def stream_rows(documents: Documents, end_id: int, rows: int, steps: int) -> dict[str, np.ndarray]:
    """The records of one stream of text, cut into `rows` equal parts that are read side by side
    (kimiyoung/transformer-xl, pytorch/data_utils.py, LMOrderedIterator): the features of
    `text_rows`, and `next_token_boundary`, [M, S], 1 where the predicted token begins a word.

    The stream is an end, then the documents in their order, each with its end. Unlike in the
    original nothing of it is left out: every token but the first is predicted once, and rows are
    padded at their ends.
    """
    starts, end = documents.sentence_starts, np.array([end_id], documents.tokens.dtype)
    begins = 1 - documents.continues[:starts[-1]].astype(np.int32)
    begins[[start for start in starts if start < starts[-1]]] = 1
    parts = [slice(starts[first], starts[last]) for first, last in documents.ranges]
    stream = np.concatenate([end, *(x for part in parts for x in (documents.tokens[part], end))])
    begins = np.concatenate([[0], *(x for part in parts for x in (begins[part], [0]))])
    count = len(stream) - 1
    length = -(-count // rows)
    batches = -(-length // steps)

    def place(values):
        values = np.pad(values, (0, rows * length - count)).reshape(rows, length)
        return _by_batch(np.pad(values, [(0, 0), (0, batches * steps - length)]), steps)

    used = place(np.ones(count, np.int32))
    return {"input_ids": place(stream[:-1]), "input_mask": used,
            "next_token_ids": place(stream[1:]), "next_token_weights": used.astype(np.float32),
            "next_token_boundary": place(begins[1:]).astype(np.int32),
            "is_start": (np.arange(batches * rows) < rows).astype(np.int32)[:, None]}


@dataclasses.dataclass
class RowInstances(pretraining.Instances):
    """Instances in rows that go on from batch to batch."""

    columns: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)

    @classmethod
    def feature_names(cls, recipe: Recipe) -> list[str]:
        if recipe.segments.pairing != "sentence_stream":
            words = ["next_token_boundary"] * (recipe.segments.pairing == "text_stream")
            return ["input_ids", "input_mask", "next_token_ids", "next_token_weights", *words,
                    "is_start"]
        spelling: tuple[str, ...] = ()
        if recipe.tokenizer == ElmoTokenizer.name:
            spelling = spelling_names(
                recipe.tokenizer_settings.get("max_characters", MAX_CHARACTERS))
        return [prefix + name for prefix in ("", "reverse_")
                for name in ("input_ids", *spelling, "next_token_ids")]

    @classmethod
    def create(cls, documents: Documents, vocabulary: Vocabulary, seed: int, recipe: Recipe,
               options: Any, rows: int) -> Self:
        segments, steps = recipe.segments, options.max_seq_length
        stream = PythonRandom(seed)     # shuffles again for each copy and each direction

        def shuffled(count):
            order: list[int] = []
            for _ in range(options.dupe_factor):
                copy = list(range(count))
                stream.shuffle(copy)
                order += copy
            return order

        if segments.pairing == "sentence_stream":
            columns, sentences = {}, len(documents.sentence_starts) - 1
            ways = [sentence_rows(documents, vocabulary, shuffled(sentences), rows, steps, reverse)
                    for reverse in (False, True)]
            count = min(len(read) for read, _ in ways)      # both ways have about as many batches
            for prefix, (read, following) in zip(("", "reverse_"), ways):
                read, following = read[:count], following[:count]
                features = {"input_ids": read}
                if isinstance(vocabulary, SpelledVocabulary):
                    features = vocabulary.features(read, np.ones(read.shape, bool))
                    following = np.where(following < vocabulary.size, following, vocabulary.unk_id)
                columns |= {prefix + name: values for name, values in features.items()}
                columns[f"{prefix}next_token_ids"] = following
        elif segments.pairing == "text_stream":
            columns = stream_rows(documents, vocabulary.sep_id, rows, steps)
        else:
            texts = texts_of(documents, vocabulary.sep_id, segments.pairing == "line_texts")
            if segments.reverse:
                texts = list(map(reverse, texts))
            make = autoencoder if segments.autoencoder else language_model
            columns = text_rows((make(texts[i]) for i in shuffled(len(texts))), rows, steps)
        ids = columns["input_ids"]
        slices = np.zeros((len(ids), 5), np.int32)
        slices[:, 1] = columns.get("input_mask", np.ones_like(ids)).sum(1)
        return cls(documents, slices, None, np.arange(len(ids)), cls.feature_names(recipe),
                   layout=pretraining.BARE, columns=columns)

    @property
    def counted_tokens(self) -> np.ndarray:
        return self.columns["input_ids"][self.columns["input_mask"] > 0]

    def features(self, rows: np.ndarray, max_seq_length: int,
                 vocabulary: Vocabulary) -> dict[str, np.ndarray]:
        return {name: self.columns[name][rows] for name in self.names}
