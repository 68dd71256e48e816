"""What waits for a person."""
