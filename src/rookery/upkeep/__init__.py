"""What keeps a project small and safe: backups, cleaning, pruning, and taking it away."""
