"""Rows of inputs and targets for an encoder with a decoder, or for a decoder alone.

A row has one pair or several (seqio's feature_converters.py and utils.py, `trim_and_pack_dataset`).

A target token is predicted from the tokens before it: `decoder_input_tokens` are the targets
shifted right by one, with 0 before the first of each pair.
"""

import dataclasses
from typing import Any

import numpy as np

from bert_tf.data.text.corpus import Documents
from bert_tf.models.t5.corruption import Denoising
from bert_tf.models.t5.segments import MapSeeds, Runs, make_pairs
from bert_tf.recipes import Recipe
from bert_tf.tokenization.vocabulary import Vocabulary

_LENGTH_BINS = 8


def feature_names(converter: str, pack: bool) -> list[str]:
    """The features of such rows, in the order of writing; see `Denoising`."""
    sides = {"encoder": ("input_tokens",)} if converter == "encoder_decoder" else {}
    sides["decoder"] = ("input_tokens", "target_tokens", "loss_weights")
    if converter == "prefix_lm":
        sides["decoder"] += ("causal_attention",)
    packed = ("segment_ids", "positions") if pack else ()
    return [f"{side}_{name}" for side, names in sides.items() for name in (*names, *packed)]


@dataclasses.dataclass
class _Side:
    """The features of each token of the inputs or of the targets, by name; all [T], one pair after
    the other, with `ends` as in `Runs`."""

    values: dict[str, np.ndarray]
    ends: np.ndarray


def _trim(runs, size):
    lengths = np.minimum(runs.lengths, size)
    if (lengths == runs.lengths).all():
        return runs
    column = np.arange(len(runs.tokens)) - np.repeat(runs.ends[:-1], runs.lengths)
    return Runs(runs.tokens[column < size], np.concatenate([[0], np.cumsum(lengths)]))


def _places(ends):
    """The number of the pair and the place in it of each token."""
    pair = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    return pair, np.arange(ends[-1]) - ends[pair]


def _edges(lengths, most):
    """Which pairs begin rows, and the number of pairs: pairs share a row while their `lengths`, int
    [M, sides], fit into `most`. Each group of as many pairs as a row has tokens begins a row."""
    group, edges, used = int(max(most)), [], np.zeros(len(most), int)
    for number, row in enumerate(lengths):
        if number % group == 0 or (used + row > most).any():
            edges.append(number)
            used = np.zeros(len(most), int)
        used = used + row
    return np.array([*edges, len(lengths)], int)


class TextPairs:
    """Pairs of inputs and targets as rows of features.

    Args:
        inputs, targets: tokens of the pairs, with their final tokens.
        max_seq_length, max_target_length: S and T, the longest rows.
        converter, pack: see `Denoising`.
        text_tokens: how many tokens of text the pairs were made from.

    Attributes:
        order: int [M], the order of writing the rows.
        names: of the features.
    """

    def __init__(self, inputs: Runs, targets: Runs, max_seq_length: int, max_target_length: int,
                 converter: str = "encoder_decoder", pack: bool = False, text_tokens: int = 0
                 ) -> None:
        self.names, self._text_tokens = feature_names(converter, pack), text_tokens
        self._is_packed = pack
        self._sizes = {"encoder": max_seq_length, "decoder": max_target_length}
        inputs = _trim(inputs, max_seq_length)
        self._sides = {"decoder": _decoder(
            inputs if converter == "prefix_lm" else None, targets, max_target_length)}
        if converter == "encoder_decoder":
            pair, place = _places(inputs.ends)
            self._sides["encoder"] = _Side({"input_tokens": inputs.tokens, "positions": place,
                                            "pair": pair}, inputs.ends)
        self._edges = np.arange(len(targets) + 1)
        if pack:
            self._edges = _edges(
                np.stack([np.diff(side.ends) for side in self._sides.values()], 1),
                np.array([self._sizes[name] for name in self._sides]))
        for side in self._sides.values():
            row = np.repeat(np.arange(len(self._edges) - 1), np.diff(self._edges))
            pair = side.values["pair"]
            side.values["segment_ids"] = pair - self._edges[row][pair] + 1
        self.order = np.arange(len(self._edges) - 1)

    @staticmethod
    def feature_names(recipe: Recipe) -> list[str]:
        """The features of a recipe's records, in the order of writing."""
        assert recipe.denoising
        return feature_names(recipe.denoising.converter, recipe.denoising.pack)

    def features(self, rows: np.ndarray, max_seq_length: int = 0,
                 vocabulary: Vocabulary | None = None) -> dict[str, np.ndarray]:
        """The record features of some rows, each int32 [B, S] or [B, T]."""
        features = {}
        for name in self.names:
            side, _, kind = name.partition("_")
            values, ends = self._sides[side].values[kind], self._sides[side].ends[self._edges]
            features[name] = Runs(values, ends).padded(rows, self._sizes[side])
        if not self._is_packed:     # then the last target is an input too, where there is room
            features["decoder_input_tokens"] = np.pad(
                features["decoder_target_tokens"][:, :-1], ((0, 0), (1, 0)))
        return features

    def counts(self) -> dict[str, Any]:
        """Counts, as `pretraining.count_instances` gives them."""
        name = "encoder" if "encoder" in self._sides else "decoder"
        size, side = self._sizes[name], self._sides[name]
        lengths = np.diff(side.ends[self._edges])
        bins = np.minimum(lengths * _LENGTH_BINS // (size + 1), _LENGTH_BINS - 1)
        return {"instances": len(lengths), "instance_tokens": self._text_tokens,
                "pairs": len(side.ends) - 1,
                "target_tokens": int(self._sides["decoder"].values["loss_weights"].sum()),
                "positions": int(lengths.sum()), "full_length": int((lengths == size).sum()),
                "length_histogram": np.bincount(bins, minlength=_LENGTH_BINS).tolist()}


def _decoder(prefix, targets, size):
    """The decoder's side; of a prefix LM with the inputs before the targets."""
    before = np.zeros(len(targets), int)
    if prefix is not None:
        before = prefix.lengths
        targets = Runs.join(np.concatenate(pair) for pair in zip(prefix, targets))
    targets = _trim(targets, size)
    pair, place = _places(targets.ends)
    return _Side({
        "target_tokens": targets.tokens,
        "input_tokens": np.where(place == 0, 0, np.roll(targets.tokens, 1)),
        "loss_weights": ((place >= before[pair]) & (targets.tokens != 0)).astype(np.int32),
        # The first target is predicted at the last place with a 1.
        "causal_attention": (place <= before[pair]).astype(np.int32),
        "positions": place, "pair": pair}, targets.ends)


def create_pairs(documents: Documents, vocabulary: Vocabulary, seed: int, objective: Denoising,
                 max_seq_length: int, max_target_length: int, copies: int = 1) -> TextPairs:
    """The rows of a piece of text, used `copies` times with other noise. `seed`: see `MapSeeds`."""
    starts = documents.sentence_starts
    texts = [documents.tokens[starts[first]:starts[end]] for first, end in documents.ranges]
    seeds = MapSeeds(seed)
    sides = [make_pairs(texts, objective, seeds, max_seq_length, max_target_length,
                        vocabulary.size, vocabulary.sep_id) for _ in range(copies)]
    inputs, targets = (Runs.join(run for copy in sides for run in copy[side]) for side in (0, 1))
    return TextPairs(inputs, targets, max_seq_length, max_target_length, objective.converter,
                     objective.pack, sum(tokens for *_, tokens in sides))
