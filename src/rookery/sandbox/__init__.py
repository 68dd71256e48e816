"""Agents in bubblewrap: what they can reach, and how they talk to Rookery from within."""
