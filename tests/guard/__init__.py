"""The guard, call by call."""
