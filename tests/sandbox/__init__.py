"""Agents in bubblewrap, for real."""
