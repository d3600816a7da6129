"""Measures speed, and compares systems and methods."""
