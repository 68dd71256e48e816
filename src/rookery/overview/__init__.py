"""The project at one look: what waits for a person, agents, worktrees, tasks."""
