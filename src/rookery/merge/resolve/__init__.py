"""Resolves conflicts without losing a line."""
