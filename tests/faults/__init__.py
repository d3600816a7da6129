"""Disturbs commands as machines do, and checks that running them again mends it."""
