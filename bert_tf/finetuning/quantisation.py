"""The flags for fine-tuning, or using, a network with numbers of a few bits."""

import dataclasses
from typing import Any

from bert_tf.config.quantisation import ACTIVATIONS, QUANTISATIONS, Quantisation
from bert_tf.errors import InputError
from bert_tf.flags import check, only, option

_NONE = "none"
# The keys of `Quantisation` that flags set.
_KEYS = {"weight_bits": "weight_bits", "weight_groups": "groups",
         "embedding_bits": "embedding_bits", "activation_ranges": "activations",
         "quantisation_start_step": "start_step"}
_of_rounding = only("quantisation", *QUANTISATIONS)


@dataclasses.dataclass
class QuantisationFlags:
    """Quantisation: numbers of a few bits."""

    quantisation: str | None = option(
        None, "Quantise the weights and inputs of layers, in training too. q8bert: 8 bits "
        "(arXiv:1910.06188). qbert: in groups, with an offset (arXiv:1909.05840). mobilebert: 8 "
        "bits for all tensors in its layers (arXiv:2004.02984). none: floats. (Default: as in the "
        "model's configuration.)", choices=(*QUANTISATIONS, _NONE), rare=True)
    weight_bits: list[str] = _of_rounding(
        [], "With --quantisation, bits of the weights of the encoder's layers, from 2 to 8, or 32 "
        "for floats. Give one number, or one for each layer (default: 8).", items=int)
    weight_groups: int | None = _of_rounding(
        None, "With --quantisation=qbert, number of groups into which the columns of a matrix are "
        "divided. Each group has a separate range. The number must divide the sizes of the "
        "layers (default: 128).", least=1)
    embedding_bits: int | None = _of_rounding(
        None, "With --quantisation, bits of the word embeddings (default: 8).")
    activation_ranges: str | None = _of_rounding(
        None, "With --quantisation, source of the range of a layer's input. ema: a moving average "
        "from training. dynamic: the batch itself. none: inputs are floats. (Default: ema.)",
        choices=ACTIVATIONS)
    quantisation_start_step: int | None = _of_rounding(
        None, "With --quantisation, number of training steps before rounding begins (default: 0).",
        least=0)

    def quantised(self, config: Any) -> Any:
        """A configuration with the quantisation of the flags.

        Raises:
            InputError: the flags don't go together, or the network can't be rounded so.
        """
        check(self)
        if self.quantisation is None:
            return config
        if self.quantisation == _NONE:
            has_any = config.quantisation
            return dataclasses.replace(config, quantisation=None) if has_any else config
        if not config.can_be_rounded:
            raise InputError("--quantisation is for encoders of BERT and its relatives, not for "
                             f"{config.model_type}; leave the flag out.")
        keys = {key: getattr(self, flag) for flag, key in _KEYS.items()
                if getattr(self, flag) not in (None, [])}
        if "weight_bits" in keys:
            bits = tuple(map(int, keys["weight_bits"]))
            keys["weight_bits"] = bits[0] if len(bits) == 1 else bits
        return dataclasses.replace(config, quantisation=Quantisation(
            **{**QUANTISATIONS[self.quantisation], **keys}))
