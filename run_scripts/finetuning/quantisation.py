"""The flags by which a network is fine-tuned, or used, with numbers of a few bits."""

import dataclasses
from typing import Any

from bert_tf.config.quantisation import ACTIVATIONS, QUANTISATIONS, Quantisation
from bert_tf.errors import InputError
from bert_tf.flags import option

_NONE = "none"
# The keys of `Quantisation` that flags set.
_KEYS = {"weight_bits": "weight_bits", "weight_groups": "groups",
         "embedding_bits": "embedding_bits", "activation_ranges": "activations",
         "quantisation_start_step": "start_step"}


@dataclasses.dataclass
class QuantisationFlags:
    """Quantisation: numbers of a few bits."""

    quantisation: str | None = option(
        None, "Round weights and inputs of layers to a few bits, in training too. q8bert: 8 bits "
        "(arXiv:1910.06188). qbert: by groups, with an offset (arXiv:1909.05840). mobilebert: 8 "
        "bits for all tensors in its layers (arXiv:2004.02984). none: floats. (Default: as in the "
        "model's configuration.)", choices=(*QUANTISATIONS, _NONE), rare=True)
    weight_bits: list[str] = option(
        [], "With --quantisation, bits of the weights of the encoder's layers, from 2 to 8, or 32 "
        "for floats. Give one number, or one for each layer (default: 8).", rare=True)
    weight_groups: int | None = option(
        None, "With --quantisation=qbert, number of groups into which the columns of a matrix are "
        "divided. Each group has a range of its own. The number must divide the sizes of the "
        "layers (default: 128).", rare=True)
    embedding_bits: int | None = option(
        None, "With --quantisation, bits of the word embeddings (default: 8).", rare=True)
    activation_ranges: str | None = option(
        None, "With --quantisation, source of the range of a layer's input. ema: a moving average "
        "from training. dynamic: the input itself. none: inputs are floats. (Default: ema.)",
        choices=ACTIVATIONS, rare=True)
    quantisation_start_step: int | None = option(
        None, "With --quantisation, number of training steps before rounding begins (default: 0).",
        rare=True)

    def quantised(self, config: Any) -> Any:
        """A configuration with the quantisation of the flags.

        Args:
            config: of the model as it is.

        Raises:
            InputError: the flags don't go together, or the network can't be rounded so.
        """
        given = {key: getattr(self, flag) for flag, key in _KEYS.items()
                 if getattr(self, flag) not in (None, [])}
        if self.quantisation is None or self.quantisation == _NONE:
            if given:
                flags = ", ".join(f"--{flag}" for flag, key in _KEYS.items() if key in given)
                raise InputError(f"{flags}: give --quantisation too.")
            has_any = self.quantisation and config.quantisation
            return dataclasses.replace(config, quantisation=None) if has_any else config
        if "quantisation" not in config.added_keys:
            raise InputError("--quantisation is for BERT's encoder and its relatives', not for "
                             f"{config.model_type}; leave it out.")
        if "weight_bits" in given:
            given["weight_bits"] = _bits(given["weight_bits"])
        return dataclasses.replace(config, quantisation=Quantisation(
            **{**QUANTISATIONS[self.quantisation], **given}))


def _bits(values):
    """A whole number, or a tuple of them."""
    try:
        bits = tuple(map(int, values))
    except ValueError:
        raise InputError(f"--weight_bits={','.join(values)}: give whole numbers.") from None
    return bits[0] if len(bits) == 1 else bits
