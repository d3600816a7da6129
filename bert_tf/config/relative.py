"""What the sizes of XLNet and of T5 have in common: relative positions, and names of their own."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self

from bert_tf.config.sizes import PRESETS
from bert_tf.errors import InputError, choose_from

LONGEST = 1 << 20


def _own(name):
    """The property `name` of BERT's, whatever the network's own file calls it."""
    return property(lambda self: getattr(self, self.common_names[name]))


class Relative:
    """What code for all networks asks for, as one with relative positions answers.

    Attributes:
        common_names: the network's own name of each of BERT's sizes; perhaps others, by which files
            call a size.
        absent_names: BERT's sizes that it has not.
        own_presets: its published sizes that are not BERT's, by name.
        vocab_multiple: what presets round `vocab_size` up to a multiple of.
    """

    common_names: ClassVar[dict[str, str]] = {}
    absent_names: ClassVar[tuple[str, ...]] = ("max_position_embeddings", "type_vocab_size")
    own_presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    vocab_multiple: ClassVar[int] = 1
    unused_keys: ClassVar[tuple[str, ...]] = ()
    # No length is too long.
    max_position_embeddings: ClassVar[int] = LONGEST
    # Segments have no vectors: XLNet only compares them, and T5 sees the text alone.
    type_vocab_size: ClassVar[int] = 0
    task_types: ClassVar[int] = 0
    inner_group_num: ClassVar[int] = 1
    shares_layers: ClassVar[bool] = False

    hidden_size = embedding_width = _own("hidden_size")
    intermediate_size = _own("intermediate_size")
    num_hidden_layers = depth = _own("num_hidden_layers")
    num_attention_heads = learned_heads = _own("num_attention_heads")

    @property
    def attention_width(self) -> int:
        """The width of all heads together."""
        return self.num_attention_heads * self.head_size        # type: ignore[attr-defined]

    @property
    def layer_weights(self) -> list[tuple[int, int]]:
        """For each layer the numbers of its weights (see `EncoderSizes`)."""
        return [(i, i) for i in range(self.num_hidden_layers)]

    @classmethod
    def preset(cls, name: str, sizes: Mapping[str, Any] = MappingProxyType({}),
               presets: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
               **overrides: Any) -> Self:
        """The published size `name`, or one of BERT's layers and widths.

        Args:
            name: of a size in `own_presets`, or of BERT, or in `presets`.
            sizes: values that come before those, those of `Recipe.sizes`.
            presets: by name, values that come before both, those of `Recipe.presets`.
            overrides: values that come before all of these. In all, names of BERT's sizes stand for
                the network's own.

        Raises:
            InputError: there is no such size, or a value is refused.
        """
        known: Mapping[str, Any] = {}
        if name in cls.own_presets:
            known = cls.own_presets[name]
        elif name in PRESETS:
            layers, width = PRESETS[name]
            known = {"hidden_size": width, "num_hidden_layers": layers,
                     "num_attention_heads": width // 64, "intermediate_size": 4 * width}
        elif name not in presets:
            raise InputError(f"there is no size {name!r}; " + choose_from(
                name, dict.fromkeys([*PRESETS, *cls.own_presets, *presets])))
        values: dict[str, Any] = {}
        for given in (known, sizes, presets.get(name, {}), overrides):
            values |= {cls.common_names.get(key, key): value for key, value in given.items()
                       if key not in cls.absent_names}
        if type(values.get("vocab_size")) is int:
            values["vocab_size"] += -values["vocab_size"] % cls.vocab_multiple
        return cls.from_dict(values)        # type: ignore[attr-defined]
