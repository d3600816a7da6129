"""ERNIE 1 and 2."""
