"""Objectives: each owns its head, and knows its labels and its loss."""
