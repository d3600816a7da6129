"""The sizes of networks, under the names of the originals' JSON files, a file for each network or
for a few that are alike.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={
    "encoder": ["ALBERT", "EncoderConfig"],
    "fixed_patterns": ["PATTERNS", "FixedPatternConfig"],
    "gpt": ["GPTConfig"],
    "mobilebert": ["MobileBertConfig"],
    "recurrent": ["BiLstmConfig", "ElmoConfig", "SequenceLstmConfig"],
    "sizes": ["ACTIVATIONS", "PRESETS", "Sizes"],
    "t5": ["T5Config"],
    "table": ["CONFIGS", "config_from_dict", "published", "read_config"],
    "universal": ["UniversalConfig"],
    "xlnet": ["XLNetConfig"],
})
