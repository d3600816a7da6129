"""Smaller models: distillation, replaced modules, quantisation, pruning.

Shapes in this package: B batch, S sequence, H hidden, N heads, L layers, C classes.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={
    "augmentation": ["MarkingTokenizer", "RandomWords", "random_words"],
    "in_step": ["InStep"],
    "student": ["MultiTaskStudent", "Student", "make_terms"],
    "soft_targets": ["AnswerObjective", "Patience", "SoftTargets"],
    "cutting": ["cut", "dead_heads"],
    "importance": ["attention_entropy", "importance", "normalised", "order_of", "steps_of"],
    "taught_squad": ["TaughtSquadRecords"],
    "teachers": ["TaughtRecords", "Teacher", "Teachers"],
    "transfer": ["TransferExample", "TransferSource"],
})
