"""Tests of `rookery.db`."""
