"""google-research/albert create_pretraining_data.py, written again with lists and two streams.

It shares with the account of BERT's script what both originals share, and no code with bert_tf.
"""

import random
import string
import types
import unicodedata

import numpy as np
import reference_pretraining
from reference_pretraining import pairs

BLANK = "\u2581"


class SentencePieces:
    def __init__(self, model, lower):
        self.model, self.lower = model, lower
        self.vocab = {model.id_to_piece(index): index for index in range(model.get_piece_size())}

    def prepare(self, line):
        text = unicodedata.normalize("NFKD", " ".join(line.strip().split()))
        text = "".join(char for char in text if not unicodedata.combining(char))
        return text.lower() if self.lower else text

    def tokenize(self, text):
        pieces = []
        for piece in self.model.encode(text, out_type=str):
            if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
                pieces += self.model.encode(piece[:-1].replace(BLANK, ""), out_type=str) + [","]
            else:
                pieces.append(piece)
        return pieces

    def index(self, piece):
        return self.model.piece_to_id(piece)

    def starts_word(self, piece):
        marks = set(string.punctuation) - set("'<=>")
        return piece.startswith((BLANK, "<")) or piece in marks or any(
            char.lower() not in marks | set(string.ascii_lowercase) for char in piece)


class WordPieces:
    """Pieces of text by a function from a line to its pieces."""

    def __init__(self, tokenize, vocab):
        self.tokenize, self.vocab, self.index = tokenize, vocab, vocab.get

    def prepare(self, line):
        return line.strip()

    def starts_word(self, piece):
        return not piece.startswith("##")


def features(files, pieces, flags):
    """The features of all records in the order in which they are written. `files` are their
    contents, `pieces` is one of the classes above, `flags` has the original's as attributes."""
    rng, lengths = random.Random(flags.random_seed), np.random.RandomState(
        flags.random_seed % 2**32)
    documents = [[]]
    for content in files:
        for line in content.replace(b"\r", b"").decode().split("\n"):
            text = pieces.prepare(line)
            if not text:
                documents.append([])
            elif found := pieces.tokenize(text):
                documents[-1].append(found)
    documents = [document for document in documents if document]
    rng.shuffle(documents)
    found = []
    for _ in range(flags.dupe_factor):
        for number in range(len(documents)):
            for first, second, label in pairs(
                    documents, number, rng, flags, swaps=not flags.random_next_sentence):
                tokens = ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
                segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
                starts = [token in ("[CLS]", "[SEP]") or pieces.starts_word(token)
                          for token in tokens]
                masked, labels = mask(tokens, starts, rng, lengths, list(pieces.vocab), flags)
                found.append((masked, segments, labels, label, starts))
    rng.shuffle(found)
    return [record(pieces, flags, *instance) for instance in found]


def mask(tokens, starts, rng, lengths, words, flags):
    units = []
    for position, token in enumerate(tokens):
        if token in ("[CLS]", "[SEP]"):
            continue
        if flags.do_whole_word_mask and units and not starts[position]:
            units[-1].append(position)
        else:
            units.append([position])
    quota = min(flags.max_predictions_per_seq,
                max(1, int(round(len(tokens) * flags.masked_lm_prob))))
    candidates = [[sum(units[index:index + n + 1], []) for n in range(flags.ngram)]
                  for index in range(len(units))]
    sizes = np.arange(1, flags.ngram + 1)
    shares = 1 / sizes / np.sum(1 / sizes)
    limits = np.cumsum(shares if flags.favor_shorter_ngram else shares[::-1])
    limits /= limits[-1]

    def choose(taken):
        """The positions of n-grams, which are added to the set `taken` too."""
        chosen = []
        for ngrams in candidates:
            if len(chosen) >= quota:
                break
            n = int(np.searchsorted(limits, lengths.random_sample(), "right"))
            while n and len(chosen) + len(ngrams[n]) > quota:
                n -= 1
            if len(chosen) + len(ngrams[n]) <= quota and taken.isdisjoint(ngrams[n]):
                taken.update(ngrams[n])
                chosen += ngrams[n]
        return chosen

    rng.shuffle(candidates)
    taken, masked, labels = set(), list(tokens), []
    for position in choose(taken):
        labels.append((position, tokens[position]))
        if rng.random() < 0.8:
            masked[position] = "[MASK]"
        elif rng.random() >= 0.5:
            masked[position] = words[rng.randint(0, len(words) - 1)]
    rng.shuffle(candidates)
    if flags.do_permutation:
        moved = sorted(choose(taken))
        targets = list(moved)
        rng.shuffle(targets)
        labels += [(position, tokens[position]) for position in moved]
        for position, target in zip(moved, targets):
            masked[position] = tokens[target]
    return masked, sorted(labels)


def record(pieces, flags, masked, segments, labels, label, starts):
    size = types.SimpleNamespace(
        max_seq_length=flags.max_seq_length,
        max_predictions_per_seq=flags.max_predictions_per_seq * (2 if flags.do_permutation else 1))
    ids = {piece: pieces.index(piece) for piece in [*masked, *dict(labels).values()]}
    boundaries = [*map(int, starts), *[0] * (flags.max_seq_length - len(starts))]
    return {**reference_pretraining.record(ids, size, masked, segments, labels, label),
            "token_boundary": boundaries}
