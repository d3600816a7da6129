"""RoBERTa."""
