"""Shows what attention does, and what the vectors of each layer hold."""
