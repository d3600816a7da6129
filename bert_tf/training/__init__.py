"""Training: networks and objectives meet data."""
