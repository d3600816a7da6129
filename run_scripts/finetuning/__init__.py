"""What the scripts that fine-tune share: flags, a model to begin with, and the steps of a run."""
