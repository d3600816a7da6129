"""Smaller models: distillation, replaced modules, quantisation, pruning. Shapes in this package: B
batch, S sequence, H hidden, N heads, L layers, C classes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={
    "augmentation": ["MarkingTokenizer", "RandomWords", "random_words"],
    "student": ["AnswerObjective", "MultiTaskStudent", "Patience", "SoftTargets", "Student",
                "make_terms"],
    "pruning": ["attention_entropy", "cut", "dead_heads", "importance", "normalised", "order_of",
                "steps_of", "to_unit_range"],
    "taught_records": ["TaughtRecords", "TaughtSquadRecords"],
    "teachers": ["InStep", "Teacher", "Teachers"],
    "transfer": ["TransferExample", "TransferSource"],
})
