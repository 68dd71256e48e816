"""Roles: what each kind of agent is for, and what it may do."""
