"""The table of configurations. A class is imported when a file names it."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from bert_tf import config
from bert_tf.config.sizes import Sizes, read_file
from bert_tf.errors import InputError, choose_from

# The architectures that `EncoderConfig` describes; files that name none are of the first.
BERT_TYPES = ("bert", "roberta", "albert", "electra", "spanbert", "structbert", "ernie",
              "distilbert", "xlm-roberta", "camembert")
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
    return CONFIGS[sizes.get("model_type", BERT_TYPES[0])].preset(name, sizes, presets, **overrides)


def config_from_dict(values: dict[str, Any]) -> Sizes:
    """The configuration that `values` describe, by their `model_type`, else by their keys."""
    model_type = values.get("model_type", next(
        (name for name, cls in CONFIGS.items()
         if any(key in values for key in cls.distinctive_keys)), BERT_TYPES[0]))
    if not isinstance(model_type, str) or model_type not in CONFIGS:
        raise InputError(f"model_type {model_type!r} is unknown; "
                         + choose_from(str(model_type), CONFIGS))
    return CONFIGS[model_type].from_dict(values)


def read_config(path: str | os.PathLike) -> Sizes:
    """Reads the configuration in a file such as `bert_config.json`; errors name the file."""
    return read_file(path, config_from_dict)
