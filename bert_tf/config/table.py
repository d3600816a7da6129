"""Which configuration a file describes."""

import os
from collections.abc import Mapping
from typing import Any

from bert_tf.config.bilstm import BiLstmConfig
from bert_tf.config.encoder import EncoderConfig, FixedPatternConfig
from bert_tf.config.gpt import GPTConfig
from bert_tf.config.mobilebert import MobileBertConfig
from bert_tf.config.recurrent import ElmoConfig, SequenceLstmConfig
from bert_tf.config.sizes import Sizes, read_file
from bert_tf.config.t5 import T5Config
from bert_tf.config.universal import UniversalConfig
from bert_tf.config.xlnet import XLNetConfig
from bert_tf.errors import InputError, choose_from

# The configuration of each `model_type`; the first is that of files which name none.
CONFIGS: dict[str, Any] = {
    **dict.fromkeys(EncoderConfig.choices["model_type"], EncoderConfig),
    "fixed_patterns": FixedPatternConfig, "universal": UniversalConfig, "openai-gpt": GPTConfig,
    "t5": T5Config, "xlnet": XLNetConfig, "elmo": ElmoConfig,
    "sequence_lstm": SequenceLstmConfig, "bilstm": BiLstmConfig, "mobilebert": MobileBertConfig}


def published(name: str, sizes: Mapping[str, Any], presets: Mapping[str, Mapping[str, Any]],
              **overrides: Any) -> Sizes:
    """The size `name` of a recipe; see `EncoderConfig.preset`.

    Raises:
        InputError: there is no such size, or a value is refused.
    """
    kind: Any = CONFIGS[sizes.get("model_type", next(iter(CONFIGS)))]
    return kind.preset(name, sizes, presets, **overrides)


def config_from_dict(values: dict[str, Any]) -> Sizes:
    """The configuration that `values` describe: that of their `model_type`, else of their keys.

    Raises:
        InputError: the model type is unknown, or a value is refused.
    """
    model_type = values.get("model_type", next(
        (name for name, cls in CONFIGS.items()
         if any(key in values for key in cls.distinctive_keys)), next(iter(CONFIGS))))
    if not isinstance(model_type, str) or model_type not in CONFIGS:
        raise InputError(f"model_type {model_type!r} is unknown; "
                         + choose_from(str(model_type), CONFIGS))
    return CONFIGS[model_type].from_dict(values)


def read_config(path: str | os.PathLike) -> Sizes:
    """The configuration in a file such as `bert_config.json`.

    Raises:
        InputError: see `read_json` and `config_from_dict`; names the file.
    """
    return read_file(path, config_from_dict)
