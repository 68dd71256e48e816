"""The radar: overlaps between the branches of living agents."""
