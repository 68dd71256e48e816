"""Turns: starting an agent's program, running it, interrupting it, and settling how it ended."""
