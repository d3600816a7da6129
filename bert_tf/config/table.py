"""The table of configurations. A class is imported when a file names it."""

import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from bert_tf import config
from bert_tf.config.sizes import Sizes, read_file
from bert_tf.errors import InputError, choose_from


class Architecture(NamedTuple):
    """What a model type changes of BERT's network.

    Attributes:
        has_segments: whether the network has segment embeddings. RoBERTa's code has none; its files
            in Hugging Face's format hold one row of zeros for them.
        has_segment_table: whether files hold a table of them.
        head_initializer: see `Sizes`.
        pooler_type: the only one; None: any.
    """

    has_segments: bool = True
    has_segment_table: bool = True
    head_initializer: str | None = None
    pooler_type: str | None = None


# The types that `EncoderConfig` describes, by Hugging Face's names; SpanBERT and StructBERT, which
# have none there, are of the architecture bert.
BERT_TYPES = {
    **dict.fromkeys(("bert", "albert", "spanbert", "structbert", "ernie"), Architecture()),
    **dict.fromkeys(("roberta", "xlm-roberta", "camembert"), Architecture(has_segments=False)),
    # google-research/electra uses the default of `tf.layers.dense`.
    "electra": Architecture(head_initializer="glorot_uniform"),
    "distilbert": Architecture(has_segments=False, has_segment_table=False,
                               pooler_type="first_token_relu")}
# The defaults of google-research/albert for keys that its file lacks.
ALBERT = {"model_type": "albert", "embedding_size": 128, "hidden_size": 4096,
          "num_hidden_groups": 1, "num_attention_heads": 64, "intermediate_size": 16384,
          "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0, "type_vocab_size": 2}
# Keys of files that name no model type, and what such a file lacks; other files are BERT's.
UNNAMED = {"num_hidden_groups": ALBERT}
# The class of each `model_type`.
_NAMES = {
    **dict.fromkeys(BERT_TYPES, "EncoderConfig"), "fixed_patterns": "FixedPatternConfig",
    "universal": "UniversalConfig", "openai-gpt": "GPTConfig", "t5": "T5Config",
    "xlnet": "XLNetConfig", "elmo": "ElmoConfig", "sequence_lstm": "SequenceLstmConfig",
    "bilstm": "BiLstmConfig", "mobilebert": "MobileBertConfig",
    "modernbert": "ModernBertConfig", "mpnet": "MPNetConfig", "deberta-v2": "DebertaConfig"}


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


def with_defaults(values: dict[str, Any]) -> dict[str, Any]:
    """The `values` of a file with the defaults of its system, if it names no model type."""
    for key, defaults in UNNAMED.items():
        if key in values and "model_type" not in values:
            return {**defaults, **values}
    return values


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
