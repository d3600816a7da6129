"""The sizes of an encoder with some heads that attend to fixed places."""

import dataclasses
from typing import Any, ClassVar

from bert_tf.config.encoder import EncoderConfig
from bert_tf.config.sizes import one_of
from bert_tf.errors import InputError

# The tokens that a head with a fixed pattern attends to (arXiv:2002.10260): the token itself; the
# previous one; the next one; the tokens two or more places before, or after, near ones more; all
# tokens, more towards the end, or towards the start.
PATTERNS = ("current", "previous", "next", "left", "right", "end", "start")


def as_patterns(fixed_heads: Any) -> tuple[str, ...]:
    """`PATTERNS` as a tuple. InputError: `fixed_heads` is not a list of patterns."""
    if not isinstance(fixed_heads, (list, tuple)):
        raise InputError(f"fixed_heads must be a list, not {fixed_heads!r}.")
    for name in fixed_heads:
        if name not in PATTERNS:
            raise InputError(f"fixed_heads: there is no pattern {name!r}; choose from "
                             f"{', '.join(PATTERNS)}.")
    return tuple(fixed_heads)


@dataclasses.dataclass(frozen=True)
class FixedPatternConfig(EncoderConfig):
    """Sizes of a `FixedPatternEncoder`: BERT's encoder with heads that attend to fixed places.

    Attributes:
        fixed_heads: the `PATTERNS` of the first F heads of each layer; one may come twice.
        empty_rows: place that a token attends to where its pattern has none: "end", the first or
            last token; "zero", nothing.
        pattern_units: unit of the patterns, "tokens" or "words". For words the network reads the
            feature `token_boundary`.
    """

    added_keys: ClassVar = tuple(key for key in EncoderConfig.added_keys if key != "model_type")
    distinctive_keys: ClassVar = ("fixed_heads",)
    unseen_keys: ClassVar = (*EncoderConfig.unseen_keys, "fixed_heads", "empty_rows",
                             "pattern_units")

    is_plain = False
    model_type: str = one_of("fixed_patterns", ("fixed_patterns",))
    fixed_heads: tuple[str, ...] = PATTERNS
    empty_rows: str = one_of("end", ("end", "zero"))
    pattern_units: str = one_of("tokens", ("tokens", "words"))

    def __post_init__(self):
        object.__setattr__(self, "fixed_heads", as_patterns(self.fixed_heads))
        super().__post_init__()     # counts the heads
        if self.pruned_heads:
            raise InputError("pruned_heads: a network with fixed_heads can't be pruned; leave out "
                             "one of the two.")
        if self.is_causal:
            raise InputError("fixed_heads look at both sides of a token, so directionality must be "
                             "bidi.")
        if len(self.fixed_heads) > self.num_attention_heads:
            raise InputError(f"fixed_heads names {len(self.fixed_heads)} heads, but "
                             f"num_attention_heads is {self.num_attention_heads}; name fewer.")

    learned_heads = property(lambda self: self.num_attention_heads - len(self.fixed_heads))

    @property
    def further_features(self) -> tuple[str, ...]:
        return ("token_boundary",) if self.pattern_units == "words" else ()
