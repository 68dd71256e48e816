"""Tests of mail, with a real database and real processes."""
