"""What the guard knows of each program."""
