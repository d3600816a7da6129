"""NomicBERT (Nussbaum et al., arXiv:2402.01613)."""
