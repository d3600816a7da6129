"""How sequences are cut from documents, and which of their tokens are predicted: what, beside the
tokenizer, decides the records of a recipe.
"""

import dataclasses
import math

from bert_tf.errors import InputError


@dataclasses.dataclass(frozen=True)
class Segments:
    """How sequences are cut from documents.

    Attributes:
        pairing: a key of `data.segments.pairing.PAIRINGS`; the value of --segments.
        negatives: what a pair of the other label is: "random", B is text from elsewhere (BERT),
            "swapped", A and B in the wrong order (ALBERT), or "three_way", either of them, which
            have labels of their own (StructBERT).
        sentence_ends: whether a separator follows every sentence, and one more every document.
        random_share: share of the pairs that get a B from elsewhere, where B may be in order.
        swapped_share: share of the other pairs that are swapped, with negatives="three_way".
        next_label: the label of a pair in order, 0 (BERT) or 1 (ERNIE).
        bare: whether sequences have no special tokens around the text (GPT).
        autoencoder: whether a text is read once more to predict it, not only what follows
            (arXiv:1511.01432).
        reverse: whether texts are read from right to left.
    """

    pairing: str = "segment_pairs"
    negatives: str = "random"
    sentence_ends: bool = False
    random_share: float = 0.5
    swapped_share: float = 0.5
    next_label: int = 0
    bare: bool = False
    autoencoder: bool = False
    reverse: bool = False


@dataclasses.dataclass(frozen=True)
class MaskTokens:
    """Some tokens are hidden and predicted.

    Attributes:
        units: what is predicted together or not at all: "subwords", one at a time; "words", with
            all their sub-words; "tags", words that follow each other under one tag; or "phrases",
            those of a list. Words outside of tags and phrases are units of their own.
        choose: how units are chosen, a key of `data.masking.static_masks.MASKINGS`.
        quota: how many tokens are predicted: "rounded", a share of the sequence; "with_repeats",
            as many positions are drawn with replacement, so that one may come twice; "drawn", a
            share of the units, rounded up or down at random so that their mean is exact, with
            special tokens among them (RoBERTa); "raised", a share of the text, rounded up
            (SpanBERT); "each", a coin for each unit, whose tokens are then thrown one by one
            (ERNIE); "of_batch", a share of all tokens of a batch, drawn anew each time, rare words
            more often (DistilBERT); "next_token", every token but the first, from those before it:
            none is hidden, and the other fields have no effect; "permutation", what the records
            say, each from the tokens before it in an order that is drawn while training (XLNet);
            "none", no token.
        replace_from: what random tokens are drawn from: "vocabulary", "words": not the special
            tokens but that of mask (RoBERTa), "corpus": as often as the text has them (SpanBERT),
            or "tokens": any but padding, id 0 (ERNIE).
        shares: share of the predicted tokens that become [MASK], and share that become a random
            token. The others keep their token.
        dynamic: whether masks are drawn while training; the records then hold the whole text.
        ngram: with choose="ngrams", the most units in a row that are predicted together.
        favor_shorter_ngram: with choose="ngrams", whether n units have the probability of 1 / n; if
            not, the longest are the most frequent.
        do_permutation: with choose="ngrams", whether as many other tokens again change places with
            each other and are predicted too.
        schemes: with choose="spans", how the tokens of a sequence are chosen, one of these for each
            sequence: "pair_span", "random" for single tokens, "ner_span" for entities and spans.
        span_lower, span_upper, geometric_p: the length of a span in words: from, to, and p of its
            geometric distribution.
        replacement_method: whether a "span" is hidden as a whole, or each "word_piece" of it.
        endpoints: what a span is predicted from: the tokens around it, "external", or its own first
            and last, "internal".
        max_pair_targets: how many tokens of a span are predicted from these.
        ner_masking_prob: with "ner_span", the probability of an entity, not a span.
        shuffle_prob: share of the visible tokens that are shuffled, three neighbours at a time, and
            predicted too (StructBERT).
    """

    units: str = "subwords"
    choose: str = "units"
    quota: str = "rounded"
    replace_from: str = "vocabulary"
    shares: tuple[float, float] = (0.8, 0.1)
    dynamic: bool = False
    ngram: int = 3
    favor_shorter_ngram: bool = True
    do_permutation: bool = False
    schemes: tuple[str, ...] = ("pair_span",)
    span_lower: int = 1
    span_upper: int = 10
    geometric_p: float = 0.2
    replacement_method: str = "span"
    endpoints: str = "external"
    max_pair_targets: int = 15
    ner_masking_prob: float = 0.5
    shuffle_prob: float = 0.0

    def slots(self, max_predictions_per_seq: int, max_seq_length: int) -> int:
        """The number of predictions that a record has room for."""
        if self.quota == "permutation" and not max_predictions_per_seq:
            return max_seq_length
        return (max_predictions_per_seq * (1 + self.do_permutation)
                + 3 * self.most_trigrams(max_predictions_per_seq, max_seq_length))

    def most_trigrams(self, max_predictions_per_seq: int, max_seq_length: int) -> int:
        """The most trigrams of a sequence that are shuffled: of one that is full, with two
        segments."""
        visible = max(max_seq_length - 3 - max_predictions_per_seq, 0)
        return math.ceil(round(self.shuffle_prob * visible / 3, 9))

    def most_predictions(self, max_seq_length: int, masked_lm_prob: float) -> int | None:
        """The most predictions where the recipe says how many there are, as ELECTRA's, RoBERTa's
        and SpanBERT's do. Where words are drawn, which may have any length, half of them more. Of
        coins there is only a number that few sequences exceed."""
        if self.quota == "with_repeats":
            return max(1, int((masked_lm_prob + 0.005) * max_seq_length))
        if self.quota == "drawn":
            share = masked_lm_prob * (1 if self.units == "subwords" else 1.5)
            return min(int(share * max_seq_length) + 1, max_seq_length)
        if self.quota == "raised":
            return math.ceil(masked_lm_prob * (max_seq_length - 2))
        if self.quota in ("each", "of_batch"):
            # Four standard deviations above the mean, of units of two tokens.
            spread = (2 * max_seq_length * masked_lm_prob) ** 0.5
            return min(int(masked_lm_prob * max_seq_length + 4 * spread), max_seq_length)
        return None

    @property
    def hides(self) -> bool:
        """Whether the tokens that are predicted are hidden."""
        return self.quota not in ("next_token", "permutation")

    def takes(self, made: "MaskTokens") -> bool:
        """Whether records that were made for other predictions can be trained on."""
        return self == made or not self.hides

    def check_slots(self, max_predictions_per_seq: int, max_seq_length: int,
                    masked_lm_prob: float) -> None:
        """Raises InputError where predictions are drawn that records have no room for, so that
        the last ones of a sequence would be left out."""
        if self.quota == "raised" or (self.quota == "drawn" and self.units == "subwords"):
            most = self.most_predictions(max_seq_length, masked_lm_prob)
            if most and max_predictions_per_seq < most:
                raise InputError(f"--max_predictions_per_seq is {max_predictions_per_seq}, but a "
                                 f"sequence of {max_seq_length} tokens can have {most} "
                                 "predictions; give that many, or leave the flag out.")
