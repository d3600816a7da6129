"""Objectives: each owns its head, its labels and its loss."""

import lazy_loader

from bert_tf.heads import CAUSAL, HEADS, TAUGHT

_CLASSES = {"base": ["LabelHead", "LinearHead", "Objective", "SmoothedHead"],
            "head_gates": ["HeadGates"],
            "taught": ["TaughtObjective"]}
for _head in HEADS.values():
    _CLASSES.setdefault(_head.module, []).append(_head.objective)
for _objective, (_, _module) in (CAUSAL | TAUGHT).items():
    _CLASSES.setdefault(_module, []).append(_objective)

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs=_CLASSES)
