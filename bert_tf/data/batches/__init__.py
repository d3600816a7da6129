"""Batches of records: which example comes at which step."""
