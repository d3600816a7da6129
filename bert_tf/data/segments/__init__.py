"""How documents become segments, rows and streams."""
