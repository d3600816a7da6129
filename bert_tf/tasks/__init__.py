"""Reads files of fine-tuning tasks into records, and scores predictions."""
