"""Child processes: starting them, finding them, holding locks for them and ending all that they started."""
