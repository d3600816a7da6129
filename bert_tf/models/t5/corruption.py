"""T5's objectives, which turn a text into an input and a target (arXiv:1910.10683, section 3.3)."""

import dataclasses
from typing import Any

from bert_tf.errors import InputError

_SPANS = "random_spans"
_UNIQUE = "noise_span_to_unique_sentinel"
_HIDDEN = "nonnoise_span_to_unique_sentinel"
_TEXT = "keep_tokens"
# By the names of seqio's feature converters: an encoder and a decoder; or a decoder alone, without
# inputs or with each before its target.
CONVERTERS = ("encoder_decoder", "lm", "prefix_lm")


@dataclasses.dataclass(frozen=True)
class Denoising:
    """An objective: how documents are cut into sequences, and these into inputs and targets.

    Attributes:
        noise: a key of `models.t5.segments.NOISE_MASKS`; empty: language models, without input.
        noise_density: share of noise tokens.
        mean_noise_span_length: mean length of a span, with random spans.
        inputs, targets: the functions that make them from the text and the noise, keys of
            `models.t5.segments.NOISE_FUNCTIONS`.
        most_tokens: a longer document gives only a random piece of so many tokens; 0: all of it.
        concatenated: how many documents follow each other without a mark; 0: each is cut by itself.
        length: how long the sequences are that a text is cut into: "spans", as long as makes full
            inputs; "inputs" or "targets", as long as these; "random", up to an input, by document;
            "stream": a target, of all documents in a row.
        document_ends: whether a final token ends each document instead of each sequence.
        converter: the form of the rows, one of `CONVERTERS`.
        pack: whether a row holds as many pairs of input and target as fit.
    """

    noise: str = _SPANS
    noise_density: float = 0.15
    mean_noise_span_length: float = 3.0
    inputs: str = _UNIQUE
    targets: str = _HIDDEN
    most_tokens: int = 65536
    concatenated: int = 128
    length: str = "spans"
    document_ends: bool = False
    converter: str = "encoder_decoder"
    pack: bool = False

    @property
    def has_inputs(self) -> bool:
        """Whether there are inputs; a language model has targets only."""
        return bool(self.noise)

    def target_length(self, inputs_length: int) -> int:
        """The length of the decoder's rows, where it is not chosen: none is cut but by an objective
        whose sentinels are more than its tokens."""
        if self.length != "spans":
            return inputs_length + (self.converter == "prefix_lm")
        longest = spans_lengths(inputs_length, self.noise_density, self.mean_noise_span_length)[1]
        return longest + inputs_length * (self.converter == "prefix_lm")

    def vary(self, noise_density: float | None = None,
             mean_noise_span_length: float | None = None) -> "Denoising":
        """This objective with other noise. InputError: a value has no effect here."""
        values: dict[str, Any] = {name: value for name, value in (
            ("noise_density", noise_density),
            ("mean_noise_span_length", mean_noise_span_length)) if value is not None}
        for name in values:
            if self.noise != _SPANS and (self.noise != "iid" or name != "noise_density"):
                raise InputError(f"--{name} has no effect with this --objective; leave the flag "
                                 "out.")
        return dataclasses.replace(self, **values)


def _iid(**values):
    return Denoising("iid", length="inputs", **values)


def _lm(**values):
    return Denoising("", converter="lm", **values)


# By the names of the original's gin files, without their numbers. In inputs and targets, tokens are
# "u" unique sentinels, "d" dropped, "m" one sentinel for each, "r" random tokens, "f" full text.
OBJECTIVES = {
    "span_corruption": Denoising(),
    "iid_u_u": _iid(),
    "iid_d_d": _iid(inputs="drop_noise_tokens", targets="drop_nonnoise_tokens"),
    "iid_m_f": _iid(inputs="noise_token_to_sentinel", targets=_TEXT),
    "iid_r10s90_f": _iid(inputs="noise_token_to_random_token_or_sentinel", targets=_TEXT),
    "all_permute": _iid(noise_density=1.0, inputs="permute_noise_tokens", targets=_TEXT,
                        concatenated=0),
    "prefix_lm": Denoising("random_prefix", 0.5, inputs="drop_nonnoise_tokens",
                           targets="drop_noise_tokens", concatenated=0, length="inputs"),
    "lm": _lm(length="targets"),
    "full_lm": _lm(length="targets", document_ends=True),
    "random_length": _lm(concatenated=0, length="random"),
    "fixed_length": _lm(most_tokens=0, concatenated=0, length="stream"),
}


def spans_lengths(inputs_length: int, noise_density: float, mean_noise_span_length: float
                  ) -> tuple[int, int]:
    """Returns how many tokens become an input of a given length, and how long their target is, both
    with a final token (the original's `random_spans_helper`)."""
    def lengths(tokens):
        noise = round(tokens * noise_density)
        spans = round(noise / mean_noise_span_length)
        return tokens - noise + spans + 1, noise + spans + 1

    tokens = inputs_length - 1
    while lengths(tokens + 1)[0] <= inputs_length:
        tokens += 1
    inputs, targets = lengths(tokens)
    if noise_density == 0.5 and targets > inputs:
        return tokens - 1, targets - 1
    return tokens, targets

