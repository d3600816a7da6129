"""Batches of records: the choice of examples for each step."""
