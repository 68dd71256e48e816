"""Worktrees of agents: made, provisioned, snapshotted and removed without losing anything."""
