"""DeBERTa of versions 2 and 3 (He et al., arXiv:2006.03654, arXiv:2111.09543)."""
