"""The tiers of conflict resolution, one module each, in the order in which they are tried."""
