"""The sizes of the encoder of BERT's relatives, and of BERT with cut or rounded parts."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from bert_tf.bert.config import BertConfig
from bert_tf.config.quantisation import Quantisation, parse_quantisation
from bert_tf.config.sizes import DIRECTIONS, check_sizes, one_of, switch, whole
from bert_tf.config.table import BERT_TYPES
from bert_tf.errors import InputError

# In transformers' ErnieConfig.
TASK_TYPES = 3


@dataclasses.dataclass(frozen=True)
class EncoderConfig(BertConfig):
    """Sizes of the encoder of BERT or of a relative.

    Attributes:
        model_type: Hugging Face's name of the architecture, or "spanbert" or "structbert", which
            have the architecture bert; a key of `CONFIGS`.
        embedding_size: E, the width of the embeddings; H if None. A dense layer projects E to
            another H (arXiv:1909.11942, section 3.1).
        num_hidden_groups: groups of layers that share weights; None: each layer has its own.
        inner_group_num: number of blocks of a layer, each with its own weights.
        shared_parts: part that the layers of a group share: "all", "attention" or "feed_forward"
            (arXiv:1909.11942, table 4).
        pooler_type: "first_token_transform", a dense layer with tanh on the vector of the first
            token; "first_token_relu", the same with ReLU (DistilBERT); "first_token_tanh_relu",
            with both (TinyBERT); or "first_token", that vector itself.
        use_task_id: whether an embedding of the task is added to each token's (arXiv:1907.12412).
        task_type_vocab_size: number of tasks; 3 if None, as in Hugging Face's files.
        directionality: "bidi", or "left_to_right": a token attends to itself and to the tokens on
            its left only (arXiv:1810.04805, section 5.1). The pooler then reads the last token,
            which alone attends to all others.
        quantisation: rounding to a few bits, or None.
        pruned_heads: the removed heads (arXiv:1905.10650): a mapping from the number of an
            attention, as `layer_weights` counts them, to its heads' original numbers, as in Hugging
            Face's files. Kept as sorted pairs.
        intermediate_sizes: F of each feed-forward network where units were removed;
            `intermediate_size` of all if None.
    """

    can_be_rounded = True
    # The keys with sizes of single layers, for models whose heads or units were cut.
    pruned_keys: ClassVar = ("pruned_heads", "intermediate_sizes")
    added_keys: ClassVar[tuple[str, ...]] = (
        "layer_norm_eps", "model_type", "embedding_size", "num_hidden_groups",
        "task_type_vocab_size", "inner_group_num", "shared_parts", "pooler_type", "use_task_id",
        "directionality", "quantisation", *pruned_keys)
    # These describe a pooler that the original never builds, and parts of ALBERT that
    # google-research/albert never reads.
    unused_keys: ClassVar = ("pooler_fc_size", "pooler_num_attention_heads",
                             "pooler_num_fc_layers", "pooler_size_per_head", "down_scale_factor",
                             "net_structure_type", "gap_size", "num_memory_blocks", "ln_type")

    model_type: str = one_of("bert", BERT_TYPES)
    embedding_size: int | None = whole(None)
    num_hidden_groups: int | None = whole(None, "layers")
    inner_group_num: int = whole(1, most=64)
    shared_parts: str = one_of("all", ("all", "attention", "feed_forward"))
    pooler_type: str = one_of("first_token_transform", (
        "first_token_transform", "first_token", "first_token_relu", "first_token_tanh_relu"))
    use_task_id: bool = switch(False)
    task_type_vocab_size: int | None = whole(None)
    directionality: str = one_of("bidi", DIRECTIONS)
    quantisation: Quantisation | None = None
    pruned_heads: tuple[tuple[int, tuple[int, ...]], ...] = ()
    intermediate_sizes: tuple[int, ...] | None = None

    def check(self) -> None:
        object.__setattr__(self, "pruned_heads", _as_pruned_heads(self))
        _check_intermediate_sizes(self)
        check_sizes(self)
        if self.model_type == "distilbert" and self.pooler_type != "first_token_relu":
            raise InputError(f"pooler_type is {self.pooler_type}; with model_type distilbert it "
                             "must be first_token_relu.")
        if self.quantisation is not None:
            parse_quantisation(self)

    def kept_heads(self, number: int) -> list[int]:
        """The remaining heads of the attention `number`, by their original numbers."""
        pruned = dict(self.pruned_heads).get(number, ())
        return [head for head in range(self.num_attention_heads) if head not in pruned]

    def feed_forward_size(self, number: int) -> int:
        """F of the feed-forward network `number`."""
        if self.intermediate_sizes is None:
            return self.intermediate_size
        numbers = sorted({feed_forward for _, feed_forward in self.layer_weights})
        return self.intermediate_sizes[numbers.index(number)]

    @property
    def is_pruned(self) -> bool:      # type: ignore[override]
        """Returns whether some layers lack heads or units that others have."""
        return bool(self.pruned_heads or self.intermediate_sizes)

    @property
    def is_plain(self) -> bool:      # type: ignore[override]
        """Returns whether the network is BERT itself, with its own layers and nothing else."""
        return not (self.quantisation or self.is_pruned or self.projects or self.task_types
                    or self.is_causal) and (
            self.has_segments and self.pooler_type == "first_token_transform"
            and self.layer_weights == [(i, i) for i in range(self.num_hidden_layers)])

    @property
    def head_initializer(self) -> str | None:      # type: ignore[override]
        """google-research/electra uses the default of `tf.layers.dense`."""
        return "glorot_uniform" if self.model_type == "electra" else None

    @property
    def task_types(self) -> int:      # type: ignore[override]
        """Returns the number of tasks that have an embedding."""
        return (self.task_type_vocab_size or TASK_TYPES) if self.use_task_id else 0

    @property
    def has_segments(self) -> bool:      # type: ignore[override]
        """Returns whether the network has segment embeddings. RoBERTa's code has none; its files in
        Hugging Face's format hold one row of zeros for them."""
        return self.model_type not in ("roberta", "xlm-roberta", "camembert", "distilbert")

    @property
    def segment_types(self) -> int:
        """The rows of the table of segments; 0 where there is no table."""
        return 0 if self.model_type == "distilbert" else self.type_vocab_size

    @property
    def shares_layers(self) -> bool:      # type: ignore[override]
        """Returns whether some layers share weights."""
        return any(len(set(numbers)) < self.depth for numbers in zip(*self.layer_weights))

    @property
    def layer_weights(self) -> list[tuple[int, int]]:
        """The weights of each block, see `Sizes`, with albert's groups (modeling.py).

        They come from a division in floating point, which for some sizes, such as 22 layers in 22
        groups, uses one group twice and another never. A part that several blocks share has the
        number of the first of them.
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

    def weights(self) -> dict[str, str]:
        absent = {"embeddings/token_type_embeddings": not self.segment_types,
                  "pooler/dense": not self.has_pooler,
                  **{f"encoder/layer_{{i}}/attention/self/{part}": not self.learned_heads
                     for part in ("query", "key")}}
        found = {}
        for name, shape in super().weights().items():
            if name == "embeddings/LayerNorm" and self.task_types:
                found["embeddings/task_type_embeddings"] = "ME"
            if not absent.get(name):
                found[name] = shape
            if name == "embeddings/LayerNorm" and self.projects:
                found["embeddings_project"] = "dense EH"
        return found

    def filled(self) -> Self:
        """The same sizes with numbers in place of None, as the files of ALBERT have them."""
        return dataclasses.replace(
            self, embedding_size=self.embedding_width,
            task_type_vocab_size=self.task_type_vocab_size or TASK_TYPES,
            num_hidden_groups=self.num_hidden_groups or self.num_hidden_layers)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """See `Sizes.from_dict`; a file of google-research/albert names no model type."""
        if "num_hidden_groups" in values and "model_type" not in values:
            values = {**ALBERT, **values}
        return super().from_dict(values)

    def to_dict(self) -> dict[str, Any]:
        """See `Sizes.to_dict`; has the model type where its absence would mean another one."""
        values = super().to_dict()
        if "pruned_heads" in values:
            values["pruned_heads"] = {str(layer): list(heads) for layer, heads in self.pruned_heads}
        return values | ({"model_type": self.model_type} if "num_hidden_groups" in values else {})


# The defaults of google-research/albert for keys that its file lacks.
ALBERT = {"model_type": "albert", "embedding_size": 128, "hidden_size": 4096,
          "num_hidden_groups": 1, "num_attention_heads": 64, "intermediate_size": 16384,
          "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0, "type_vocab_size": 2}


def _as_pruned_heads(config: Any) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """`pruned_heads` as sorted pairs (number of the attention, its heads), without empty ones."""
    given = config.pruned_heads
    attentions = {attention for attention, _ in config.layer_weights}
    found: dict[int, tuple[int, ...]] = {}
    try:
        pairs = given.items() if isinstance(given, Mapping) else tuple(given)
        for layer, heads in pairs:
            if not isinstance(layer, (int, str)) or not all(type(head) is int for head in heads):
                raise TypeError
            found[int(layer)] = tuple(sorted(set(heads)))
    except (TypeError, ValueError):
        raise InputError("pruned_heads must map numbers of layers to lists of heads, not "
                         f"{given!r}.") from None
    for layer, of_layer in found.items():
        if layer not in attentions:
            raise InputError(f"pruned_heads: layer {layer} has no separate attention; the layers "
                             f"that have one are {', '.join(map(str, sorted(attentions)))}.")
        for head in of_layer:
            if not 0 <= head < config.num_attention_heads:
                raise InputError(f"pruned_heads: layer {layer} has no head {head}; heads are from "
                                 f"0 to {config.num_attention_heads - 1}.")
    return tuple((layer, heads) for layer, heads in sorted(found.items()) if heads)


def _check_intermediate_sizes(config: Any) -> None:
    """Makes `intermediate_sizes` of an `EncoderConfig` a tuple, or None where all are alike."""
    given = config.intermediate_sizes
    if given is None:
        return
    count = len({feed_forward for _, feed_forward in config.layer_weights})
    is_list = isinstance(given, (list, tuple))
    if not is_list or len(given) != count or not all(
            type(size) is int and 1 <= size <= config.intermediate_size for size in given):
        raise InputError(f"intermediate_sizes must be {count} whole numbers from 1 to "
                         f"intermediate_size ({config.intermediate_size}), not {given!r}.")
    sizes = None if set(given) == {config.intermediate_size} else tuple(given)
    object.__setattr__(config, "intermediate_sizes", sizes)
