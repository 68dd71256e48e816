"""Conflicts that a person resolves, in a worktree of its own for each."""
