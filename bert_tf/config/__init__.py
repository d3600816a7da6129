"""The sizes of networks, under the names of the originals' JSON files, a file for each network or
for a few that are alike.
"""

import lazy_loader

# The networks of relatives by the `model_type` of their configurations: the folder in `models`, and
# the names of both classes. A network of several types is in the folder of the first.
RELATIVES = {
    "fixed_patterns": ("fixed_patterns", "FixedPatternConfig", "FixedPatternEncoder"),
    "universal": ("universal", "UniversalConfig", "UniversalTransformer"),
    "openai-gpt": ("gpt", "GPTConfig", "GPT"),
    "t5": ("t5", "T5Config", "T5"),
    "xlnet": ("xlnet", "XLNetConfig", "XLNet"),
    "elmo": ("recurrent", "ElmoConfig", "Elmo"),
    "sequence_lstm": ("recurrent", "SequenceLstmConfig", "SequenceLstm"),
    "bilstm": ("recurrent", "BiLstmConfig", "BiLstm"),
    "mobilebert": ("mobilebert", "MobileBertConfig", "MobileBert"),
    "modernbert": ("modernbert", "ModernBertConfig", "ModernBert"),
    "mpnet": ("mpnet", "MPNetConfig", "MPNet"),
    "deberta-v2": ("deberta", "DebertaConfig", "Deberta"),
    "eurobert": ("eurobert", "EuroBertConfig", "EuroBert"),
    "neobert": ("neobert", "NeoBertConfig", "EuroBert"),
    "nomic_bert": ("nomicbert", "NomicBertConfig", "NomicBert")}


def homes(folders: dict[str, str], part: str) -> dict[str, list[str]]:
    """{module: classes} of classes, by their folders in `models`, which a file named `part` has."""
    return {f"models.{folder}.{part}": [name for name in folders if folders[name] == folder]
            for folder in folders.values()}


__getattr__, __dir__, __all__ = lazy_loader.attach("bert_tf", submod_attrs={
    "bert.config": ["BertConfig"],
    "config.encoder": ["ALBERT", "CONFIGS", "EncoderConfig", "config_from_dict", "published",
                       "read_config"],
    "config.sizes": ["ACTIVATIONS", "PRESETS", "Sizes"],
    **homes({config: folder for folder, config, _ in RELATIVES.values()}, "config"),
    "models.fixed_patterns.config": ["PATTERNS", "FixedPatternConfig"]})
__all__ += ["RELATIVES"]
