"""Copies of texts with words replaced by a masked language model's predictions (arXiv:1909.10351,
algorithm 1; huawei-noah/Pretrained-Language-Model, TinyBERT/data_augmentation.py)."""

import dataclasses
import hashlib
import itertools
import json
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from bert_tf import networks
from bert_tf.bert.objective import MaskedLM
from bert_tf.checkpoints.weights import variables
from bert_tf.compression.word_vectors import read_word_vectors
from bert_tf.data.records.jobs import FinishedPieces, run_pieces
from bert_tf.errors import InputError, counted
from bert_tf.opening import open_model
from bert_tf.tokenization import find_vocabulary
from bert_tf.training.distribution import compiled
from bert_tf.training.learners.learner import Learner, digest

CANDIDATES = 15                 # M of the original
_LETTERS = re.compile(r"[a-z]+")
_LONGEST = 512
_VECTORS = 100_000
_TEXTS = 100                    # of a piece of the work


class WordModel:
    """A masked language model that predicts words for a place in a text. `path` is a model of any
    format with its masked LM and its WordPiece vocabulary.

    Attributes:
        made_of: a JSON value of all that the predictions depend on.
    """

    def __init__(self, path: str):
        model = open_model(path)
        if not find_vocabulary(path) or model.tokenizer.name != "wordpiece":
            raise InputError(f"--masked_lm: {path} has no WordPiece vocabulary, which finding "
                             "words needs; name another model.")
        self.tokenizer: Any = model.tokenizer
        config = model.config
        self._longest = min(_LONGEST, config.max_position_embeddings)
        learner = Learner(networks.build(config), [MaskedLM(config)])
        missing = model.load(learner).missing
        if lost := [name for name in missing if name.startswith("masked_lm/")]:
            raise InputError(f"--masked_lm: {path} has no {', '.join(lost)}; name a model with "
                             "its masked LM.")
        # Values that the model lacks, such as a pooler, are random, and change no prediction.
        self.made_of = {
            "masked_lm": digest(variable for name, variable in variables(learner).items()
                                if name not in missing),
            "config": config.to_dict(), "tokenizer": self.tokenizer.describe(),
            "vocabulary": self.tokenizer.vocabulary.hash}
        names = ("input_ids", "input_mask", "segment_ids", "masked_lm_positions")
        self._forward = compiled(
            lambda *rows: tf.math.top_k(learner(dict(zip(names, rows)))["masked_lm"][:, 0],
                                        CANDIDATES).indices,
            input_signature=[tf.TensorSpec([None, None], tf.int32)] * len(names))

    def words(self, text: str) -> tuple[list[str], list[list[int]]]:
        """Returns the words of a text, and the ids of each one's pieces."""
        words = self.tokenizer.split(text)
        ids, sizes = self.tokenizer.encode_lines(words)
        return words, [part.tolist() for part in np.split(ids, np.cumsum(sizes)[:-1])]

    def candidates(self, pieces: Sequence[Sequence[int]], places: Sequence[int]) -> list[list[str]]:
        """Returns the most probable words at some places of a text: for each place at most
        `CANDIDATES` tokens that begin a word, by probability. The model reads the text with [MASK]
        at the place, and then the text as it is. `pieces` are the ids of each word, `places`
        numbers of words of one piece."""
        vocabulary = self.tokenizer.vocabulary
        ids = [token for word in pieces for token in word]
        starts = 1 + np.cumsum([0, *map(len, pieces)], dtype=np.int32)      # after [CLS]
        fitting = [i for i, place in enumerate(places) if starts[place] < self._longest]
        words: list[list[str]] = [[] for _ in places]
        if fitting:
            row = [vocabulary.cls_id, *ids, vocabulary.sep_id, *ids, vocabulary.sep_id]
            batch = np.tile(np.array(row[:self._longest], np.int32), (len(fitting), 1))
            masked = starts[[places[i] for i in fitting]][:, None]
            np.put_along_axis(batch, masked, vocabulary.mask_id, 1)
            segments = np.broadcast_to(np.arange(batch.shape[1]) > len(ids) + 1, batch.shape)
            tops = self._forward(batch, np.ones_like(batch), segments.astype(np.int32),
                                 masked).numpy()
            for i, row in zip(fitting, tops):
                tokens = (vocabulary.tokens[index] for index in row)
                words[i] = [token for token in tokens if not token.startswith("##")]
        return words


