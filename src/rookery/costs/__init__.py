"""Costs: what turns used, and what that is in money."""
