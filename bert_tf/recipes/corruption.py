"""The data half of a recipe: how documents become sequences, and which tokens are predicted."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Segments:
    """Settings of cutting sequences from documents.

    Attributes:
        pairing: a key of `data.segments.pairing.PAIRINGS`; the value of --segments.
        negatives: the pairs of the other label: "random", B is text from elsewhere; "swapped", A
            and B are in the wrong order; or "three_way", both kinds, with a label each.
        sentence_ends: whether a separator follows every sentence, and one more every document.
        random_share: share of the pairs that get a B from elsewhere, where B may be in order.
        swapped_share: share of the other pairs that are swapped, with negatives="three_way".
        next_label: the label of a pair in order, 0 for BERT.
        autoencoder: whether a text is read once more to predict the text itself, not only the text
            that follows (arXiv:1511.01432).
        num_labels: classes of the labels that a user's file gives; 0 without such labels.
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
    num_labels: int = 0


@dataclasses.dataclass(frozen=True)
class MaskTokens:
    """Settings of predicted tokens, and of the tokens that the model sees in their place.

    Attributes:
        masking: a key of `data.masking.MASKINGS`, which chooses and hides tokens.
        units: the tokens that are predicted together or not at all: "subwords", one at a time;
            "words", with all their sub-words; "tags", words that follow each other under one tag;
            or "phrases" of a list. A word outside of tags and phrases is a unit by itself.
        replace_from: the source of random tokens: "vocabulary"; "words", all but special tokens,
            [MASK] included; "corpus", as often as the text has them; or "tokens", any but padding,
            id 0.
        shares: share of the predicted tokens that become [MASK], and share that become a random
            token. The others keep their token.
        dynamic: whether masks are drawn while training; the records then hold the whole text.
        settings: {field of the masking's class: value}, where it has not its default.
    """

    masking: str = "bert"
    units: str = "subwords"
    replace_from: str = "vocabulary"
    shares: tuple[float, float] = (0.8, 0.1)
    dynamic: bool = False
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)

    def vary(self, values: Mapping[str, Any]) -> "MaskTokens":
        shared = {field.name for field in dataclasses.fields(MaskTokens)}
        settings = {name: value for name, value in values.items() if name not in shared}
        changes: dict[str, Any] = {name: values[name] for name in values if name in shared}
        return dataclasses.replace(self, **{"settings": {**self.settings, **settings}, **changes})

    def describe(self) -> dict[str, Any]:
        return json.loads(json.dumps(dataclasses.asdict(self)))

    @classmethod
    def from_description(cls, values: Mapping[str, Any]) -> "MaskTokens":
        def with_tuples(values):
            return {name: tuple(value) if isinstance(value, list) else value
                    for name, value in values.items()}

        return cls(**with_tuples({**values, "settings": with_tuples(values.get("settings", {}))}))
