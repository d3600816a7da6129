"""StructBERT."""
