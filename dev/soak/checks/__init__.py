"""What must hold after a soak, each looked at from outside: with plain git, a copy of the database, and `/proc`."""
