"""Jujutsu, through its command line."""
