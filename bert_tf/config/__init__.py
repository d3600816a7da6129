"""The sizes of networks, under the names of the originals' JSON files, a file for each network or
for a few that are alike.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach("bert_tf", submod_attrs={
    "bert.config": ["BertConfig"],
    "config.encoder": ["ALBERT", "CONFIGS", "EncoderConfig", "config_from_dict", "published",
                       "read_config"],
    "models.deberta.config": ["DebertaConfig"],
    "models.eurobert.config": ["EuroBertConfig"],
    "models.fixed_patterns.config": ["PATTERNS", "FixedPatternConfig"],
    "models.gpt.config": ["GPTConfig"],
    "models.mobilebert.config": ["MobileBertConfig"],
    "models.modernbert.config": ["ModernBertConfig"],
    "models.mpnet.config": ["MPNetConfig"],
    "models.neobert.config": ["NeoBertConfig"],
    "models.nomicbert.config": ["NomicBertConfig"],
    "models.recurrent.config": ["BiLstmConfig", "ElmoConfig", "SequenceLstmConfig"],
    "config.sizes": ["ACTIVATIONS", "PRESETS", "Sizes"],
    "models.t5.config": ["T5Config"],
    "models.universal.config": ["UniversalConfig"],
    "models.xlnet.config": ["XLNetConfig"],
})
