"""Objectives: each owns its head, its labels and its loss."""

import lazy_loader

from bert_tf.heads import CAUSAL, FURTHER, HEADS, OF_LEARNERS, TAUGHT

_MODULES = {"base": ["LabelHead", "LinearHead", "Objective", "SmoothedHead"],
            "taught": ["TaughtObjective"]}
for _head in HEADS.values():
    _MODULES.setdefault(_head.module, []).append(_head.objective)
for _objective, (_, _module) in (CAUSAL | FURTHER | OF_LEARNERS | TAUGHT).items():
    _MODULES.setdefault(_module, []).append(_objective)

# BERT's objectives and its relatives' are in their folders.
__getattr__, __dir__, __all__ = lazy_loader.attach("bert_tf", submod_attrs={
    _module if "." in _module else f"objectives.{_module}": _classes
    for _module, _classes in _MODULES.items()})
