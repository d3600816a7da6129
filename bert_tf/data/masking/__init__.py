"""Which tokens are masked, when records are made and while training."""
