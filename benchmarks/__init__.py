"""Programs that measure: speed beside other implementations, learning beside transformers, and
whether pre-training helps."""
