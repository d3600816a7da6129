"""Optimizers and schedules of the learning rate, also as the original systems have them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={
    "adam": ["AdamWeightDecay", "LayerwiseAdaptiveMoments", "make_optimizer"],
    "muon": ["Muon"],
    "schedules": ["WarmupLinearDecay"],
    "table": ["NOT_DECAYED", "OPTIMIZERS", "PROGRESSIVE", "SCHEDULES", "help_of"],
    "variants": ["Adadelta", "Adafactor", "Adagrad", "Adamax", "AdamaxWeightDecay", "AveragedAdam",
                 "BertAdam", "CountedAdam", "ProgressiveLamb", "RectifiedAdam",
                 "StableAdamW"],
})
