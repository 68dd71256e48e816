"""What follows from facts, without being asked for: the loop, and the flows that it runs."""
