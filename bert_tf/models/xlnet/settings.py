"""Settings of pre-training XLNet and Transformer-XL."""

import dataclasses
from typing import Any

from bert_tf.flags import check, option


@dataclasses.dataclass(frozen=True)
class MemorySettings:
    """Memory of earlier positions."""

    mem_len: int | None = option(
        None, "Number of earlier positions that a sequence sees; 0: no memory. Default: as in the "
        "configuration.", least=0)

    __post_init__ = check

    def adapted(self, config: Any) -> Any:
        if self.mem_len is None:
            return config
        return dataclasses.replace(config, mem_len=self.mem_len)


@dataclasses.dataclass(frozen=True)
class XLNetSettings(MemorySettings):
    """Order of prediction (XLNet)."""

    perm_size: int = option(
        0, "Number of tokens that are permuted together. 0: the --reuse_len of the records.",
        least=0)
