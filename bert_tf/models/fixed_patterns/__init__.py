"""Heads that attend to fixed places."""
