"""GPT, and BERT from left to right."""
