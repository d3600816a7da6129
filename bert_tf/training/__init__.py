"""Training: networks and objectives meet data."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["adversarial", "distribution", "growing_batches", "growth", "resume", "transfer",
                "trials"],
    submod_attrs={
        "batches": ["Feed", "predict", "put"],
        "distribution": [
            "counted_heads", "has_accelerator", "is_chief", "make_alike", "make_strategy",
            "mean_over_workers", "needs_static_shapes", "open_strategy"],
        "finetuning": ["FineTuning"],
        "growth": ["StackSettings"],
        "learners": ["Distiller", "DualTraining", "GatedLearner", "Learner", "teacher_config"],
        "optimizers": ["OPTIMIZERS", "AdamWeightDecay", "LayerwiseAdaptiveMoments",
                       "WarmupLinearDecay", "make_optimizer"],
        "reporting": ["Reporter", "duration", "evaluated_on", "read_metrics", "write_eval_results"],
        "settings": ["POLICIES", "STRATEGIES", "FineTuneSettings", "SharedSettings",
                     "TrainSettings"],
        "learners.teacher_settings": ["DistillerSettings", "DualTrainingSettings",
                                      "ProjectionSettings", "TeacherSettings"],
        "train": ["BestWeights", "Run", "make_evaluation", "named_errors", "save_model",
                  "sole_writer", "wait_for_workers"],
        "trainer": ["Trainer", "compiles_each_shape", "make_trainer"],
        "transfer": ["freeze", "layer_decay_factors", "reinitialize_top"],
    })
