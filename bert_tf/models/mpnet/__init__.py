"""MPNet (Song et al., arXiv:2004.09297)."""
