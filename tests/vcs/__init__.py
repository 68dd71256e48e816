"""Tests of git and jj, with the real programs."""
