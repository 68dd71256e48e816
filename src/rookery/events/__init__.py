"""The outbox: every fact and its event commit together, and everybody reads the same events."""
