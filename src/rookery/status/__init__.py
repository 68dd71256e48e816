"""What every agent is doing, derived on read, and what has happened."""
