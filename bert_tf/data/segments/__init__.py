"""Segments, rows and streams that documents are cut into."""
