"""Recurrent networks: ELMo and the LSTMs of sequences."""
