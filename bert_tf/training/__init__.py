"""Training: networks and objectives meet data."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["distribution", "outcomes", "resume", "transfer"],
    submod_attrs={
        "best": ["BestWeights"],
        "building": ["make_trainer", "open_strategy"],
        "distribution": [
            "has_accelerator", "is_chief", "make_strategy", "mean_over_workers",
            "needs_static_shapes"],
        "feed": ["Feed"],
        "finetuning": ["FineTuning", "Goal"],
        "learner": ["Learner"],
        "loop": ["Trainer"],
        "optimizer": [
            "AdamWeightDecay", "LayerwiseAdaptiveMoments", "WarmupLinearDecay", "make_optimizer"],
        "prediction": ["predict", "put"],
        "reporting": ["Reporter", "duration", "read_metrics", "write_eval_results"],
        "run": ["Run", "make_evaluation", "save_model", "wait_for_workers"],
        "settings": ["OPTIMIZERS", "POLICIES", "STRATEGIES", "FineTuneSettings", "TrainSettings"],
        "transfer": ["freeze", "layer_decay_factors", "reinitialize_top"],
    })
