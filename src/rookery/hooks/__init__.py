"""What happens at an event of an agent's program, and our hooks in its settings."""
