"""EuroBERT (arXiv:2503.05500)."""
