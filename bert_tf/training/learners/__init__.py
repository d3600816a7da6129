"""Learners: a network with objectives, alone, with a teacher or with a generator."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={
    "distiller": ["Distiller"],
    "dual_training": ["DualTraining", "teacher_config"],
    "electra": ["Electra"],
    "gated": ["GatedLearner"],
    "knowledge_transfer": ["KnowledgeTransfer"],
    "learner": ["Learner"],
    "multitask": ["MultiTaskLearner"],
})
