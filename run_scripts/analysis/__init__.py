"""Commands that show a network's attention and the content of its vectors."""
