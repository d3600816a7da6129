"""Objectives: each owns its head, its labels and its loss."""

import lazy_loader

from bert_tf.heads import HEADS

_CLASSES = {"base": ["LabelHead", "LinearHead", "Objective", "SmoothedHead"]}
for _head in HEADS.values():
    _CLASSES.setdefault(_head.module, []).append(_head.objective)

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs=_CLASSES)
