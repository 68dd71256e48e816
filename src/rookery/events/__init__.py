"""The outbox: a fact and its event commit together, and every reader sees the same events."""
