"""The sizes of BERT's encoder with shared layers, tasks, and embeddings of another width; and the
table of all configurations, of which a class is imported when a file names it."""

import dataclasses
import os
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, Self

from bert_tf import config
from bert_tf.config.changes import ChangeableConfig
from bert_tf.config.sizes import (
    ACTIVATIONS,
    DIRECTIONS,
    Sizes,
    one_of,
    read_file,
    switch,
    whole,
)
from bert_tf.errors import InputError, choose_from

# As in transformers.
TASK_TYPES = 3


class Architecture(NamedTuple):
    """What a model type changes of BERT's network.

    Attributes:
        has_segments: whether the network has segment embeddings. RoBERTa's code has none; its files
            in Hugging Face's format hold one row of zeros for them.
        has_segment_table: whether files hold a table of them.
        head_initializer: see `Sizes`.
        pooler_type: the only one; None: any.
        skips_padding: see `Sizes`.
    """

    has_segments: bool = True
    has_segment_table: bool = True
    head_initializer: str | None = None
    pooler_type: str | None = None
    skips_padding: bool = False


# The types that `EncoderConfig` describes, by Hugging Face's names; SpanBERT and StructBERT, which
# have none there, are of the architecture bert.
BERT_TYPES = {
    **dict.fromkeys(("bert", "albert", "spanbert", "structbert", "ernie"), Architecture()),
    **dict.fromkeys(("roberta", "xlm-roberta", "camembert"),
                    Architecture(has_segments=False, skips_padding=True)),
    # google-research/electra uses the default of `tf.layers.dense`.
    "electra": Architecture(head_initializer="glorot_uniform"),
    "distilbert": Architecture(has_segments=False, has_segment_table=False,
                               pooler_type="first_token_relu")}
