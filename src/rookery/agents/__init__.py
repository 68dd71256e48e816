"""Agents: named identities with a role, each at work on a task in a worktree of its own."""
