"""Fine-tuning: from files and a model to a model of a task, its scores and predictions."""
