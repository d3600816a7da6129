"""Commands that show what a network's attention does and what its vectors hold."""
