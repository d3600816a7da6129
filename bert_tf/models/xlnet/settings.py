"""Settings of pre-training XLNet and Transformer-XL."""

import dataclasses

from bert_tf.flags import check, option


@dataclasses.dataclass(frozen=True)
class MemorySettings:
    """Memory of earlier positions."""

    mem_len: int | None = option(
        None, "Number of earlier positions that a sequence sees; 0: no memory. Default: as in the "
        "configuration.", least=0)

    __post_init__ = check


@dataclasses.dataclass(frozen=True)
class XLNetSettings(MemorySettings):
    """Order of prediction (XLNet)."""

    perm_size: int = option(
        0, "Number of tokens that are permuted together. 0: the --reuse_len of the records.",
        least=0)
