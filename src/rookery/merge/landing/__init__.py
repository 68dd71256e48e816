"""Landing one candidate, and what follows from it."""