# The defaults of google-research/albert for keys that its file lacks.
ALBERT = {"model_type": "albert", "embedding_size": 128, "hidden_size": 4096,
          "num_hidden_groups": 1, "num_attention_heads": 64, "intermediate_size": 16384,
          "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0, "type_vocab_size": 2}
_GROUPS = "num_hidden_groups"      # a key of ALBERT's files, which may name no model type
# The class of each `model_type`.
_NAMES = {
    **dict.fromkeys(BERT_TYPES, "EncoderConfig"),
    **{model_type: name for model_type, (_, name, _) in config.RELATIVES.items()}}


@dataclasses.dataclass(frozen=True)
class EncoderConfig(ChangeableConfig):
    """Sizes of the encoder of BERT or of a near relative.

    Attributes:
        model_type: Hugging Face's name of the architecture, or another key of `BERT_TYPES`.
        embedding_size: E, the width of the embeddings; H if None. A dense layer projects E to
            another H (arXiv:1909.11942, section 3.1).
        project_embeddings: whether it also projects E to an equal H, as transformers' ALBERT does.
        num_hidden_groups: groups of layers that share weights; None: each layer has its own.
        inner_group_num: number of blocks of a layer, each with its own weights.
        shared_parts: part that the layers of a group share: "all", "attention" or "feed_forward"
            (arXiv:1909.11942, table 4).
        pooler_type: "first_token_transform", a dense layer with tanh on the vector of the first
            token; "first_token_relu" or "first_token_gelu", the same with ReLU or the exact GELU;
            "first_token_tanh_relu", with tanh and ReLU; or "first_token", that vector itself.
        use_task_id: whether an embedding of the task is added to each token's (arXiv:1907.12412).
        task_type_vocab_size: number of tasks; 3 if None, as in Hugging Face's files.
        directionality: "bidi", or "left_to_right": a token attends to itself and to the tokens on
            its left only (arXiv:1810.04805, section 5.1). The pooler then reads the last token,
            which alone attends to all others.
        prediction_act: see `Sizes`; transformers fixes it for some types.
    """

    added_keys: ClassVar[tuple[str, ...]] = (
        "layer_norm_eps", "model_type", "embedding_size", "num_hidden_groups",
        "task_type_vocab_size", "inner_group_num", "shared_parts", "pooler_type", "use_task_id",
        "directionality", "prediction_act", "project_embeddings", *ChangeableConfig.changes)
    # These describe a pooler and other parts that the originals never build.
    unused_keys: ClassVar = ("pooler_fc_size", "pooler_num_attention_heads",
                             "pooler_num_fc_layers", "pooler_size_per_head", "down_scale_factor",
                             "net_structure_type", "gap_size", "num_memory_blocks", "ln_type")

    model_type: str = one_of("bert", tuple(BERT_TYPES))
    embedding_size: int | None = whole(None)
    num_hidden_groups: int | None = whole(None, "layers")
    inner_group_num: int = whole(1, most=64)
    shared_parts: str = one_of("all", ("all", "attention", "feed_forward"))
    pooler_type: str = one_of("first_token_transform", (
        "first_token_transform", "first_token", "first_token_relu", "first_token_gelu",
        "first_token_tanh_relu"))
    use_task_id: bool = switch(False)
    task_type_vocab_size: int | None = whole(None)
    directionality: str = one_of("bidi", DIRECTIONS)
    prediction_act: str | None = one_of(None, (None, *ACTIVATIONS))      # type: ignore[misc]
    project_embeddings: bool = switch(False)

    def check(self) -> None:
        super().check()
        if self.prediction_act == self.hidden_act:
            object.__setattr__(self, "prediction_act", None)
        only = self._architecture.pooler_type
        if only and self.pooler_type != only:
            raise InputError(f"pooler_type is {self.pooler_type}; with model_type "
                             f"{self.model_type} it must be {only}.")

    @property
    def _architecture(self):
        return BERT_TYPES.get(self.model_type, Architecture())

    @property
    def is_plain(self) -> bool:      # type: ignore[override]
        """Returns whether the network is BERT itself, with its own layers and nothing else."""
        return not (self.is_cut or self.is_rounded or self.projects or self.task_types
                    or self.is_causal) and (
            self.has_segments and self.pooler_type == "first_token_transform"
            and self.layer_weights == [(i, i) for i in range(self.num_hidden_layers)])

    @property
    def projects(self) -> bool:
        return self.project_embeddings or super().projects

    @property
    def head_initializer(self) -> str | None:      # type: ignore[override]
        return self._architecture.head_initializer

    @property
    def task_types(self) -> int:      # type: ignore[override]
        return (self.task_type_vocab_size or TASK_TYPES) if self.use_task_id else 0

    @property
    def has_segments(self) -> bool:      # type: ignore[override]
        return self._architecture.has_segments

    @property
    def skips_padding(self) -> bool:      # type: ignore[override]
        return self._architecture.skips_padding

    @property
    def segment_types(self) -> int:
        return self.type_vocab_size if self._architecture.has_segment_table else 0

    @property
    def shares_layers(self) -> bool:      # type: ignore[override]
        return any(len(set(numbers)) < self.depth for numbers in zip(*self.layer_weights))

    @property
    def layer_weights(self) -> list[tuple[int, int]]:
        """The weights of each block, see `Sizes`, with groups as in the original's modeling.py.

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
        weights = {}
        for name, shape in super().weights().items():
            if name == "embeddings/LayerNorm" and self.task_types:
                weights["embeddings/task_type_embeddings"] = "ME"
            if not absent.get(name):
                weights[name] = shape
            if name == "embeddings/LayerNorm" and self.projects:
                weights["embeddings_project"] = "dense EH"
        return weights

    def filled(self) -> Self:
        """See `Sizes.filled`."""
        return dataclasses.replace(
            self, embedding_size=self.embedding_width,
            task_type_vocab_size=self.task_type_vocab_size or TASK_TYPES,
            num_hidden_groups=self.num_hidden_groups or self.num_hidden_layers)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """See `Sizes.from_dict`; groups of layers without a model type are ALBERT's."""
        if _GROUPS in values and "model_type" not in values:
            values = {**ALBERT, **values}
        return super().from_dict(values)

    def to_dict(self) -> dict[str, Any]:
        """See `Sizes.to_dict`; has the model type where its absence would mean another one."""
        values = super().to_dict()
        return values | ({"model_type": self.model_type} if _GROUPS in values else {})


class _Classes(Mapping[str, Any]):
    """The classes of `bert_tf.config` by their `model_type`."""

    def __getitem__(self, model_type: str) -> Any:
        return getattr(config, _NAMES[model_type])

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


CONFIGS: Mapping[str, Any] = _Classes()


def published(name: str, sizes: Mapping[str, Any], presets: Mapping[str, Mapping[str, Any]],
              **overrides: Any) -> Sizes:
    """Returns the size `name` of a recipe; see `EncoderConfig.preset`."""
    return CONFIGS[sizes.get("model_type", "bert")].preset(name, sizes, presets, **overrides)


def config_from_dict(values: dict[str, Any]) -> Sizes:
    """The configuration that `values` describe, by their `model_type`, else by their keys."""
    model_type = values.get("model_type", next(
        (name for name, cls in CONFIGS.items()
         if any(key in values for key in cls.distinctive_keys)), "bert"))
    if not isinstance(model_type, str) or model_type not in CONFIGS:
        raise InputError(f"model_type {model_type!r} is unknown; "
                         + choose_from(str(model_type), CONFIGS))
    return CONFIGS[model_type].from_dict(values)


def read_config(path: str | os.PathLike) -> Sizes:
    """Reads the configuration in a file such as `bert_config.json`; errors name the file."""
    return read_file(path, config_from_dict)
