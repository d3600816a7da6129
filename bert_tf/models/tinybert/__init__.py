"""TinyBERT."""
