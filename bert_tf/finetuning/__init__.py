"""Fine-tuning: from files and a model to a model of a task, its scores and predictions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["jobs"],
    submod_attrs={
        "jobs": ["finetune"],
        "member": ["Member"],
        "mixture": ["MixtureFlags"],
        "model": ["ModelFlags"],
        "run": ["FineTuneRun", "open_mixture", "open_run", "open_task"],
    })
