"""The guard: judges every tool call of an agent before it runs, from the role, the profile and the bounds alone."""
