"""The sizes of MPNet (arXiv:2004.09297)."""

import dataclasses
from typing import ClassVar

from bert_tf.config.encoder import EncoderConfig
from bert_tf.config.sizes import one_of, whole
from bert_tf.errors import InputError


@dataclasses.dataclass(frozen=True)
class MPNetConfig(EncoderConfig):
    """Sizes of MPNet: BERT's, without segments, and with a bias of attention by distance.

    Attributes:
        relative_attention_num_buckets: the rows of the table of biases; the network uses 32.
    """

    added_keys: ClassVar = tuple(key for key in EncoderConfig.added_keys if key != "model_type")
    distinctive_keys: ClassVar = ("relative_attention_num_buckets",)
    # transformers fixes the number of buckets, whatever the table's size.
    buckets: ClassVar = 32
    largest_distance: ClassVar = 128

    model_type: str = one_of("mpnet", ("mpnet",))
    type_vocab_size: int = whole(1)
    relative_attention_num_buckets: int = whole(32, 1024, least=32)

    is_plain = has_segments = False
    skips_padding = True
    segment_types = 0

    def check(self) -> None:
        super().check()
        if self.pruned_heads:
            raise InputError("pruned_heads: the layers of an mpnet share a table with a column for "
                             "each head, so no layer can lack heads; leave pruned_heads out.")

    def weights(self) -> dict[str, str]:
        return {**super().weights(), "encoder/relative_attention_bias/weight": "ON"}
