"""Rookery: one repository, one goal, many coding agents that land their work safely."""

__version__ = "0.1.0"
