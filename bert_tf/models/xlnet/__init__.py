"""XLNet and Transformer-XL."""
