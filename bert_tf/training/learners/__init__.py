"""Learners: a network with objectives, alone, with a teacher or with a generator."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach("bert_tf", submod_attrs={
    "training.learners.distiller": ["Distiller"],
    "training.learners.dual_training": ["DualTraining", "teacher_config"],
    "models.electra.learner": ["Electra"],
    "training.learners.gated": ["GatedLearner"],
    "models.mobilebert.learner": ["KnowledgeTransfer"],
    "training.learners.learner": ["Learner"],
    "models.mtdnn.learner": ["MultiTaskLearner"],
})
