"""NeoBERT (arXiv:2502.19587)."""
