"""Tables and figures of papers at small size: a file each, with its command and its result."""
