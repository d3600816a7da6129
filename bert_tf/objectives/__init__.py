"""Objectives: each owns its head, its labels and its loss."""

import sys
from typing import Any

import lazy_loader

from bert_tf.heads import CAUSAL, FURTHER, HEADS, OF_LEARNERS, TAUGHT

_MODULES = {"base": ["LabelHead", "LinearHead", "Objective", "SmoothedHead"],
            "taught": ["TaughtObjective"]}
for _head in HEADS.values():
    _MODULES.setdefault(_head.module, []).append(_head.objective)
for _objective, (_, _module) in (CAUSAL | FURTHER | OF_LEARNERS | TAUGHT).items():
    _MODULES.setdefault(_module, []).append(_objective)

# BERT's objectives and its relatives' are in their folders.
_from_files, __dir__, __all__ = lazy_loader.attach("bert_tf", submod_attrs={
    _module if "." in _module else f"objectives.{_module}": _classes
    for _module, _classes in _MODULES.items()})


def __getattr__(name: str) -> Any:
    value = globals()[name] = _from_files(name)
    # lazy_loader puts it into bert_tf too, whose own classes have `from_pretrained`.
    vars(sys.modules["bert_tf"]).pop(name, None)
    return value
