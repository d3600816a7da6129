"""Measures speed and cost, and repeats tables and figures of papers at small size."""
