"""Training: networks and objectives meet data."""

from typing import Any

import lazy_loader

_own, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["adversarial", "distribution", "resume", "stacking", "transfer", "trials"],
    submod_attrs={
        "batches": ["Feed", "predict", "put"],
        "distribution": [
            "counted_heads", "has_accelerator", "is_chief", "make_strategy", "mean_over_workers",
            "needs_static_shapes", "open_strategy"],
        "finetuning": ["FineTuning"],
        "learners": ["Distiller", "DualTraining", "GatedLearner", "Learner", "teacher_config"],
        "optimizers": ["OPTIMIZERS", "AdamWeightDecay", "LayerwiseAdaptiveMoments",
                       "WarmupLinearDecay", "make_optimizer"],
        "reporting": ["Reporter", "duration", "evaluated_on", "read_metrics", "write_eval_results"],
        "settings": ["POLICIES", "STRATEGIES", "FineTuneSettings", "SharedSettings",
                     "TrainSettings"],
        "learners.teacher_settings": ["DistillerSettings", "DualTrainingSettings",
                                      "ProjectionSettings", "TeacherSettings"],
        "stacking": ["StackingSettings"],
        "train": ["BestWeights", "Run", "make_evaluation", "named_errors", "save_model",
                  "sole_writer", "wait_for_workers"],
        "trainer": ["Trainer", "compiles_each_shape", "make_trainer"],
        "transfer": ["freeze", "layer_decay_factors", "reinitialize_top"],
    })
_of_relatives, _, _names = lazy_loader.attach("bert_tf", submod_attrs={
    "models.deberta.learner": ["DisentangledElectra"],
    "models.distilbert.settings": ["DistilBertSettings"],
    "models.electra.learner": ["Electra"],
    "models.electra.settings": ["GeneratorSettings"],
    "models.ernie.settings": ["StageSettings"],
    "models.mobilebert.learner": ["KnowledgeTransfer"],
    "models.mobilebert.settings": ["MobileBertSettings"],
    "models.mtdnn.learner": ["MultiTaskLearner"],
    "models.recurrent.settings": ["SampledSettings"],
    "models.xlnet.settings": ["MemorySettings", "XLNetSettings"],
})
__all__ += _names


def __getattr__(name: str) -> Any:
    return (_of_relatives if name in _names else _own)(name)
