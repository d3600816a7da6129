"""From text to vocabulary ids, one file an algorithm."""
