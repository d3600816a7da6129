"""Text as tokens, and the random streams that all drawing uses."""
