"""The Universal Transformer."""
