"""Programs that compare speed with other implementations and learning with transformers, and check
that pre-training helps."""
