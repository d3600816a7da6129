"""The sizes of encoders such as BERT's: the keys that files share, and what follows from the sizes.
"""

import dataclasses
from typing import ClassVar

from bert_tf.config.sizes import FRACTIONS, WHOLE_NUMBERS, Sizes

# In transformers' ErnieConfig.
TASK_TYPES = 3


@dataclasses.dataclass(frozen=True)
class BertSizes:
    """The sizes under the keys of google-research/bert's BertConfig, with its defaults; mixin of
    those whose files have all of them.

    Attributes:
        hidden_size: H.
        type_vocab_size: the rows of the table of segments.
        model_type: a key of `CONFIGS`.
        embedding_size: E, the width of the embeddings; H if None.
    """

    whole_numbers: ClassVar[dict[str, int]] = {
        **WHOLE_NUMBERS, "type_vocab_size": 65_536, "embedding_size": 65_536}
    fractions: ClassVar[dict[str, float]] = FRACTIONS

    vocab_size: int
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 16
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    model_type: str = "bert"
    embedding_size: int | None = None


class EncoderSizes(Sizes):
    """What follows from the sizes of an `EncoderConfig`, or of a network with layers as BERT's."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    type_vocab_size: int
    model_type: str
    embedding_size: int | None
    num_hidden_groups: int | None
    inner_group_num: int
    shared_parts: str
    pooler_type: str
    use_task_id: bool
    task_type_vocab_size: int | None
    directionality: str
    # What was cut: see `EncoderConfig`, which alone can have any.
    pruned_heads: tuple[tuple[int, tuple[int, ...]], ...] = ()
    intermediate_sizes: tuple[int, ...] | None = None

    @property
    def num_weights(self) -> int:
        """The number of weights in the encoder's matrices, which are nearly all."""
        tables = (self.vocab_size + self.max_position_embeddings + self.segment_types
                  + self.task_types)
        width, hidden = self.embedding_width, self.hidden_size
        attentions, feed_forwards = map(set, zip(*self.layer_weights))
        return (tables * width + hidden * (
            4 * self.head_size * sum(len(self.kept_heads(i)) for i in attentions)
            + 2 * sum(map(self.feed_forward_size, feed_forwards))
            + (width if self.projects else 0) + (hidden if self.has_pooler else 0)))

    def kept_heads(self, number: int) -> list[int]:
        """The heads of the attention `number` that were not cut, by their original numbers."""
        pruned = dict(self.pruned_heads).get(number, ())
        return [head for head in range(self.num_attention_heads) if head not in pruned]

    def feed_forward_size(self, number: int) -> int:
        """F of the feed-forward network `number`."""
        if self.intermediate_sizes is None:
            return self.intermediate_size
        numbers = sorted({feed_forward for _, feed_forward in self.layer_weights})
        return self.intermediate_sizes[numbers.index(number)]

    @property
    def is_pruned(self) -> bool:
        """Whether some layers lack heads or units that others have."""
        return bool(self.pruned_heads or self.intermediate_sizes)

    @property
    def head_size(self) -> int:
        """The width of one attention head."""
        return self.hidden_size // self.num_attention_heads

    @property
    def learned_heads(self) -> int:
        """The number of heads of a layer that have queries and keys."""
        return self.num_attention_heads

    @property
    def embedding_width(self) -> int:
        """E, the width of the embeddings."""
        return self.embedding_size or self.hidden_size

    @property
    def task_types(self) -> int:
        """How many tasks have an embedding."""
        return (self.task_type_vocab_size or TASK_TYPES) if self.use_task_id else 0

    @property
    def projects(self) -> bool:
        """Whether a dense layer leads from the embeddings to the first layer."""
        return self.embedding_width != self.hidden_size

    @property
    def has_segments(self) -> bool:
        """Whether segments are told apart. RoBERTa's code has none; its files in Hugging Face's
        format hold one row for them, of zeros."""
        return self.model_type not in ("roberta", "distilbert")

    @property
    def segment_types(self) -> int:
        """The rows of the table of segments; 0 where there is no table."""
        return 0 if self.model_type == "distilbert" else self.type_vocab_size

    @property
    def has_pooler(self) -> bool:
        """Whether the pooled output has weights of its own."""
        return self.pooler_type != "first_token"

    @property
    def depth(self) -> int:
        """How many blocks a sequence passes: L, times `inner_group_num`."""
        return self.num_hidden_layers * self.inner_group_num

    @property
    def shares_layers(self) -> bool:
        """Whether some layers share weights."""
        return any(len(set(numbers)) < self.depth for numbers in zip(*self.layer_weights))

    @property
    def layer_weights(self) -> list[tuple[int, int]]:
        """For each block that a sequence passes, the numbers of the weights of its attention and
        of its feed-forward network: those of `encoder/layer_{i}` in their names.

        As google-research/albert finds the group of a layer, modeling.py: by a division in floating
        point, which for some sizes, such as 22 layers in 22 groups, uses one group twice and
        another never. A part that the blocks share beside one that they do not has the number of
        the first of them.
        """
        groups, inner, passed = self.num_hidden_groups, self.inner_group_num, range(self.depth)
        if groups is None:
            return [(i, i) for i in passed]
        shared = [int(layer / self.num_hidden_layers * groups) * inner + i
                  for layer in range(self.num_hidden_layers) for i in range(inner)]
        if self.shared_parts == "all":
            return [(i, i) for i in shared]
        pairs = list(zip(map(shared.index, shared), passed))
        return pairs if self.shared_parts == "attention" else [(b, a) for a, b in pairs]