class WordVectors:
    """Word vectors, such as GloVe's, for finding near words. `path` is a file of
    `read_word_vectors`; the first 100,000 are read."""

    def __init__(self, path: str):
        words, rows = zip(*itertools.islice(read_word_vectors(path, "glove_embs"), _VECTORS))
        table = np.stack(rows)
        self._words, self._places = words, {word: place for place, word in enumerate(words)}
        self._table = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)

    def near(self, word: str) -> list[str]:
        """Returns the `CANDIDATES` words nearest to a word by cosine; [] for an unknown word."""
        if word not in self._places:
            return []
        place = self._places[word]
        scores = self._table @ self._table[place]
        scores[place] = -np.inf
        return [self._words[i] for i in np.argsort(-scores)[:CANDIDATES]]


@dataclasses.dataclass(frozen=True)
class MaskedWords:
    """Copies of texts; with the probability `share`, a word is replaced by one of its candidates.
    Words with other characters than letters, and stop words, stay.

    A word of one piece has the candidates of the `WordModel`, other words those of the function
    `near`, if any; a word without any is its own. A pair's copies change one text, and copies of
    the second have the last copy of the first. Copies that equal another of their text are dropped.
    Stop words are scikit-learn's; the original's are NLTK's. `seed` determines, with an example's
    number alone, the example's draws.

    Candidates of all `texts()` are found at the first call, and kept in `folder`, if there is one,
    for a later process with the same texts and `made_of`, a JSON value of all else that they depend
    on."""

    model: WordModel
    near: Callable[[str], list[str]] | None = None
    copies: int = 30
    share: float = 0.4
    seed: int = 0
    texts: Callable[[], Iterable[str]] = tuple
    folder: str = ""
    made_of: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    _known: dict[str, Sequence] = dataclasses.field(default_factory=dict, compare=False)

    def __call__(self, texts: list, number: int) -> list[list[str]]:
        """Returns the texts of further examples, for example `number` of the file."""
        draws, made, current = random.Random(f"{self.seed} {number}"), [], list(texts)
        for place, text in enumerate(texts):
            for copy in self.augment(text, draws):
                current[place] = copy
                made.append(list(current))
        return [copy for copy in made if copy != list(texts)]

    def candidates(self, text: str) -> Sequence:
        """Returns the words of a text, and (place, candidates) of each that may be replaced."""
        if self.folder and not self._known:
            self._find_all([*dict.fromkeys(self.texts())])
        if text not in self._known:
            self._known[text] = self._find(text)
        words, options = self._known[text]
        return words, [(place, others.split("\n")) for place, others in options]

    def _find_all(self, texts):
        told = hashlib.sha256(json.dumps(texts).encode()).hexdigest()
        pieces = [texts[start:start + _TEXTS] for start in range(0, len(texts), _TEXTS)]
        print(f"augmentation: the masked LM reads {counted(len(texts), 'text')}, each once a word, "
              f"in {counted(len(pieces), 'piece')}", flush=True)
        results = run_pieces(pieces, len(pieces), lambda _, piece: [*map(self._find, piece)],
                             FinishedPieces(self.folder, {**self.made_of, "texts": told}, None), 1,
                             lambda found: True)
        self._known.update(zip(texts, itertools.chain.from_iterable(results)))

    def _find(self, text):
        words, pieces = self.model.words(text)
        places = [place for place, word in enumerate(words)
                  if _LETTERS.fullmatch(word) and word not in ENGLISH_STOP_WORDS]
        single = [place for place in places if len(pieces[place]) == 1]
        options = dict(zip(single, self.model.candidates(pieces, single)))
        for place in places:
            others = options.get(place, [])
            if place not in options and self.near:
                others = self.near(words[place])
            options[place] = others or [words[place]]
        # One string a word, since sets such as MNLI have a hundred million candidates.
        return words, [(place, "\n".join(options[place])) for place in places]

    def augment(self, text: str, draws: random.Random) -> list[str]:
        """Returns the text, and its copies."""
        words, options = self.candidates(text)
        copies = {text: None}
        for _ in range(self.copies):
            copy = list(words)
            for place, others in options:
                word = draws.choice(others)
                if draws.random() < self.share:
                    copy[place] = word
            copies[" ".join(copy)] = None
        return list(copies)
