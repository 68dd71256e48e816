"""Several attempts at one task side by side, of which one is kept."""
