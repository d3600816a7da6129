"""Training: networks and objectives meet data."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["adversarial", "distribution", "resume", "stacking", "transfer", "trials"],
    submod_attrs={
        "batches": ["Feed", "predict", "put"],
        "distribution": [
            "counted_heads", "has_accelerator", "is_chief", "make_strategy", "mean_over_workers",
            "needs_static_shapes"],
        "early_stopping": ["BestWeights"],
        "finetuning": ["FineTuning"],
        "from_settings": ["compiles_each_shape", "make_trainer", "open_strategy"],
        "learners": ["Distiller", "DualTraining", "Electra", "GatedLearner", "KnowledgeTransfer",
                     "Learner", "MultiTaskLearner", "teacher_config"],
        "optimizers": ["OPTIMIZERS", "AdamWeightDecay", "LayerwiseAdaptiveMoments",
                       "WarmupLinearDecay", "make_optimizer"],
        "reporting": ["Reporter", "duration", "evaluated_on", "read_metrics", "write_eval_results"],
        "run": ["Run", "make_evaluation", "named_errors", "save_model", "sole_writer",
                "wait_for_workers"],
        "recipe_settings": ["GeneratorSettings", "StackingSettings"],
        "settings": ["POLICIES", "STRATEGIES", "FineTuneSettings", "SharedSettings",
                     "TrainSettings"],
        "trainer": ["Trainer"],
        "transfer_settings": ["TransferSettings"],
        "transfer": ["freeze", "layer_decay_factors", "reinitialize_top"],
    })
